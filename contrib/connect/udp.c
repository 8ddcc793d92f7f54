/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows (udp.h). Most datagrams belong to the flow that was used last, so the search begins there.
 */
#include "udp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "association.h"
#include "connect.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/dns/responder.h"
#include "vethguard/wire/socks5.h"

#define SWEEP_S 5

/* --- flows --- */

bool endpoint_equals(const struct endpoint *a, const struct endpoint *b)
{
	return a->port == b->port && ip_equals(&a->address, &b->address);
}

void flow_touch(struct flow *f)
{
	f->used_ms = clock_monotonic_ms();
	list_remove(&f->place);
	list_append(&f->udp->flows, &f->place);
}

void flow_free(struct flow *f)
{
	channel_leave(f);
	list_remove(&f->place);
	f->udp->flow_count--;
	if (*f->host)
		names_release(f->udp->connect->names, &f->destination.address);
	if (f->readable)
		event_free(f->readable);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

static void on_flow(evutil_socket_t fd, short what, void *context)
{
	struct flow *f = context;

	(void)fd, (void)what;
	if (!capture_read_flow(f))
		flow_free(f);
}

static struct flow *flow_find(
        struct udp *u, const struct endpoint *client, const struct endpoint *destination)
{
	for (struct list *at = u->flows.prev; at != &u->flows; at = at->prev) {
		struct flow *f = container_of(at, struct flow, place);

		if (endpoint_equals(&f->client, client) &&
		        endpoint_equals(&f->destination, destination))
			return f;
	}
	return NULL;
}

/* Makes room for one flow. Returns false if all have been used lately. */
static bool make_room(struct udp *u)
{
	struct flow *oldest;

	if (u->flow_count < FLOWS_MAX)
		return true;
	oldest = container_of(u->flows.next, struct flow, place);
	if (clock_monotonic_ms() - oldest->used_ms < FLOW_YIELDS_MS) {
		udp_warn_of_bound(u);
		return false;
	}
	flow_free(oldest);
	return true;
}

static struct flow *flow_open(
        struct udp *u, const struct endpoint *client, const struct endpoint *destination)
{
	struct flow *f = make_room(u) ? calloc(1, sizeof(*f)) : NULL;

	if (!f)
		return NULL;
	f->udp = u;
	f->client = *client;
	f->destination = *destination;
	f->used_ms = clock_monotonic_ms();
	names_host(u->connect, &destination->address, f->host, sizeof(f->host));
	if (*f->host) /* its address stands for nothing else meanwhile */
		names_hold(u->connect->names, &destination->address);
	list_append(&u->flows, &f->place);
	u->flow_count++;
	f->fd = capture_open_flow(client, destination);
	if (f->fd >= 0)
		f->readable = event_new(u->connect->base, f->fd, EV_READ | EV_PERSIST, on_flow, f);
	if (f->readable && event_add(f->readable, NULL) == 0)
		return f;
	log_debug("udp: a flow has no socket: %s", strerror(errno));
	flow_free(f);
	return NULL;
}

/* Logs a flow with its destination. Returns false if the destination is a synthetic address that no
 * longer stands for a name. */
static bool is_known(
        const struct udp *u, const struct endpoint *client, const struct endpoint *destination)
{
	char host[GATEWAY_NAME_MAX + 3];

	if (!names_of(u->connect, &destination->address, host, sizeof(host)))
		return false;
	log_debug("udp: port %u -> %s:%u", client->port, host, destination->port);
	return true;
}

/* --- what programs send --- */

void udp_take_of(struct flow *f, const uint8_t *p, size_t n)
{
	uint8_t header[SOCKS5_HEADER_MAX];
	size_t header_n;

	flow_touch(f);
	if (!f->channel && !channel_join(f)) {
		if (udp_is_closed(f->udp) && f->udp->is_refused)
			unreachable_send(&f->client, &f->destination, n);
		return;
	}
	header_n = socks5_header_write(
	        slice_from_string(f->host), &f->destination.address, f->destination.port, header);
	association_send(f->channel->association, header, header_n, p, n);
}

void udp_take(struct udp *u, const struct endpoint *client, const struct endpoint *destination,
        const uint8_t *p, size_t n)
{
	struct flow *f = flow_find(u, client, destination);

	if (!f && ((udp_is_closed(u) && u->is_refused) || !is_known(u, client, destination))) {
		unreachable_send(client, destination, n);
		return;
	}
	if (!f)
		f = flow_open(u, client, destination);
	if (f)
		udp_take_of(f, p, n);
}

/* --- the whole --- */

static void on_listener(evutil_socket_t fd, short what, void *context)
{
	(void)what;
	capture_read(context, fd);
}

static void on_sweep(evutil_socket_t fd, short what, void *context)
{
	struct udp *u = context;
	const int64_t now_ms = clock_monotonic_ms();
	struct list *next;

	(void)fd, (void)what;
	u->warned_of_bound = false;
	for (struct list *at = u->flows.next; at != &u->flows; at = next) {
		struct flow *f = container_of(at, struct flow, place);

		next = at->next;
		if (now_ms - f->used_ms >= FLOW_IDLE_MS ||
		        (now_ms - f->used_ms >= FLOW_YIELDS_MS && capture_is_gone(&f->client)))
			flow_free(f);
	}
	for (struct list *at = u->channels.next; at != &u->channels; at = next) {
		struct channel *k = container_of(at, struct channel, place);

		next = at->next;
		if (!k->flow_count && now_ms - k->used_ms >= CHANNEL_IDLE_MS)
			channel_free(k);
	}
}

static void listen_at(struct udp *u, size_t i, int family)
{
	u->fds[i] = capture_open(family, &u->ports[i]);
	if (u->fds[i] >= 0)
		u->readable[i] = event_new(
		        u->connect->base, u->fds[i], EV_READ | EV_PERSIST, on_listener, u);
	if (!u->readable[i] || event_add(u->readable[i], NULL) < 0) {
		log_debug("udp: IPv%d cannot be redirected: %s", family, strerror(errno));
		u->ports[i] = 0;
	}
}

struct udp *udp_serve(struct connect *c)
{
	static const struct timeval often = {.tv_sec = SWEEP_S};
	struct udp *u = calloc(1, sizeof(*u));

	if (u) {
		u->connect = c;
		u->fds[0] = u->fds[1] = -1;
		list_init(&u->flows);
		list_init(&u->channels);
		listen_at(u, 0, 4);
		listen_at(u, 1, 6);
		u->sweep = event_new(c->base, -1, EV_PERSIST, on_sweep, u);
	}
	if (u && u->ports[0] && u->sweep && event_add(u->sweep, &often) == 0)
		return u;
	log_warn("UDP is refused, except for DNS: no transparent socket can be opened (it needs "
	         "CAP_NET_ADMIN)");
	udp_end(u);
	return NULL;
}

void udp_end(struct udp *u)
{
	if (!u)
		return;
	while (!list_is_empty(&u->flows))
		flow_free(container_of(u->flows.next, struct flow, place));
	while (!list_is_empty(&u->channels))
		channel_free(container_of(u->channels.next, struct channel, place));
	for (size_t i = 0; i < LISTENERS; i++) {
		if (u->readable[i])
			event_free(u->readable[i]);
		if (u->fds[i] >= 0)
			close(u->fds[i]);
	}
	if (u->sweep)
		event_free(u->sweep);
	free(u);
}

uint16_t udp_port(const struct udp *u, int family)
{
	return u->ports[family == 6];
}
