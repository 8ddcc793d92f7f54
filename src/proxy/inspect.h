/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect: compressed content that goes on byte for byte as it came, and is searched all the same:
 * a copy is inflated, and no byte is passed on before what it inflates to was seen. Where the
 * credential is found the response is cut off: it cannot be covered there.
 */
#ifndef VETHGUARD_SRC_PROXY_INSPECT_H
#define VETHGUARD_SRC_PROXY_INSPECT_H

#include "proxy/exchange.h"

/* Compressed bytes that wait until it is certain that no value begins in them. */
#define INSPECT_KEPT_MAX (2 * LINK_CHUNK)

struct inspection;

/* NULL: no memory. */
struct inspection *inspection_new(const struct mask *mask);
void inspection_free(struct inspection *in);
/* How often something was kept back because it began like a value (struct mask_stream). */
unsigned inspection_waited(const struct inspection *in);
/* Content as it came; what is certain goes to the client. exchange_damage() tells of failure. */
void inspect_body(struct exchange *ex, const uint8_t *p, size_t n);
/* The content has ended: the rest goes out. 0 or -EBADMSG. */
int inspect_end(struct exchange *ex);

#endif
