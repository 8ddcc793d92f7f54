/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a tunnel. Its first 64 KiB are copied, which is cheaper for short connections; a
 * direction that the owner inspects, or that has an outer TLS at one end, is copied throughout.
 * What follows moves with splice(2) through a pipe and never enters this process. A pipe is
 * borrowed from a few kept ones only while it holds bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/tunnel/half.h"

#define COPY_BYTES (64u << 10)  /* bytes copied in each direction before splicing begins */
#define SPLICE_BYTES (1u << 20) /* bytes asked of one splice(2); the pipe's size bounds them */
#define PIPE_BYTES (256 << 10)

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

void half_return_pipe(struct tunnel *t, struct half *h)
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

/* Counts bytes that were sent, except to an outer TLS: seal() has counted those as plain bytes. */
static void count_sent(struct half *h, size_t n)
{
	if (!h->to->outer)
		h->bytes += n;
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
		count_sent(h, (size_t)r);
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

bool half_is_refused(struct tunnel *t, const struct half *h, const uint8_t *p, size_t n)
{
	const char *why = NULL;

	if (t->inspects && h == &t->halves[0] && t->state == TUNNEL_OPEN)
		why = t->owner->inspect(t->context, p, n);
	if (why)
		tunnel_stop(t, TUNNEL_REFUSED, why);
	if (t->state != TUNNEL_REFUSED)
		return false;
	kill_end(&t->ends[0]);
	kill_end(&t->ends[1]);
	return true;
}

/* As recv(2), through the outer TLS if there is one. *emptied: nothing is left to receive now. */
static ssize_t receive(struct end *from, uint8_t *p, size_t room, bool *emptied)
{
	ssize_t r = from->outer ? outer_receive(from->outer, from->fd, p, room)
	                        : recv(from->fd, p, room, MSG_DONTWAIT);

	*emptied = from->outer ? outer_is_emptied(from->outer) : r < (ssize_t)room;
	return r;
}

/* Turns plain bytes into those to send: sealed ones if there is an outer TLS. Returns false if
 * sealing failed. */
static bool seal(struct half *h, struct slice plain, struct slice *wire)
{
	*wire = plain;
	if (!h->to->outer)
		return true;
	h->bytes += plain.n;
	return outer_seal(h->to->outer, plain.p, plain.n, false, wire);
}

/* Sends input at once and keeps only what the socket does not take. A short read means "nothing
 * left", with the exceptions that socket.c describes: after a FIN reading goes on, and a reset
 * right after the bytes is looked for when DOUBT_MS have passed in silence. */
static ssize_t copy(struct tunnel *t, struct half *h, size_t room)
{
	uint8_t *plain = t->proxy->plain;
	struct slice wire;
	bool emptied;
	ssize_t r = receive(h->from, plain, room, &emptied), sent = 0;

	if (r <= 0)
		return r;
	if (half_is_refused(t, h, plain, (size_t)r))
		return r;
	if (emptied && !h->from->hung_up) {
		h->from->readable = false;
		t->doubtful = true;
	}
	if (!seal(h, slice_of(plain, (size_t)r), &wire)) {
		errno = ENOMEM;
		return -1;
	}
	if (h->to->writable)
		sent = send(h->to->fd, wire.p, wire.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0 && !settle(sent, &h->to->writable)) {
		kill_end(h->to);
		return r;
	}
	if (sent < 0)
		sent = 0;
	count_sent(h, (size_t)sent);
	if ((size_t)sent < wire.n &&
	        buf_append(&h->pending, wire.p + sent, wire.n - (size_t)sent) < 0) {
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

/* Called when nothing more may pass: stops the tunnel if there is another byte. Returns what recv()
 * returns. */
static ssize_t peek(struct tunnel *t, struct half *h, const char *why)
{
	struct outer *outer = h->from->outer;
	uint8_t byte;
	/* TLS cannot peek: the byte is taken out and lost, but the tunnel ends then anyway. */
	ssize_t r = outer ? outer_receive(outer, h->from->fd, &byte, sizeof(byte))
	                  : recv(h->from->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	if (r > 0)
		tunnel_stop(t, TUNNEL_LIMITED, why ? why : "a limit lets no more bytes pass");
	return r;
}

/* Takes in no more bytes than the owner grants. */
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
	bool copies = (t->inspects && h == &t->halves[0]) || h->bytes < COPY_BYTES ||
	              h->from->outer || h->to->outer || !borrow_pipe(t, h);
	size_t want = copies ? SOCKET_CHUNK : SPLICE_BYTES;

	return t->owner->grant ? pull_granted(t, h, copies, want) : take_in(t, h, copies, want);
}

/* Takes in and sends. True: the half has used up its turn and could go on. */
static bool move(struct tunnel *t, struct half *h)
{
	size_t moved = 0;

	while (push(h) && !h->eof && h->from->readable && !h->to->dead) {
		ssize_t r = pull(t, h);

		if (t->state == TUNNEL_LIMITED)
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

/* Sends close_notify of the outer TLS. It is lost if the socket takes nothing now. */
static void end_outer(struct end *to)
{
	struct slice wire;

	if (outer_seal(to->outer, "", 0, true, &wire))
		(void)send(to->fd, wire.p, wire.n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool half_relay(struct tunnel *t, struct half *h)
{
	bool again = move(t, h);

	if (h->to->dead) {
		buf_fini(&h->pending);
		half_return_pipe(t, h);
		h->ended = true;
		return false;
	}
	if (!h->piped)
		half_return_pipe(t, h);
	if (h->eof && !h->ended && !h->pending.len && !h->piped) {
		if (h->to->outer && !h->from->dead)
			end_outer(h->to);
		/* close(), which follows at once, tells the end of both directions. After a reset a
		 * FIN would be wrong. */
		if (!t->halves[h == &t->halves[0]].ended && !h->from->dead)
			shutdown(h->to->fd, SHUT_WR);
		h->ended = true;
	}
	return again;
}
