/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection from the sandbox, as a state machine. table[state][event] names a handler; the
 * handler returns the next state; dispatch() changes the state, sets its deadline and frees.
 *
 *   PEEK -> TLS -> HTTP <-> EXCHANGE -> LINGER -> CLOSED
 *     \-> HTTP (plain)          \-> HTTP (CONNECT accepted: PEEK again, inside)
 *      |-> HTTP2 -> LINGER (client/http2.c)
 *      |-> SOCKS -> SOCKS_REQUEST -> PEEK again, inside (client/socks.c)
 *      |                \-> ASSOCIATING -> ASSOCIATED (client/associate.c)
 *      |-> POSTGRES -> LINGER (proxy/postgres/)
 *      \-> DIAL -> (a tunnel takes the socket; the client stays as its owner)
 *
 * Input that cannot be used yet (a pipelined request, a body whose upstream is not there) waits in
 * the input buffer, and nothing more is read meanwhile. This is all of the back-pressure.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "vethguard/base/log.h"
#include "proxy/exchange/exchange.h"
#include "proxy/postgres/postgres.h"
#include "proxy/tunnel/tunnel.h"
#include "proxy/dial/dial.h"
#include "vethguard/base/clock.h"

enum client_event {
	ON_INPUT, /* bytes, or the end, may be there */
	ON_TIMEOUT,
	ON_OVER, /* the exchange has ended */
	CLIENT_EVENT_COUNT
};

typedef enum client_state (*handler)(struct client *c);

/* --- shared by the states --- */

enum socket_status client_input(struct client *c, struct slice *input)
{
	enum socket_status status;
	size_t n;

	if (c->input_buf.len) {
		*input = buf_slice(&c->input_buf);
		return SOCKET_OK;
	}
	status = socket_read(&c->socket, c->proxy->plain, SOCKET_CHUNK, &n);
	*input = slice_of(c->proxy->plain, n);
	return status;
}

bool client_used(struct client *c, struct slice input, size_t used)
{
	if (c->input_buf.len && input.p == (const char *)buf_bytes(&c->input_buf)) {
		buf_consume(&c->input_buf, used);
		if (!c->input_buf.len)
			buf_fini(&c->input_buf);
		return true;
	}
	return used == input.n || buf_append(&c->input_buf, input.p + used, input.n - used) == 0;
}

bool client_takes_bytes(struct client *c)
{
	bool takes = c->socket.sent != c->sent_seen;

	c->sent_seen = c->socket.sent;
	return takes;
}

static enum client_state stay(struct client *c)
{
	return c->state;
}

/* --- the table --- */

static const handler table[CLIENT_STATE_COUNT][CLIENT_EVENT_COUNT] = {
        [CLIENT_PEEK] =
                {[ON_INPUT] = client_peek, [ON_TIMEOUT] = client_peek_timeout, [ON_OVER] = stay},
        [CLIENT_SOCKS] =
                {[ON_INPUT] = client_socks, [ON_TIMEOUT] = client_socks_timeout, [ON_OVER] = stay},
        [CLIENT_SOCKS_REQUEST] = {[ON_INPUT] = client_socks_request,
                [ON_TIMEOUT] = client_socks_timeout,
                [ON_OVER] = stay},
        [CLIENT_ASSOCIATING] = {[ON_INPUT] = client_associating,
                [ON_TIMEOUT] = client_socks_timeout,
                [ON_OVER] = stay},
        [CLIENT_ASSOCIATED] = {[ON_INPUT] = client_associated,
                [ON_TIMEOUT] = client_associated_timeout,
                [ON_OVER] = stay},
        [CLIENT_TLS] = {[ON_INPUT] = client_shake_hands,
                [ON_TIMEOUT] = client_tls_timeout,
                [ON_OVER] = stay},
        [CLIENT_HTTP] = {[ON_INPUT] = client_http1_input,
                [ON_TIMEOUT] = client_http1_timeout,
                [ON_OVER] = stay},
        [CLIENT_EXCHANGE] = {[ON_INPUT] = client_exchange_input,
                [ON_TIMEOUT] = client_exchange_timeout,
                [ON_OVER] = client_exchange_over},
        [CLIENT_HTTP2] = {[ON_INPUT] = client_http2_input,
                [ON_TIMEOUT] = client_http2_timeout,
                [ON_OVER] = stay},
        [CLIENT_DIAL] = {[ON_INPUT] = stay, [ON_TIMEOUT] = client_dial_timeout, [ON_OVER] = stay},
        [CLIENT_POSTGRES] = {[ON_INPUT] = client_postgres_input,
                [ON_TIMEOUT] = client_postgres_timeout,
                [ON_OVER] = stay},
        [CLIENT_LINGER] = {[ON_INPUT] = client_linger_input,
                [ON_TIMEOUT] = client_linger_timeout,
                [ON_OVER] = stay},
        [CLIENT_CLOSED] = {[ON_INPUT] = stay, [ON_TIMEOUT] = stay, [ON_OVER] = stay},
};

/* The deadline that begins with a state. -1: none, because the upstream or the tunnel has its
 * own. */
static const int waits[CLIENT_STATE_COUNT] = {
        [CLIENT_PEEK] = WAIT_HELLO,
        [CLIENT_SOCKS] = WAIT_HELLO,
        [CLIENT_SOCKS_REQUEST] = WAIT_HELLO,
        [CLIENT_ASSOCIATING] = WAIT_HELLO,
        [CLIENT_ASSOCIATED] = WAIT_IDLE,
        [CLIENT_TLS] = WAIT_HELLO,
        [CLIENT_HTTP] = WAIT_IDLE,
        [CLIENT_EXCHANGE] = -1,
        [CLIENT_HTTP2] = WAIT_HEADER,
        [CLIENT_DIAL] = WAIT_DIAL,
        [CLIENT_POSTGRES] = WAIT_HELLO, /* then the deadline of the postgres state */
        [CLIENT_LINGER] = WAIT_LINGER,
        [CLIENT_CLOSED] = -1,
};

static const char *const state_names[] = {
        [CLIENT_PEEK] = "PEEK",
        [CLIENT_SOCKS] = "SOCKS",
        [CLIENT_SOCKS_REQUEST] = "SOCKS_REQUEST",
        [CLIENT_ASSOCIATING] = "ASSOCIATING",
        [CLIENT_ASSOCIATED] = "ASSOCIATED",
        [CLIENT_TLS] = "TLS",
        [CLIENT_HTTP] = "HTTP",
        [CLIENT_EXCHANGE] = "EXCHANGE",
        [CLIENT_HTTP2] = "HTTP2",
        [CLIENT_DIAL] = "DIAL",
        [CLIENT_POSTGRES] = "POSTGRES",
        [CLIENT_LINGER] = "LINGER",
        [CLIENT_CLOSED] = "CLOSED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == CLIENT_STATE_COUNT, "a name per state");

/* Changes a client's state; nothing else does. */
static void enter(struct client *c, enum client_state state)
{
	if (c->state != state)
		log_debug("client :%u: %s -> %s", c->src_port, state_names[c->state],
		        state_names[state]);
	c->state = state;
}

/* Runs the handler and carries out its decision. A new state looks at once for input that is there
 * already. */
static void dispatch(struct client *c, enum client_event event)
{
	for (unsigned turns = 0; turns < 8; turns++) {
		enum client_state next = table[c->state][event](c);

		if (c->state == CLIENT_CLOSED)
			return;
		if (next == c->state)
			return;
		enter(c, next);
		if (next == CLIENT_CLOSED) {
			client_close(c);
			return;
		}
		if (waits[next] < 0)
			loop_deadline_clear(&c->deadline);
		else
			loop_deadline_set(&c->proxy->waits[waits[next]], &c->deadline);
		event = ON_INPUT;
	}
	client_wake(c);
}

static void on_event(struct socket *socket)
{
	dispatch(container_of(socket, struct client, socket), ON_INPUT);
}

static void on_drained(struct socket *socket)
{
	struct client *c = container_of(socket, struct client, socket);

	if (c->state == CLIENT_EXCHANGE)
		loop_deadline_clear(&c->deadline);
	if (c->state == CLIENT_HTTP) {
		client_wake(c);
	} else if (c->state == CLIENT_HTTP2) {
		client_http2_drained(c);
	} else if (c->state == CLIENT_POSTGRES) {
		client_postgres_drained(c);
	} else if (c->exchange) {
		exchange_client_drained(c->exchange);
	} else if (c->state == CLIENT_LINGER && !socket_unsent(socket)) {
		loop_deadline_set(&c->proxy->waits[WAIT_LINGER], &c->deadline);
		dispatch(c, ON_INPUT);
	}
}

static void on_wake(struct loop_task *task)
{
	struct client *c = container_of(task, struct client, wake);

	dispatch(c, c->exchange_end ? ON_OVER : ON_INPUT);
}

void client_let_out(struct client *c)
{
	c->let_out = true;
}

void client_wake(struct client *c)
{
	if (c->state != CLIENT_CLOSED)
		loop_task_queue(c->proxy->config.loop, &c->wake);
}

void client_process_now(struct client *c)
{
	dispatch(c, ON_INPUT);
}

void client_on_deadline(struct client *c, enum proxy_wait wait)
{
	(void)wait;
	dispatch(c, ON_TIMEOUT);
}

void client_move(struct client *c, enum client_state state)
{
	enter(c, state);
	if (state == CLIENT_CLOSED)
		client_close(c);
}

/* --- life --- */

static void on_deferred_free(struct loop_task *task)
{
	struct client *c = container_of(task, struct client, deferred_free);
	struct proxy *proxy = c->proxy;

	list_remove(&c->list);
	tunnel_free(c->tunnel);
	postgres_free(c->postgres);
	free(c->scan);
	limit_leave(proxy, &c->held);
	client_http2_free(c);
	buf_fini(&c->input_buf);
	http1_fini(&c->http1);
	free(c);
	proxy_client_gone(proxy);
}

void client_reset_at_end(struct client *c, bool reset)
{
	c->reset = reset;
}

void client_note_tls(struct client *c, uint16_t version)
{
	c->tls = true;
	c->tls_version = version;
}

void client_close(struct client *c)
{
	struct exchange *ex = c->exchange;

	enter(c, CLIENT_CLOSED);
	if (!c->let_out)
		accept_was_unproductive(c->proxy);
	if (ex) {
		if (ex->state == EXCHANGE_NEW)
			exchange_drop(ex);
		else
			exchange_abort(ex, EVENT_CAUSE_CLIENT, "the sandbox closed the connection");
		c->exchange = NULL;
	}
	client_http2_close(c);
	client_leave_association(c);
	dial_cancel(c->dial);
	c->dial = NULL;
	if (c->tunnel)
		tunnel_close(c->tunnel, EVENT_CAUSE_CLOSING, NULL);
	if (c->postgres)
		postgres_close(c->postgres);
	if (c->holds_name)
		names_release(c->proxy->config.names, &c->dst);
	c->holds_name = false;
	socket_close(&c->socket, c->reset);
	loop_deadline_clear(&c->deadline);
	loop_task_cancel(c->proxy->config.loop, &c->wake);
	loop_task_queue(c->proxy->config.loop, &c->deferred_free);
}

static void find_destination(struct client *c)
{
	struct proxy *proxy = c->proxy;
	struct slice host;

	c->destination.port = c->dst_port;
	if (names_lookup(proxy->config.names, &c->dst, &host)) {
		destination_set_host(&c->destination, host);
		names_hold(proxy->config.names, &c->dst);
		c->holds_name = true;
	} else {
		c->destination.address = c->dst;
	}
	c->explicit_proxy = c->dst_port == proxy->config.proxy_port &&
	                    (ip_equals(&c->dst, &proxy->config.gate4) ||
	                            ip_equals(&c->dst, &proxy->config.gate6));
}

/* Logs who it is and where it goes, at level debug. */
static void trace_accepted(const struct client *c)
{
	char src[IP_TEXT_MAX], dst[IP_TEXT_MAX];

	if (log_level() >= LOG_LEVEL_DEBUG)
		log_debug("client :%u: accepted from %s, to %s:%u, which is %s", c->src_port,
		        c->src.family ? ip_format(&c->src, src) : "the socket",
		        ip_format(&c->dst, dst), c->dst_port,
		        c->destination.host_n ? c->destination.host : "no name");
}

int client_open(struct listener *listener, int fd, const struct sockaddr *from)
{
	struct client *c = calloc(1, sizeof(*c));
	struct proxy *proxy = listener->proxy;

	if (!c || !(listener->local ||
	                  client_dialed_address(fd, listener->rewritten, &c->dst, &c->dst_port))) {
		free(c);
		close(fd);
		return -ENOMEM;
	}
	c->proxy = proxy;
	c->wake.run = on_wake;
	c->deferred_free.run = on_deferred_free;
	c->start_ms = clock_real_ms();
	c->src = ip_from_sockaddr(from, &c->src_port);
	buf_init(&c->input_buf, 2 * SOCKET_CHUNK);
	http1_init(&c->http1, false, proxy->config.limits.header_bytes);
	if (socket_open(&proxy->sockets, &c->socket, fd, NULL, on_event, on_drained) < 0) {
		free(c);
		return -ENOMEM;
	}
	if (listener->handover && !client_take_over(c, listener->handover)) {
		socket_close(&c->socket, true);
		buf_fini(&c->input_buf);
		free(c);
		return -ENOMEM;
	}
	list_append(&proxy->clients, &c->list);
	proxy_client_came(proxy);
	if (listener->local) {
		c->explicit_proxy = true;
		c->form = listener->form;
		c->reached = listener->reached;
		if (!c->src.family)
			c->src_port = (uint16_t)proxy->accepted; /* for the trace */
	} else {
		find_destination(c);
	}
	trace_accepted(c);
	c->state = listener->handover && listener->handover->handed != MESSAGE_HANDED_PROXY
	                   ? CLIENT_SOCKS_REQUEST
	                   : CLIENT_PEEK;
	loop_deadline_set(&proxy->waits[client_first_wait(c)], &c->deadline);
	dispatch(c, ON_INPUT);
	return 0;
}
