/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of all gates: its namespace, the socket that changes its rules, and the gates in
 * store. A stored gate holds no link, so it fits any sandbox with the same port. If addresses and
 * bounds are equal too, as for all sandboxes with the same pools, its fence lacks only the hook.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/netlink/netns.h"
#include "supervisor/gate/private.h"

/* Delay after one was taken, also if others are taken meanwhile: see sandbox/worker_pool.c. */
#define REFILL_AFTER_MS 20
#define REFILL_AGAIN_MS 1000

static int prepare_one(struct gate_host *host)
{
	struct gate *gate = &host->store[host->stored];
	int rc;

	netns_sysctls_renew();
	*gate = host->like;
	rc = gate_prepare(gate);
	if (rc)
		gate_close(gate);
	else
		host->stored++;
	return rc;
}

static void refill(struct gate_host *host, int64_t after_ms)
{
	if (!host->refilling)
		loop_timer_set(&host->refill, after_ms);
	host->refilling = true;
}

static void on_refill(struct loop_timer *timer)
{
	struct gate_host *host = container_of(timer, struct gate_host, refill);
	int rc;

	host->refilling = false;
	if (host->stored >= host->goal)
		return;
	rc = prepare_one(host);
	if (rc)
		log_warn("no further gate can be made in advance: %s", strerror(-rc));
	refill(host, rc ? REFILL_AGAIN_MS : REFILL_AFTER_MS);
}

int gate_host_open(struct gate_host **out, struct loop *loop)
{
	struct gate_host *host = calloc(1, sizeof(*host));
	int rc = 0;

	*out = NULL;
	if (!host)
		return -ENOMEM;
	host->loop = loop;
	host->netns = netns_current();
	if (host->netns < 0)
		rc = host->netns;
	if (!rc)
		rc = netlink_open(&host->nl);
	if (!rc)
		rc = divert_open(&host->divert);
	if (!rc && loop)
		rc = loop_timer_open(loop, &host->refill, on_refill);
	if (rc) {
		gate_host_close(host);
		return rc;
	}
	*out = host;
	return 0;
}

static void empty_store(struct gate_host *host)
{
	while (host->stored)
		gate_close(&host->store[--host->stored]);
}

void gate_host_close(struct gate_host *host)
{
	if (!host)
		return;
	gate_host_unwatch(host);
	gate_host_listen_end(host);
	loop_timer_close(&host->refill);
	empty_store(host);
	free(host->store);
	divert_close(host->divert);
	netlink_close(host->nl);
	if (host->netns >= 0)
		close(host->netns);
	free(host);
}

int gate_host_prepare(struct gate_host *host, const struct gate *like, size_t count)
{
	struct gate *store;

	if (host->stored || !host->loop)
		return -EINVAL; /* only once, and only with a loop to refill it */
	store = calloc(count, sizeof(*store));
	if (!store)
		return -ENOMEM;
	free(host->store);
	host->store = store;
	host->like = *like;
	host->goal = count;
	refill(host, 0);
	return count ? prepare_one(host) : 0;
}

/* Gates made from now on are like this one. */
static void learn_shape(struct gate_host *host, const struct gate *gate)
{
	struct gate *like = &host->like;

	like->gate4 = gate->gate4;
	like->gate6 = gate->gate6;
	like->sandbox4 = gate->sandbox4;
	like->sandbox6 = gate->sandbox6;
	like->source4 = gate->source4;
	like->source6 = gate->source6;
	like->bounds = gate->bounds;
}

static bool fits(const struct gate *stored, const struct gate *gate)
{
	const struct fence_spec prepared = gate_fence(stored), wanted = gate_fence(gate);

	return fence_prepared_fits(&prepared, &wanted);
}

bool gate_host_take(struct gate_host *host, struct gate *gate)
{
	struct gate *from;

	if (!host || host->goal == 0)
		return false;
	refill(host, REFILL_AFTER_MS);
	if (host->like.tcp_port != gate->tcp_port) {
		empty_store(host);
		host->like.tcp_port = gate->tcp_port;
	}
	if (gate->kind == GATE_VETH)
		learn_shape(host, gate);
	if (host->stored == 0)
		return false;
	from = &host->store[--host->stored];
	gate->netns = from->netns;
	gate->packets = from->packets;
	gate->generation = from->generation;
	gate->fits = fits(from, gate);
	gate->listener_count = from->listener_count;
	memcpy(gate->listeners, from->listeners, sizeof(gate->listeners));
	return true;
}

void gate_host_tell_filters(struct gate_host *host, const char *interface)
{
	int rc = divert_filters(host->divert);

	if (rc == -EBUSY)
		log_warn("interface %s has somebody else's tc filters, or an \"ingress\" qdisc, in "
		         "the place of vethguard's: it is guarded by nftables alone",
		        interface);
	else if (rc && rc != host->filters)
		log_warn("interfaces are guarded by nftables alone: programs of tc cannot be "
		         "used here: %s",
		        strerror(-rc));
	host->filters = rc;
}

void gate_host_remember(struct gate *gate)
{
	gate_host_forget(gate);
	gate->next = gate->host->diverted;
	gate->host->diverted = gate;
}

void gate_host_forget(struct gate *gate)
{
	struct gate **at;

	if (!gate->host)
		return;
	for (at = &gate->host->diverted; *at; at = &(*at)->next) {
		if (*at != gate)
			continue;
		*at = gate->next;
		gate->next = NULL;
		return;
	}
}

struct gate *gate_host_find(struct gate_host *host, const char *device)
{
	for (struct gate *gate = host->diverted; gate; gate = gate->next)
		if (strcmp(gate->device, device) == 0)
			return gate;
	return NULL;
}
