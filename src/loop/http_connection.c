/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of one connection are answered one after another: while the handler has a request,
 * nothing is read. If the client disconnects meanwhile, this is noticed when the response cannot be
 * written; until then the connection, which is also the exchange, stays.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/http_connection.h"
#include "vethguard/base/log.h"

#define IN_MAX (CONTROL_HEAD_MAX + CONTROL_BODY_MAX)
#define OUT_MAX (CONTROL_ANSWER_MAX + CONTROL_HEAD_MAX)
#define READ_STEP 4096

void http_connection_free(struct http_exchange *c)
{
	list_remove(&c->place);
	if (c->stranger)
		c->server->strangers--;
	else
		c->server->count--;
	loop_io_close(&c->io);
	loop_timer_close(&c->timer);
	loop_task_cancel(c->server->loop, &c->task);
	buf_fini(&c->in);
	buf_fini(&c->out);
	free((gid_t *)(uintptr_t)c->peer.groups);
	close(c->fd);
	free(c);
}

static const char *const state_names[] = {
        [IDLE] = "IDLE",
        [READING] = "READING",
        [ANSWERING] = "ANSWERING",
        [WRITING] = "WRITING",
        [LINGERING] = "LINGERING",
};
_Static_assert(sizeof(state_names) / sizeof(state_names[0]) == LINGERING + 1, "a name per state");

/* Sets the state, and how long it may last; nothing else does. */
static void enter(struct http_exchange *c, enum connection_state state, int64_t patience_ms)
{
	if (c->state != state)
		log_debug("http connection %d: %s -> %s", c->fd, state_names[c->state],
		        state_names[state]);
	c->state = state;
	if (patience_ms)
		loop_timer_set(&c->timer, patience_ms);
	else
		loop_timer_cancel(&c->timer);
}

/* --- responses --- */

void http_respond(struct http_exchange *c, unsigned status, const char *content_type,
        const char *fields, struct slice body)
{
	int rc = buf_printf(&c->out,
	        "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
	        "Cache-Control: no-store\r\n%s%s\r\n",
	        status, control_status_name(status), content_type, body.n, fields,
	        c->closes ? "Connection: close\r\n" : "");

	if (!rc && !slice_equals(c->head.method, SLICE("HEAD")))
		rc = buf_append_slice(&c->out, body);
	if (rc) { /* anything sent now would be unintelligible */
		buf_fini(&c->out);
		c->closes = true;
	}
	enter(c, WRITING, HTTP_SERVER_ANSWER_MS);
	loop_task_queue(c->server->loop, &c->task);
}

void http_respond_problem(struct http_exchange *c, unsigned status, const char *detail)
{
	struct json j;
	struct buf body;

	buf_init(&body, CONTROL_BODY_MAX);
	control_problem_begin(&j, &body, status, slice_from_string(detail));
	json_end_object(&j);
	http_respond(c, status, CONTROL_PROBLEM, "", buf_slice(&body));
	buf_fini(&body);
}

void http_connection_refuse(struct http_exchange *c, unsigned status, const char *detail)
{
	c->closes = true;
	http_respond_problem(c, status, detail);
}

/* --- reading: each function returns whether advance() may go on in the new state --- */

static const char *fault(int status)
{
	switch (status) {
	case 411:
		return "a body needs a Content-Length; chunked bodies are not supported";
	case 414:
		return "the path is too long";
	case 417:
		return "the only supported expectation is 100-continue";
	case 431:
		return "the head of the request is too large";
	case 505:
		return "only HTTP/1.1 is supported";
	default:
		return "the request is not well-formed HTTP/1.1";
	}
}

static bool give(struct http_exchange *c)
{
	struct http_request request = {.peer = c->peer,
	        .method = c->head.method,
	        .target = c->head.target,
	        .content_type = c->head.content_type,
	        .body = slice_of(buf_bytes(&c->in) + c->head.size, (size_t)c->head.length)};

	c->closes = c->head.closes;
	enter(c, ANSWERING, 0);
	c->server->handler->on_request(c->server->handler, c, &request);
	return false;
}

/* Examines what has arrived so far. */
static bool look(struct http_exchange *c)
{
	int status = control_head_request(buf_slice(&c->in), &c->head);

	if (status == CONTROL_HEAD_MORE)
		return true;
	if (status != CONTROL_HEAD_WHOLE) {
		c->head = (struct control_head){0};
		http_connection_refuse(c, (unsigned)status, fault(status));
		return false;
	}
	if (c->head.length > CONTROL_BODY_MAX) {
		http_connection_refuse(c, 413, "the body is too large");
		return false;
	}
	if (c->in.len - c->head.size >= c->head.length)
		return give(c);
	if (c->head.expects_continue && !c->continued) {
		c->continued = true;
		/* a client that waits for this has an empty socket buffer, so send() takes it
		 * whole */
		(void)!send(c->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
	}
	return true;
}

/* True if the connection has used up its turn: a client that writes faster than it is read must not
 * delay other connections and timers, including its own. */
static bool is_turn_over(struct http_exchange *c)
{
	if (c->reads++ < HTTP_SERVER_READS_MAX)
		return false;
	loop_task_queue(c->server->loop, &c->task);
	return true;
}

/* False: nothing more can be read now, or the connection is freed. */
static bool receive(struct http_exchange *c)
{
	uint8_t *room;
	ssize_t n;

	if (is_turn_over(c))
		return false;
	room = buf_reserve(&c->in, READ_STEP);
	if (!room) {
		http_connection_refuse(c, 503, "no memory");
		return false;
	}
	n = read(c->fd, room, READ_STEP);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		http_connection_free(
		        c); /* also in the middle of a request: nobody is left to answer */
		return false;
	}
	buf_commit(&c->in, (size_t)n);
	if (c->state == IDLE)
		enter(c, READING, HTTP_SERVER_REQUEST_MS);
	return look(c);
}

static bool linger(struct http_exchange *c)
{
	char nothing[READ_STEP];
	ssize_t n;

	if (is_turn_over(c))
		return false;
	n = read(c->fd, nothing, sizeof(nothing));
	if (n > 0)
		return true;
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		http_connection_free(c);
	return false;
}

/* The response is sent: goes on to the next request, which may have arrived in part or whole. */
static bool turn_over(struct http_exchange *c)
{
	buf_consume(&c->in, c->head.size + (size_t)c->head.length);
	c->head = (struct control_head){0};
	c->continued = false;
	if (c->in.len == 0) {
		buf_fini(&c->in);
		enter(c, IDLE, HTTP_SERVER_IDLE_MS);
		return true;
	}
	enter(c, READING, HTTP_SERVER_REQUEST_MS);
	return look(c);
}

static bool transmit(struct http_exchange *c)
{
	while (c->out.len > 0) {
		ssize_t n = send(c->fd, buf_bytes(&c->out), c->out.len, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n < 0) {
			http_connection_free(c);
			return false;
		}
		buf_consume(&c->out, (size_t)n);
	}
	buf_fini(&c->out);
	if (!c->closes)
		return turn_over(c);
	shutdown(c->fd, SHUT_WR);
	enter(c, LINGERING, HTTP_SERVER_LINGER_MS);
	return true;
}

/* --- the states --- */

static void advance(struct http_exchange *c)
{
	bool more = true;

	c->reads = 0;
	while (more) {
		switch (c->state) {
		case IDLE:
		case READING:
			more = receive(c);
			break;
		case WRITING:
			more = transmit(c);
			break;
		case LINGERING:
			more = linger(c);
			break;
		case ANSWERING:
			more = false;
		}
	}
}

static void on_ready(struct loop_io *io, unsigned events)
{
	(void)events;
	advance(container_of(io, struct http_exchange, io));
}

static void on_task(struct loop_task *task)
{
	advance(container_of(task, struct http_exchange, task));
}

static void on_time(struct loop_timer *timer)
{
	struct http_exchange *c = container_of(timer, struct http_exchange, timer);

	if (c->state == READING) {
		c->head = (struct control_head){0};
		http_connection_refuse(c, 408, "the request took too long");
	} else if (c->state != ANSWERING) {
		http_connection_free(c);
	}
}

struct http_exchange *http_connection_new(
        struct http_server *server, int fd, const struct http_peer *peer, bool stranger)
{
	struct http_exchange *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->server = server;
	c->peer = *peer;
	c->fd = fd;
	c->task.run = on_task;
	buf_init_secret(&c->in, IN_MAX + READ_STEP); /* variables and tokens may be secrets */
	buf_init_secret(&c->out, OUT_MAX);
	if (loop_timer_open(server->loop, &c->timer, on_time) != 0 ||
	        loop_io_open(server->loop, &c->io, fd, LOOP_READ | LOOP_WRITE, on_ready) != 0) {
		loop_timer_close(&c->timer);
		free(c);
		return NULL;
	}
	list_append(&server->connections, &c->place);
	c->stranger = stranger;
	if (stranger)
		server->strangers++;
	else
		server->count++;
	enter(c, IDLE, HTTP_SERVER_IDLE_MS);
	return c;
}
