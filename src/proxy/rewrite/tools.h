/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools: takes the tools that may not be called out of the answers of MCP servers (policy/tools.h).
 * An answer in JSON is held until it is whole; in a stream, each event is. The request asks for an
 * answer without a coding; an answer that cannot be read is refused.
 */
#ifndef VETHGUARD_SRC_PROXY_REWRITE_TOOLS_H
#define VETHGUARD_SRC_PROXY_REWRITE_TOOLS_H

#include "proxy/http/http.h"

struct exchange;

#define TOOLS_ANSWER_MAX (4u << 20) /* bytes of an answer in JSON, or of one event */

/* True if the answer to this exchange may list tools. */
bool tools_are_wanted(const struct exchange *ex);
/* Begins such an answer, whose length is then not known. Returns NULL, or why it is refused. */
const char *tools_begin(struct exchange *ex, struct http_response *r);
/* True if the head of the answer waits until all of it is there; then tools_keep_head() has to be
 * called. It returns false after it has failed the exchange. */
bool tools_hold_head(const struct exchange *ex);
bool tools_keep_head(struct exchange *ex, const struct http_response *r);
/* Takes a piece of the content and passes on what is certain; a fault is marked
 * (exchange_mark_undecodable()). */
void tools_take(struct exchange *ex, const uint8_t *p, size_t n);
/* The content has ended: passes on the rest, or marks a fault. */
void tools_end(struct exchange *ex);
void tools_free(struct exchange *ex);

#endif
