/* SPDX-License-Identifier: Apache-2.0 */
/* kept_head: a copy of a response's head, for a response whose content is held until it is whole.
 */
#ifndef VETHGUARD_SRC_PROXY_REWRITE_KEPT_HEAD_H
#define VETHGUARD_SRC_PROXY_REWRITE_KEPT_HEAD_H

#include "proxy/http/http.h"
#include "vethguard/base/buf.h"

struct kept_head {
	struct http_response head; /* its slices point into text */
	struct buf text;
};

/* Copies the head. False: no memory. Call kept_head_fini() in each case; it wipes the text. */
bool kept_head_init(struct kept_head *k, const struct http_response *r);
void kept_head_fini(struct kept_head *k);

#endif
