/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ca_papers: what an operator's own CA needs besides ca.h: requests (PKCS#10, RFC 2986), certificates and keys from
 * PEM files, a chain from a certificate up to its root, and the checks before the first sandbox depends on it. Each
 * refusal is a sentence that says what is wrong and what would be right.
 */
#ifndef VETHGUARD_TLS_CA_PAPERS_H
#define VETHGUARD_TLS_CA_PAPERS_H

#include "vethguard/tls/ca.h"

#define CA_PAPERS_MAX 8         /* certificates in one file */
#define CA_PAPERS_PEM_MAX 32768 /* bytes of such a file */
#define CA_WHY_MAX 512          /* bytes of a sentence, with NUL */
#define CA_SUBJECT_MAX 256      /* bytes of a subject as text, with NUL */
#define CA_FINGERPRINT_BYTES 32 /* SHA-256 of a certificate's DER */

/* Certificates in DER, in the order of the file. */
struct ca_papers {
	size_t count;
	size_t lengths[CA_PAPERS_MAX];
	uint8_t der[CA_PAPERS_MAX][CA_CERTIFICATE_MAX];
};
static inline struct slice ca_paper(const struct ca_papers *papers, size_t i)
{
	return slice_of(papers->der[i], papers->lengths[i]);
}
/* Adds a certificate unless it is there already. False: no room, or too long. */
bool ca_papers_add(struct ca_papers *papers, struct slice der);
/* Reads all certificates of a PEM text; other blocks, such as keys, are refused. what: "the certificate", for why.
 * Returns 0, or -EBADMSG with why. */
int ca_papers_read(struct slice pem, const char *what, struct ca_papers *out, char why[CA_WHY_MAX]);

struct ca_description {
	char subject[CA_SUBJECT_MAX]; /* RFC 2253, for people */
	int64_t from_s, until_s;      /* seconds since the epoch */
	uint8_t fingerprint[CA_FINGERPRINT_BYTES];
	bool is_self_signed;
};
/* Returns 0, or -EBADMSG if it is no certificate. */
int ca_describe(struct slice der, struct ca_description *out);

/* A key without a certificate, and the request for one. NULL: no memory, no randomness, or malformed. */
struct ca_request;
struct ca_request *ca_request_new(void);
struct ca_request *ca_request_from_der(struct slice key); /* PKCS#8, as ca_request_key_der() writes it */
void ca_request_free(struct ca_request *request);
int ca_request_key_der(const struct ca_request *request, struct secret *out);
/* Appends the request as PEM: critical basicConstraints CA pathlen 1, keyUsage keyCertSign|cRLSign. Returns 0 or
 * -errno. */
int ca_request_pem(const struct ca_request *request, struct slice common_name, struct buf *out);
/* Makes a CA of the key and its certificate. Returns NULL with why: another key, no CA, ... */
struct ca *ca_request_accept(const struct ca_request *request, struct slice certificate, char why[CA_WHY_MAX]);

/* Makes a CA of a certificate and a private key in PEM (PKCS#8, SEC 1 or PKCS#1, not encrypted): P-256, P-384 or RSA
 * of 2048 bits and more. Returns NULL with why. */
struct ca *ca_from_pem(struct slice certificate, struct slice key, char why[CA_WHY_MAX]);

/* Makes a CA from a certificate whose key is elsewhere, such as in a token: P-256, P-384 or RSA of 2048 bits and more.
 * Returns NULL with why. */
struct ca *ca_from_certificate(struct slice certificate, char why[CA_WHY_MAX]);

/* An intermediate that somebody else signs. */
struct ca_draft;
/* Makes an intermediate as ca_new_intermediate_for() does, but unsigned, and writes the SHA-256 that is to be signed.
 * Returns NULL if there is no memory or the issuer has expired.
 */
struct ca_draft *ca_draft_new(const struct ca *issuer, const struct ca_wanted *wanted, uint8_t digest[32]);
enum ca_signature { CA_SIGNATURE_ECDSA, CA_SIGNATURE_RSA };
/* Takes the draft and its signature: r and s of equal length (ECDSA), or PKCS #1 1.5. Returns NULL with why if the
 * issuer's key did not make the signature. */
struct ca *ca_draft_finish(struct ca_draft *draft, const struct ca *issuer, enum ca_signature kind,
        struct slice signature, char why[CA_WHY_MAX]);
void ca_draft_free(struct ca_draft *draft);

/* Finds the way from a certificate to one of roots over certificates of papers: chain gets those between, the one
 * above the certificate first, and root the root, which is the certificate itself if that is one of roots. Returns 0
 * or -EBADMSG with why. */
int ca_chain(struct slice certificate, const struct ca_papers *papers, const struct ca_papers *roots,
        struct ca_papers *chain, struct ca_papers *root, char why[CA_WHY_MAX]);
#define CA_TRIAL_NAME "vethguard trial CA"
#define CA_TRIAL_DAYS 3
/* Checks a CA that is to sign sandboxes' intermediates: it is a CA, its path length permits intermediates, it is valid
 * now, and clients that know only root accept a leaf that is made on trial. note: what clients may stumble over, or "".
 * trial: an intermediate of ca, which the function takes; NULL: the function makes one. Returns 0, or -EBADMSG with
 * why. */
int ca_check(const struct ca *ca, struct ca *trial, const struct ca_papers *chain, struct slice root,
        char why[CA_WHY_MAX], char note[CA_WHY_MAX]);

#endif
