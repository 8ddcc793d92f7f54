/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at intervals for leftovers that no call of dockerd repairs, and repairs them:
 * - guards of interfaces that are gone: dockerd was killed with its container, or vethguardd did
 *   not run when an endpoint was removed;
 * - interfaces whose guard was taken away by hand;
 * - pairs of removed networks, and pairs that no container ever joined: a dockerd that was killed
 *   forgets the endpoint that it was creating, although that endpoint may be guarded already.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "docker/docker.h"

#define SWEEP_FIRST_MS 1000
#define SWEEP_MS 10000
#define UNJOINED_ROUNDS 12 /* two minutes: dockerd tries a call again for half a minute */

static const json_t *guard_of(const json_t *sandboxes, const char *outer)
{
	for (size_t i = 0; i < json_array_size(sandboxes); i++)
		if (strcmp(docker_guard_interface(json_array_get(sandboxes, i)), outer) == 0)
			return json_array_get(sandboxes, i);
	return NULL;
}

static void end_lost_guards(struct docker *docker, const json_t *sandboxes)
{
	for (size_t i = 0; i < json_array_size(sandboxes); i++) {
		const char *outer = docker_guard_interface(json_array_get(sandboxes, i));
		struct netlink_link link;

		if (netlink_link_get(docker->nl, outer, 0, &link) == -ENODEV &&
		        docker_guard_detach(docker, outer))
			log_info("%s is gone: its guard was ended", outer);
	}
}

static void remove_pair(
        struct docker *docker, const struct docker_endpoint *endpoint, const char *why)
{
	log_warn("%s: %s: it is removed", endpoint->outer, why);
	if (netlink_link_down(docker->nl, endpoint->outer) == 0)
		netlink_link_delete(docker->nl, endpoint->outer); /* its guard ends next time */
}

static bool is_network_gone(struct docker *docker, const char *id)
{
	struct docker_network network;
	int rc = docker_network_load(docker->state, id, &network);

	if (rc == 0)
		docker_network_fini(&network);
	return rc == -ENOENT;
}

static struct docker_unjoined *unjoined_of(struct docker *docker, const char *id)
{
	struct docker_unjoined *room = NULL;

	for (size_t i = 0; i < DOCKER_UNJOINED_MAX; i++) {
		struct docker_unjoined *u = &docker->unjoined[i];

		if (strcmp(u->id, id) == 0)
			return u;
		if (!u->id[0])
			room = u;
	}
	if (room)
		snprintf(room->id, sizeof(room->id), "%s", id);
	return room; /* NULL: counted once there is room */
}

/* Counts the rounds in which an endpoint waits for its container. After UNJOINED_ROUNDS its pair is
 * removed. */
static void count_unjoined(struct docker *docker, const struct docker_endpoint *endpoint)
{
	struct docker_unjoined *u = unjoined_of(docker, endpoint->id);

	if (!u)
		return;
	u->seen = true;
	if (++u->rounds < UNJOINED_ROUNDS)
		return;
	remove_pair(docker, endpoint, "no container has taken it for two minutes");
	u->seen = false;
}

/* Forgets the endpoints that were not seen in this round. */
static void forget_joined(struct docker *docker)
{
	for (size_t i = 0; i < DOCKER_UNJOINED_MAX; i++) {
		if (!docker->unjoined[i].seen)
			docker->unjoined[i] = (struct docker_unjoined){.id = ""};
		docker->unjoined[i].seen = false;
	}
}

static void look_at(
        struct docker *docker, const struct docker_endpoint *endpoint, const json_t *sandboxes)
{
	struct netlink_link link;

	if (netlink_link_get(docker->nl, endpoint->outer, 0, &link) != 0)
		return;
	if (is_network_gone(docker, endpoint->network)) {
		remove_pair(docker, endpoint, "its network is gone");
	} else if (link.up && !guard_of(sandboxes, endpoint->outer)) {
		log_warn("%s: %s is not guarded any more: it is shut until its container starts "
		         "anew",
		        endpoint->outer, endpoint->name);
		netlink_link_down(docker->nl, endpoint->outer);
	} else if (!link.elsewhere) {
		count_unjoined(docker, endpoint);
	} else {
		docker_other_ways(docker, endpoint, &link);
	}
}

static void look_at_links(struct docker *docker, const json_t *sandboxes)
{
	struct if_nameindex *all = if_nameindex();
	struct docker_endpoint endpoint;

	for (const struct if_nameindex *i = all; i && i->if_name; i++)
		if (docker_endpoint_at(docker, i->if_name, &endpoint))
			look_at(docker, &endpoint, sandboxes);
	if (all)
		if_freenameindex(all);
	forget_joined(docker);
}

static void on_time(struct loop_timer *timer)
{
	struct docker *docker = container_of(timer, struct docker, sweep);
	char fault[DOCKER_FAULT_MAX];
	json_t *sandboxes = docker_guard_list(docker, fault);

	if (sandboxes) {
		look_at_links(docker, sandboxes);
		end_lost_guards(docker, sandboxes);
		docker_other_ways_tidy(docker);
	} else {
		log_debug("nothing can be cleaned up now: %s", fault);
	}
	json_decref(sandboxes);
	loop_timer_set(timer, SWEEP_MS);
}

int docker_sweep_open(struct docker *docker)
{
	int rc = loop_timer_open(docker->loop, &docker->sweep, on_time);

	if (!rc)
		loop_timer_set(&docker->sweep, SWEEP_FIRST_MS);
	return rc;
}
