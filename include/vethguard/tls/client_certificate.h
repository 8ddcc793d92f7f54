/* SPDX-License-Identifier: Apache-2.0 */
/* client_certificate: makes the certificate and key by which a TLS client proves a session. */
#ifndef VETHGUARD_TLS_CLIENT_CERTIFICATE_H
#define VETHGUARD_TLS_CLIENT_CERTIFICATE_H

#include "vethguard/base/buf.h"
#include "vethguard/base/secret.h"
#include "vethguard/tls/digest.h"

struct client_certificate {
	struct buf pem;                     /* the certificate */
	struct secret key;                  /* PEM, PKCS#8 */
	char sha256[DIGEST_SHA256_HEX + 1]; /* of the certificate (DER) */
};

/* Makes an ECDSA P-256 key and a self-signed certificate: for clientAuth, not a CA, valid from two days ago until
 * expires_s (Unix time). common_name is cut to 64 bytes. Returns 0; -EINVAL: expires_s is not in the future, or
 * the name is empty; or -ENOMEM. On failure *out needs no client_certificate_fini(). */
int client_certificate_make(struct slice common_name, int64_t expires_s, struct client_certificate *out);
/* Wipes and frees. */
void client_certificate_fini(struct client_certificate *c);

#endif
