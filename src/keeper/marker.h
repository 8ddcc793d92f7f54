/* SPDX-License-Identifier: Apache-2.0 */
/* marker: marks of values, by which people can tell whether two values are the same. A mark is a
 * MAC (HMAC-SHA256, RFC 2104, cut) under a key that this keeper makes at its start and gives to
 * nobody. Without the key a mark does not help to guess a value. */
#ifndef VETHGUARD_SRC_KEEPER_MARKER_H
#define VETHGUARD_SRC_KEEPER_MARKER_H

#include "vethguard/base/secret.h"
#include "vethguard/tls/digest.h"
#include "vethguard/wire/message.h"

struct marker {
	struct digest digest;
	struct secret key;
};

/* Call this before the jail closes. Returns 0 or -errno. */
int marker_init(struct marker *marker);
void marker_fini(struct marker *marker);
/* Writes zeros if OpenSSL fails. */
void marker_mark(
        struct marker *marker, struct slice value, uint8_t out[MESSAGE_CREDENTIAL_MARK_BYTES]);

#endif
