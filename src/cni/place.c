/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's view; see cni/place.h. The results of other plugins are only compared with it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/netlink/filter.h"
#include "vethguard/netlink/netns.h"
#include "cni/place.h"

struct look {
	const char *interface;
	struct cni_place *place;
};

static void look_for_other(void *context, const struct netlink_link *link)
{
	const struct look *look = context;

	if (strcmp(link->name, look->interface) != 0 && !netlink_link_leads_nowhere(link))
		memcpy(look->place->other, link->name, sizeof(look->place->other));
}

static int look_inside(void *context)
{
	const struct look *look = context;
	struct cni_place *place = look->place;
	struct netlink *nl;
	int rc = netlink_open(&nl);

	if (rc)
		return rc;
	rc = netlink_links_of(nl, 0, look_for_other, context);
	if (!rc)
		rc = netlink_link_get(nl, look->interface, 0, &place->link);
	if (!rc)
		rc = netlink_address_first(nl, place->link.index, 4, &place->four, &place->bits4);
	if (!rc)
		rc = netlink_address_first(nl, place->link.index, 6, &place->six, &place->bits6);
	if (!rc)
		rc = netlink_route_is_default(nl, place->link.index, &place->has_route);
	netlink_close(nl);
	return rc == -ENODEV ? 0 : rc;
}

bool cni_place_is_same(const char *one, const char *other)
{
	struct stat a, b;

	return strcmp(one, other) == 0 || (stat(one, &a) == 0 && stat(other, &b) == 0 &&
	                                          a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

bool cni_place_look(
        const struct cni_request *request, struct cni_place *out, struct cni_fault *fault)
{
	struct look look = {.interface = request->interface};
	int netns = open(request->netns, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	memset(out, 0, sizeof(*out));
	look.place = out;
	if (netns < 0)
		return cni_fail(fault, CNI_INVALID_ENVIRONMENT,
		        "the network namespace cannot be opened", "CNI_NETNS %s: %s",
		        request->netns, strerror(errno));
	if (cni_place_is_same(request->netns, "/proc/self/ns/net")) {
		close(netns);
		return cni_fail(fault, CNI_CANNOT_GUARD, "the container has the host's network",
		        "CNI_NETNS %s is the host's own network namespace: a container that is to "
		        "be guarded "
		        "needs one of its own",
		        request->netns);
	}
	rc = netns_run(netns, look_inside, &look);
	close(netns);
	return rc == 0 ||
	       cni_fail(fault, CNI_IO_FAILURE, "the network namespace cannot be examined",
	               "CNI_NETNS %s: %s", request->netns, strerror(-rc));
}

static int find_end(const struct cni_place *place, struct netlink_link *out)
{
	struct netlink *nl;
	int rc = netlink_open(&nl);

	if (rc)
		return rc;
	rc = netlink_link_get(nl, NULL, place->link.peer, out);
	netlink_close(nl);
	return rc;
}

bool cni_place_host_end(
        const struct cni_place *place, struct netlink_link *out, struct cni_fault *fault)
{
	const struct netlink_link *link = &place->link;
	int rc;

	if (strcmp(link->kind, "veth") != 0 || !link->elsewhere || link->peer == 0)
		return cni_fail(fault, CNI_CANNOT_GUARD, "the pod's link cannot be guarded",
		        "%s is a %s: behind another plugin only a veth whose other end is on the "
		        "host can be "
		        "guarded (bridge, ptp); or let vethguard-cni make the link, as the first "
		        "plugin",
		        link->name, link->kind[0] ? link->kind : "network card");
	rc = find_end(place, out);
	if (!rc && strcmp(out->kind, "veth") == 0 && out->peer == link->index && out->elsewhere)
		return true;
	return cni_fail(fault, CNI_CANNOT_GUARD, "the pod's link cannot be guarded",
	        "the other end of %s is not in the host's network namespace%s%s", link->name,
	        rc ? ": " : "", rc ? strerror(-rc) : "");
}

/* *out: there is such an address. Returns 0 or -errno. */
static int find_router(const struct cni_place *place, unsigned index, bool *out)
{
	struct ip four = {0}, six = {0};
	struct netlink *nl;
	uint8_t bits;
	int rc = netlink_open(&nl);

	if (rc)
		return rc;
	rc = netlink_address_first(nl, index, 4, &four, &bits);
	if (!rc)
		rc = netlink_address_first(nl, index, 6, &six, &bits);
	netlink_close(nl);
	*out = !rc && ((four.family && place->four.family) || (six.family && place->six.family));
	return rc;
}

bool cni_place_has_router(
        const struct cni_place *place, const struct netlink_link *host_end, struct cni_fault *fault)
{
	bool found;
	int rc = find_router(place, host_end->master ? host_end->master : host_end->index, &found);

	if (rc)
		return cni_fail(fault, CNI_IO_FAILURE, "the pod's link cannot be examined",
		        "%s: %s", host_end->name, strerror(-rc));
	return found || cni_fail(fault, CNI_CANNOT_GUARD, "the pod's link cannot be guarded",
	                        "neither %s nor its bridge has an address (so with Calico): the "
	                        "guard stands in for the "
	                        "pod's router, and cannot for one that has no address here; let "
	                        "vethguard-cni make the "
	                        "link, as the first plugin of a network of its own (RuntimeClass)",
	                        host_end->name);
}

bool cni_place_is_free(const struct netlink_link *host_end, struct cni_fault *fault)
{
	struct netlink *nl;
	int rc = netlink_open(&nl);

	if (!rc) {
		rc = filter_foreign(nl, host_end->index);
		netlink_close(nl);
	}
	if (rc == -EBUSY)
		return cni_fail(fault, CNI_CANNOT_GUARD,
		        "other programs handle the pod's packets before the guard",
		        "%s has filters of traffic control or an XDP program (Cilium, Calico's "
		        "eBPF, the plugin "
		        "bandwidth): what they forward would pass by the guard; let vethguard-cni "
		        "make the link, as "
		        "the first plugin of a network of its own (RuntimeClass)",
		        host_end->name);
	return rc == 0 || cni_fail(fault, CNI_IO_FAILURE, "the pod's link cannot be examined",
	                          "%s: %s", host_end->name, strerror(-rc));
}
