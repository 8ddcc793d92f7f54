/* SPDX-License-Identifier: Apache-2.0 */
/* lookup: the addresses of the services, by the resolver that workers use as well. */
#ifndef VETHGUARD_SRC_FETCH_LOOKUP_H
#define VETHGUARD_SRC_FETCH_LOOKUP_H

#include "fetch/request.h"
#include "vethguard/loop/resolver.h"

struct lookup {
	struct loop *loop;
	struct resolver *resolver;
};

/* Makes what needs descriptors; call it before the jail closes. Returns false if there is no
 * memory. */
bool lookup_open(struct lookup *lookup, const struct fetch_request *request);
void lookup_close(struct lookup *lookup);
/* Fills in the addresses of each site unless they are known. Returns NULL, or a sentence that says
 * why there are none. */
const char *lookup_run(struct lookup *lookup, struct fetch_request *request);

#endif
