/* SPDX-License-Identifier: Apache-2.0 */
/* message_token: what supervisor and keeper exchange with the process that speaks to the module of a PKCS #11 token
 * (src/token). */
#ifndef VETHGUARD_WIRE_MESSAGE_TOKEN_H
#define VETHGUARD_WIRE_MESSAGE_TOKEN_H

#include "vethguard/wire/message_type.h"

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
enum message_token_key { MESSAGE_TOKEN_EC = 1, MESSAGE_TOKEN_RSA = 2, MESSAGE_TOKEN_KEYS = 3 };
struct message_token_signature {
	uint8_t kind;           /* enum message_token_key */
	struct slice signature; /* EC: r and s, of equal length; RSA: PKCS #1 1.5; empty: error says why */
	struct slice error;
};

MESSAGE_CODEC(token_start);
MESSAGE_CODEC(token_sign);
MESSAGE_CODEC(token_signature);

#endif
