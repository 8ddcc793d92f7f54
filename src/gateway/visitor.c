/* SPDX-License-Identifier: Apache-2.0 */
/* The states, deadlines and end of a connection. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/visitor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define ACCEPT_US 20 /* time to accept a connection and to close it */
#define STATE_TURNS 8
#define LINGER_READS 8 /* reads in one turn of the loop */

static const char *const state_names[] = {
        [VISITOR_BALANCED] = "BALANCED",
        [VISITOR_FIRST] = "FIRST",
        [VISITOR_HTTP2] = "HTTP2",
        [VISITOR_HELLO] = "HELLO",
        [VISITOR_HEAD] = "HEAD",
        [VISITOR_BODY] = "BODY",
        [VISITOR_GREETING] = "GREETING",
        [VISITOR_LOGIN] = "LOGIN",
        [VISITOR_ASKING] = "ASKING",
        [VISITOR_REFUSING] = "REFUSING",
        [VISITOR_ENTERING] = "ENTERING",
        [VISITOR_RELAY] = "RELAY",
        [VISITOR_TURNING] = "TURNING",
        [VISITOR_LINGER] = "LINGER",
        [VISITOR_CLOSED] = "CLOSED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == VISITOR_STATE_COUNT, "a name per state");

/* States in which a visitor waits for a worker, or may begin to after the client's next bytes. */
static const bool is_arriving[VISITOR_STATE_COUNT] = {[VISITOR_BALANCED] = true,
        [VISITOR_FIRST] = true,
        [VISITOR_HELLO] = true,
        [VISITOR_HEAD] = true,
        [VISITOR_BODY] = true,
        [VISITOR_GREETING] = true,
        [VISITOR_LOGIN] = true,
        [VISITOR_ASKING] = true,
        [VISITOR_ENTERING] = true,
        [VISITOR_TURNING] = true};

void visitors_tell_held(struct gateway *g)
{
	uint8_t message[64];

	if (!g->hold_id || g->arriving)
		return;
	ipc_send(&g->supervisor, message,
	        message_empty(message, sizeof(message), MESSAGE_GATEWAY_HELD, g->hold_id), NULL, 0);
	g->hold_id = 0;
}

void visitor_enter(struct visitor *c, enum visitor_state state)
{
	struct gateway *g = c->gateway;

	log_debug(
	        "visitor :%u: %s -> %s", c->source_port, state_names[c->state], state_names[state]);
	c->state = state;
	g->arriving += is_arriving[state];
	g->arriving -= c->arriving;
	c->arriving = is_arriving[state];
	visitors_tell_held(g);
}

static void on_deferred_free(struct loop_task *task)
{
	free(container_of(task, struct visitor, deferred_free));
}

void visitor_leave_question(struct visitor *c)
{
	if (c->hh.tbl)
		HASH_DELETE(hh, c->gateway->entering, c);
	c->hh.tbl = NULL;
}

static void leave_unproved(struct visitor *c, bool proved)
{
	struct gateway *g = c->gateway;

	if (!list_has(&c->place))
		return;
	if (c->address)
		address_end(g, c->address, proved);
	if (!proved)
		pace_charge(g, c->spent_us + (c->turn_us ? clock_monotonic_us() - c->turn_us : 0));
	c->address = NULL;
	list_remove(&c->place);
	g->unproved_count--;
	receivers_resume(g);
}

void visitor_count_proved(struct visitor *c)
{
	leave_unproved(c, true);
}

/* Lets go of the worker. */
static void leave_worker(struct visitor *c)
{
	loop_io_close(&c->back.io);
	if (c->back.fd >= 0)
		close(c->back.fd);
	buf_fini(&c->back.unsent);
	c->back = (struct back){.fd = -1, .unsent = c->back.unsent};
}

void visitor_close(struct visitor *c)
{
	if (c->state == VISITOR_CLOSED)
		return;
	visitor_enter(c, VISITOR_CLOSED);
	visitor_leave_question(c);
	visitor_forget_body(c);
	leave_unproved(c, false);
	http2_close(c);
	list_remove(&c->of_session);
	c->session = NULL;
	loop_deadline_clear(&c->deadline);
	loop_task_cancel(c->gateway->loop, &c->wake);
	front_close(&c->front);
	leave_worker(c);
	buf_fini(&c->in);
	loop_task_queue(c->gateway->loop, &c->deferred_free);
}

void visitor_cut(struct visitor *c)
{
	visitor_close(c);
}

/* Reads on while the last bytes are on their way, so that no reset overtakes them. */
static bool linger(struct visitor *c)
{
	struct slice input;
	enum front_status status = front_flush(&c->front) ? FRONT_OK : FRONT_ERROR;

	for (unsigned i = 0; i < LINGER_READS && status == FRONT_OK; i++)
		status = front_read(&c->front, GATEWAY_FIRST, &input);
	if (status == FRONT_OK)
		loop_task_queue(c->gateway->loop, &c->wake);
	else if (status == FRONT_ERROR || (status == FRONT_EOF && front_is_clear(&c->front)))
		visitor_close(c);
	return false;
}

/* Waits longer for a client with a session that takes its last bytes slowly. */
static void linger_timeout(struct visitor *c)
{
	const size_t unsent = c->front.unsent.len;

	if (!c->session || !unsent || unsent == c->unsent_seen) {
		visitor_close(c);
		return;
	}
	c->unsent_seen = unsent;
	loop_deadline_set(&c->gateway->waits[WAIT_LINGER], &c->deadline);
}

/* Reads nothing: the client's bytes wait in the kernel. Closes a stream that was reset. */
static bool wait_on(struct visitor *c)
{
	if (c->front.stream && c->front.broken)
		visitor_close(c);
	return false;
}

/* The worker ends the connection once it has answered; then the next head is treated as that of a
 * new connection. */
static bool turn(struct visitor *c)
{
	if (!visitor_drain(c)) {
		visitor_close(c);
		return false;
	}
	if (!c->back.over)
		return false;
	leave_worker(c);
	list_remove(&c->of_session);
	c->of_session = (struct list){0};
	c->session = NULL;
	if (!visitor_begin_anew(c)) {
		visitor_close(c);
		return false;
	}
	c->looked = 0;
	c->asked = 0;
	c->decided = c->tunnel = false;
	visitor_enter(c, VISITOR_HEAD);
	return true;
}

static bool relay(struct visitor *c)
{
	if (visitor_relay(c))
		return c->state == VISITOR_TURNING;
	if (!c->back.over || c->front.broken) {
		visitor_close(c);
		return false;
	}
	visitor_enter(c, VISITOR_LINGER);
	loop_deadline_set(&c->gateway->waits[WAIT_LINGER], &c->deadline);
	return true;
}

static bool (*const handlers[VISITOR_STATE_COUNT])(struct visitor *c) = {
        [VISITOR_BALANCED] = visitor_balanced,
        [VISITOR_FIRST] = visitor_first,
        [VISITOR_HTTP2] = visitor_http2,
        [VISITOR_HELLO] = visitor_hello,
        [VISITOR_HEAD] = visitor_head,
        [VISITOR_GREETING] = visitor_greeting,
        [VISITOR_BODY] = visitor_body,
        [VISITOR_LOGIN] = visitor_login,
        [VISITOR_ASKING] = wait_on,
        [VISITOR_REFUSING] = wait_on,
        [VISITOR_ENTERING] = wait_on,
        [VISITOR_RELAY] = relay,
        [VISITOR_TURNING] = turn,
        [VISITOR_LINGER] = linger,
        [VISITOR_CLOSED] = wait_on,
};

static void take_turns(struct visitor *c)
{
	for (unsigned i = 0; i < STATE_TURNS && handlers[c->state](c); i++)
		;
}

/* Measures the time of a connection without a proof. It is charged when the connection ends, which
 * may be during this turn. */
void visitor_go_on(struct visitor *c)
{
	if (!list_has(&c->place)) {
		take_turns(c);
		return;
	}
	c->turn_us = clock_monotonic_us();
	take_turns(c);
	if (list_has(&c->place))
		c->spent_us += clock_monotonic_us() - c->turn_us;
	c->turn_us = 0;
}

static void on_front(struct loop_io *io, unsigned events)
{
	struct visitor *c = container_of(io, struct visitor, front.io);

	front_note(&c->front, events);
	visitor_go_on(c);
}

static void on_back(struct loop_io *io, unsigned events)
{
	struct visitor *c = container_of(io, struct visitor, back.io);

	if (events & LOOP_CLOSED)
		c->back.hung_up = true;
	if (events & (LOOP_READ | LOOP_CLOSED))
		c->back.readable = true;
	visitor_go_on(c);
}

static void on_wake(struct loop_task *task)
{
	visitor_go_on(container_of(task, struct visitor, wake));
}

void visitor_on_deadline(struct loop_deadline *deadline)
{
	struct visitor *c = container_of(deadline, struct visitor, deadline);
	/* The supervisor may still give the connection to a worker. An answer would be sealed with
	 * the keys and numbers that the worker uses, so there is none. */
	const bool handed = c->state == VISITOR_ENTERING && c->hh.tbl && c->handing;

	if (c->state == VISITOR_REFUSING) {
		visitor_answer(c, c->answer, 0, "");
	} else if (c->state == VISITOR_ASKING && !c->hh.tbl) {
		visitor_show_again(c);
		visitor_go_on(c);
	} else if (!handed && (c->state == VISITOR_ASKING || c->state == VISITOR_ENTERING)) {
		if (c->state == VISITOR_ASKING || c->hh.tbl || !visitor_ask(c))
			visitor_answer(c, ANSWER_AWAY, 0, "");
	} else if (c->state == VISITOR_LINGER) {
		linger_timeout(c);
	} else if (c->state == VISITOR_HTTP2) {
		visitor_http2_on_deadline(c);
	} else if (c->state == VISITOR_RELAY || c->state == VISITOR_TURNING) {
		visitor_look_again(c);
		visitor_go_on(c);
	} else {
		visitor_close(c);
	}
}

bool visitor_begin_anew(struct visitor *c)
{
	struct gateway *g = c->gateway;

	if (c->state != VISITOR_BALANCED) {
		c->address = address_begin(g, &c->source);
		if (!c->address)
			return false;
	}
	list_append(&g->unproved, &c->place);
	g->unproved_count++;
	loop_deadline_set(&g->waits[WAIT_PROOF], &c->deadline);
	return true;
}

void visitor_init_in(struct buf *in)
{
	buf_init_secret(in, GATEWAY_PLAIN_MAX + 2 * GATEWAY_FIRST);
}

/* Returns NULL without memory, or if the address may have no more connections without a proof. */
static struct visitor *visitor_new(
        struct gateway *g, const struct ip *source, uint16_t port, bool balanced)
{
	struct visitor *c = source->family ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->gateway = g;
	c->source = *source;
	c->source_port = port;
	visitor_enter(c, balanced ? VISITOR_BALANCED : VISITOR_FIRST);
	if (!visitor_begin_anew(c)) {
		visitor_enter(c, VISITOR_CLOSED);
		free(c);
		return NULL;
	}
	c->front.fd = c->back.fd = -1;
	c->wake.run = on_wake;
	c->deferred_free.run = on_deferred_free;
	visitor_init_in(&c->in);
	buf_init(&c->back.unsent, 2 * GATEWAY_CHUNK);
	return c;
}

static void take_kind(struct visitor *c, bool callback)
{
	c->callback = callback;
	c->form = callback ? MESSAGE_FORM_CHECK_HEAD : MESSAGE_FORM_PROXY;
}

struct visitor *visitor_open_stream(struct visitor *connection, struct http2_stream *stream)
{
	struct visitor *c = visitor_new(
	        connection->gateway, &connection->source, connection->source_port, false);

	if (!c)
		return NULL;
	take_kind(c, connection->callback);
	front_open_stream(c->gateway, &c->front, &connection->front, stream);
	visitor_enter(c, VISITOR_HEAD);
	return c;
}

bool visitor_open(struct receiver *r, int fd, const struct sockaddr *from)
{
	struct gateway *g = r->gateway;
	uint16_t port;
	const struct ip source = ip_from_sockaddr(from, &port);
	struct visitor *c = visitor_new(g, &source, port, balancer_has(g, &source));

	if (!c) {
		close(fd);
		return false;
	}
	c->transparent = r->kind == CONFIG_GATEWAY_TRANSPARENT;
	take_kind(c, r->kind == CONFIG_GATEWAY_CALLBACKS);
	if (front_open(g, &c->front, fd, config_gateway_kind_has_tls(r->kind), on_front) != 0) {
		c->front.fd = -1;
		visitor_close(c);
		return false;
	}
	c->spent_us = ACCEPT_US;
	/* The first bytes are read in the next turn: by then the gateway knows every session that
	 * was announced before the client connected. */
	return true;
}

int visitor_take_back(struct visitor *c, int fd)
{
	int rc = loop_io_open(
	        c->gateway->loop, &c->back.io, fd, LOOP_READ | LOOP_WRITE | LOOP_CLOSED, on_back);

	if (rc)
		return rc;
	c->back.fd = fd;
	c->back.readable = true;
	return 0;
}

void visitors_close(struct gateway *g)
{
	while (!list_is_empty(&g->unproved))
		visitor_close(container_of(g->unproved.next, struct visitor, place));
	http2_close_all(g);
	sessions_free(g);
}
