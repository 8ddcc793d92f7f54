/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of all gates: its namespace, the socket that changes its rules, and the gates in
 * store. A stored gate holds no link, so it fits any sandbox with the same port. If addresses and
 * bounds are equal too, as for all sandboxes with the same pools, its fence lacks only the hook. An
 * interface that exists already has its own addresses. Its gate comes from a second store, and the
 * fence gets the addresses when the gate is taken. Otherwise rules with other addresses would have
 * to be deleted first, and closing the socket that has deleted them waits for an RCU grace period,
 * 10 to 20 ms.
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
#define REFILL_CALM_MS 200 /* the same, while more than half are there */
#define REFILL_AGAIN_MS 1000

static int prepare_one(struct gate_host *host, struct gate_store *store)
{
	struct gate *gate = &store->gates[store->stored];
	int rc;

	netns_sysctls_renew();
	*gate = host->like;
	gate->prepared = store == &host->bare ? FENCE_BARE : FENCE_FITS;
	rc = gate_prepare(gate);
	if (rc)
		gate_close(gate);
	else
		store->stored++;
	return rc;
}

static void refill(struct gate_host *host, int64_t after_ms)
{
	if (!host->refilling)
		loop_timer_set(&host->refill, after_ms);
	host->refilling = true;
}

/* Returns the store that lacks the most gates, or NULL if none lacks any. */
static struct gate_store *poorer(struct gate_host *host)
{
	size_t lacks = host->store.goal - host->store.stored,
	       bare = host->bare.goal - host->bare.stored;

	if (!lacks && !bare)
		return NULL;
	return lacks >= bare ? &host->store : &host->bare;
}

static void on_refill(struct loop_timer *timer)
{
	struct gate_host *host = container_of(timer, struct gate_host, refill);
	struct gate_store *store = poorer(host);
	int rc;

	host->refilling = false;
	if (!store)
		return;
	rc = prepare_one(host, store);
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

void gate_host_keep_home(struct gate_host *host)
{
	netns_keep_home(host->netns);
	host->home = true;
}

static void empty_store(struct gate_store *store)
{
	while (store->stored)
		gate_close(&store->gates[--store->stored]);
}

static void end_store(struct gate_store *store)
{
	empty_store(store);
	free(store->gates);
	*store = (struct gate_store){NULL, 0, 0};
}

void gate_host_close(struct gate_host *host)
{
	if (!host)
		return;
	gate_host_unwatch(host);
	gate_host_listen_end(host);
	loop_timer_close(&host->refill);
	end_store(&host->store);
	end_store(&host->bare);
	divert_close(host->divert);
	netlink_close(host->nl);
	if (host->home)
		netns_keep_home(-1);
	if (host->netns >= 0)
		close(host->netns);
	free(host);
}

static int set_goal(struct gate_store *store, size_t count)
{
	store->gates = calloc(count ? count : 1, sizeof(*store->gates));
	store->goal = store->gates ? count : 0;
	return store->gates ? 0 : -ENOMEM;
}

int gate_host_prepare(struct gate_host *host, const struct gate *like, size_t count)
{
	int rc;

	if (host->store.gates || !host->loop)
		return -EINVAL; /* only once, and only with a loop to refill it */
	rc = set_goal(&host->store, count);
	if (rc)
		return rc;
	host->like = *like;
	refill(host, 0);
	return count ? prepare_one(host, &host->store) : 0;
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

/* Returns the store for such a gate: the first one if there is no memory for a second. */
static struct gate_store *store_for(struct gate_host *host, const struct gate *gate)
{
	if (gate->kind != GATE_DIVERT)
		return &host->store;
	if (!host->bare.gates)
		(void)set_goal(&host->bare, host->store.goal);
	return host->bare.stored ? &host->bare : &host->store;
}

bool gate_host_take(struct gate_host *host, struct gate *gate)
{
	struct gate_store *store;
	struct gate *from;

	if (!host || host->store.goal == 0)
		return false;
	refill(host, host->store.stored > host->store.goal / 2 ? REFILL_CALM_MS : REFILL_AFTER_MS);
	if (host->like.tcp_port != gate->tcp_port) {
		empty_store(&host->store);
		empty_store(&host->bare);
		host->like.tcp_port = gate->tcp_port;
	}
	if (gate->kind == GATE_VETH)
		learn_shape(host, gate);
	store = store_for(host, gate);
	if (store->stored == 0)
		return false;
	from = &store->gates[--store->stored];
	gate->netns = from->netns;
	gate->packets = from->packets;
	gate->generation = from->generation;
	gate->prepared = store == &host->bare ? FENCE_BARE
	                 : fits(from, gate)   ? FENCE_FITS
	                                      : FENCE_OTHER;
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
