/* SPDX-License-Identifier: Apache-2.0 */
/* key_fetch: fetches the key set of a signer of tokens over HTTPS, with vethguard-fetch. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_KEY_FETCH_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_KEY_FETCH_H

#include "supervisor/config/source_lease.h"

#define KEY_FETCH_TIMEOUT_MS 10000

struct key_fetch;

/* Starts a fetch. Resolvers, hosts and CAs come from the configuration of services as it is now.
 * done is called once, never from within this call: with a borrowed descriptor, from which the set
 * can be read to its end; or with -1 and one sentence in error. The caller frees the fetch, but not
 * from within done. Returns NULL if there is no memory. */
struct key_fetch *key_fetch_start(const struct source_leases *services, const char *url,
        void (*done)(void *context, int fd, const char *error), void *context);
/* Ends the fetch: done is not called any more. NULL is allowed. */
void key_fetch_free(struct key_fetch *fetch);

#endif
