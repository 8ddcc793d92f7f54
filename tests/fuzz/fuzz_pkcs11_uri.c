/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a pkcs11: URI: what is accepted names a token and a key within the bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/pkcs11_uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pkcs11_uri uri;
	const char *part = pkcs11_uri_parse_token(slice_of((const char *)data, size), &uri);
	const bool whole = !part && pkcs11_uri_names_key(&uri);
	const char *why = pkcs11_uri_parse(slice_of((const char *)data, size), &uri);

	require(whole == !why);
	if (why) {
		require(*why);
		return 0;
	}
	require(size <= PKCS11_URI_MAX);
	require(uri.values[PKCS11_TOKEN].given || uri.values[PKCS11_SERIAL].given || uri.has_slot);
	require(uri.values[PKCS11_OBJECT].given || uri.values[PKCS11_ID].given);
	for (size_t i = 0; i < PKCS11_ATTRIBUTES; i++)
		require(uri.values[i].n <= PKCS11_VALUE_MAX &&
		        uri.values[i].given == (uri.values[i].n > 0));
	return 0;
}
