/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect: compressed content that goes on byte for byte as it came, and is searched all the same:
 * a copy is inflated, and no byte is passed on before what it inflates to was seen. Where the
 * credential is found the response is cut off: it cannot be covered there.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_INSPECT_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_INSPECT_H

#include "proxy/exchange/exchange.h"

/* Compressed bytes that wait: those of which a search keeps something back, and those that came
 * before it was passed. */
#define INSPECT_KEPT_MAX (16 * SOCKET_CHUNK)

struct inspection;

/* NULL: no memory. */
struct inspection *inspection_new(const struct mask *mask);
void inspection_free(struct inspection *in);
/* How often a value's beginning waited when nobody was to wait any longer (struct mask_stream). */
unsigned inspection_waited(const struct inspection *in);
/* Content as it came; what is certain goes to the client. exchange_mark_undecodable() tells of
 * failure. */
void inspect_body(struct exchange *ex, const uint8_t *p, size_t n);
/* Something waits for what comes next. */
bool inspection_keeps(const struct inspection *in);
/* Nothing has come for so long that nobody is to wait any longer: what waits goes to the client.
 * -EACCES: it ends with a value's beginning, which is counted, and stays; -errno. */
int inspect_release(struct exchange *ex);
/* The content has ended: the rest goes out. 0 or -EBADMSG. */
int inspect_end(struct exchange *ex);

#endif
