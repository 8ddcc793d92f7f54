/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pkcs11_uri: names a key and the token that holds it (RFC 7512). Only attributes that identify a token or a private
 * key are accepted. Module and PIN are configured elsewhere, so that no text that is shown contains a PIN.
 */
#ifndef VETHGUARD_WIRE_PKCS11_URI_H
#define VETHGUARD_WIRE_PKCS11_URI_H

#include "vethguard/base/slice.h"

#define PKCS11_URI_MAX 1024 /* bytes of the text */
#define PKCS11_VALUE_MAX 128

enum pkcs11_attribute {
	PKCS11_TOKEN, /* label of the token */
	PKCS11_MANUFACTURER,
	PKCS11_MODEL,
	PKCS11_SERIAL,
	PKCS11_OBJECT, /* CKA_LABEL of the key */
	PKCS11_ID,     /* CKA_ID of the key, any bytes */
	PKCS11_ATTRIBUTES
};

struct pkcs11_uri {
	struct {
		bool given;
		size_t n;
		char bytes[PKCS11_VALUE_MAX]; /* decoded; only PKCS11_ID may hold a NUL */
	} values[PKCS11_ATTRIBUTES];
	bool has_slot;
	uint64_t slot; /* slot-id */
};

/* Parses the text, which names a token and a key in it. Returns NULL, or a sentence that says what is wrong. */
const char *pkcs11_uri_parse(struct slice text, struct pkcs11_uri *out);
/* The same for a text that may name a token only. */
const char *pkcs11_uri_parse_token(struct slice text, struct pkcs11_uri *out);
/* True if it says which key. */
bool pkcs11_uri_names_key(const struct pkcs11_uri *uri);
#define PKCS11_TOKEN_URI_MAX 128 /* bytes of "pkcs11:token=" and a label of 32 bytes, and the NUL */
/* Writes the URI of the token with this label (1 to 32 bytes). */
void pkcs11_uri_of_token(struct slice label, char out[PKCS11_TOKEN_URI_MAX]);
/* True if a field of the token's information, which is padded with blanks to n bytes, has the value that the URI asks
 * for. An attribute that the URI does not give matches everything. */
bool pkcs11_uri_matches(
        const struct pkcs11_uri *uri, enum pkcs11_attribute attribute, const unsigned char *padded, size_t n);

#endif
