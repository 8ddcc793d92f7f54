/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/os/session_token.h"

#include <stdio.h>

#include "vethguard/base/hash.h"
#include "vethguard/base/secret.h"
#include "vethguard/tls/digest.h"

#define RANDOM_BYTES 32

/* base64url without padding (RFC 4648 section 5). */
static void encode(const uint8_t *p, size_t n, char *out)
{
	static const char letters[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t bits = 0;
	unsigned have = 0;

	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | p[i];
		for (have += 8; have >= 6; have -= 6)
			*out++ = letters[bits >> (have - 6) & 63];
	}
	if (have)
		*out++ = letters[bits << (6 - have) & 63];
	*out = 0;
}

int session_token_make(struct session_token *token, char text[SESSION_TOKEN_TEXT + 1])
{
	const size_t prefix = sizeof(SESSION_TOKEN_PREFIX) - 1;
	uint8_t bytes[RANDOM_BYTES];
	struct digest digest = {0};
	struct slice all;
	int rc;

	random_bytes(bytes, sizeof(bytes));
	memcpy(text, SESSION_TOKEN_PREFIX, prefix);
	encode(bytes, sizeof(bytes), text + prefix);
	secret_wipe(bytes, sizeof(bytes));
	all = slice_of(text, SESSION_TOKEN_TEXT);
	rc = digest_init(&digest);
	if (!rc)
		rc = digest_sha256(&digest, &all, 1, token->hash);
	digest_fini(&digest);
	return rc;
}
