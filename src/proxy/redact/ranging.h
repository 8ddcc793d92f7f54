/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranging: a part of a representation (RFC 9110 section 14) in answer to a request with a
 * credential. The upstream is asked for more than the client, on both sides by at least the longest
 * spelling of the credential; all of it is masked, and only the client's part is sent. So no end of
 * a part can cut a value in two.
 */
#ifndef VETHGUARD_SRC_PROXY_REDACT_RANGING_H
#define VETHGUARD_SRC_PROXY_REDACT_RANGING_H

#include "proxy/http/http.h"

#define RANGING_STEP 1024u /* the margin's length is a multiple: it does not tell the value's */

struct exchange;
struct ranging; /* of an exchange whose Range is kept; else NULL */

/* If the request's Range can be kept, makes ex->ranging and widens the field. Returns false, with
 * nothing changed, if it has to be dropped: more than one range, another unit than bytes, another
 * method than GET, or a client that accepts content codings, to which the range would be one of the
 * coded bytes (unless a strong If-Range guards it). Call it again when the request is sent again.
 */
bool ranging_begin(struct exchange *ex);
/* The request is sent without a range. */
void ranging_drop(struct exchange *ex);
void ranging_free(struct ranging *ranging);
/* Call this with the final head. If the response is a part, makes the head describe the client's
 * part of it (206; 416 if that begins behind the end). Returns NULL, or why the response cannot be
 * passed on (static). */
const char *ranging_answer(struct exchange *ex, struct http_response *r);
/* True if the response was cut. */
bool ranging_cuts(const struct ranging *ranging);
/* Moves *p to the client's part of the next n bytes of the masked content; returns its length. */
size_t ranging_cut(struct ranging *ranging, const uint8_t **p, size_t n);

#endif
