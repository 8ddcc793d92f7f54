/* SPDX-License-Identifier: Apache-2.0 */
/* digest: SHA-256 (FIPS 180-4) for the audit log's hash chain; SHA-1 for WebSocket's handshake; both for the ids of
 * git's objects; MD5 for PostgreSQL's older login. */
#ifndef VETHGUARD_TLS_DIGEST_H
#define VETHGUARD_TLS_DIGEST_H

#include "vethguard/base/slice.h"

#define DIGEST_SHA256_BYTES 32
#define DIGEST_SHA256_HEX 64 /* letters, without NUL */
#define DIGEST_SHA1_BYTES 20

/* A hashing context that is made once and used for many texts. */
struct digest {
	void *context; /* owned */
	void *method;  /* owned */
};

/* Loads the algorithm; call this before the jail closes, because OpenSSL may need files. Returns 0; -ENOMEM; or
 * -ENOTSUP if this OpenSSL has no SHA-256. */
int digest_init(struct digest *digest);
void digest_fini(struct digest *digest);
/* SHA-256 of the concatenated parts. Returns 0, or -EIO if OpenSSL failed (out is zeroed). */
int digest_sha256(struct digest *digest, const struct slice *parts, size_t count, uint8_t out[DIGEST_SHA256_BYTES]);
/* The same as 64 lower-case hex digits and a NUL. */
int digest_sha256_hex(struct digest *digest, const struct slice *parts, size_t count, char out[DIGEST_SHA256_HEX + 1]);

/* Writes the SHA-256 (32 bytes) or SHA-1 (20 bytes) of the concatenated parts to out. Needs no struct digest. Returns
 * 0 or -EIO. */
int digest_once(bool sha256, const struct slice *parts, size_t count, uint8_t out[DIGEST_SHA256_BYTES]);

/* SHA-1 of the concatenated parts in base64, with a NUL: not for security, RFC 6455 section 4.2.2 requires it.
 * Returns 0 or -EIO. */
#define DIGEST_SHA1_BASE64 28 /* letters, without NUL */
int digest_sha1_base64(const struct slice *parts, size_t count, char out[DIGEST_SHA1_BASE64 + 1]);

/* MD5 of the concatenated parts as 32 lower-case hex digits and a NUL: not for security, PostgreSQL's login "md5"
 * requires it. Returns 0 or -EIO. */
#define DIGEST_MD5_HEX 32 /* letters, without NUL */
int digest_md5_hex(const struct slice *parts, size_t count, char out[DIGEST_MD5_HEX + 1]);

#endif
