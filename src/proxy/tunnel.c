/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels: raw bytes between two sockets, as two symmetric halves and one function. The first 64
 * KiB of a direction are copied (short connections are cheaper so); what follows moves with
 * splice(2) through a pipe and never enters this process. A pipe is borrowed from a few kept ones
 * only while bytes are in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "proxy/client.h"

#define COPY_BYTES (64u << 10)  /* of each direction before splicing begins */
#define SPLICE_BYTES (1u << 20) /* asked of one splice; the pipe's size bounds it */
#define PIPE_BYTES (256 << 10)

struct end {
	struct loop_io io;
	struct tunnel *tunnel;
	int fd;
	bool readable, writable;
};

struct half {
	struct end *from, *to;
	struct buf pending; /* copied bytes not yet sent */
	int pipe[2];        /* -1: none borrowed */
	size_t piped;       /* bytes in it */
	uint64_t bytes;
	bool eof;   /* from has ended */
	bool ended; /* ... and to was told */
};

struct tunnel {
	struct client *client;
	struct proxy *proxy;
	struct ip address;
	struct end ends[2];    /* sandbox, upstream */
	struct half halves[2]; /* out of the sandbox, into it */
	struct loop_deadline deadline;
	struct loop_task go_on;
	bool closed;
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

/* What a transfer's result means for the end it touched: true: bytes moved. */
static bool settle(ssize_t r, bool *ready, bool *failed)
{
	if (r > 0)
		return true;
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		*ready = *ready && errno == EINTR;
	else
		*failed = true;
	return false;
}

/* Sends what this half holds. False: it could not all be sent. */
static bool push(struct half *h, bool *failed)
{
	while ((h->pending.len || h->piped) && h->to->writable && !*failed) {
		ssize_t r;

		if (h->pending.len)
			r = send(h->to->fd, buf_bytes(&h->pending), h->pending.len,
			        MSG_NOSIGNAL | MSG_DONTWAIT);
		else
			r = splice(h->pipe[0], NULL, h->to->fd, NULL, h->piped,
			        SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (!settle(r, &h->to->writable, failed))
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

/* Takes bytes in: by copying at first, then into the pipe. */
static ssize_t pull(struct tunnel *t, struct half *h)
{
	ssize_t r;

	if (h->bytes < COPY_BYTES || !borrow_pipe(t, h)) {
		uint8_t *plain = t->proxy->plain;

		r = recv(h->from->fd, plain, LINK_CHUNK, MSG_DONTWAIT);
		if (r > 0 && buf_append(&h->pending, plain, (size_t)r) < 0) {
			errno = ENOMEM;
			return -1;
		}
		return r;
	}
	r = splice(h->from->fd, NULL, h->pipe[1], NULL, SPLICE_BYTES,
	        SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (r > 0)
		h->piped += (size_t)r;
	return r;
}

/* Moves one direction as far as it goes. True: its share is used up and it could go on. */
static bool relay(struct tunnel *t, struct half *h, bool *failed)
{
	size_t moved = 0;

	while (!*failed && push(h, failed) && !h->eof && h->from->readable) {
		ssize_t r = pull(t, h);

		if (r == 0) {
			h->eof = true;
		} else if (settle(r, &h->from->readable, failed)) {
			moved += (size_t)r;
			if (moved >= 4 * LINK_TURN_BYTES) {
				push(h, failed);
				return true;
			}
		}
	}
	if (!h->piped)
		return_pipe(t, h);
	if (h->eof && !h->ended && !h->pending.len && !h->piped) {
		/* The end of both directions is told by close(), which follows at once. */
		if (!t->halves[h == &t->halves[0]].ended)
			shutdown(h->to->fd, SHUT_WR);
		h->ended = true;
	}
	return false;
}

static void run(struct tunnel *t)
{
	bool failed = false, again = false;
	uint64_t before = t->halves[0].bytes + t->halves[1].bytes;

	for (int i = 0; i < 2; i++)
		again |= relay(t, &t->halves[i], &failed);
	if (failed) {
		tunnel_close(t, EVENT_CAUSE_POLICY, "one side reset the connection");
		return;
	}
	if (t->halves[0].ended && t->halves[1].ended) {
		tunnel_close(t, EVENT_CAUSE_POLICY, NULL);
		return;
	}
	if (t->halves[0].bytes + t->halves[1].bytes != before)
		loop_deadline_set(&t->proxy->waits[WAIT_TUNNEL], &t->deadline);
	if (again)
		loop_task_queue(t->proxy->config.loop, &t->go_on);
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct end *e = container_of(io, struct end, io);

	if (events & (LOOP_READ | LOOP_CLOSED))
		e->readable = true;
	if (events & LOOP_WRITE)
		e->writable = true;
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

static void end_close(struct end *e, bool reset)
{
	loop_io_close(&e->io);
	if (reset) {
		struct linger linger = {.l_onoff = 1, .l_linger = 0};

		setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	}
	close(e->fd);
	e->fd = -1;
}

void tunnel_close(struct tunnel *t, enum event_cause cause, const char *detail)
{
	struct client *c = t->client;
	bool whole = t->halves[0].ended && t->halves[1].ended;

	if (t->closed)
		return;
	t->closed = true;
	record_connection(c, &c->decision, c->decision.observed ? EVENT_OBSERVED : EVENT_ALLOWED,
	        cause, detail, t->halves[0].bytes, t->halves[1].bytes, &t->address);
	for (int i = 0; i < 2; i++) {
		return_pipe(t, &t->halves[i]);
		buf_fini(&t->halves[i].pending);
		end_close(&t->ends[i], !whole);
	}
	loop_deadline_clear(&t->deadline);
	loop_task_cancel(t->proxy->config.loop, &t->go_on);
	if (c->state != CLIENT_CLOSED)
		client_close(c);
}

void tunnel_free(struct tunnel *t)
{
	free(t);
}

/* Nothing is held back for a fuller segment, and a peer that vanished is noticed though both sides
 * are silent. */
static void set_options(int fd)
{
	const int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}

static int end_open(struct tunnel *t, int i, int fd)
{
	struct end *e = &t->ends[i];

	set_options(fd);
	e->tunnel = t;
	e->fd = fd;
	e->writable = true; /* what is readable already, epoll tells when the socket is added */
	return loop_io_open(
	        t->proxy->config.loop, &e->io, fd, LOOP_READ | LOOP_WRITE | LOOP_CLOSED, on_ready);
}

static void halves_init(struct tunnel *t)
{
	for (int i = 0; i < 2; i++) {
		struct half *h = &t->halves[i];

		h->from = &t->ends[i];
		h->to = &t->ends[1 - i];
		h->pipe[0] = h->pipe[1] = -1;
		buf_init(&h->pending, 2 * LINK_CHUNK);
	}
}

int tunnel_start(struct client *c, int upstream_fd, const struct ip *address)
{
	struct tunnel *t = calloc(1, sizeof *t);
	struct buf unsent;
	int fd;

	if (!t) {
		close(upstream_fd);
		return -ENOMEM;
	}
	t->client = c;
	t->proxy = c->proxy;
	t->address = *address;
	t->go_on.run = on_go_on;
	halves_init(t);
	fd = link_release(&c->link, &unsent);
	/* What the sandbox sent already, and what it was to be sent (the answer to CONNECT), go
	 * first. */
	t->halves[0].pending = c->stash;
	t->halves[0].pending.max = 2 * LINK_CHUNK;
	buf_init(&c->stash, 2 * LINK_CHUNK);
	t->halves[1].pending = unsent;
	if (end_open(t, 0, fd) < 0 || end_open(t, 1, upstream_fd) < 0) {
		for (int i = 0; i < 2; i++) {
			loop_io_close(&t->ends[i].io);
			buf_fini(&t->halves[i].pending);
		}
		close(fd);
		close(upstream_fd);
		free(t);
		return -ENOMEM;
	}
	c->tunnel = t;
	loop_deadline_clear(&c->deadline);
	loop_deadline_set(&t->proxy->waits[WAIT_TUNNEL], &t->deadline);
	run(t);
	return 0;
}
