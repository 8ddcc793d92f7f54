/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sendto, sendmsg and sendmmsg on a caller's behalf: the message is copied, its name judged, and
 * the copy sent. Nothing here waits: if the socket is full, the whole call starts again later, and
 * the message as it is then is judged then. Bytes of a stream that were sent already are skipped.
 *
 * A receiver that asks for credentials is told the caller's ids and the process id of init, the
 * sender.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cli/guest/sockets.h"

#define MESSAGE_BYTES_MAX (1u << 20) /* of one message; of a stream, the part sent at once */
#define CONTROL_BYTES_MAX 20480      /* optmem_max of most kernels */
#define PIECES_MAX 1024              /* UIO_MAXIOV */
#define MESSAGES_MAX 1024            /* of one sendmmsg */
#define PASSED_MAX 254               /* descriptors in a message: SCM_MAX_FD + 1 */

/* Only one thread sends. */
static struct {
	uint8_t bytes[MESSAGE_BYTES_MAX];
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES_MAX];
	struct iovec pieces[PIECES_MAX];
	int passed[PASSED_MAX];
	size_t passed_count;
} copy;

static bool is_stream(const struct caller *c)
{
	return c->type == SOCK_STREAM;
}

/* Gathers the pieces without the first skip bytes. Returns the number of bytes or -errno. */
static ssize_t copy_pieces(const struct caller *c, size_t count, size_t skip)
{
	struct iovec here = {copy.bytes, 0};
	size_t used = 0;

	for (size_t i = 0; i < count && here.iov_len < MESSAGE_BYTES_MAX; i++) {
		struct iovec piece = copy.pieces[i];
		size_t passed_over = skip < piece.iov_len ? skip : piece.iov_len;

		skip -= passed_over;
		piece.iov_base = (uint8_t *)piece.iov_base + passed_over;
		piece.iov_len -= passed_over;
		if (piece.iov_len > MESSAGE_BYTES_MAX - here.iov_len) {
			if (!is_stream(c))
				return -EMSGSIZE;
			piece.iov_len = MESSAGE_BYTES_MAX - here.iov_len;
		}
		if (piece.iov_len == 0)
			continue;
		here.iov_len += piece.iov_len;
		copy.pieces[used++] = piece;
	}
	if (used > 0 &&
	        process_vm_readv(c->tid, &here, 1, copy.pieces, used, 0) != (ssize_t)here.iov_len)
		return -EFAULT;
	return (ssize_t)here.iov_len;
}

static uint64_t pieces_length(size_t count)
{
	uint64_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += copy.pieces[i].iov_len > SSIZE_MAX ? SSIZE_MAX : copy.pieces[i].iov_len;
	return n > SSIZE_MAX ? SSIZE_MAX : n;
}

static void close_passed(void)
{
	while (copy.passed_count > 0)
		close(copy.passed[--copy.passed_count]);
}

/* Replaces each number by that of this process's copy of the caller's descriptor. */
static int take_passed(const struct caller *c, struct cmsghdr *h)
{
	size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < count; i++) {
		uint8_t *at = CMSG_DATA(h) + i * sizeof(int);
		int fd;

		if (copy.passed_count == PASSED_MAX)
			return -EINVAL;
		memcpy(&fd, at, sizeof(fd));
		fd = caller_take(c, fd);
		if (fd < 0)
			return fd;
		copy.passed[copy.passed_count++] = fd;
		memcpy(at, &fd, sizeof(fd));
	}
	return 0;
}

static int take_control(const struct caller *c, struct msghdr *m, const struct caller_ids *ids)
{
	struct ucred credentials = {.pid = getpid(), .uid = ids->uid, .gid = ids->gid};
	int rc = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); rc == 0 && h; h = CMSG_NXTHDR(m, h)) {
		const uint8_t *end = copy.control + m->msg_controllen;

		if (h->cmsg_len < sizeof(*h) || h->cmsg_len > (size_t)(end - (uint8_t *)h))
			return -EINVAL;
		if (h->cmsg_level != SOL_SOCKET)
			continue;
		if (h->cmsg_type == SCM_RIGHTS)
			rc = take_passed(c, h);
		if (h->cmsg_type == SCM_CREDENTIALS && h->cmsg_len == CMSG_LEN(sizeof(credentials)))
			memcpy(CMSG_DATA(h), &credentials, sizeof(credentials));
	}
	return rc;
}

static int copy_control(const struct caller *c, struct msghdr *m, const struct caller_ids *ids)
{
	int rc = 0;

	if (m->msg_controllen > CONTROL_BYTES_MAX)
		return -ENOBUFS;
	if (m->msg_controllen > 0)
		rc = caller_read(
		        c, (uint64_t)(uintptr_t)m->msg_control, copy.control, m->msg_controllen);
	m->msg_control = m->msg_controllen > 0 ? copy.control : NULL;
	return rc == 0 && c->domain == AF_UNIX ? take_control(c, m, ids) : rc;
}

/* As the kernel does for a stream that nobody reads any more (send(2)). */
static void tell_broken(const struct caller *c, int flags)
{
	if (is_stream(c) && (flags & MSG_NOSIGNAL) == 0)
		syscall(SYS_tkill, c->tid, SIGPIPE);
}

static long send_copy(
        const struct caller *c, struct msghdr *m, int flags, const struct caller_ids *ids)
{
	/* A caller that uses MSG_ZEROCOPY would be notified when this process's copy is free, so
	 * the flag is removed. */
	int ours = (flags & ~MSG_ZEROCOPY) | MSG_DONTWAIT | MSG_NOSIGNAL;
	long n = c->domain == AF_UNIX ? caller_lend(ids) : 0;

	if (n == 0) {
		n = caller_is_there(c) ? sendmsg(c->socket, m, ours) : -1;
		n = n < 0 ? -errno : n;
	}
	caller_return();
	if (n == -EPIPE)
		tell_broken(c, flags);
	return n;
}

/* theirs holds the caller's addresses; its pieces are in copy.pieces. */
static long send_message(
        const struct caller *c, const struct msghdr *theirs, size_t pieces, size_t skip, int flags)
{
	struct caller_ids ids = {0};
	struct socket_name name = {.pin = -1};
	struct iovec whole = {copy.bytes, 0};
	struct msghdr m = *theirs;
	long n = c->domain == AF_UNIX ? caller_ids(c, &ids) : 0;

	m.msg_name = NULL;
	m.msg_namelen = 0;
	if (n == 0 && theirs->msg_name && theirs->msg_namelen > 0) {
		n = socket_name_take(
		        c, (uint64_t)(uintptr_t)theirs->msg_name, theirs->msg_namelen, &name);
		m.msg_name = &name.address;
		m.msg_namelen = name.n;
	}
	if (n == 0)
		n = copy_pieces(c, pieces, skip);
	whole.iov_len = n > 0 ? (size_t)n : 0;
	m.msg_iov = &whole;
	m.msg_iovlen = 1;
	if (skip > 0)
		m.msg_controllen = 0; /* sent with the first bytes */
	if (n >= 0)
		n = copy_control(c, &m, &ids);
	if (n == 0)
		n = send_copy(c, &m, flags, &ids);
	close_passed();
	socket_name_close(&name);
	return n;
}

/* Sends a stream's bytes as long as the socket takes some. c->done counts what was sent, for the
 * next try. */
static long send_stream(struct caller *c, const struct msghdr *m, size_t count, int flags)
{
	struct iovec pieces[PIECES_MAX];
	uint64_t length = pieces_length(count);
	long n;

	memcpy(pieces, copy.pieces, count * sizeof(pieces[0]));
	do {
		memcpy(copy.pieces, pieces, count * sizeof(pieces[0]));
		n = send_message(c, m, count, c->done, flags);
		c->done += n > 0 ? (uint64_t)n : 0;
	} while (n > 0 && c->done < length);
	if (n == -EAGAIN && c->blocks && (flags & MSG_DONTWAIT) == 0)
		return n;
	return n < 0 && c->done == 0 ? n : (long)c->done;
}

static long send_header(struct caller *c, uint64_t address, int flags)
{
	struct msghdr m;
	int rc = caller_read(c, address, &m, sizeof(m));

	if (rc != 0)
		return rc;
	if (m.msg_iovlen > PIECES_MAX || (int)m.msg_namelen < 0)
		return m.msg_iovlen > PIECES_MAX ? -EMSGSIZE : -EINVAL;
	if (m.msg_namelen > sizeof(struct sockaddr_storage))
		m.msg_namelen = sizeof(struct sockaddr_storage);
	if (m.msg_iovlen > 0)
		rc = caller_read(c, (uint64_t)(uintptr_t)m.msg_iov, copy.pieces,
		        m.msg_iovlen * sizeof(struct iovec));
	if (rc != 0)
		return rc;
	return is_stream(c) ? send_stream(c, &m, m.msg_iovlen, flags)
	                    : send_message(c, &m, m.msg_iovlen, 0, flags);
}

static long send_to(struct caller *c)
{
	struct msghdr m = {.msg_name = (void *)(uintptr_t)c->args[4],
	        .msg_namelen = (socklen_t)c->args[5],
	        .msg_iovlen = 1};

	copy.pieces[0] = (struct iovec){(void *)(uintptr_t)c->args[1], c->args[2]};
	return is_stream(c) ? send_stream(c, &m, 1, (int)c->args[3])
	                    : send_message(c, &m, 1, 0, (int)c->args[3]);
}

/* c->done counts the messages sent, so the next try continues after them. */
static long send_many(struct caller *c)
{
	unsigned count = (unsigned)c->args[2] < MESSAGES_MAX ? (unsigned)c->args[2] : MESSAGES_MAX;
	unsigned first = 0;

	for (; first < count; first++) {
		uint64_t at = c->args[1] + first * sizeof(struct mmsghdr);
		unsigned length;
		long n = send_header(c, at, (int)c->args[3]);

		if (n < 0)
			return first > 0 ? (long)first : n;
		c->done = 0;
		length = (unsigned)n;
		if (caller_write(c, at + offsetof(struct mmsghdr, msg_len), &length,
		            sizeof(length)) != 0)
			return first > 0 ? (long)first : -EFAULT;
	}
	return (long)first;
}

long socket_send(struct caller *c)
{
	if (!c->native) /* its structures have another layout */
		return c->call == JAIL_CALL_SENDTO ? send_to(c) : -EOPNOTSUPP;
	switch (c->call) {
	case JAIL_CALL_SENDTO:
		return send_to(c);
	case JAIL_CALL_SENDMSG:
		return send_header(c, c->args[1], (int)c->args[2]);
	case JAIL_CALL_SENDMMSG:
		return send_many(c);
	default:
		return -ENOSYS;
	}
}
