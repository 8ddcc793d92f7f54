/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets: looks for secrets of known formats in requests, if the policy says so (dlp).
 * placeholder.c walks through head and body, and passes each part to this file. The first finding
 * of an exchange is recorded, by its format and place only; it refuses or ends the request if the
 * policy blocks secrets.
 */
#ifndef VETHGUARD_SRC_PROXY_LEAKS_SECRETS_H
#define VETHGUARD_SRC_PROXY_LEAKS_SECRETS_H

#include "vethguard/base/slice.h"

struct exchange;
struct http_field;
struct secrets;

/* Begins the search if the deciding rule asks for it. Call this once the verdict is known. */
void secrets_begin(struct exchange *ex);
void secrets_free(struct exchange *ex);
/* True while the search is on: none was found yet. */
bool secrets_are_wanted(const struct exchange *ex);
/* True if a secret was found, whether or not it refuses the request. */
bool secrets_are_found(const struct exchange *ex);
/* True if the body has to be held until it was searched, so that no part of a secret leaves. */
bool secrets_hold_body(const struct exchange *ex);
/* True if the policy refuses what carries a secret, or what cannot be searched for one. */
bool secrets_are_refused(const struct exchange *ex);
/* True if the request is refused for a secret. */
bool secrets_refuse(const struct exchange *ex);

/* Each of these searches a part of the request. */
void secrets_look_at_field(struct exchange *ex, const struct http_field *field);
void secrets_look_at_url(struct exchange *ex);
/* The next piece of the body, or of a WebSocket's messages. */
void secrets_look_at_text(struct exchange *ex, struct slice piece);
/* A text that is complete: a control frame. */
void secrets_look_at_frame(struct exchange *ex, struct slice text);
/* Notes that the body's content coding cannot be decoded. */
void secrets_note_coding(struct exchange *ex);

#endif
