/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the gateway's descriptors: listening sockets, because the gateway may bind nothing itself,
 * and the operator's certificate and key, which this process does not read.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervisor/os/operator_file.h"
#include "supervisor/process/gateway.h"

#define BACKLOG 1024

/* Accepted sockets inherit what is set here (tcp(7), socket(7)). */
static int set_options(int fd, uint8_t family)
{
	const int one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)) < 0 ||
	        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		return -errno;
	if (family == 6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0)
		return -errno;
	return 0;
}

static int open_listener(const struct config_gateway_listener *l)
{
	struct sockaddr_storage at;
	socklen_t n = ip_to_sockaddr(&l->address, l->port, &at);
	int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	rc = set_options(fd, l->address.family);
	if (!rc && (bind(fd, (struct sockaddr *)&at, n) < 0 || listen(fd, BACKLOG) < 0))
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static bool is_at(int fd, const struct config_gateway_listener *l)
{
	struct sockaddr_storage at = {0};
	socklen_t n = sizeof(at);
	struct ip address;
	uint16_t port;

	if (getsockname(fd, (struct sockaddr *)&at, &n) < 0)
		return false;
	address = ip_from_sockaddr((struct sockaddr *)&at, &port);
	return port == l->port && ip_equals(&address, &l->address);
}

/* Takes the listener for that address from those that an earlier daemon or configuration left, or
 * opens a new one. */
static int take_listener(struct gateway_life *life, const struct config_gateway_listener *l)
{
	for (size_t i = 0; i < life->inherited_count; i++) {
		int fd = life->inherited[i];

		if (fd < 0 || !is_at(fd, l))
			continue;
		life->inherited[i] = -1;
		return fd;
	}
	return open_listener(l);
}

static void forget_inherited(struct gateway_life *life)
{
	for (size_t i = 0; i < life->inherited_count; i++)
		if (life->inherited[i] >= 0)
			close(life->inherited[i]);
	life->inherited_count = 0;
}

int gateway_listen(struct gateway_life *life, char *why, size_t why_size)
{
	char text[IP_TEXT_MAX];

	while (life->listener_count < life->config.listener_count) {
		const struct config_gateway_listener *l =
		        &life->config.listeners[life->listener_count];
		int fd = take_listener(life, l);

		if (fd < 0) {
			snprintf(why, why_size, "it cannot listen on %s port %u: %s",
			        ip_format(&l->address, text), (unsigned)l->port, strerror(-fd));
			return fd;
		}
		life->listeners[life->listener_count++] = fd;
	}
	forget_inherited(life);
	return 0;
}

void gateway_unlisten(struct gateway_life *life)
{
	while (life->listener_count)
		close(life->listeners[--life->listener_count]);
	forget_inherited(life);
}

int gateway_files_open(const struct config_gateway *config, int fds[GATEWAY_FILES], size_t *count,
        char *why, size_t why_size)
{
	*count = 0;
	if (!config->certificate[0])
		return 0;
	fds[0] = operator_file_open(
	        "gateway.certificate", config->certificate, false, why, why_size);
	if (fds[0] < 0)
		return fds[0];
	fds[1] = operator_file_open("gateway.key", config->key, true, why, why_size);
	if (fds[1] < 0) {
		close(fds[0]);
		return fds[1];
	}
	*count = GATEWAY_FILES;
	return 0;
}

bool gateway_file_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool gateway_files_changed(struct gateway_life *life, const int fds[GATEWAY_FILES])
{
	bool changed = false;

	for (size_t i = 0; i < GATEWAY_FILES; i++) {
		struct stat st;

		if (fstat(fds[i], &st) < 0 || gateway_file_is_same(&st, &life->files[i]))
			continue;
		life->files[i] = st;
		changed = true;
	}
	return changed;
}
