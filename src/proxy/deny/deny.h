/* SPDX-License-Identifier: Apache-2.0 */
/* deny: refuses a request; and the words and bodies of refusals, which the deny_*.c files share. */
#ifndef VETHGUARD_SRC_PROXY_DENY_DENY_H
#define VETHGUARD_SRC_PROXY_DENY_DENY_H

#include "proxy/exchange/exchange.h"

#define DENY_SHOWN_MAX 2048 /* bytes of a detail or a message */
#define DENY_TEXT_ROOM 8192

/* deny.c */

/* Records a refused request or a failed upstream and answers with an explanation, at once or when
 * its turn comes. */
void exchange_refuse(
        struct exchange *ex, uint16_t status, enum event_cause cause, const char *detail);
/* Sends that answer. ex is freed afterwards. */
void exchange_answer_refusal(struct exchange *ex);
/* Sets what the event and the answer of a refusal say. status 0: the one for ex->cause. */
void exchange_will_refuse(struct exchange *ex, uint16_t status);

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
/* deny_grpc.c: true for a gRPC call over HTTP/2. */
bool exchange_is_grpc(const struct exchange *ex);
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
