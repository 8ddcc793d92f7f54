/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ca: makes certificates (RFC 5280). The keeper makes a root for itself and one intermediate per sandbox; a worker's
 * leaf issuer makes leaves under its intermediate. Roots and intermediates are ECDSA P-256; a leaf's key may be RSA.
 */
#ifndef VETHGUARD_TLS_CA_H
#define VETHGUARD_TLS_CA_H

#include "vethguard/base/secret.h"
#include "vethguard/tls/tls.h"

#define CA_CERTIFICATE_MAX 2048 /* DER bytes of any certificate made here, at most */
#define CA_KEY_MAX 512          /* PKCS#8 bytes, at most */
#define CA_CHAIN_MAX 3          /* certificates between an issuer and the root, without both */

struct ca; /* a certificate that signs, with its key */

/* Makes a self-signed root: critical basicConstraints CA pathlen 1, keyUsage keyCertSign|cRLSign, SKI, 20-byte random
 * serial, valid for `days` from two days ago on. common_name is cut to 64 bytes. Returns NULL if there is no memory
 * or no randomness. */
struct ca *ca_new_root(struct slice common_name, unsigned days);
/* Makes an intermediate under root: pathlen 0, AKI. It ends with root at the latest. */
struct ca *ca_new_intermediate(const struct ca *root, struct slice common_name, unsigned days);
/* What an intermediate is to be. */
struct ca_wanted {
	struct slice name; /* its common name */
	unsigned days;
	const char *names; /* what it may sign for (ca_names.h); NULL: anything */
};
struct ca *ca_new_intermediate_for(const struct ca *root, const struct ca_wanted *wanted);
/* Makes a CA from DER and PKCS#8, as message_ca carries them. Returns NULL if they are malformed or do not match. */
struct ca *ca_from_der(struct slice certificate, struct slice key);
/* Makes a CA and frees it. OpenSSL looks up its algorithms when it first needs them, which takes longer than
 * everything they do in a worker's start. */
void ca_warm_up(void);
void ca_free(struct ca *ca);
/* The certificates (DER) that clients get after the issuer's own, the one above it first, without the root. Replaces
 * earlier ones. Returns 0; -EBADMSG: one of them does not decode; -EINVAL: more than CA_CHAIN_MAX; -ENOMEM. */
int ca_set_chain(struct ca *ca, const struct slice *der, size_t count);
/* True if the CA's key is elsewhere (ca_from_certificate()): then only a draft (ca_draft_new()) can be signed. */
bool ca_key_is_elsewhere(const struct ca *ca);
int64_t ca_expires_s(const struct ca *ca);            /* in seconds since the epoch */
struct slice ca_certificate_der(const struct ca *ca); /* borrowed */
/* Writes the private key as PKCS#8 into new secret memory. Returns 0 or -errno. */
int ca_key_der(const struct ca *ca, struct secret *out);
/* Appends the PEM of a DER certificate to out. Returns 0 or -errno. */
int ca_pem_append(struct slice der, struct buf *out);

/* The key that all leaves of one issuer and kind share. Making an RSA key takes about 0.1 s of CPU time. NULL: no
 * memory or no randomness. */
struct ca_leaf_key;
struct ca_leaf_key *ca_leaf_key_new(enum tls_key_kind kind);
void ca_leaf_key_free(struct ca_leaf_key *key);
/* Makes a leaf for host (canonical name, as dNSName) or address (iPAddress), signed by issuer; its chain is leaf,
 * issuer and the issuer's chain. It has serverAuth, digitalSignature, SAN (critical if the subject is empty), SKI, AKI,
 * a random positive 16-byte serial, and is valid for 7 days from 48 hours ago on, but no longer than its issuer. NULL
 * also if the issuer has ended. Returns one reference for the caller, or NULL on failure. The leaf is built from a DER
 * template, so its cost is the signature. */
struct tls_identity *ca_leaf_new(
        const struct ca *issuer, const struct ca_leaf_key *key, struct slice host, const struct ip *address);

#endif
