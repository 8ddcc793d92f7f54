/* SPDX-License-Identifier: Apache-2.0 */
/* result: what a plugin before this one has answered (prevResult), and what ADD answers (CNI
 * specification 1.1.0, section 5; 0.4.0 has "version" in each of ips). */
#ifndef VETHGUARD_SRC_CNI_RESULT_H
#define VETHGUARD_SRC_CNI_RESULT_H

#include "vethguard/base/ip.h"
#include "cni/place.h"

#define CNI_RESULT_ITEMS_MAX 64 /* interfaces, ips */

/* Of a result: the container's own addresses; family 0: none. */
struct cni_addresses {
	struct ip four, six;
};

/* Reads the addresses that prevResult gives to CNI_IFNAME in CNI_NETNS; those of other interfaces
 * and other sandboxes do not count. False, with CNI_INVALID_CONFIG: it is malformed, or gives none;
 * with CNI_CANNOT_GUARD: more than one of a family. */
bool cni_result_addresses(
        const struct cni_request *request, struct cni_addresses *out, struct cni_fault *fault);
/* True if prevResult names this interface as one of the host. */
bool cni_result_names_host_end(const struct cni_request *request, const char *name);

/* The answer to ADD without prevResult, about a link that the daemon has made: sandbox is the
 * daemon's own description. The caller owns it. NULL: no memory. */
json_t *cni_result_of_link(
        const struct cni_request *request, const struct cni_place *place, const json_t *sandbox);
/* The answer to ADD behind another plugin: prevResult with the guard as name server. */
json_t *cni_result_of_previous(const struct cni_request *request, const json_t *sandbox);

#endif
