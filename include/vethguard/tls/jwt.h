/* SPDX-License-Identifier: Apache-2.0 */
/* jwt: signed tokens (RFC 7519) for services that ask for one, and memory that OpenSSL wipes. */
#ifndef VETHGUARD_TLS_JWT_H
#define VETHGUARD_TLS_JWT_H

#include "vethguard/base/buf.h"

#define JWT_KEY_BITS_MIN 2048

/* Makes OpenSSL wipe whatever it frees. Call it before anything else of OpenSSL. */
void tls_library_wipes_memory(void);
/* Appends a token with these claims (JSON), signed with RS256 (RFC 7518 section 3.3). key_id goes into its header
 * unless it is empty. The RSA key is PEM without a passphrase. Returns 0; -EINVAL: the PEM holds no RSA key, or one
 * with a passphrase; -EKEYREJECTED: the key has fewer than JWT_KEY_BITS_MIN bits; or -ENOMEM. */
int jwt_sign_rs256_as(struct slice key_pem, struct slice key_id, struct slice claims, struct buf *out);
static inline int jwt_sign_rs256(struct slice key_pem, struct slice claims, struct buf *out)
{
	return jwt_sign_rs256_as(key_pem, SLICE(""), claims, out);
}

#endif
