/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar: the sealed tokens of one sandbox's logins: for each token the sandbox has a text that stands for it. A
 * jar is one run of bytes, the oldest token first, as keeper and worker keep it and send it to each other.
 *
 * The text for a token that is a signed JWT (RFC 7519) is that JWT with another signature, so that a program can read
 * its claims. The text for any other token says nothing about it. Both contain the placeholder of the jar's
 * credential (the JWT in base64), so whatever looks for placeholders finds them.
 */
#ifndef VETHGUARD_CREDENTIAL_JAR_H
#define VETHGUARD_CREDENTIAL_JAR_H

#include "vethguard/base/buf.h"
#include "vethguard/base/secret.h"
#include "vethguard/policy/placeholder.h"

#define JAR_MAX 32768 /* bytes of a jar; the oldest tokens make room for new ones */
#define JAR_TOKENS_MAX 24
#define JAR_TOKEN_MAX 8192 /* bytes of a token */
#define JAR_END_MAX 192    /* bytes of a text beyond those that it shares with the token */

struct jar_token {
	struct slice value; /* the token */
	bool jwt;           /* its text begins as the token, up to the signature */
	struct slice end;   /* ... and ends in this */
};

/* Takes the next token off rest, which begins as a jar. Returns false at the end, and if rest is not a jar: then rest
 * is not empty. */
bool jar_next(struct slice *rest, struct jar_token *out);
/* True if the bytes are a jar, or empty. */
bool jar_is_sound(struct slice jar);
/* Puts the token behind the others, even if the jar has it already; drops the oldest ones if there is no room.
 * Returns 0; -EINVAL: a length is out of bounds; or -errno with the jar unchanged. */
int jar_add(struct secret *jar, const struct jar_token *token);

/* True if a token can be sealed: 6 to JAR_TOKEN_MAX bytes that are visible ASCII. */
bool jar_can_hold(struct slice value);
/* Makes the text for a new token: its end is written into end. placeholder: of the jar's credential. */
void jar_seal(struct jar_token *out, struct slice value, struct slice placeholder, char end[JAR_END_MAX]);
/* Finds the token with that value. Returns false if the jar has none. */
bool jar_has(struct slice jar, struct slice value, struct jar_token *out);
/* Appends the text. Returns 0 or -errno. */
int jar_write_text(struct buf *out, const struct jar_token *token);
/* Finds the first text of any token in p: *at, *n, and the token. */
bool jar_find(struct slice jar, struct slice p, size_t *at, size_t *n, struct jar_token *out);
/* Lists what to search for in answers: tokens, or of a JWT only the signature, because the sandbox knows the
 * rest. Returns the count. */
size_t jar_secrets(struct slice jar, struct slice out[JAR_TOKENS_MAX]);

#endif
