/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other ways out of a container. dockerd does not tell a driver about the other networks of a
 * container. But the kernel lists the interfaces of an inner end's namespace, by the number that
 * the host's namespace has for it, to a process that may change that namespace.
 */
#include <errno.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "docker/docker.h"

#define LINKS_MAX 32 /* looked at in one container */

struct links {
	size_t count;
	struct netlink_link all[LINKS_MAX];
};

static void collect(void *context, const struct netlink_link *link)
{
	struct links *links = context;

	if (links->count < LINKS_MAX)
		links->all[links->count++] = *link;
}

static const struct netlink_link *find(const struct links *links, unsigned index)
{
	for (size_t i = 0; i < links->count; i++)
		if (links->all[i].index == index)
			return &links->all[i];
	return NULL;
}

/* A pair whose other end is in the host's namespace and bears the name of an outer end: each of
 * these has a guard, or sweep.c shuts it. */
static bool is_guarded(const struct netlink_link *link, const struct netlink_link *own)
{
	char name[IF_NAMESIZE];

	return link->elsewhere && link->nsid == own->nsid && strcmp(link->kind, "veth") == 0 &&
	       if_indextoname(link->peer, name) && docker_endpoint_is_outer(name);
}

/* True for an interface that leads only to a process of the container itself. */
static bool is_inside(const struct netlink_link *link)
{
	return link->loopback || strcmp(link->kind, "dummy") == 0 ||
	       strcmp(link->kind, "tun") == 0 ||
	       (strcmp(link->kind, "veth") == 0 && !link->elsewhere);
}

void docker_other_ways(struct docker *docker, const struct docker_endpoint *endpoint,
        const struct netlink_link *outer)
{
	struct links links = {.count = 0};
	const struct netlink_link *own, *other = NULL;

	if (netlink_links_in(docker->nl, outer->nsid, collect, &links) != 0)
		return;
	own = find(&links, outer->peer);
	for (size_t i = 0; own && !other && i < links.count; i++)
		if (links.all[i].up && !is_inside(&links.all[i]) && !is_guarded(&links.all[i], own))
			other = &links.all[i];
	if (!other)
		json_object_del(docker->warned, endpoint->id);
	else if (!json_object_get(docker->warned, endpoint->id) &&
	         json_object_set_new(docker->warned, endpoint->id, json_true()) == 0)
		log_warn("%s has another network: %s is not guarded", endpoint->name, other->name);
}

void docker_other_ways_tidy(struct docker *docker)
{
	struct docker_endpoint endpoint;
	const char *id;
	json_t *value;
	void *next;

	json_object_foreach_safe(docker->warned, next, id, value)
	{
		if (docker_endpoint_find(docker, id, &endpoint) == -ENOENT)
			json_object_del(docker->warned, id);
	}
}
