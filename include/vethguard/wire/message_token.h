/* SPDX-License-Identifier: Apache-2.0 */
/* message_token: what supervisor and keeper exchange with the process that speaks to the module of a PKCS #11 token
 * (src/token). */
#ifndef VETHGUARD_WIRE_MESSAGE_TOKEN_H
#define VETHGUARD_WIRE_MESSAGE_TOKEN_H

#include "vethguard/wire/message_type.h"
#include "vethguard/wire/pkcs11_uri.h"

#define MESSAGE_DIGEST_BYTES 32
#define MESSAGE_SIGNATURE_MAX 1024 /* RSA of 8192 bits */
#define MESSAGE_TOKEN_PAIRS_MAX 16
struct message_token_start {
	struct slice uri, module;
	struct slice user;     /* the user whose rights the process has; empty: _vethguard-token */
	size_t variable_count; /* "NAME=VALUE" */
	struct slice variables[MESSAGE_TOKEN_PAIRS_MAX];
	size_t writable_count; /* paths below which the module may write */
	struct slice writable[MESSAGE_TOKEN_PAIRS_MAX];
};
struct message_token_sign {
	struct slice digest; /* SHA-256 */
};
/* Numbers of signature schemes are those of TLS (RFC 8446 section 4.2.3). */
enum message_scheme {
	MESSAGE_SCHEME_ANY = 0, /* a trial: whatever the key signs a SHA-256 digest by */
	MESSAGE_SCHEME_RSA_SHA256 = 0x0401,
	MESSAGE_SCHEME_RSA_SHA384 = 0x0501,
	MESSAGE_SCHEME_RSA_SHA512 = 0x0601,
	MESSAGE_SCHEME_ECDSA_SHA256 = 0x0403,
	MESSAGE_SCHEME_ECDSA_SHA384 = 0x0503,
	MESSAGE_SCHEME_ECDSA_SHA512 = 0x0603,
	MESSAGE_SCHEME_PSS_SHA256 = 0x0804,
	MESSAGE_SCHEME_PSS_SHA384 = 0x0805,
	MESSAGE_SCHEME_PSS_SHA512 = 0x0806
};
#define MESSAGE_SCHEME_DIGEST_MAX 64
/* Returns the length in bytes of the digest that the scheme signs, or 0: no such scheme. */
size_t message_scheme_digest_bytes(uint16_t scheme);
struct message_token_key_sign {
	struct slice uri; /* RFC 7512: names the key in the token that the process is logged in to */
	uint16_t scheme;  /* enum message_scheme */
	struct slice digest;
};
#define MESSAGE_LABEL_MAX 32 /* of a token */
struct message_key_token {
	struct slice label;
	struct slice why; /* LATE: why its process has to end; else empty */
};
enum message_token_key { MESSAGE_TOKEN_EC = 1, MESSAGE_TOKEN_RSA = 2, MESSAGE_TOKEN_KEYS = 3 };
struct message_token_signature {
	uint8_t kind;           /* enum message_token_key */
	struct slice signature; /* EC: r and s, of equal length; RSA: by PKCS #1 1.5, or as the scheme says; empty:
	                           error says why */
	struct slice error;
};

MESSAGE_CODEC(token_start);
MESSAGE_CODEC(token_sign);
MESSAGE_CODEC(token_signature);
MESSAGE_CODEC(token_key_sign);
MESSAGE_CODEC(key_token);

#endif
