/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and signatures. The chain of keys (day, region, service, request) stays in the caller's
 * memory: each step overwrites the one before.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "vethguard/sign/sigv4.h"

void sigv4_time(int64_t unix_s, char out[SIGV4_TIME + 1])
{
	time_t t = (time_t)unix_s;
	struct tm tm = {0};

	gmtime_r(&t, &tm);
	strftime(out, SIGV4_TIME + 1, "%Y%m%dT%H%M%SZ", &tm);
}

static bool is_name(struct slice s, size_t max)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		            c == '-' || c == '_' || c == '.'))
			return false;
	}
	return s.n > 0 && s.n <= max;
}

bool sigv4_is_region(struct slice region)
{
	return is_name(region, SIGV4_REGION_MAX);
}

bool sigv4_is_service(struct slice service)
{
	return is_name(service, SIGV4_SERVICE_MAX);
}

bool sigv4_is_s3(struct slice service)
{
	static const struct slice names[] = {
	        {"s3", 2}, {"s3express", 9}, {"s3-object-lambda", 16}, {"s3-outposts", 11}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_equals(service, names[i]))
			return true;
	return false;
}

struct slice sigv4_scope_text(const struct sigv4_scope *scope, char out[SIGV4_SCOPE_MAX])
{
	int n = snprintf(out, SIGV4_SCOPE_MAX, "%.*s/%.*s/%.*s/aws4_request", SIGV4_DAY,
	        scope->time, SLICE_ARG(scope->region), SLICE_ARG(scope->service));

	return slice_of(out, n < 0 ? 0 : (size_t)n);
}

int sigv4_payload_hex(struct hmac *hmac, struct slice body, char out[SIGV4_HEX + 1])
{
	return digest_sha256_hex(&hmac->digest, &body, 1, out);
}

int sigv4_key(struct hmac *hmac, struct slice secret, const struct sigv4_scope *scope,
        uint8_t out[HMAC_BYTES])
{
	const struct slice steps[] = {slice_of(scope->time, SIGV4_DAY), scope->region,
	        scope->service, SLICE("aws4_request")};
	struct secret first = {0};
	struct slice key;
	int rc;

	if (secret.n == 0 || secret.n > SIGV4_SECRET_MAX)
		return -EINVAL;
	rc = secret_alloc(&first, secret.n + 4);
	if (rc < 0)
		return rc;
	memcpy(first.p, "AWS4", 4);
	memcpy(first.p + 4, secret.p, secret.n);
	key = slice_of(first.p, secret.n + 4);
	for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(*steps); i++) {
		rc = hmac_sha256(hmac, key, &steps[i], 1, out);
		key = slice_of(out, HMAC_BYTES);
	}
	secret_free(&first);
	return rc;
}

static int sign(struct hmac *hmac, const uint8_t key[HMAC_BYTES], const struct slice *parts,
        size_t count, char out[SIGV4_HEX + 1])
{
	uint8_t raw[HMAC_BYTES];
	int rc = hmac_sha256(hmac, slice_of(key, HMAC_BYTES), parts, count, raw);

	hmac_hex(raw, sizeof(raw), out);
	out[SIGV4_HEX] = '\0';
	return rc;
}

int sigv4_sign(struct hmac *hmac, const uint8_t key[HMAC_BYTES], const struct sigv4_scope *scope,
        struct slice canonical, char out[SIGV4_HEX + 1])
{
	char text[SIGV4_SCOPE_MAX], hash[SIGV4_HEX + 1];
	int rc = sigv4_payload_hex(hmac, canonical, hash);
	const struct slice parts[] = {SLICE(SIGV4_ALGORITHM "\n"),
	        slice_of(scope->time, SIGV4_TIME), SLICE("\n"), sigv4_scope_text(scope, text),
	        SLICE("\n"), slice_of(hash, SIGV4_HEX)};

	return rc ? rc : sign(hmac, key, parts, sizeof(parts) / sizeof(*parts), out);
}

int sigv4_write_authorization(struct buf *out, struct slice key_id, const struct sigv4_scope *scope,
        struct slice names, const char signature[SIGV4_HEX + 1])
{
	char text[SIGV4_SCOPE_MAX];
	const struct slice parts[] = {SLICE(SIGV4_ALGORITHM " Credential="), key_id, SLICE("/"),
	        sigv4_scope_text(scope, text), SLICE(", SignedHeaders="), names,
	        SLICE(", Signature="), slice_of(signature, SIGV4_HEX)};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(*parts); i++)
		rc = buf_append_slice(out, parts[i]);
	return rc;
}

/* --- bodies in chunks --- */

/* Signs what a chunk and the trailer have in common: kind, time, scope, the previous signature,
 * hashes. */
static int sign_next(struct hmac *hmac, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, struct slice kind, struct slice empty, struct slice bytes,
        char signature[SIGV4_HEX + 1])
{
	char text[SIGV4_SCOPE_MAX], hash[SIGV4_HEX + 1];
	int rc = sigv4_payload_hex(hmac, bytes, hash);
	const struct slice parts[] = {kind, slice_of(scope->time, SIGV4_TIME), SLICE("\n"),
	        sigv4_scope_text(scope, text), SLICE("\n"), slice_of(signature, SIGV4_HEX),
	        SLICE("\n"), empty, slice_of(hash, SIGV4_HEX)};

	return rc ? rc : sign(hmac, key, parts, sizeof(parts) / sizeof(*parts), signature);
}

int sigv4_sign_chunk(struct hmac *hmac, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, struct slice data, char signature[SIGV4_HEX + 1])
{
	return sign_next(hmac, key, scope, SLICE(SIGV4_ALGORITHM "-PAYLOAD\n"),
	        SLICE(SIGV4_EMPTY "\n"), data, signature);
}

int sigv4_sign_trailer(struct hmac *hmac, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, struct slice lines, char signature[SIGV4_HEX + 1])
{
	return sign_next(
	        hmac, key, scope, SLICE(SIGV4_ALGORITHM "-TRAILER\n"), SLICE(""), lines, signature);
}
