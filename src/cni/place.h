/* SPDX-License-Identifier: Apache-2.0 */
/* place: what the kernel says of a container's network namespace, and of the host's end of its
 * link. */
#ifndef VETHGUARD_SRC_CNI_PLACE_H
#define VETHGUARD_SRC_CNI_PLACE_H

#include <net/if.h>

#include "vethguard/base/ip.h"
#include "vethguard/netlink/netlink.h"
#include "cni/request.h"

struct cni_place {
	struct netlink_link link; /* the container's; index 0: it is not there */
	struct ip four, six;      /* the link's first addresses; family 0: none */
	uint8_t bits4, bits6;
	bool has_route;       /* a default route leaves through the link */
	char other[IFNAMSIZ]; /* another interface by which the container could leave, or "" */
};

/* Looks at CNI_IFNAME in the namespace CNI_NETNS. False: fault says why not; an interface that is
 * not there is no fault. */
bool cni_place_look(
        const struct cni_request *request, struct cni_place *out, struct cni_fault *fault);
/* Finds the host's end of the link: a veth in the caller's namespace. False, with code
 * CNI_CANNOT_GUARD: the link is of another kind, or ends elsewhere. */
bool cni_place_host_end(
        const struct cni_place *place, struct netlink_link *out, struct cni_fault *fault);
/* False, with code CNI_CANNOT_GUARD: neither the host's end nor its bridge has an address of a
 * family that the container has, so the guard cannot be the router that the container knows. */
bool cni_place_has_router(const struct cni_place *place, const struct netlink_link *host_end,
        struct cni_fault *fault);
/* False if other programs take the frames of this interface of the host before the guard sees them.
 */
bool cni_place_is_free(const struct netlink_link *host_end, struct cni_fault *fault);
/* True if both paths lead to one namespace. */
bool cni_place_is_same(const char *one, const char *other);

#endif
