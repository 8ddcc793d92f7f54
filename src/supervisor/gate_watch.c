/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching gates: notifications say that something changed; what that was is found by looking
 * (gate_mend), so nothing depends on understanding each of them, and what vethguard changed itself
 * is found in order. A gate has two sockets of its own; the host's namespace has two for all
 * diverted gates. However often something changes, a gate is looked at once in GATE_CALM_MS: a
 * sandbox that takes its end of the link up and down costs little. A sandbox that ends takes the
 * link with it a moment before its owner knows: a link that is gone is told after GONE_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/gate_private.h"

#define GONE_MS 2000

struct gate_watch {
	struct gate *gate;
	int rules, links;
	struct loop_io rules_io, links_io;
	struct loop_timer timer;
	bool calm;  /* a look was taken just now; the next waits for the timer */
	bool dirty; /* something changed meanwhile */
	bool gone;  /* the link was found gone once */
	void (*on_change)(struct gate *gate, int result);
};

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

static void on_links(struct loop_io *io, unsigned events)
{
	struct gate_watch *w = container_of(io, struct gate_watch, links_io);

	(void)events;
	if (netlink_watch_read(io->fd, take_link, w) != 0)
		changed(w);
}

static int open_in_gate(void *context)
{
	struct gate_watch *w = context;

	w->rules = fence_watch_open();
	if (w->rules < 0)
		return w->rules;
	w->links = netlink_watch_open(true);
	return w->links < 0 ? w->links : 0;
}

int gate_watch(
        struct gate *gate, struct gate_host *host, void (*on_change)(struct gate *gate, int result))
{
	struct gate_watch *w = calloc(1, sizeof *w);
	int error;

	if (!w)
		return -ENOMEM;
	*w = (struct gate_watch){.gate = gate, .rules = -1, .links = -1, .on_change = on_change};
	gate_unwatch(gate);
	gate->watch = w;
	gate->host = host;
	error = netns_run(gate->netns, open_in_gate, w);
	if (!error)
		error = loop_timer_open(host->loop, &w->timer, on_time);
	if (!error)
		error = loop_io_open_level(host->loop, &w->rules_io, w->rules, LOOP_READ, on_rules);
	if (!error)
		error = loop_io_open_level(host->loop, &w->links_io, w->links, LOOP_READ, on_links);
	if (!error && gate->kind == GATE_DIVERT) {
		gate_host_remember(gate);
		error = gate_host_watch(host);
	}
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

		if (gate->watch && ((device && link->index != gate->device_index) ||
		                           (own && (removed || !link->up)))) {
			gate->device_index = device && !removed ? link->index : 0;
			changed(gate->watch);
		}
	}
}

static void on_host_links(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, links_io);

	(void)events;
	if (netlink_watch_read(io->fd, take_host_link, host) < 0)
		all_changed(host);
}

int gate_host_watch(struct gate_host *host)
{
	int error = 0;

	if (host->rules >= 0)
		return 0;
	host->rules = fence_watch_open();
	host->links = netlink_watch_open(false);
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
