/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The UDP relay, for the ports that udp:// rules name: its sockets towards the sandbox, and the
 * table of flows (udp_flow.c) to which their datagrams belong.
 *
 * The fence drops what exceeds the sandbox's rate, but it counts packets, each of which may carry
 * dozens of datagrams made by the sandbox's kernel (UDP_SEGMENT, udp(7)). So datagrams are counted
 * here too: beyond the rate nothing is read for a moment, and the kernel drops what its buffer does
 * not hold.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/tunnel/private.h"
#include "proxy/tunnel/udp_socket.h"
#include "vethguard/base/clock.h"

#define DISCARD_PORT 9 /* RFC 863 */

/* --- what the sandbox sends --- */

static void take(struct udp_socket *s, const struct udp_flow_key *key, const uint8_t *p, size_t n)
{
	struct udp_flow *f;

	HASH_FIND(hh, s->relay->flows, key, udp_flow_key_bytes(key), f);
	if (!f)
		f = udp_flow_open(s, key);
	if (f && !udp_flow_is_over(f) && !udp_flow_leaks(f, p, n))
		udp_flow_forward(f, p, n);
}

static void on_sandbox(struct loop_io *io, unsigned events);

static int watch(struct udp_socket *s)
{
	return loop_io_open_level(
	        s->relay->proxy->config.loop, &s->io, s->fd, LOOP_READ, on_sandbox);
}

static struct udp_association *association_at(struct list *l)
{
	return container_of(l, struct udp_association, list);
}

static void pause_reading(struct udp_relay *relay)
{
	struct list *all = &relay->associations;

	relay->paused = true;
	for (size_t i = 0; i < relay->socket_count; i++)
		loop_io_close(&relay->sockets[i].io);
	for (struct list *l = all->next; l != all; l = l->next)
		loop_io_close(&association_at(l)->socket.io);
	loop_timer_set(&relay->pause, DATAGRAM_PAUSE_MS);
}

/* Returns false if reading was paused again. */
static bool watch_again(struct udp_socket *s)
{
	if (!s->io.watch && watch(s) < 0)
		pause_reading(s->relay);
	return !s->relay->paused;
}

/* Watches the sockets again. If there is no memory for that, tries again later. */
static void on_pause_over(struct loop_timer *timer)
{
	struct udp_relay *relay = container_of(timer, struct udp_relay, pause);
	struct list *all = &relay->associations;
	bool goes_on = true;

	relay->paused = false;
	for (size_t i = 0; i < relay->socket_count && goes_on; i++)
		goes_on = watch_again(&relay->sockets[i]);
	for (struct list *l = all->next; l != all && goes_on; l = l->next)
		goes_on = watch_again(&association_at(l)->socket);
}

static void on_sandbox(struct loop_io *io, unsigned events)
{
	struct udp_socket *s = container_of(io, struct udp_socket, io);
	int64_t now_ms = clock_monotonic_ms();

	(void)events;
	for (unsigned i = 0; i < DATAGRAM_BATCH && !s->relay->paused; i++) {
		struct udp_flow_key key;
		uint8_t *p = s->relay->datagram;
		size_t header_n = 0;
		ssize_t n;

		if (!rate_has(&s->relay->rate, now_ms)) {
			pause_reading(s->relay);
			return;
		}
		memset(&key, 0, sizeof(key));
		n = s->association ? udp_association_receive(s->association, p, &key, &header_n)
		                   : udp_socket_receive(s->fd, p, DATAGRAM_MAX, &key.src,
		                             &key.src_port, &key.dst, &key.dst_port);
		if (n < 0)
			return;
		if (key.dst.family || key.host_n)
			take(s, &key, p + header_n, (size_t)n - header_n);
		rate_take(&s->relay->rate, now_ms);
	}
}

/* --- authorizing again --- */

size_t udp_relay_reauthorize(struct udp_relay *relay, const struct policy *next,
        enum event_cause cause, const char *detail)
{
	struct udp_flow *f, *following;
	size_t ended = 0;

	HASH_ITER(hh, relay->flows, f, following)
	{
		if (udp_flow_is_over(f) || (next && udp_flow_passes(f, next)))
			continue;
		udp_flow_cut(f, cause, detail);
		ended++;
	}
	return ended;
}

void udp_relay_end_reauthorized(struct udp_relay *relay)
{
	struct udp_flow *f, *following;

	HASH_ITER(hh, relay->flows, f, following)
	{
		if (udp_flow_is_over(f))
			udp_flow_free(f);
	}
	proxy_maybe_idle(relay->proxy);
}

size_t udp_relay_count(const struct udp_relay *relay)
{
	return HASH_COUNT(relay->flows);
}

/* Connects the socket to where nothing comes from: it gets no more datagrams, and sends as
 * before. */
static bool turn_away(int fd)
{
	struct sockaddr_storage self = {0}, nowhere;
	socklen_t n = sizeof(self);
	struct ip loopback = {4, {127, 0, 0, 1}};

	if (getsockname(fd, (struct sockaddr *)&self, &n) < 0)
		return false;
	if (self.ss_family == AF_INET6)
		loopback = (struct ip){6, {[15] = 1}};
	n = ip_to_sockaddr(&loopback, DISCARD_PORT, &nowhere);
	return connect(fd, (struct sockaddr *)&nowhere, n) == 0;
}

/* Records and frees the flows of one socket, or all flows. */
static void drop_flows(struct udp_relay *relay, const struct udp_socket *of)
{
	struct udp_flow *f, *following;

	HASH_ITER(hh, relay->flows, f, following)
	{
		if (of && f->socket != of)
			continue;
		if (!udp_flow_is_over(f))
			udp_flow_record(f);
		udp_flow_free(f);
	}
}

void udp_relay_retire(struct udp_relay *relay)
{
	for (size_t i = 0; i < relay->socket_count; i++) {
		struct udp_socket *s = &relay->sockets[i];

		on_sandbox(&s->io, LOOP_READ);
		loop_io_close(&s->io);
		if (!turn_away(s->fd)) {
			drop_flows(relay, s);
			close(s->fd);
			s->fd = -1;
		}
	}
	loop_timer_cancel(&relay->pause); /* no socket is watched any more */
}

/* --- life --- */

struct udp_relay *udp_relay_new(struct proxy *proxy)
{
	struct udp_relay *relay = calloc(1, sizeof(*relay));

	if (!relay)
		return NULL;
	relay->proxy = proxy;
	list_init(&relay->associations);
	rate_init(&relay->rate, proxy->config.limits.udp_datagrams_per_s, DATAGRAM_BURST_S,
	        clock_monotonic_ms());
	if (loop_timer_open(proxy->config.loop, &relay->pause, on_pause_over) < 0) {
		free(relay);
		return NULL;
	}
	return relay;
}

int udp_relay_open_socket(struct udp_relay *relay, struct udp_socket *s, int fd, uint16_t port)
{
	if (!relay->datagram)
		relay->datagram = malloc(DATAGRAM_MAX);
	s->relay = relay;
	s->fd = fd;
	s->port = port;
	if (relay->datagram && (relay->paused || watch(s) == 0))
		return 0;
	close(fd);
	s->fd = -1;
	return -ENOMEM;
}

void udp_relay_close_socket(struct udp_socket *s)
{
	drop_flows(s->relay, s);
	loop_io_close(&s->io);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int udp_relay_serve(struct udp_relay *relay, int fd, uint16_t port)
{
	int rc;

	if (relay->socket_count == SOCKETS_MAX) {
		close(fd);
		return -ENOSPC;
	}
	rc = udp_relay_open_socket(relay, &relay->sockets[relay->socket_count], fd, port);
	if (!rc)
		relay->socket_count++;
	return rc;
}

void udp_relay_free(struct udp_relay *relay)
{
	if (!relay)
		return;
	drop_flows(relay, NULL);
	loop_timer_close(&relay->pause);
	for (size_t i = 0; i < relay->socket_count; i++) {
		loop_io_close(&relay->sockets[i].io);
		if (relay->sockets[i].fd >= 0)
			close(relay->sockets[i].fd);
	}
	free(relay->datagram);
	free(relay);
}
