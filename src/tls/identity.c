/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an identity is a leaf certificate, the certificates above it and the leaf's
 * key. Many connections and the issuer's table share one; it is freed with its last reference. One
 * thread owns all of them.
 */
#include "tls/private.h"

#include <stdlib.h>

struct tls_identity *tls_identity_new(
        X509 *leaf, EVP_PKEY *key, STACK_OF(X509) * chain, int64_t expires_s)
{
	struct tls_identity *identity = calloc(1, sizeof(*identity));

	if (!identity)
		return NULL;
	identity->leaf = leaf;
	identity->key = key;
	identity->chain = chain;
	identity->expires_s = expires_s;
	identity->references = 1;
	return identity;
}

void tls_identity_retain(struct tls_identity *identity)
{
	identity->references++;
}

void tls_identity_release(struct tls_identity *identity)
{
	if (!identity || --identity->references > 0)
		return;
	X509_free(identity->leaf);
	EVP_PKEY_free(identity->key);
	sk_X509_pop_free(identity->chain, X509_free);
	free(identity);
}

int64_t tls_identity_expires_s(const struct tls_identity *identity)
{
	return identity->expires_s;
}

bool tls_identity_is_elsewhere(const struct tls_identity *identity)
{
	return identity->elsewhere;
}
