/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature: parses a request's own signature (AWS Signature Version 4): where it stands, for which
 * region and service, over which fields, and how the body is signed. The sandbox signs with
 * worthless keys or not at all; signing.h makes the signature that is sent.
 */
#ifndef VETHGUARD_SRC_PROXY_SIGNING_SIGNATURE_H
#define VETHGUARD_SRC_PROXY_SIGNING_SIGNATURE_H

#include "proxy/http/http.h"
#include "vethguard/policy/policy.h"
#include "vethguard/sign/sigv4.h"

#define SIGNATURE_CREDENTIAL_MAX 512 /* bytes of "KEY/DAY/REGION/SERVICE/aws4_request", decoded */
#define SIGNATURE_NAMES_MAX 4096     /* bytes of the names of signed fields, decoded */

enum signature_form {
	SIGNATURE_NONE,  /* the request is not signed; the real signature will be a field */
	SIGNATURE_FIELD, /* Authorization */
	SIGNATURE_QUERY  /* a presigned URL */
};

enum signature_body {
	SIGNATURE_BODY_OPEN, /* the request does not say how its body is signed */
	SIGNATURE_BODY_WORD, /* signature.payload has a hash or a word, which is signed as it is */
	SIGNATURE_BODY_CHUNKS, /* chunk by chunk */
	SIGNATURE_BODY_CHUNKS_AND_TRAILER
};

struct signature {
	enum signature_form form;
	enum signature_body body;
	struct slice key;             /* the id of the key; empty: not signed */
	struct slice region, service; /* empty: not signed */
	struct slice names;           /* of the signed fields, separated by ';' */
	struct slice expires;         /* X-Amz-Expires, as written; or empty */
	struct slice payload;         /* x-amz-content-sha256, or empty */
	bool payload_in_query;        /* payload came as a parameter */
	const char *fault;            /* static: why the request cannot be signed; or NULL */
	size_t decoded_n;
	char decoded[SIGNATURE_CREDENTIAL_MAX + SIGNATURE_NAMES_MAX];
};

/* Parses the request's signature. Fields count whether or not they will be sent on. Slices point
 * into the request or into out. */
void signature_read(const struct http_request *request, struct signature *out);
/* Returns NULL, or why the policy's credential does not sign this request (static). Fills in region
 * and service if the request names none. */
const char *signature_check(struct signature *signature, const struct policy_credential *spec);
/* True for a parameter that belongs to a presigned URL's signature, in any spelling. */
bool signature_is_parameter(struct slice pair);
/* True if the request's signature covers the field with that name. */
bool signature_covers(const struct signature *signature, struct slice name);

#endif
