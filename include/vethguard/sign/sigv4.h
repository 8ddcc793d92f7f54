/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4: AWS Signature Version 4, pure functions without descriptors or a clock.
 *
 * One signature takes four steps:
 *   1. sigv4_time() writes the time; sigv4_key() derives the day's key for a region and a service. The key can be
 *      kept and used again as long as day, region and service stay the same.
 *   2. The caller puts together what it sends: the query written by sigv4_write_query(), the fields to sign (host, all
 *      x-amz-*, what else it likes) and the payload's word (sigv4_payload_hex(), or SIGV4_UNSIGNED and the like).
 *   3. sigv4_canonical() writes the canonical request and the list of signed fields.
 *   4. sigv4_sign() makes the signature. sigv4_write_authorization() writes the Authorization field.
 *
 * A session token is a signed field (x-amz-security-token) or a parameter (X-Amz-Security-Token), so a canonical
 * request can hold a secret: the caller chooses the memory of `out`. In a presigned URL everything is a parameter, and
 * the signature is appended as X-Amz-Signature. One of its parameters lists the names of the signed fields before step
 * 3 sorts them: sigv4_names() writes that list.
 *
 * Bodies that are signed chunk by chunk (STREAMING-AWS4-HMAC-SHA256-PAYLOAD) start from the request's signature, and
 * each further signature covers the one before it: sigv4_sign_chunk(), sigv4_sign_trailer().
 */
#ifndef VETHGUARD_SIGN_SIGV4_H
#define VETHGUARD_SIGN_SIGV4_H

#include "vethguard/base/buf.h"
#include "vethguard/sign/hmac.h"

#define SIGV4_ALGORITHM "AWS4-HMAC-SHA256"
#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"
#define SIGV4_TIME 16 /* "20130524T000000Z", without NUL */
#define SIGV4_DAY 8   /* the first bytes of it, the day */
#define SIGV4_HEX DIGEST_SHA256_HEX
#define SIGV4_REGION_MAX 32  /* bytes of a region's name */
#define SIGV4_SERVICE_MAX 64 /* bytes of a service's name */
#define SIGV4_SCOPE_MAX (SIGV4_DAY + SIGV4_REGION_MAX + SIGV4_SERVICE_MAX + sizeof("///aws4_request"))
#define SIGV4_FIELDS_MAX 144     /* signed fields */
#define SIGV4_PARAMETERS_MAX 256 /* parameters of a query */
/* The hash of no bytes. */
#define SIGV4_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* The time, region and service that a signature is valid for. */
struct sigv4_scope {
	char time[SIGV4_TIME + 1];
	struct slice region, service;
};

struct sigv4_field {
	struct slice name, value;
};

struct sigv4_request {
	struct slice method;
	struct slice path;                /* as it is sent */
	struct slice query;               /* as sigv4_write_query() wrote it, and as it is sent; without '?' */
	const struct sigv4_field *fields; /* to sign, in any order and any case; fields of one name are joined */
	size_t field_count;
	struct slice payload; /* the hash of the body in hex, or one of AWS's words for it */
	bool s3; /* true: the path is signed as it is sent, as S3 wants it; false: without empty and dot segments, and
	            escaped once more */
};

/* Writes the time as UTC, with a NUL. Years from 1970 to 9999. */
void sigv4_time(int64_t unix_s, char out[SIGV4_TIME + 1]);
/* True if region and service can stand in a scope: 1 to SIGV4_*_MAX letters, digits, '-', '_' and '.'. */
bool sigv4_is_region(struct slice region);
bool sigv4_is_service(struct slice service);
/* True for the services that sign the path as S3 does: s3, s3express, s3-object-lambda, s3-outposts. */
bool sigv4_is_s3(struct slice service);
/* Writes "20130524/us-east-1/s3/aws4_request", with a NUL; returns it. */
struct slice sigv4_scope_text(const struct sigv4_scope *scope, char out[SIGV4_SCOPE_MAX]);

/* Appends bytes percent-encoded: letters, digits and "-._~" stay as they are, and '/' too if slash is set. Returns 0 or
 * -errno of buf_append(). */
int sigv4_escape(struct buf *out, struct slice bytes, bool slash);
/* Appends a query as it is signed and sent: each name and each value decoded ('+' as a space) and escaped again, in the
 * same order; "name" gets no '='. Returns 0 or -errno. */
int sigv4_write_query(struct buf *out, struct slice query);
/* Appends the names of the fields as they are signed: lower case, sorted, each once, separated by ';'. Returns 0;
 * -E2BIG: more than SIGV4_FIELDS_MAX; or -errno. */
int sigv4_names(struct buf *out, const struct sigv4_field *fields, size_t count);
/* Appends the canonical request. Returns 0; -E2BIG: more fields or parameters than the bounds; or -errno. */
int sigv4_canonical(struct buf *out, const struct sigv4_request *request);

/* Writes the SHA-256 of a body in hex, with a NUL. Returns 0 or -EIO. */
int sigv4_payload_hex(struct hmac *hmac, struct slice body, char out[SIGV4_HEX + 1]);
/* Derives the signing key for the scope's day, region and service from a secret access key (1 to 128 bytes). out is
 * secret memory of the caller. Returns 0; -EINVAL: the secret's length is out of bounds; or -EIO. */
#define SIGV4_SECRET_MAX 128
int sigv4_key(struct hmac *hmac, struct slice secret, const struct sigv4_scope *scope, uint8_t out[HMAC_BYTES]);
/* Signs a canonical request; out gets 64 hex digits and a NUL. Returns 0 or -EIO. */
int sigv4_sign(struct hmac *hmac, const uint8_t key[HMAC_BYTES], const struct sigv4_scope *scope,
        struct slice canonical, char out[SIGV4_HEX + 1]);
/* Appends the value of Authorization: algorithm, key id with the scope, names of the signed fields, signature. Returns
 * 0 or -errno. */
int sigv4_write_authorization(struct buf *out, struct slice key_id, const struct sigv4_scope *scope, struct slice names,
        const char signature[SIGV4_HEX + 1]);

/* Sign one chunk of a body, and the trailer lines ("name:value
 * " each, in lower case) after the last, empty chunk. signature holds the previous signature and is replaced by the new
 * one. Returns 0 or -EIO. */
int sigv4_sign_chunk(struct hmac *hmac, const uint8_t key[HMAC_BYTES], const struct sigv4_scope *scope,
        struct slice data, char signature[SIGV4_HEX + 1]);
int sigv4_sign_trailer(struct hmac *hmac, const uint8_t key[HMAC_BYTES], const struct sigv4_scope *scope,
        struct slice lines, char signature[SIGV4_HEX + 1]);

#endif
