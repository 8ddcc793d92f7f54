/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer in the loop. Reading: up to MESSAGES_PER_TURN messages per turn, each handled by the owner
 * in one buffer that all peers of this single-threaded program share; the rest is read at the end
 * of the turn. Writing: directly to the socket, or to a bounded queue while the socket is full.
 *
 * The end is reported once, from the loop only, never from inside ipc_send(): a failed send marks
 * the peer, and the task at the end of the turn closes it and tells the owner. on_message may close
 * the peer and free the struct around it; the reading function learns of it through `alive`, which
 * points to its own stack.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "ipc/private.h"

#define MESSAGES_PER_TURN 64

struct ipc_queued {
	struct ipc_queued *next;
	int fds[MESSAGE_FDS_MAX];
	size_t fd_count;
	size_t size;
	struct secret secret; /* the message, if it holds a secret; else it is in bytes */
	uint8_t bytes[];
};

#define PAGE_BYTES 65536 /* the largest page of arm64, a multiple of every smaller one */

/* Shared by all peers: a message is handled before the next one is read. Secrets pass through it,
 * so it is kept from swap and core dumps. If the limit of locked memory forbids that, the program
 * goes on without, because the bytes are wiped as soon as they were handled. */
static _Alignas(PAGE_BYTES) uint8_t receive_buffer[MESSAGE_BYTES_MAX];

static void lock_receive_buffer(void)
{
	static bool done;

	if (!done && (secret_lock(receive_buffer, sizeof(receive_buffer)) < 0 ||
	                     madvise(receive_buffer, sizeof(receive_buffer), MADV_DONTDUMP) < 0))
		log_debug("the receive buffer cannot be locked: %s", strerror(errno));
	done = true;
}

static const uint8_t *queued_bytes_of(const struct ipc_queued *q)
{
	return q->secret.p ? q->secret.p : q->bytes;
}

/* The memory of a queued message. */
static size_t queued_cost(size_t size)
{
	return sizeof(struct ipc_queued) + size;
}

static void queued_free(struct ipc_queued *q)
{
	for (size_t i = 0; i < q->fd_count; i++)
		close(q->fds[i]);
	secret_free(&q->secret);
	free(q);
}

void ipc_peer_may_lose(struct ipc_peer *peer)
{
	peer->may_lose = true;
}

void ipc_peer_close(struct ipc_peer *peer)
{
	if (peer->alive)
		*peer->alive = false;
	peer->alive = NULL;
	if (!peer->open)
		return;
	peer->open = false;
	loop_task_cancel(peer->io.loop, &peer->flush);
	loop_io_close(&peer->io);
	close(peer->io.fd);
	while (peer->first) {
		struct ipc_queued *q = peer->first;

		peer->first = q->next;
		queued_free(q);
	}
	peer->last = NULL;
	peer->queued_bytes = peer->queued_fds = 0;
}

static void cut_off(struct ipc_peer *peer, int error)
{
	ipc_on_end on_end = peer->on_end;

	if (error)
		log_debug("%s is cut off: %s", peer->name, strerror(-error));
	ipc_peer_close(peer);
	on_end(peer, error);
}

/* Cuts off at the end of the turn. The first reason stands. */
static void fail_later(struct ipc_peer *peer, int error)
{
	if (!peer->failure)
		peer->failure = error;
	loop_task_queue(peer->io.loop, &peer->flush);
}

static bool carries_secret(enum message_type type)
{
	return type == MESSAGE_CA || type == MESSAGE_CREDENTIAL ||
	       type == MESSAGE_CREDENTIAL_SEAL || type == MESSAGE_GATEWAY_TOKEN ||
	       type == MESSAGE_GATEWAY_ENTER || type == MESSAGE_WORKER_ENTER;
}

/* Logs messages at level debug, never their content. */
static void trace(const struct ipc_peer *peer, const char *way, const uint8_t *message, size_t size,
        size_t fd_count)
{
	struct message_head head;
	struct reader body;

	if (log_level() < LOG_LEVEL_DEBUG || message_open(message, size, &head, &body) != 0)
		return;
	if (carries_secret(head.type)) /* its size would tell the size of the secret */
		log_debug("%s %s %s %" PRIu64, way, peer->name, message_type_name(head.type),
		        head.id);
	else
		log_debug("%s %s %s %" PRIu64 ": %zu bytes, %zu descriptors", way, peer->name,
		        message_type_name(head.type), head.id, size, fd_count);
}

/* Handles one message. Returns true: go on; false: nothing more now, or the peer is gone. */
static bool receive_one(struct ipc_peer *peer)
{
	struct ipc_message message;
	bool alive = true;
	ssize_t n = ipc_datagram_receive(peer->io.fd, receive_buffer, &message, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		cut_off(peer, (int)n);
		return false;
	}
	trace(peer, "<-", receive_buffer, (size_t)n, message.fd_count);
	peer->alive = &alive;
	int rc = message.lost && !peer->may_lose ? -EBADMSG : peer->on_message(peer, &message);
	if (carries_secret(message.head.type))
		secret_wipe(receive_buffer, (size_t)n);
	ipc_message_close_fds(&message);
	if (!alive)
		return false;
	peer->alive = NULL;
	if (rc)
		cut_off(peer, rc);
	return !rc;
}

static void receive_share(struct ipc_peer *peer)
{
	peer->unread = false;
	for (int i = 0; i < MESSAGES_PER_TURN; i++)
		if (!receive_one(peer))
			return;
	peer->unread = true;
	loop_task_queue(peer->io.loop, &peer->flush);
}

void ipc_peer_drain(struct ipc_peer *peer)
{
	while (peer->open && receive_one(peer))
		;
}

static void send_queued(struct ipc_peer *peer)
{
	while (peer->first) {
		struct ipc_queued *q = peer->first;
		int rc = ipc_datagram_send(peer->io.fd, queued_bytes_of(q), q->size, q->fds,
		        q->fd_count, MSG_DONTWAIT);

		if (rc == -EAGAIN)
			return;
		peer->first = q->next;
		if (!peer->first)
			peer->last = NULL;
		peer->queued_bytes -= queued_cost(q->size);
		peer->queued_fds -= q->fd_count;
		queued_free(q);
		/* The reading side notices a closed peer, after its last messages. */
		if (rc && rc != -EPIPE)
			fail_later(peer, rc);
	}
}

int ipc_peer_flush(struct ipc_peer *peer, int timeout_ms)
{
	int64_t end = clock_monotonic_ms() + timeout_ms;

	while (peer->open && peer->first && !peer->failure) {
		struct pollfd socket = {.fd = peer->io.fd, .events = POLLOUT};
		int64_t left = end - clock_monotonic_ms();

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&socket, 1, (int)left) > 0)
			send_queued(peer);
	}
	return peer->open && !peer->failure ? 0 : -EPIPE;
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct ipc_peer *peer = container_of(io, struct ipc_peer, io);

	if (events & LOOP_WRITE)
		send_queued(peer);
	if (events & ~LOOP_WRITE)
		receive_share(peer);
}

static void on_task(struct loop_task *task)
{
	struct ipc_peer *peer = container_of(task, struct ipc_peer, flush);

	if (peer->failure)
		cut_off(peer, peer->failure);
	else if (peer->unread)
		receive_share(peer);
}

int ipc_peer_open(struct loop *loop, struct ipc_peer *peer, int fd, const char *name,
        ipc_on_message on_message, ipc_on_end on_end)
{
	*peer = (struct ipc_peer){.name = name, .on_message = on_message, .on_end = on_end};
	peer->flush.run = on_task;
	lock_receive_buffer();
	int rc = 0, flags = fcntl(fd, F_GETFL);
	/* An end of ipc_pair() needs no change, and a jailed recorder may make none. */
	if (flags < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
	        ((flags & O_NONBLOCK) == 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0))
		rc = -errno;
	if (!rc)
		rc = loop_io_open(loop, &peer->io, fd, LOOP_READ | LOOP_WRITE, on_ready);
	if (rc)
		close(fd);
	else
		peer->open = true;
	return rc;
}

/* Makes a queued copy: its own memory, locked for a secret, and its own descriptors. */
static int queued_new(struct ipc_queued **out, const uint8_t *message, size_t size, const int *fds,
        size_t fd_count, bool secret)
{
	struct ipc_queued *q = malloc(sizeof(*q) + (secret ? 0 : size));
	int rc = q ? 0 : -ENOMEM;

	if (!q)
		return rc;
	*q = (struct ipc_queued){.size = size};
	if (secret)
		rc = secret_copy(&q->secret, message, size);
	else
		memcpy(q->bytes, message, size);
	while (!rc && q->fd_count < fd_count) {
		int copy = fcntl(fds[q->fd_count], F_DUPFD_CLOEXEC, 0);

		if (copy < 0)
			rc = -errno;
		else
			q->fds[q->fd_count++] = copy;
	}
	if (rc)
		queued_free(q);
	else
		*out = q;
	return rc;
}

bool ipc_peer_has_room(const struct ipc_peer *peer, size_t size, size_t fd_count)
{
	return queued_cost(size) <= IPC_QUEUE_MAX - peer->queued_bytes &&
	       fd_count <= IPC_QUEUE_FDS_MAX - peer->queued_fds;
}

static int queue(struct ipc_peer *peer, const uint8_t *message, size_t size, const int *fds,
        size_t fd_count, bool secret)
{
	struct ipc_queued *q;

	if (!ipc_peer_has_room(peer, size, fd_count))
		return -ENOBUFS;
	int rc = queued_new(&q, message, size, fds, fd_count, secret);
	if (rc)
		return rc;
	if (peer->last)
		peer->last->next = q;
	else
		peer->first = q;
	peer->last = q;
	peer->queued_bytes += queued_cost(size);
	peer->queued_fds += fd_count;
	return 0;
}

static int send_or_queue(struct ipc_peer *peer, const uint8_t *message, size_t size, const int *fds,
        size_t fd_count, bool secret)
{
	int rc = -EAGAIN;

	if (!peer->open || peer->failure)
		return -EPIPE;
	if (size == 0 || size > MESSAGE_BYTES_MAX || fd_count > MESSAGE_FDS_MAX)
		return -EMSGSIZE;
	trace(peer, "->", message, size, fd_count);
	if (!peer->first)
		rc = ipc_datagram_send(peer->io.fd, message, size, fds, fd_count, MSG_DONTWAIT);
	if (rc == -EAGAIN)
		rc = queue(peer, message, size, fds, fd_count, secret);
	if (rc && rc != -EPIPE)
		fail_later(peer, rc);
	return rc;
}

int ipc_send(
        struct ipc_peer *peer, const uint8_t *message, size_t size, const int *fds, size_t fd_count)
{
	return send_or_queue(peer, message, size, fds, fd_count, false);
}

int ipc_send_secret(
        struct ipc_peer *peer, uint8_t *message, size_t size, const int *fds, size_t fd_count)
{
	int rc = send_or_queue(peer, message, size, fds, fd_count, true);

	secret_wipe(message, size);
	return rc;
}
