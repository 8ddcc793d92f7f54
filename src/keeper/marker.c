/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of values; see keeper/marker.h. */
#include <string.h>

#include "keeper/marker.h"
#include "vethguard/base/hash.h"

#define BLOCK_BYTES 64 /* of SHA-256 */
#define KEY_BYTES 32

int marker_init(struct marker *marker)
{
	int rc = digest_init(&marker->digest);

	if (rc == 0)
		rc = secret_alloc(&marker->key, KEY_BYTES);
	if (rc == 0) {
		random_bytes(marker->key.p, KEY_BYTES);
		marker->key.n = KEY_BYTES;
	}
	return rc;
}

void marker_fini(struct marker *marker)
{
	digest_fini(&marker->digest);
	secret_free(&marker->key);
}

/* SHA-256 of the padded key and what follows it. */
static int hash(
        struct marker *marker, uint8_t pad, struct slice rest, uint8_t out[DIGEST_SHA256_BYTES])
{
	uint8_t block[BLOCK_BYTES];
	int rc;

	memset(block, pad, sizeof(block));
	for (size_t i = 0; i < KEY_BYTES; i++)
		block[i] ^= marker->key.p[i];
	const struct slice parts[] = {slice_of(block, sizeof(block)), rest};
	rc = digest_sha256(&marker->digest, parts, 2, out);
	secret_wipe(block, sizeof(block));
	return rc;
}

void marker_mark(
        struct marker *marker, struct slice value, uint8_t out[MESSAGE_CREDENTIAL_MARK_BYTES])
{
	uint8_t inner[DIGEST_SHA256_BYTES], outer[DIGEST_SHA256_BYTES] = {0};

	if (hash(marker, 0x36, value, inner) == 0)
		(void)hash(marker, 0x5c, slice_of(inner, sizeof(inner)), outer);
	memcpy(out, outer, MESSAGE_CREDENTIAL_MARK_BYTES);
	secret_wipe(inner, sizeof(inner));
	secret_wipe(outer, sizeof(outer));
}
