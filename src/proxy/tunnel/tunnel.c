/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels: raw bytes between two sockets, as two symmetric halves that share their code. The first
 * 64 KiB of a direction are copied, which is cheaper for short connections. What follows moves with
 * splice(2) through a pipe and never enters this process. A pipe is borrowed from a few kept ones
 * only while it holds bytes.
 *
 * An end whose socket takes no more (the peer has closed it with unread bytes: a reset) is dead.
 * What it had sent before is in its receive queue and goes to the other end, as it would without a
 * tunnel. Then both ends are reset.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/private.h"
#include "proxy/tunnel/tunnel.h"

#define COPY_BYTES (64u << 10)  /* copied in each direction before splicing begins */
#define SPLICE_BYTES (1u << 20) /* asked of one splice(2); the pipe's size bounds it */
#define PIPE_BYTES (256 << 10)

struct end {
	struct loop_io io;
	struct tunnel *tunnel;
	int fd;
	bool readable, writable;
	bool hung_up; /* the peer has sent FIN: reading goes on to the end */
	bool dead;    /* takes no more bytes; what it has sent is still read */
};

struct half {
	struct end *from, *to;
	struct buf pending; /* copied bytes not yet sent */
	int pipe[2];        /* -1: none borrowed */
	size_t piped;       /* bytes in the pipe */
	uint64_t bytes;
	bool eof;   /* from has ended */
	bool ended; /* ... and `to` was told */
};

struct tunnel {
	const struct tunnel_owner *owner;
	void *context;
	struct proxy *proxy;
	struct end ends[2];    /* 0: the sandbox's side, 1: the outside */
	struct half halves[2]; /* from the sandbox, to the sandbox */
	struct loop_deadline deadline, doubt;
	struct loop_task go_on;
	bool doubtful;       /* a short read was taken for the end of what is there */
	const char *refusal; /* why no more may pass: the tunnel ends; else NULL */
	bool recorded, closed;
	bool inspects;       /* the owner looks at what the sandbox sends */
	const char *refused; /* why it ends before bytes that the owner has looked at */
};

static bool borrow_pipe(struct tunnel *t, struct half *h)
{
	struct proxy *proxy = t->proxy;

	if (h->pipe[0] >= 0)
		return true;
	if (proxy->pipe_count) {
		proxy->pipe_count--;
		h->pipe[0] = proxy->pipes[proxy->pipe_count][0];
		h->pipe[1] = proxy->pipes[proxy->pipe_count][1];
		return true;
	}
	if (pipe2(h->pipe, O_NONBLOCK | O_CLOEXEC) < 0) {
		h->pipe[0] = h->pipe[1] = -1;
		return false;
	}
	fcntl(h->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* a smaller pipe works too */
	return true;
}

static void return_pipe(struct tunnel *t, struct half *h)
{
	struct proxy *proxy = t->proxy;

	if (h->pipe[0] < 0)
		return;
	if (h->piped == 0 && proxy->pipe_count < TUNNEL_PIPES_KEPT) {
		proxy->pipes[proxy->pipe_count][0] = h->pipe[0];
		proxy->pipes[proxy->pipe_count][1] = h->pipe[1];
		proxy->pipe_count++;
	} else {
		close(h->pipe[0]);
		close(h->pipe[1]);
	}
	h->pipe[0] = h->pipe[1] = -1;
	h->piped = 0;
}

/* Updates readiness from a transfer's result. False: the transfer failed. */
static bool settle(ssize_t r, bool *ready)
{
	if (r > 0)
		return true;
	if (r < 0 && (errno == EAGAIN || errno == EINTR)) {
		*ready = *ready && errno == EINTR;
		return true;
	}
	return false;
}

static void kill_end(struct end *e)
{
	e->dead = e->hung_up = e->readable = true;
}

/* Sends what this half holds. False: some of it could not be sent. */
static bool push(struct half *h)
{
	while ((h->pending.len || h->piped) && h->to->writable && !h->to->dead) {
		ssize_t r;

		if (h->pending.len)
			r = send(h->to->fd, buf_bytes(&h->pending), h->pending.len,
			        MSG_NOSIGNAL | MSG_DONTWAIT);
		else
			r = splice(h->pipe[0], NULL, h->to->fd, NULL, h->piped,
			        SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (!settle(r, &h->to->writable))
			kill_end(h->to);
		if (r <= 0)
			continue;
		h->bytes += (uint64_t)r;
		if (h->pending.len) {
			buf_consume(&h->pending, (size_t)r);
			if (!h->pending.len)
				buf_fini(&h->pending);
		} else {
			h->piped -= (size_t)r;
		}
	}
	return !h->pending.len && !h->piped;
}

/* True if the owner ends the tunnel before these bytes. */
static bool is_refused(struct tunnel *t, const struct half *h, const uint8_t *p, size_t n)
{
	if (t->inspects && h == &t->halves[0] && !t->refused)
		t->refused = t->owner->inspect(t->context, p, n);
	if (t->refused) {
		kill_end(&t->ends[0]);
		kill_end(&t->ends[1]);
	}
	return t->refused != NULL;
}

/* Sends input at once and keeps only what the socket does not take. A short read means "nothing
 * left", with the exceptions that socket.c describes: after a FIN reading goes on, and a reset
 * right after the bytes is looked for when DOUBT_MS have passed in silence. */
static ssize_t copy(struct tunnel *t, struct half *h, size_t room)
{
	uint8_t *plain = t->proxy->plain;
	ssize_t r = recv(h->from->fd, plain, room, MSG_DONTWAIT), sent = 0;

	if (r <= 0)
		return r;
	if (is_refused(t, h, plain, (size_t)r))
		return r;
	if (r < (ssize_t)room && !h->from->hung_up) {
		h->from->readable = false;
		t->doubtful = true;
	}
	if (h->to->writable)
		sent = send(h->to->fd, plain, (size_t)r, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0 && !settle(sent, &h->to->writable)) {
		kill_end(h->to);
		return r;
	}
	if (sent < 0)
		sent = 0;
	h->bytes += (uint64_t)sent;
	if (sent < r && buf_append(&h->pending, plain + sent, (size_t)(r - sent)) < 0) {
		errno = ENOMEM;
		return -1;
	}
	return r;
}

/* Takes in at most room bytes, by copying or into the pipe. The half holds no bytes when called. */
static ssize_t take_in(struct tunnel *t, struct half *h, bool copies, size_t room)
{
	ssize_t r;

	if (copies)
		return copy(t, h, room);
	r = splice(h->from->fd, NULL, h->pipe[1], NULL, room, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (r > 0)
		h->piped += (size_t)r;
	return r;
}

/* Nothing more may pass: the tunnel ends if there is another byte. Returns what recv() returns. */
static ssize_t peek(struct tunnel *t, struct half *h, const char *why)
{
	uint8_t byte;
	ssize_t r = recv(h->from->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	if (r > 0)
		t->refusal = why ? why : "no more may pass";
	return r;
}

/* Takes in no more than the owner lets pass. */
static ssize_t pull_granted(struct tunnel *t, struct half *h, bool copies, size_t want)
{
	bool out = h == &t->halves[0];
	const char *why = NULL;
	size_t room = t->owner->grant(t->context, out, want, &why);
	ssize_t r;
	int error;

	if (room == 0)
		return peek(t, h, why);
	r = take_in(t, h, copies, room);
	error = errno;
	if (r < (ssize_t)room)
		t->owner->take_back(t->context, out, room - (r > 0 ? (size_t)r : 0));
	errno = error;
	return r;
}

static ssize_t pull(struct tunnel *t, struct half *h)
{
	bool copies =
	        (t->inspects && h == &t->halves[0]) || h->bytes < COPY_BYTES || !borrow_pipe(t, h);
	size_t want = copies ? SOCKET_CHUNK : SPLICE_BYTES;

	return t->owner->grant ? pull_granted(t, h, copies, want) : take_in(t, h, copies, want);
}

/* Takes in and sends. True: the half has used up its turn and could go on. */
static bool move(struct tunnel *t, struct half *h)
{
	size_t moved = 0;

	while (push(h) && !h->eof && h->from->readable && !h->to->dead) {
		ssize_t r = pull(t, h);

		if (t->refusal)
			return false;
		if (r == 0) {
			h->eof = true;
		} else if (!settle(r, &h->from->readable)) { /* a reset, after all that was sent */
			kill_end(h->from);
			h->eof = true;
		} else if (r > 0) {
			moved += (size_t)r;
			if (moved >= 4 * SOCKET_TURN_BYTES) {
				push(h);
				return true;
			}
		}
	}
	return false;
}

/* Moves one direction as far as possible. */
static bool relay(struct tunnel *t, struct half *h)
{
	bool again = move(t, h);

	if (h->to->dead) {
		buf_fini(&h->pending);
		return_pipe(t, h);
		h->ended = true;
		return false;
	}
	if (!h->piped)
		return_pipe(t, h);
	if (h->eof && !h->ended && !h->pending.len && !h->piped) {
		/* close(), which follows at once, tells the end of both directions. After a reset a
		 * FIN would be wrong. */
		if (!t->halves[h == &t->halves[0]].ended && !h->from->dead)
			shutdown(h->to->fd, SHUT_WR);
		h->ended = true;
	}
	return again;
}

static bool any_dead(const struct tunnel *t)
{
	return t->ends[0].dead || t->ends[1].dead;
}

static void run(struct tunnel *t)
{
	bool again = false, was_dead = any_dead(t);
	uint64_t before = t->halves[0].bytes + t->halves[1].bytes;

	for (int i = 0; i < 2 && !t->refused; i++)
		again |= relay(t, &t->halves[i]);
	if (t->refused) {
		tunnel_close(t, EVENT_CAUSE_POLICY, t->refused);
		return;
	}
	/* Relays what an end that has just died had sent; its other direction is over. */
	for (int i = 0; i < 2 && any_dead(t) && !was_dead; i++)
		again |= relay(t, &t->halves[i]);
	if (t->refusal) {
		tunnel_close(t, EVENT_CAUSE_POLICY_LIMIT, t->refusal);
		return;
	}
	if (t->halves[0].ended && t->halves[1].ended) {
		tunnel_close(t, EVENT_CAUSE_POLICY,
		        any_dead(t) ? "one side reset the connection" : NULL);
		return;
	}
	if (t->halves[0].bytes + t->halves[1].bytes != before)
		loop_deadline_set(&t->proxy->waits[WAIT_TUNNEL], &t->deadline);
	if (t->doubtful)
		loop_deadline_set(&t->proxy->waits[WAIT_DOUBT], &t->doubt);
	t->doubtful = false;
	if (again)
		loop_task_queue(t->proxy->config.loop, &t->go_on);
}

static void take_note(struct end *e, unsigned events)
{
	if (events & LOOP_CLOSED)
		e->hung_up = true;
	if (events & (LOOP_READ | LOOP_CLOSED))
		e->readable = true;
	if (events & LOOP_WRITE)
		e->writable = true;
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct end *e = container_of(io, struct end, io);

	take_note(e, events);
	run(e->tunnel);
}

static void on_go_on(struct loop_task *task)
{
	run(container_of(task, struct tunnel, go_on));
}

void tunnel_on_deadline(struct loop_deadline *deadline)
{
	tunnel_close(container_of(deadline, struct tunnel, deadline), EVENT_CAUSE_TIMEOUT,
	        "no traffic for too long");
}

void tunnel_on_doubt(struct loop_deadline *deadline)
{
	struct tunnel *t = container_of(deadline, struct tunnel, doubt);

	t->ends[0].readable = t->ends[1].readable = true;
	run(t);
}

static void end_close(struct end *e, bool reset)
{
	loop_io_close(&e->io);
	if (reset)
		socket_reset_socket(e->fd);
	close(e->fd);
	e->fd = -1;
}

void tunnel_record(struct tunnel *t, enum event_cause cause, const char *detail)
{
	if (t->recorded)
		return;
	t->recorded = true;
	t->owner->record(t->context, cause, detail, t->halves[0].bytes, t->halves[1].bytes);
}

void tunnel_close(struct tunnel *t, enum event_cause cause, const char *detail)
{
	bool whole = t->halves[0].ended && t->halves[1].ended && !any_dead(t);

	if (t->closed)
		return;
	t->closed = true;
	tunnel_record(t, cause, detail);
	for (int i = 0; i < 2; i++) {
		return_pipe(t, &t->halves[i]);
		buf_fini(&t->halves[i].pending);
		end_close(&t->ends[i], !whole);
	}
	loop_deadline_clear(&t->deadline);
	loop_deadline_clear(&t->doubt);
	loop_task_cancel(t->proxy->config.loop, &t->go_on);
	t->owner->closed(t->context);
}

void tunnel_free(struct tunnel *t)
{
	free(t);
}

static void halves_init(struct tunnel *t)
{
	for (int i = 0; i < 2; i++) {
		struct half *h = &t->halves[i];

		h->from = &t->ends[i];
		h->to = &t->ends[1 - i];
		h->pipe[0] = h->pipe[1] = -1;
		buf_init(&h->pending, 2 * SOCKET_CHUNK);
		t->ends[i].tunnel = t;
		t->ends[i].writable = true; /* try first; the loop reports when it was too much */
	}
}

struct tunnel *tunnel_new(struct proxy *proxy, const struct tunnel_owner *owner, void *context)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->owner = owner;
	t->context = context;
	t->proxy = proxy;
	t->go_on.run = on_go_on;
	halves_init(t);
	return t;
}

void tunnel_inspect(struct tunnel *t)
{
	t->inspects = true;
}

/* Counts what the sandbox has sent before the tunnel was made. */
static void grant_first(struct tunnel *t)
{
	size_t n = t->halves[0].pending.len;
	const char *why = NULL;

	if (n == 0 || !t->owner->grant)
		return;
	if (t->owner->grant(t->context, true, n, &why) < n)
		t->refusal = why ? why : "not all of its first bytes may pass";
	if (t->refusal)
		buf_fini(&t->halves[0].pending);
}

void tunnel_run(struct tunnel *t, struct tunnel_side sides[2])
{
	for (int i = 0; i < 2; i++) {
		struct end *e = &t->ends[i];

		t->halves[i].pending = sides[i].first;
		t->halves[i].pending.max = 2 * SOCKET_CHUNK;
		t->doubtful |= sides[i].doubtful;
		e->fd = sides[i].fd;
		loop_io_move(sides[i].io, &e->io, on_ready);
		take_note(e, sides[i].events);
	}
	loop_deadline_set(&t->proxy->waits[WAIT_TUNNEL], &t->deadline);
	if (sides[0].first.len)
		is_refused(t, &t->halves[0], buf_bytes(&sides[0].first), sides[0].first.len);
	grant_first(t);
	run(t);
}
