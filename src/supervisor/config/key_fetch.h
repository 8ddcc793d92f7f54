/* SPDX-License-Identifier: Apache-2.0 */
/* key_fetch: fetches what is public over HTTPS, with vethguard-fetch: the key set of a signer of
 * tokens, or a signed bundle. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_KEY_FETCH_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_KEY_FETCH_H

#include "supervisor/config/source_lease.h"

#define KEY_FETCH_TIMEOUT_MS 10000

enum key_fetch_kind {
	KEY_FETCH_SET,
	KEY_FETCH_BUNDLE, /* SIGNED_BUNDLE_BYTES_MAX at most */
};

struct key_fetch;

#define KEY_ETAG_MAX 256 /* bytes of the ETag that a server gives a set, with the NUL */

struct key_fetched {
	int fd;           /* the set can be read from it, to its end; borrowed; -1: none */
	bool same;        /* the set has not changed since the etag that was asked with; fd is -1 */
	const char *etag; /* of the set in fd; empty: it has none */
	const char *error; /* one sentence if there is no set; else NULL */
};

/* Starts a fetch of this kind. Resolvers, hosts and CAs come from the configuration of services as
 * it is now. etag: of what the caller has; empty: nothing. done is called once, never from
 * within this call. The caller frees the fetch, but not from within done. Returns NULL without
 * memory. */
struct key_fetch *key_fetch_start(const struct source_leases *services, enum key_fetch_kind kind,
        const char *url, const char *etag,
        void (*done)(void *context, const struct key_fetched *fetched), void *context);
/* Ends the fetch: done is not called any more. NULL is allowed. */
void key_fetch_free(struct key_fetch *fetch);

#endif
