/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the control API: who may connect, and how many at once. http_connection.c handles
 * the connections.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/http_connection.h"
#include "vethguard/base/log.h"

/* Gets all groups: the kernel returns the needed size. */
static bool groups_of(int fd, struct http_peer *peer)
{
	gid_t *groups;
	socklen_t size = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0)
		return true; /* no groups */
	if (errno != ERANGE)
		return false;
	groups = malloc(size);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0) {
		free(groups);
		return false;
	}
	peer->groups = groups;
	peer->group_count = size / sizeof(*groups);
	return true;
}

static bool peer_of(int fd, struct http_peer *peer)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0 ||
	        size != sizeof(credentials))
		return false;
	*peer = (struct http_peer){.pid = credentials.pid,
	        .pidfd = HTTP_PEER_UNTOLD,
	        .uid = credentials.uid,
	        .gid = credentials.gid};
	return groups_of(fd, peer);
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* <asm-generic/socket.h> of Linux 6.5 */
#endif

/* False: there is no room for a pidfd. */
static bool pidfd_of(int fd, int *out)
{
	int pidfd;
	socklen_t size = sizeof(pidfd);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
		*out = pidfd;
	else
		*out = errno == ENOPROTOOPT ? HTTP_PEER_UNTOLD : HTTP_PEER_ENDED;
	return *out != HTTP_PEER_ENDED || (errno != EMFILE && errno != ENFILE && errno != ENOMEM);
}

bool http_peer_in_group(const struct http_peer *peer, gid_t gid)
{
	bool found = peer->gid == gid;

	for (size_t i = 0; i < peer->group_count; i++)
		found = found || peer->groups[i] == gid;
	return found;
}

static size_t count_of(const struct http_server *server, uid_t uid)
{
	size_t count = 0;

	for (const struct list *l = server->connections.next; l != &server->connections;
	        l = l->next) {
		const struct http_exchange *c = container_of(l, struct http_exchange, place);

		count += !c->stranger && c->peer.uid == uid;
	}
	return count;
}

/* Refused peers never take a place of an admitted one. */
static bool is_full(const struct http_server *server, const struct http_peer *peer, bool stranger)
{
	if (stranger)
		return server->strangers >= HTTP_SERVER_STRANGERS_MAX;
	return server->count >= HTTP_SERVER_CONNECTIONS_MAX ||
	       (peer->uid != 0 && count_of(server, peer->uid) >= HTTP_SERVER_CONNECTIONS_MAX / 2);
}

/* Responds without keeping the connection, because there is no room for one more. The response may
 * be lost if the client has sent something already. */
static void turn_away(int fd, unsigned status, const char *detail)
{
	struct json j;
	struct buf body, answer;

	buf_init(&body, CONTROL_BODY_MAX);
	buf_init(&answer, CONTROL_BODY_MAX);
	control_problem_begin(&j, &body, status, slice_from_string(detail));
	json_end_object(&j);
	if (!j.failed && buf_printf(&answer,
	                         "HTTP/1.1 %u %s\r\nContent-Type: " CONTROL_PROBLEM "\r\n"
	                         "Content-Length: %zu\r\n%sConnection: close\r\n\r\n%.*s",
	                         status, control_status_name(status), body.len,
	                         status == 503 ? "Retry-After: 1\r\n" : "",
	                         SLICE_ARG(buf_slice(&body))) == 0)
		(void)!send(fd, buf_bytes(&answer), answer.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_fini(&body);
	buf_fini(&answer);
	close(fd);
}

static void forget_peer(struct http_peer *peer)
{
	free((gid_t *)(uintptr_t)peer->groups);
	if (peer->pidfd >= 0)
		close(peer->pidfd);
}

static void welcome(struct http_server *server, int fd)
{
	struct http_exchange *c = NULL;
	struct http_peer peer, kept;
	const char *why = NULL;

	if (!peer_of(fd, &peer)) {
		close(fd);
		return;
	}
	if (pidfd_of(fd, &peer.pidfd)) {
		why = server->handler->admit(server->handler, &peer);
		kept = peer;
		kept.pidfd = HTTP_PEER_UNTOLD;
		if (!is_full(server, &peer, why))
			c = http_connection_new(server, fd, &kept, why);
	}
	if (!c)
		turn_away(fd, why ? 403 : 503, why ? why : "too many connections");
	else
		peer.groups = NULL; /* the connection owns them now */
	forget_peer(&peer);
	if (c && why)
		http_connection_refuse(c, 403, why);
}

static void on_connection(struct loop_io *io, unsigned events)
{
	struct http_server *server = container_of(io, struct http_server, io);
	int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd >= 0) {
		welcome(server, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		log_warn("a connection to the control socket has to wait: %s", strerror(errno));
		loop_io_close(&server->io);
		loop_timer_set(&server->retry, HTTP_SERVER_RETRY_MS);
	}
}

static void on_retry(struct loop_timer *timer)
{
	struct http_server *server = container_of(timer, struct http_server, retry);

	if (loop_io_open_level(server->loop, &server->io, server->fd, LOOP_READ, on_connection) !=
	        0)
		loop_timer_set(timer, HTTP_SERVER_RETRY_MS);
}

struct http_server *http_server_new(struct loop *loop, int fd, struct http_handler *handler)
{
	struct http_server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->loop = loop;
	server->handler = handler;
	server->fd = fd;
	list_init(&server->connections);
	if (loop_timer_open(loop, &server->retry, on_retry) != 0 ||
	        loop_io_open_level(loop, &server->io, fd, LOOP_READ, on_connection) != 0) {
		http_server_free(server);
		return NULL;
	}
	return server;
}

int http_server_hold(struct http_server *server, bool hold)
{
	loop_timer_cancel(&server->retry);
	loop_io_close(&server->io);
	return hold ? 0
	            : loop_io_open_level(
	                      server->loop, &server->io, server->fd, LOOP_READ, on_connection);
}

void http_server_free(struct http_server *server)
{
	if (!server)
		return;
	while (!list_is_empty(&server->connections))
		http_connection_free(
		        container_of(server->connections.next, struct http_exchange, place));
	loop_io_close(&server->io);
	loop_timer_close(&server->retry);
	free(server);
}
