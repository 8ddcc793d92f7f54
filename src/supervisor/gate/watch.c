/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching gates: notifications say that something changed; what that was is found by looking
 * (gate_mend), so nothing depends on understanding each of them, and what vethguard changed itself
 * is found in order. A gate has two sockets of its own, or a daemon two for all of its gates: the
 * kernel asks every socket that listens, wherever it is, about each notification. Where some of
 * those for all were lost, all gates are looked at, one after the other. The host's namespace has
 * two sockets for all diverted gates, and for what is held of those that nobody serves (gate_hold).
 * However often something changes, a gate is looked at once in
 * GATE_CALM_MS: a sandbox that takes its end of the link up and down costs little. A sandbox that
 * ends takes the link with it a moment before its owner knows: a link that is gone is told after
 * GONE_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/base/table.h"
#include "supervisor/gate/private.h"

#define GONE_MS 2000
#define SHORT_MS 1000   /* where descriptors or memory are short the look is taken again */
#define SHORT_LOOKS 30  /* so often; then the sandbox is cut off */
#define LOST_STEP_MS 10 /* between two gates that are looked at because notifications were lost */

struct gate_watch {
	struct gate *gate;
	int nsid; /* of its namespace, where the host's sockets hear for it; else -1 */
	UT_hash_handle hh;
	int rules, links; /* its own; -1: none */
	struct loop_io rules_io, links_io;
	struct loop_timer timer;
	bool calm;            /* a look was taken just now; the next waits for the timer */
	bool dirty;           /* something changed meanwhile */
	bool gone;            /* the link was found gone once */
	bool away;            /* so is the interface, and that was told */
	unsigned short_looks; /* that failed one after the other */
	void (*on_change)(struct gate *gate, int result);
};

/* Says nothing of the gate. */
static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EAGAIN ||
	       error == -ENOBUFS;
}

static void look(struct gate_watch *w)
{
	void (*on_change)(struct gate * gate, int result) = w->on_change;
	struct gate *gate = w->gate;
	int result = gate_mend(gate);

	w->dirty = false;
	w->calm = true;
	if (result == -ENOLINK && !w->gone) {
		w->gone = w->dirty = true;
		loop_timer_set(&w->timer, GONE_MS);
		return;
	}
	w->gone = false;
	w->short_looks = is_shortage(result) ? w->short_looks + 1 : 0;
	if (w->short_looks > 0 && w->short_looks < SHORT_LOOKS) {
		if (w->short_looks == 1)
			log_warn("a fence cannot be looked at just now: %s; it is tried again, for "
			         "%d seconds at most",
			        gate->why, SHORT_LOOKS * SHORT_MS / 1000);
		w->dirty = true;
		loop_timer_set(&w->timer, SHORT_MS);
		return;
	}
	if (result >= 0 && gate->away && !w->away)
		result = GATE_AWAY;
	w->away = gate->away;
	loop_timer_set(&w->timer, GATE_CALM_MS);
	if (result != 0)
		on_change(gate, result); /* may close the gate, and with it w */
}

static void changed(struct gate_watch *w)
{
	w->dirty = true;
	if (!w->calm)
		loop_timer_set(&w->timer, 0);
}

static void on_time(struct loop_timer *timer)
{
	struct gate_watch *w = container_of(timer, struct gate_watch, timer);

	if (!w->calm || w->dirty) {
		look(w);
		return;
	}
	w->calm = false;
	loop_timer_set(&w->timer, GATE_POLL_MS);
}

static void on_rules(struct loop_io *io, unsigned events)
{
	struct gate_watch *w = container_of(io, struct gate_watch, rules_io);
	bool touched;

	(void)events;
	if (fence_watch_read(io->fd, NULL, 0, &touched) < 0 || touched)
		changed(w);
}

/* Whether there is carrier, and statistics, are the sandbox's affair. */
static void take_link(void *context, const struct netlink_link *link, bool removed)
{
	struct gate_watch *w = context;

	if (removed || !link->up ||
	        (strcmp(link->name, GATE_LINK) == 0 &&
	                memcmp(link->mac, w->gate->mac, sizeof link->mac) != 0))
		changed(w);
}

/* For all. */

static struct gate_watch *find_nsid(struct gate_host *host, int nsid)
{
	struct gate_watch *w = NULL;

	if (nsid >= 0)
		HASH_FIND_INT(host->by_nsid, &nsid, w);
	return w;
}

/* One after the other, and whoever waits already goes on waiting. */
static void look_at_all(struct gate_host *host)
{
	struct gate_watch *w, *next;
	int64_t after_ms = 0;

	HASH_ITER(hh, host->by_nsid, w, next)
	{
		if (!w->dirty && !w->calm)
			loop_timer_set(&w->timer, after_ms += LOST_STEP_MS);
		w->dirty = true;
	}
}

static void take_rules_of(void *context, int nsid)
{
	struct gate_watch *w = find_nsid(context, nsid);

	if (w)
		changed(w);
}

static void on_all_rules(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, all_rules_io);

	(void)events;
	if (fence_watch_read_all(io->fd, take_rules_of, host) < 0)
		look_at_all(host);
}

static void take_link_of(void *context, int nsid, const struct netlink_link *link, bool removed)
{
	struct gate_watch *w = find_nsid(context, nsid);

	if (w && link)
		take_link(w, link, removed);
	else if (w)
		changed(w);
}

static void on_all_links(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, all_links_io);

	(void)events;
	if (netlink_watch_read_all(io->fd, take_link_of, host) < 0)
		look_at_all(host);
}

void gate_host_listen_end(struct gate_host *host)
{
	loop_io_close(&host->all_rules_io);
	loop_io_close(&host->all_links_io);
	if (host->all_rules >= 0)
		close(host->all_rules);
	if (host->all_links >= 0)
		close(host->all_links);
	host->all_rules = host->all_links = -1;
}

int gate_host_listen_for_all(struct gate_host *host)
{
	int error = 0;

	host->all_rules = fence_watch_open_all();
	host->all_links = netlink_watch_open_all();
	if (host->all_rules < 0 || host->all_links < 0)
		error = host->all_rules < 0 ? host->all_rules : host->all_links;
	if (!error)
		error = loop_io_open_level(
		        host->loop, &host->all_rules_io, host->all_rules, LOOP_READ, on_all_rules);
	if (!error)
		error = loop_io_open_level(
		        host->loop, &host->all_links_io, host->all_links, LOOP_READ, on_all_links);
	if (error)
		gate_host_listen_end(host);
	return error;
}

/* Most notifications of an attachment are of the daemon's own making, and nobody needs them. What
 * somebody else changes of routing in another gate in the same millisecond or two leads nobody
 * anywhere, and is found by the next look without cause. */
void gate_host_hear_routing(struct gate_host *host, bool wanted)
{
	int error =
	        host && host->all_links >= 0 ? netlink_watch_routing(host->all_links, wanted) : 0;

	if (error)
		log_warn("changes of routing in gates are %s: %s", wanted ? "not heard" : "heard",
		        strerror(-error));
}

/* False: this gate needs sockets of its own. */
static bool hears_by_host(struct gate_watch *w, struct gate_host *host)
{
	int nsid;

	if (host->all_rules < 0 || netlink_nsid(host->nl, w->gate->netns, &nsid) != 0 ||
	        find_nsid(host, nsid))
		return false;
	w->nsid = nsid;
	HASH_ADD_INT(host->by_nsid, nsid, w);
	if (!w->hh.tbl)
		w->nsid = -1;
	return w->nsid >= 0;
}

static void on_links(struct loop_io *io, unsigned events)
{
	struct gate_watch *w = container_of(io, struct gate_watch, links_io);
	const struct netlink_watcher watcher = {.link = take_link, .context = w};

	(void)events;
	if (netlink_watch_read(io->fd, &watcher) != 0)
		changed(w);
}

static int open_in_gate(void *context)
{
	struct gate_watch *w = context;

	w->rules = fence_watch_open();
	if (w->rules < 0)
		return w->rules;
	w->links = netlink_watch_open(NETLINK_WATCH_ROUTING);
	return w->links < 0 ? w->links : 0;
}

static int hear(struct gate_watch *w, struct gate_host *host)
{
	int error;

	if (hears_by_host(w, host))
		return 0;
	error = netns_run(w->gate->netns, open_in_gate, w);
	if (!error)
		error = loop_io_open_level(host->loop, &w->rules_io, w->rules, LOOP_READ, on_rules);
	if (!error)
		error = loop_io_open_level(host->loop, &w->links_io, w->links, LOOP_READ, on_links);
	return error;
}

static int watch_outside(struct gate *gate, struct gate_host *host)
{
	gate->device_index = netlink_link_index(host->nl, gate->device);
	gate->link_index = gate->host_link[0] ? netlink_link_index(host->nl, gate->host_link) : 0;
	gate_host_remember(gate);
	return gate_host_watch(host);
}

int gate_watch(
        struct gate *gate, struct gate_host *host, void (*on_change)(struct gate *gate, int result))
{
	struct gate_watch *w = calloc(1, sizeof *w);
	int error;

	if (!w)
		return -ENOMEM;
	*w = (struct gate_watch){
	        .gate = gate, .nsid = -1, .rules = -1, .links = -1, .on_change = on_change};
	gate_unwatch(gate);
	gate->watch = w;
	gate->host = host;
	error = loop_timer_open(host->loop, &w->timer, on_time);
	if (!error && !gate->held)
		error = hear(w, host);
	if (!error && gate->kind == GATE_DIVERT)
		error = watch_outside(gate, host);
	if (error) {
		gate_unwatch(gate);
		return error;
	}
	/* What happened before the sockets were there is looked for when whoever waits for this
	 * sandbox has been answered. */
	w->calm = w->dirty = true;
	loop_timer_set(&w->timer, GATE_CALM_MS);
	return 0;
}

void gate_unwatch(struct gate *gate)
{
	struct gate_watch *w = gate->watch;

	if (!w)
		return;
	gate->watch = NULL;
	if (w->nsid >= 0)
		HASH_DEL(gate->host->by_nsid, w);
	loop_io_close(&w->rules_io);
	loop_io_close(&w->links_io);
	loop_timer_close(&w->timer);
	if (w->rules >= 0)
		close(w->rules);
	if (w->links >= 0)
		close(w->links);
	free(w);
}

static void all_changed(struct gate_host *host)
{
	for (struct gate *gate = host->diverted; gate; gate = gate->next)
		if (gate->watch)
			changed(gate->watch);
}

static void on_host_rules(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, rules_io);
	bool touched;

	(void)events;
	if (fence_watch_read(io->fd, DIVERT_TABLE, divert_port(host->divert), &touched) < 0 ||
	        touched)
		all_changed(host);
}

static void take_host_link(void *context, const struct netlink_link *link, bool removed)
{
	struct gate_host *host = context;

	for (struct gate *gate = host->diverted; gate; gate = gate->next) {
		bool device = strcmp(gate->device, link->name) == 0;
		bool own = strcmp(gate->host_link, link->name) == 0;
		bool renamed = !device && link->index == gate->device_index;

		if (!gate->watch)
			continue;
		if (renamed) {
			gate->device_index = 0;
			changed(gate->watch);
		}
		if (device && (removed || link->index != gate->device_index)) {
			gate->device_index = removed ? 0 : link->index;
			changed(gate->watch);
		}
		if ((own && (removed || !link->up)) ||
		        (link->master && link->master == gate->device_index)) /* a port */
			changed(gate->watch);
	}
}

static void take_host_filter(void *context, unsigned index, uint32_t by)
{
	struct gate_host *host = context;

	if (by == divert_filter_port(host->divert))
		return;
	for (struct gate *gate = host->diverted; gate; gate = gate->next)
		if (gate->watch && (index == gate->device_index || index == gate->link_index))
			changed(gate->watch);
}

static void on_host_links(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, links_io);
	const struct netlink_watcher watcher = {take_host_link, take_host_filter, host};

	(void)events;
	if (netlink_watch_read(io->fd, &watcher) < 0)
		all_changed(host);
}

int gate_host_watch(struct gate_host *host)
{
	int error = 0;

	if (host->rules >= 0)
		return 0;
	host->rules = fence_watch_open();
	host->links = netlink_watch_open(NETLINK_WATCH_FILTERS);
	if (host->rules < 0 || host->links < 0)
		error = host->rules < 0 ? host->rules : host->links;
	if (!error)
		error = loop_io_open_level(
		        host->loop, &host->rules_io, host->rules, LOOP_READ, on_host_rules);
	if (!error)
		error = loop_io_open_level(
		        host->loop, &host->links_io, host->links, LOOP_READ, on_host_links);
	if (error)
		gate_host_unwatch(host);
	return error;
}

void gate_host_unwatch(struct gate_host *host)
{
	loop_io_close(&host->rules_io);
	loop_io_close(&host->links_io);
	if (host->rules >= 0)
		close(host->rules);
	if (host->links >= 0)
		close(host->links);
	host->rules = host->links = -1;
}
