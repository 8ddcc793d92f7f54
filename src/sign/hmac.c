/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes HMAC as two hashes, each of which begins with the padded key, exactly one block. OpenSSL
 * hashes a whole block where it lies, so the key is not copied into memory that is not locked;
 * OpenSSL's own HMAC would copy it.
 */
#include <errno.h>
#include <string.h>

#include "vethguard/sign/hmac.h"

#define BLOCK ((size_t)64) /* of SHA-256 */

int hmac_init(struct hmac *hmac)
{
	int rc = digest_init(&hmac->digest);

	hmac->pads = (struct secret){0};
	if (rc == 0) {
		rc = secret_alloc(&hmac->pads, 2 * BLOCK);
		if (rc < 0)
			digest_fini(&hmac->digest);
	}
	return rc;
}

void hmac_fini(struct hmac *hmac)
{
	digest_fini(&hmac->digest);
	secret_free(&hmac->pads);
}

/* Writes the key, padded to a block, in both forms. */
static int pad(struct hmac *hmac, struct slice key)
{
	uint8_t *inner = hmac->pads.p, *outer = inner + BLOCK;
	int rc = 0;

	memset(inner, 0, BLOCK);
	if (key.n > BLOCK)
		rc = digest_sha256(&hmac->digest, &key, 1, inner);
	else if (key.n)
		memcpy(inner, key.p, key.n);
	for (size_t i = 0; i < BLOCK; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	return rc;
}

int hmac_sha256(struct hmac *hmac, struct slice key, const struct slice *parts, size_t count,
        uint8_t out[HMAC_BYTES])
{
	struct slice text[HMAC_PARTS_MAX + 1] = {slice_of(hmac->pads.p, BLOCK)};
	uint8_t *inner = hmac->pads.p;
	int rc;

	if (count > HMAC_PARTS_MAX) {
		memset(out, 0, HMAC_BYTES);
		return -E2BIG;
	}
	if (count)
		memcpy(text + 1, parts, count * sizeof(*parts));
	rc = pad(hmac, key);
	if (rc == 0)
		rc = digest_sha256(&hmac->digest, text, count + 1, inner);
	text[0] = slice_of(hmac->pads.p + BLOCK, BLOCK);
	text[1] = slice_of(inner, HMAC_BYTES);
	if (rc == 0)
		rc = digest_sha256(&hmac->digest, text, 2, out);
	else
		memset(out, 0, HMAC_BYTES);
	secret_wipe(hmac->pads.p, 2 * BLOCK);
	return rc;
}

void hmac_hex(const uint8_t *p, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
}
