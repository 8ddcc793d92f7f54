/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets: looks for secrets of known formats in what a request carries out, where the policy says
 * so (dlp). placeholder.c walks through head and body, and asks here about each part. What is found
 * is recorded once per exchange, by its format and place only, and refuses or ends the request if
 * the policy blocks secrets.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_SECRETS_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_SECRETS_H

#include "vethguard/base/slice.h"

struct exchange;
struct http_field;
struct secrets;

/* Call it once the verdict is there: begins to look, if the rule that decides says so. */
void secrets_begin(struct exchange *ex);
void secrets_free(struct exchange *ex);
/* True as long as secrets are looked for: none was found yet. */
bool secrets_are_wanted(const struct exchange *ex);
/* True if the body has to be held before it leaves, so that nothing of a secret in it does. */
bool secrets_hold_body(const struct exchange *ex);
/* True if the policy refuses what carries a secret, or what cannot be searched for one. */
bool secrets_are_refused(const struct exchange *ex);
/* True if the request is refused for a secret. */
bool secrets_refuse(const struct exchange *ex);

/* Each of these looks at a part of the request. */
void secrets_look_at_field(struct exchange *ex, const struct http_field *field);
void secrets_look_at_url(struct exchange *ex);
/* The next piece of the body, or of a WebSocket's messages. */
void secrets_look_at_text(struct exchange *ex, struct slice piece);
/* A text by itself: a control frame. */
void secrets_look_at_frame(struct exchange *ex, struct slice text);
/* A body whose coding cannot be undone. */
void secrets_note_coding(struct exchange *ex);

#endif
