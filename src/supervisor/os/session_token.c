/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/os/session_token.h"

#include <stdio.h>

#include "vethguard/base/base64.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/secret.h"
#include "vethguard/tls/digest.h"

#define RANDOM_BYTES 32

int session_token_make(struct session_token *token, char text[SESSION_TOKEN_TEXT + 1])
{
	const size_t prefix = sizeof(SESSION_TOKEN_PREFIX) - 1;
	uint8_t bytes[RANDOM_BYTES];
	struct digest digest = {0};
	struct slice all;
	int rc;

	random_bytes(bytes, sizeof(bytes));
	memcpy(text, SESSION_TOKEN_PREFIX, prefix);
	text[prefix + base64_encode(bytes, sizeof(bytes), base64_url, text + prefix)] = 0;
	secret_wipe(bytes, sizeof(bytes));
	all = slice_of(text, SESSION_TOKEN_TEXT);
	rc = digest_init(&digest);
	if (!rc)
		rc = digest_sha256(&digest, &all, 1, token->hash);
	digest_fini(&digest);
	return rc;
}
