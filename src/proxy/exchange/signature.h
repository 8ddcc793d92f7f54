/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature: what a request says of its own signature (AWS Signature Version 4): where it has one,
 * for which region and service, over which fields, and how its body is signed. The sandbox signs
 * with keys that are worth nothing, or not at all; signing.h makes the signature that is sent.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_SIGNATURE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_SIGNATURE_H

#include "proxy/http/http.h"
#include "vethguard/policy/policy.h"
#include "vethguard/sign/sigv4.h"

#define SIGNATURE_CREDENTIAL_MAX 512 /* bytes of "KEY/DAY/REGION/SERVICE/aws4_request", decoded */
#define SIGNATURE_NAMES_MAX 4096     /* bytes of the names of signed fields, decoded */

enum signature_form {
	SIGNATURE_NONE,  /* the request is not signed; it will be by a field */
	SIGNATURE_FIELD, /* Authorization */
	SIGNATURE_QUERY  /* a presigned URL */
};

enum signature_body {
	SIGNATURE_BODY_OPEN,   /* the request does not say how its body is signed */
	SIGNATURE_BODY_WORD,   /* a hash or a word, which is signed as it is: struct signature's
	                          payload */
	SIGNATURE_BODY_CHUNKS, /* chunk by chunk */
	SIGNATURE_BODY_CHUNKS_AND_TRAILER
};

struct signature {
	enum signature_form form;
	enum signature_body body;
	struct slice region, service; /* empty: not signed */
	struct slice names;           /* of the signed fields, separated by ';' */
	struct slice expires;         /* X-Amz-Expires, as written; or empty */
	struct slice payload;         /* x-amz-content-sha256, or empty */
	bool payload_in_query;        /* it is a parameter */
	const char *fault;            /* static: why the request cannot be signed; or NULL */
	size_t decoded_n;
	char decoded[SIGNATURE_CREDENTIAL_MAX + SIGNATURE_NAMES_MAX];
};

/* Reads what the request says. Fields count whether or not they will be sent on. Slices point into
 * the request or into out. */
void signature_read(const struct http_request *request, struct signature *out);
/* NULL, or why the policy's credential does not sign this request (static). Completes region and
 * service of a request that names none. */
const char *signature_check(struct signature *signature, const struct policy_credential *spec);
/* True for a parameter that is a part of a presigned URL's signature, in any spelling. */
bool signature_is_parameter(struct slice pair);
/* True if the request's signed fields have that name. */
bool signature_covers(const struct signature *signature, struct slice name);

#endif
