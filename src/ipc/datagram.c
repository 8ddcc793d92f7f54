/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams with descriptors over SOCK_SEQPACKET (unix(7), cmsg(3)). A datagram is taken whole or
 * not at all: if it was truncated, it is refused and every descriptor that came with it is closed,
 * so that a hostile sender cannot fill the receiver's table. If only descriptors are missing,
 * because this process may open no more, those that came are closed, and the caller decides.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "ipc/private.h"

#define SOCKET_BUFFER_BYTES (4 * MESSAGE_BYTES_MAX)

union control {
	char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	struct cmsghdr align;
};

int ipc_datagram_send(
        int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count, int flags)
{
	union control control;
	struct iovec iov = {(void *)(uintptr_t)message, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd_count) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		memset(&control, 0, msg.msg_controllen);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_count);
	}
	for (;;) {
		if (sendmsg(fd, &msg, flags | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	}
}

void ipc_message_close_fds(struct ipc_message *message)
{
	for (size_t i = 0; i < message->fd_count; i++)
		if (message->fds[i] >= 0)
			close(message->fds[i]);
	message->fd_count = 0;
}

/* Takes the descriptors of every control message; those that exceed the table are closed and make
 * the datagram unacceptable. */
static int take_fds(struct msghdr *msg, struct ipc_message *message)
{
	int rc = msg->msg_flags & MSG_TRUNC ? -EBADMSG : 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			rc = -EBADMSG;
			continue;
		}
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (message->fd_count < MESSAGE_FDS_MAX) {
				message->fds[message->fd_count++] = fd;
			} else {
				close(fd);
				rc = -EBADMSG;
			}
		}
	}
	return rc;
}

/* ECONNRESET: the other side closed without having read everything; what it sent is still there, so
 * read on. */
static ssize_t receive_once(int fd, struct msghdr *msg, int flags)
{
	for (;;) {
		ssize_t n = recvmsg(fd, msg, flags | MSG_CMSG_CLOEXEC);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != ECONNRESET)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	}
}

ssize_t ipc_datagram_receive(int fd, uint8_t *buf, struct ipc_message *message, int flags)
{
	union control control;
	struct iovec iov = {buf, MESSAGE_BYTES_MAX};
	struct msghdr msg = {.msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};

	message->fd_count = 0;
	ssize_t n = receive_once(fd, &msg, flags);
	if (n < 0)
		return n;
	int rc = take_fds(&msg, message);
	message->lost = msg.msg_flags & MSG_CTRUNC;
	if (message->lost)
		ipc_message_close_fds(message);
	if (n == 0 && message->fd_count == 0)
		return 0;
	if (!rc)
		rc = message_open(buf, (size_t)n, &message->head, &message->body);
	if (rc) {
		ipc_message_close_fds(message);
		return rc;
	}
	return n;
}

int ipc_pair(int fds[2])
{
	int size = SOCKET_BUFFER_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	/* The kernel's limit may be lower; its default still holds one message of the largest
	 * size. */
	for (int i = 0; i < 2; i++)
		if (setsockopt(fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
			setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return 0;
}

static int wait_until(int fd, short events, int64_t deadline_ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		int64_t left = deadline_ms < 0 ? -1 : deadline_ms - clock_monotonic_ms();
		if (deadline_ms >= 0 && left <= 0)
			return -ETIMEDOUT;
		int n = poll(&p, 1, (int)left);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

int ipc_receive_blocking(int fd, int timeout_ms, uint8_t *buf, struct ipc_message *message)
{
	int64_t deadline_ms = timeout_ms < 0 ? -1 : clock_monotonic_ms() + timeout_ms;

	for (;;) {
		ssize_t n = ipc_datagram_receive(fd, buf, message, MSG_DONTWAIT);
		if (n > 0 && message->lost)
			return -EBADMSG;
		if (n > 0)
			return 0;
		if (n == 0)
			return -EPIPE;
		if (n != -EAGAIN)
			return (int)n;
		int rc = wait_until(fd, POLLIN, deadline_ms);
		if (rc)
			return rc;
	}
}

int ipc_send_blocking(int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count)
{
	if (size == 0 || size > MESSAGE_BYTES_MAX || fd_count > MESSAGE_FDS_MAX)
		return -EMSGSIZE;
	for (;;) {
		int rc = ipc_datagram_send(fd, message, size, fds, fd_count, 0);
		if (rc != -EAGAIN)
			return rc;
		rc = wait_until(fd, POLLOUT, -1);
		if (rc)
			return rc;
	}
}
