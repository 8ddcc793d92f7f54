/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the same diversion once more, in traffic control. No ruleset contains it, so
 * "nft flush ruleset" leaves it alone: frames of the interface go on to the gate and nowhere else
 * while the rules are gone, and on kernels without the egress hook it guards the way out. What
 * comes in is marked and handed on; what goes out has to have the mark. On the way in these
 * programs run before the rules, on the way out after them. The ports of a bridge that is guarded
 * whole have a program of their own: it drops what they would give to the host past the bridge, and
 * marks the rest for the bridge's table.
 *
 * If programs are not available (a kernel without them, a user namespace), or somebody else's
 * filters are in the place, the rules stand alone.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fence/divert_plan.h"
#include "vethguard/netlink/filter.h"

#define FILTER_NAME "vethguard-divert"
#define FILTER_PRIORITY 1
#define PORT_FILTER_NAME "vethguard-bridge"
#define PORT_FILTER_PRIORITY 2 /* a port that is guarded by itself has the other filter too */
#define PLACES_MAX 3
#define PORTS_MAX 1024 /* the kernel's bound (BR_MAX_PORTS) */

struct plan {
	struct filter_place place;
	enum program_kind kind;
	unsigned to; /* for PROGRAM_HAND_ON */
};

/* Returns the program's descriptor or -errno. */
static int load(struct divert *d, const struct plan *plan)
{
	bool shared = plan->kind < PROGRAM_SHARED_COUNT;
	int program;

	if (shared && d->programs[plan->kind] >= 0)
		return d->programs[plan->kind];
	program = program_load(plan->kind, plan->to);
	if (shared && program >= 0)
		d->programs[plan->kind] = program;
	return program;
}

static void unload(const struct plan *plan, int program)
{
	if (program >= 0 && plan->kind >= PROGRAM_SHARED_COUNT)
		close(program);
}

static void add(struct plan *plans, size_t *count, unsigned index, enum filter_hook hook,
        enum program_kind kind, unsigned to)
{
	const struct filter_place place = {index, hook, FILTER_PRIORITY, FILTER_NAME};

	if (index)
		plans[(*count)++] = (struct plan){place, kind, to};
}

/* Lists which program belongs where. A missing interface needs none. */
static size_t plan_all(const struct divert_spec *spec, struct plan plans[PLACES_MAX])
{
	unsigned index = if_nametoindex(spec->interface);
	unsigned link = spec->link[0] ? if_nametoindex(spec->link) : 0;
	size_t count = 0;

	add(plans, &count, index, FILTER_EGRESS, link ? PROGRAM_LET_MARKED : PROGRAM_DROP, 0);
	add(plans, &count, index, FILTER_INGRESS, link ? PROGRAM_HAND_ON : PROGRAM_DROP, link);
	if (index)
		add(plans, &count, link, FILTER_INGRESS, PROGRAM_HAND_ON, index);
	return count;
}

/* True for errors that mean "not available here, now or later". */
static bool is_missing(int error)
{
	return error == -EPERM || error == -EACCES || error == -ENOSYS || error == -ENOENT ||
	       error == -EOPNOTSUPP || error == -EBUSY;
}

static int set_one(struct divert *d, const struct plan *plan)
{
	int program = load(d, plan);
	int rc = program < 0 ? program : filter_set(d->nl, &plan->place, program);

	unload(plan, program);
	return rc;
}

static int check_one(struct divert *d, const struct plan *plan)
{
	uint8_t tag[FILTER_TAG_BYTES];
	int program = load(d, plan);
	int rc = program < 0 ? program : filter_tag(program, tag);

	if (rc >= 0)
		rc = filter_check(d->nl, &plan->place, tag);
	unload(plan, program);
	return rc;
}

int divert_filters_set(struct divert *d, const struct divert_spec *spec)
{
	struct plan plans[PLACES_MAX];
	size_t count = plan_all(spec, plans);
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = set_one(d, &plans[i]);
	d->filters = rc;
	if (!is_missing(rc))
		return rc;
	divert_filters_remove(d, spec); /* a part of it alone would let nothing through */
	return 0;
}

int divert_filters_check(struct divert *d, const struct divert_spec *spec)
{
	struct plan plans[PLACES_MAX];
	size_t count = plan_all(spec, plans);
	int rc = 0;

	if (is_missing(d->filters) && d->filters != -EBUSY) /* -EBUSY concerned only one
	                                                       interface */
		return 0;
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = check_one(d, &plans[i]);
	return is_missing(rc) ? 0 : rc;
}

struct ports {
	size_t count;
	struct plan plans[PORTS_MAX];
};

static void take_port(void *context, const struct netlink_link *link)
{
	const struct filter_place place = {
	        link->index, FILTER_INGRESS, PORT_FILTER_PRIORITY, PORT_FILTER_NAME};
	struct ports *ports = context;

	if (ports->count < PORTS_MAX)
		ports->plans[ports->count++] = (struct plan){place, PROGRAM_BRIDGE_PORT, 0};
}

/* Finds no ports if the interface is not a bridge. */
static int find_ports(struct divert *d, const struct divert_spec *spec, struct ports *ports)
{
	struct netlink_link link;
	int rc = netlink_link_get(d->nl, spec->interface, 0, &link);

	ports->count = 0;
	if (rc < 0 || strcmp(link.kind, "bridge") != 0)
		return rc == -ENODEV ? 0 : rc;
	return netlink_links_of(d->nl, link.index, take_port, ports);
}

int divert_ports(struct divert *d, const struct divert_spec *spec)
{
	static struct ports ports;
	int rc = find_ports(d, spec, &ports), one;

	for (size_t i = 0; i < ports.count && rc == 0; i++) {
		one = check_one(d, &ports.plans[i]);
		if (one == -ESTALE)
			one = set_one(d, &ports.plans[i]);
		rc = one == -ENODEV || is_missing(one) ? 0 : one;
	}
	return rc;
}

static void remove_one(struct divert *d, const struct plan *plan, int *result)
{
	int rc = filter_remove(d->nl, &plan->place);

	if (!rc)
		rc = filter_tidy(d->nl, plan->place.index);
	*result = *result ? *result : rc;
}

int divert_filters_remove(struct divert *d, const struct divert_spec *spec)
{
	static struct ports ports;
	struct plan plans[PLACES_MAX];
	size_t count = plan_all(spec, plans);
	int rc = find_ports(d, spec, &ports);

	for (size_t i = 0; i < count; i++)
		remove_one(d, &plans[i], &rc);
	for (size_t i = 0; i < ports.count; i++)
		remove_one(d, &ports.plans[i], &rc);
	return rc;
}
