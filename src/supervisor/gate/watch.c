/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching a gate. A notification only says that something changed; gate_repair() finds out what.
 * So nothing depends on understanding each notification, and vethguard's own changes are found in
 * order. Notifications come from two sockets for all gates of a daemon (watch_all.c), or two of the
 * gate's own; for the outside of a diverted gate, from those of the host's namespace
 * (watch_host.c).
 *
 * A gate is examined at most once in GATE_CALM_MS: a sandbox that takes its end of the link up and
 * down all the time costs little. A sandbox that ends takes the link with it a moment before its
 * owner knows: a missing link is reported after GONE_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/gate/watch.h"

#define GONE_MS 2000
#define SHORT_MS 1000  /* interval of retries while descriptors or memory are short */
#define SHORT_LOOKS 30 /* retries; then the sandbox is cut off */

/* Errors that tell nothing about the gate. */
static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EAGAIN ||
	       error == -EINTR || error == -ENOBUFS;
}

static void look(struct gate_watch *w)
{
	void (*on_change)(struct gate * gate, int rc) = w->on_change;
	struct gate *gate = w->gate;
	int rc = gate_repair(gate);

	w->dirty = false;
	w->calm = true;
	if (rc == -ENOLINK && !w->gone) {
		w->gone = w->dirty = true;
		loop_timer_set(&w->timer, GONE_MS);
		return;
	}
	w->gone = false;
	w->short_looks = is_shortage(rc) ? w->short_looks + 1 : 0;
	if (w->short_looks > 0 && w->short_looks < SHORT_LOOKS) {
		if (w->short_looks == 1)
			log_warn("a fence cannot be looked at just now: %s; it is tried again, for "
			         "%d seconds at most",
			        gate->why, SHORT_LOOKS * SHORT_MS / 1000);
		w->dirty = true;
		loop_timer_set(&w->timer, SHORT_MS);
		return;
	}
	if (rc >= 0 && gate->away && !w->away)
		rc = GATE_AWAY;
	w->away = gate->away;
	loop_timer_set(&w->timer, GATE_CALM_MS);
	if (rc != 0)
		on_change(gate, rc); /* may close the gate, and with it w */
}

void gate_watch_changed(struct gate_watch *w)
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

void gate_watch_take_link(void *context, const struct netlink_link *link, bool removed)
{
	struct gate_watch *w = context;

	if (removed || !link->up ||
	        (strcmp(link->name, GATE_LINK) == 0 &&
	                memcmp(link->mac, w->gate->mac, sizeof(link->mac)) != 0))
		gate_watch_changed(w);
}

/* The gate's own sockets. */

static void on_rules(struct loop_io *io, unsigned events)
{
	struct gate_watch *w = container_of(io, struct gate_watch, notifications.rules);
	bool touched;

	(void)events;
	if (fence_watch_read(io->fd, NULL, 0, &touched) < 0 || touched)
		gate_watch_changed(w);
}

static void on_links(struct loop_io *io, unsigned events)
{
	struct gate_watch *w = container_of(io, struct gate_watch, notifications.links);
	const struct netlink_watcher watcher = {.link = gate_watch_take_link, .context = w};

	(void)events;
	if (netlink_watch_read(io->fd, &watcher) != 0)
		gate_watch_changed(w);
}

/* The sockets of a gate's namespace, opened by a thread that is in it. */
struct sockets {
	int rules, links;
};

static int open_in_gate(void *context)
{
	struct sockets *s = context;

	s->rules = fence_watch_open();
	s->links = netlink_watch_open(NETLINK_WATCH_ROUTING);
	return 0;
}

static int hear(struct gate_watch *w, struct gate_host *host)
{
	struct sockets s = {-1, -1};
	int rc;

	if (gate_watch_by_number(w, host))
		return 0;
	rc = netns_run(w->gate->netns, open_in_gate, &s);
	if (rc && s.rules >= 0)
		close(s.rules);
	return gate_notifications_open(
	        &w->notifications, host->loop, rc ? rc : s.rules, s.links, on_rules, on_links);
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
	struct gate_watch *w;
	int rc;

	/* Nothing of a socket can be changed from outside, and nothing of a shared namespace's
	 * fence can be repaired from here. */
	if (gate->kind == GATE_SOCKET || gate->kind == GATE_SHARED)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct gate_watch){.gate = gate, .nsid = -1, .on_change = on_change};
	gate_unwatch(gate);
	gate->watch = w;
	gate->host = host;
	rc = loop_timer_open(host->loop, &w->timer, on_time);
	if (!rc && !gate->held)
		rc = hear(w, host);
	if (!rc && gate->kind == GATE_DIVERT)
		rc = watch_outside(gate, host);
	if (rc) {
		gate_unwatch(gate);
		return rc;
	}
	/* The first look, for changes before the sockets were open, comes after the client that
	 * waits for this sandbox was answered. */
	w->calm = w->dirty = true;
	loop_timer_set(&w->timer, GATE_CALM_MS);
	return 0;
}

void gate_move_watched(
        struct gate *to, struct gate *from, void (*on_change)(struct gate *gate, int result))
{
	struct gate_watch *w = from->watch;

	from->watch = NULL;
	gate_move(to, from);
	to->watch = w;
	if (!w)
		return;
	w->gate = to;
	w->on_change = on_change;
}

void gate_unwatch(struct gate *gate)
{
	struct gate_watch *w = gate->watch;

	if (!w)
		return;
	gate->watch = NULL;
	gate_watch_forget_number(w, gate->host);
	gate_notifications_close(&w->notifications);
	loop_timer_close(&w->timer);
	free(w);
}
