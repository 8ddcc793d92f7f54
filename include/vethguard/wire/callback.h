/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callback: reads another proxy's question about a request that the proxy is going to send, and writes the request that
 * the question is about. A question has one of two forms; both have the session's token in X-Vethguard-Token.
 *
 *   GET /check/https/v1/models
 *   Host: api.example.com
 *
 * asks about a GET of https://api.example.com/v1/models. Envoy's ext_authz asks an HTTP service in this way, with the
 * path prefix /check/https, and nginx's auth_request can. /check/http stands for http. With /check-body in place of
 * /check the proxy sends the request's body too.
 *
 *   POST /callback/langsmith
 *
 * has a JSON object about the request as its body, and a signature over that body in X-LangSmith-Signature-JWT.
 *
 * Pure and strict, as proxy_head.h.
 */
#ifndef VETHGUARD_WIRE_CALLBACK_H
#define VETHGUARD_WIRE_CALLBACK_H

#include "vethguard/wire/base_url.h"

#define CALLBACK_BODY_MAX (2u << 20) /* bytes of the JSON: a body of 1 MiB in base64, and the head */
/* Bytes of the request that the JSON is about, as callback_write_described() writes it. */
#define CALLBACK_REQUEST_MAX (CALLBACK_BODY_MAX + 2 * PROXY_HEAD_MAX)
/* Names from LangSmith's documentation and SDK. */
#define CALLBACK_LANGSMITH_SUBJECT "langsmith-sandbox-callback" /* claim sub of the signature */
#define CALLBACK_LANGSMITH_HASH "body_sha256"                   /* claim: SHA-256 of the JSON, 64 hex digits */

enum callback_kind { CALLBACK_CHECK, CALLBACK_LANGSMITH };

/* The head of a question. Slices borrow from the head. */
struct callback {
	enum callback_kind kind;
	bool tells_body;        /* CHECK: the question's body is the request's, and whole */
	struct slice token;     /* empty: there is none */
	struct slice signature; /* LANGSMITH; empty: there is none */
	struct base_url url;    /* CHECK: of the request; its token is empty */
};

/* Reads a head that proxy_head_parse() has read from p. Returns NULL, or what is wrong: a static text, in which nothing
 * of the token is. */
const char *callback_parse(const uint8_t *p, const struct proxy_head *head, struct callback *out);
/* CHECK: appends the head of the request, in absolute-form, without the fields of the question. Returns 0 or -errno. */
int callback_write_check(
        const uint8_t *p, const struct proxy_head *head, const struct callback *callback, struct buf *out);
/* LANGSMITH: appends the request that the JSON is about: its head in absolute-form, and its body. With last, the head
 * asks to end the connection after the response. *tells_body is false if the body was cut off; then no body is
 * appended. Returns NULL, or what is wrong (static); then *out may have any content. */
const char *callback_write_described(struct slice json, bool last, bool *tells_body, struct buf *out);

#endif
