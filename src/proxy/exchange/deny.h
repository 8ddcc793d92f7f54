/* SPDX-License-Identifier: Apache-2.0 */
/* deny: the words and bodies of refusals, shared by the deny_*.c files. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_DENY_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_DENY_H

#include "proxy/exchange/exchange.h"

#define DENY_SHOWN_MAX 2048 /* bytes of a detail or a message */
#define DENY_TEXT_ROOM 8192

/* deny_text.c */

/* The last word of the problem's type, and error.type of the body. */
const char *deny_kind(enum event_cause cause);
const char *deny_title(enum event_cause cause);
/* What an agent should do next. */
const char *deny_advice(const struct exchange *ex);
/* The operator's own words: from the deny rule, or from the pause. */
struct slice deny_reason(const struct exchange *ex);
/* Appends method and URL, or the destination of a connection. */
void deny_put_request(const struct exchange *ex, struct buf *text);
/* Appends one sentence: what was asked, and why it is refused. */
void deny_put_detail(const struct exchange *ex, struct buf *text);
/* Appends the detail, its author and the event id for the operator. A client that reads the
 * refusal as an error of its API shows this text. */
void deny_put_message(const struct exchange *ex, struct buf *text);

/* deny_problem.c: the RFC 9457 body. */
void deny_put_problem(const struct exchange *ex, struct buf *out);
/* deny_grpc.c: true for a client of gRPC or gRPC-Web (which may use HTTP/1.1). */
bool deny_grpc_reads(const struct exchange *ex);
/* deny_grpc.c: makes r a response that has only fields, with a gRPC status and the explanation. r
 * points into text. */
void deny_put_grpc(const struct exchange *ex, struct http_response *r, struct buf *text);

/* deny_git.c */

/* True if git reads this refusal as an answer of its protocol, which has to have status 200. */
bool deny_git_reads(const struct exchange *ex);
/* Makes r and body a refusal that git shows to its user. Returns false, and changes nothing, if the
 * request is not git's, or git shows no text in answer to it. */
bool deny_put_git(const struct exchange *ex, struct http_response *r, struct buf *body);

#endif
