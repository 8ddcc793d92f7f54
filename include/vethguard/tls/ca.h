/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ca: making certificates (RFC 5280). The keeper makes a root for itself and one intermediate per sandbox; a worker's
 * mint makes leaves under its intermediate. Roots and intermediates are ECDSA P-256; a leaf's key may be RSA.
 */
#ifndef VETHGUARD_TLS_CA_H
#define VETHGUARD_TLS_CA_H

#include "vethguard/base/secret.h"
#include "vethguard/tls/tls.h"

#define CA_CERTIFICATE_MAX 2048 /* DER bytes of any certificate made here */
#define CA_KEY_MAX 512          /* PKCS#8 bytes */

struct ca; /* a certificate that signs, with its key */

/* A new self-signed root: critical basicConstraints CA pathlen 1, keyUsage keyCertSign|cRLSign, SKI, 20-byte random
 * serial, valid from two days ago for days. common_name is bounded to 64 bytes. NULL: no memory or no randomness. */
struct ca *ca_new_root(struct slice common_name, unsigned days);
/* A new intermediate under root: pathlen 0, AKI. */
struct ca *ca_new_intermediate(const struct ca *root, struct slice common_name, unsigned days);
/* From DER and PKCS#8 as message_ca carries them. NULL: malformed or not matching. */
struct ca *ca_from_der(struct slice certificate, struct slice key);
/* Makes a CA and forgets it: OpenSSL looks its algorithms up when it first needs them, which takes longer than all that
 * they do in a worker's start. */
void ca_warm_up(void);
void ca_free(struct ca *ca);
struct slice ca_certificate_der(const struct ca *ca); /* borrowed */
/* The private key as PKCS#8 in new secret memory. 0 or -errno. */
int ca_key_der(const struct ca *ca, struct secret *out);
/* PEM of a DER certificate onto out. 0 or -errno. */
int ca_pem_append(struct slice der, struct buf *out);

/* The key all leaves of one mint and kind share. An RSA key takes about 0.1 s of CPU time to make. NULL: no memory or no
 * randomness. */
struct ca_leaf_key;
struct ca_leaf_key *ca_leaf_key_new(enum tls_key_kind kind);
void ca_leaf_key_free(struct ca_leaf_key *key);
/* A leaf for host (canonical name as dNSName) or address (iPAddress), signed by issuer; chain: leaf, issuer.
 * serverAuth, digitalSignature, SAN (critical when the subject is empty), SKI, AKI, random 16-byte positive serial,
 * valid from 48 hours ago for 7 days. One reference for the caller. NULL on failure. Built from a DER template: the
 * cost is the signature. */
struct tls_identity *ca_leaf_new(const struct ca *issuer, const struct ca_leaf_key *key, struct slice host,
	const struct ip *address);

#endif
