/* SPDX-License-Identifier: Apache-2.0 */
/* hmac: HMAC-SHA-256 (RFC 2104, FIPS 198-1) that keeps its key in locked memory. */
#ifndef VETHGUARD_SIGN_HMAC_H
#define VETHGUARD_SIGN_HMAC_H

#include "vethguard/base/secret.h"
#include "vethguard/tls/digest.h"

#define HMAC_BYTES DIGEST_SHA256_BYTES
#define HMAC_PARTS_MAX 32 /* parts of one text */

/* A context: made once, used for many texts. */
struct hmac {
	struct digest digest;
	struct secret pads; /* the padded key while it is used; empty otherwise */
};

/* Call this before the jail closes, as digest_init(). Returns 0 or -errno. */
int hmac_init(struct hmac *hmac);
void hmac_fini(struct hmac *hmac);
/* Computes the HMAC of the concatenated parts. out may overlap a part or the key. Returns 0; -E2BIG: more than
 * HMAC_PARTS_MAX parts; or -EIO if OpenSSL failed. After a failure out is zeroed. */
int hmac_sha256(struct hmac *hmac, struct slice key, const struct slice *parts, size_t count, uint8_t out[HMAC_BYTES]);
/* Writes n bytes as 2 * n lower-case hex digits, without a NUL. */
void hmac_hex(const uint8_t *p, size_t n, char *out);

#endif
