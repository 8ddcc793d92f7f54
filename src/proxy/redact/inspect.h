/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect: passes compressed content on byte for byte as it came, and searches it all the same: a
 * copy is inflated, and no byte is passed on before what it inflates to was searched. If the
 * credential is found, the response is cut off, because the credential cannot be masked there.
 */
#ifndef VETHGUARD_SRC_PROXY_REDACT_INSPECT_H
#define VETHGUARD_SRC_PROXY_REDACT_INSPECT_H

#include "proxy/exchange/exchange.h"

/* Bound on the compressed bytes that wait: bytes that may hold the beginning of a value, and all
 * that came after them. */
#define INSPECT_KEPT_MAX (16 * SOCKET_CHUNK)

struct inspection;

/* Returns NULL if there is no memory. */
struct inspection *inspection_new(
        const struct mask *mask, enum decompress_coding coding, struct decompress_memory *memory);
void inspection_free(struct inspection *in);
/* How often the beginning of a value was still kept back when the wait was over (struct
 * mask_stream, waited). */
unsigned inspection_waited(const struct inspection *in);
/* Takes content as it came and sends what is certain to the client. On failure it calls
 * exchange_mark_undecodable(). */
void inspect_body(struct exchange *ex, const uint8_t *p, size_t n);
/* True if bytes wait for what comes next. */
bool inspection_keeps(const struct inspection *in);
/* Ends the wait: nothing more came in time, and what waits goes to the client. Returns 0; -EACCES
 * if the text ends with the beginning of a value, which is counted and stays; or -errno. */
int inspect_release(struct exchange *ex);
/* The content has ended: sends the rest. Returns 0 or -EBADMSG. */
int inspect_end(struct exchange *ex);

#endif
