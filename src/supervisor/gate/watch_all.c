/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two sockets that receive the notifications of all gates of a daemon. For each notification
 * the kernel visits every listening socket of the machine; with two in each of a thousand gates it
 * would visit two thousand. A gate is found by the id (nsid) that the host's namespace has for the
 * gate's namespace. When notifications were lost, all gates are examined, one after the other.
 */
#include <string.h>

#include "vethguard/base/log.h"
#include "supervisor/gate/watch.h"

#define LOST_STEP_MS 10 /* between two gates that are examined because of lost notifications */

static struct gate_watch *find_nsid(struct gate_host *host, int nsid)
{
	struct gate_watch *w = NULL;

	if (nsid >= 0)
		HASH_FIND_INT(host->by_nsid, &nsid, w);
	return w;
}

/* One after the other; gates whose look is due already keep their time. */
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
		gate_watch_changed(w);
}

static void on_all_rules(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, all.rules);

	(void)events;
	if (fence_watch_read_all(io->fd, take_rules_of, host) < 0)
		look_at_all(host);
}

static void take_link_of(void *context, int nsid, const struct netlink_link *link, bool removed)
{
	struct gate_watch *w = find_nsid(context, nsid);

	if (w && link)
		gate_watch_take_link(w, link, removed);
	else if (w)
		gate_watch_changed(w);
}

static void on_all_links(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, all.links);

	(void)events;
	if (netlink_watch_read_all(io->fd, take_link_of, host) < 0)
		look_at_all(host);
}

int gate_host_listen_for_all(struct gate_host *host)
{
	return gate_notifications_open(&host->all, host->loop, fence_watch_open_all(),
	        netlink_watch_open_all(), on_all_rules, on_all_links);
}

void gate_host_listen_end(struct gate_host *host)
{
	gate_notifications_close(&host->all);
}

/* Most notifications during an attachment come from the daemon's own changes and are not needed. A
 * routing change that somebody else makes in another gate within the same one or two milliseconds
 * is missed; it leads no traffic anywhere, and the next periodic look finds it. */
void gate_host_hear_routing(struct gate_host *host, bool wanted)
{
	int rc = host && host->all.open ? netlink_watch_routing(host->all.links.fd, wanted) : 0;

	if (rc)
		log_warn("changes of routing in gates are %s: %s", wanted ? "not heard" : "heard",
		        strerror(-rc));
}

bool gate_watch_by_number(struct gate_watch *w, struct gate_host *host)
{
	int nsid;

	if (!host->all.open || netlink_nsid(host->nl, w->gate->netns, &nsid) != 0 ||
	        find_nsid(host, nsid))
		return false;
	w->nsid = nsid;
	HASH_ADD_INT(host->by_nsid, nsid, w);
	if (!w->hh.tbl)
		w->nsid = -1;
	return w->nsid >= 0;
}

void gate_watch_forget_number(struct gate_watch *w, struct gate_host *host)
{
	if (w->nsid >= 0)
		HASH_DEL(host->by_nsid, w);
}
