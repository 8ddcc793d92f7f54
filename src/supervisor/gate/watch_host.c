/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two sockets in the host's namespace, for all diverted gates and for held ones (gate_hold()):
 * rules of the host's tables, interfaces and their tc filters. vethguard's own changes are known by
 * the netlink port they came from, and cause no look.
 */
#include <string.h>

#include "supervisor/gate/watch.h"

static void all_changed(struct gate_host *host)
{
	for (struct gate *gate = host->diverted; gate; gate = gate->next)
		if (gate->watch)
			gate_watch_changed(gate->watch);
}

static void on_host_rules(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, notifications.rules);
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
			gate_watch_changed(gate->watch);
		}
		if (device && (removed || link->index != gate->device_index)) {
			gate->device_index = removed ? 0 : link->index;
			gate_watch_changed(gate->watch);
		}
		if ((own && (removed || !link->up)) ||
		        (link->master && link->master == gate->device_index)) /* a port */
			gate_watch_changed(gate->watch);
	}
}

static void take_host_filter(void *context, unsigned index, uint32_t by)
{
	struct gate_host *host = context;

	if (by == divert_filter_port(host->divert))
		return;
	for (struct gate *gate = host->diverted; gate; gate = gate->next)
		if (gate->watch && (index == gate->device_index || index == gate->link_index))
			gate_watch_changed(gate->watch);
}

static void on_host_links(struct loop_io *io, unsigned events)
{
	struct gate_host *host = container_of(io, struct gate_host, notifications.links);
	const struct netlink_watcher watcher = {take_host_link, take_host_filter, host};

	(void)events;
	if (netlink_watch_read(io->fd, &watcher) < 0)
		all_changed(host);
}

int gate_host_watch(struct gate_host *host)
{
	if (host->notifications.open)
		return 0;
	return gate_notifications_open(&host->notifications, host->loop, fence_watch_open(),
	        netlink_watch_open(NETLINK_WATCH_FILTERS), on_host_rules, on_host_links);
}

void gate_host_unwatch(struct gate_host *host)
{
	gate_notifications_close(&host->notifications);
}
