/* SPDX-License-Identifier: Apache-2.0 */
/* key_fetch: asks for the key set of somebody who signs tokens, over HTTPS, by vethguard-fetch. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_KEY_FETCH_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_KEY_FETCH_H

#include "supervisor/config/source_lease.h"

#define KEY_FETCH_TIMEOUT_MS 10000

struct key_fetch;

/* Starts a fetch. services: resolvers, hosts and CAs come from its configuration, of this moment.
 * done is called once, never from within this call: with a descriptor, borrowed, from which the set
 * can be read to its end; or with -1 and one sentence in error. Afterwards the fetch may be freed,
 * but not from within done. Returns NULL if there is no memory. */
struct key_fetch *key_fetch_start(const struct source_leases *services, const char *url,
        void (*done)(void *context, int fd, const char *error), void *context);
/* done is not called any more. NULL is allowed. */
void key_fetch_free(struct key_fetch *fetch);

#endif
