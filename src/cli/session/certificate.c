/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the client certificate that proves a session. The daemon gets only its SHA-256 hash. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/session/session.h"
#include "vethguard/base/base64.h"
#include "vethguard/tls/digest.h"

#define FILE_MAX 65536
#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"

/* Decodes the first certificate of a PEM text (RFC 7468). Returns the length of its DER in bytes,
 * or -1. */
static ssize_t decode(const char *text, uint8_t *der, size_t room)
{
	const char *begin = strstr(text, BEGIN), *end;

	if (!begin)
		return -1;
	begin += strlen(BEGIN);
	end = strstr(begin, END);
	return end ? base64_decode(slice_trim(slice_of(begin, (size_t)(end - begin))), BASE64_LINES,
	                     der, room)
	           : -1;
}

static bool hash(const char *path, char hex[DIGEST_SHA256_HEX + 1])
{
	static char text[FILE_MAX + 1];
	static uint8_t der[FILE_MAX];
	FILE *in = fopen(path, "re");
	struct digest digest = {0};
	struct slice bytes;
	ssize_t n;
	bool good;

	if (!in)
		return false;
	text[fread(text, 1, FILE_MAX, in)] = '\0';
	fclose(in);
	n = decode(text, der, sizeof(der));
	bytes = slice_of(der, n > 0 ? (size_t)n : 0);
	good = n > 0 && digest_init(&digest) == 0 &&
	       digest_sha256_hex(&digest, &bytes, 1, hex) == 0;
	digest_fini(&digest);
	return good;
}

int session_add_certificate(json_t *body, const char *path)
{
	char hex[DIGEST_SHA256_HEX + 1], shown[256];

	if (hash(path, hex))
		return json_object_set_new(body, "certificate_sha256", json_string(hex)) == 0
		               ? 0
		               : CLI_USAGE;
	fprintf(stderr,
	        "vethguard: error: --certificate '%s' is not a file with a certificate in PEM "
	        "(" BEGIN ")\n",
	        slice_escape(slice_from_string(path), shown, sizeof(shown)));
	return CLI_USAGE;
}
