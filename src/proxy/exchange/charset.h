/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charset: is a response written so that a search for a credential's bytes can find them?
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_CHARSET_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_CHARSET_H

#include "proxy/http/http.h"

/* True unless a Content-Type names a character set in which ASCII is not itself, or one that nobody
 * here knows, or names one in a way that readers may take differently (RFC 8187, RFC 2231). */
bool charset_is_searchable(const struct http_fields *fields);

/* How much of a body's beginning is looked at: enough for an XML declaration. */
#define CHARSET_START_MAX 160

/* What the beginning of a body may say about its character set. */
enum charset_start_kind {
	CHARSET_START_ANY, /* nothing: the type is one that nobody reads as text, or all was seen */
	CHARSET_START_MARK, /* no type is given: a byte order mark */
	CHARSET_START_TEXT /* also NUL bytes, as of UTF-16 without a mark, and an XML declaration */
};

struct charset_start {
	enum charset_start_kind kind;
	uint8_t n;
	uint8_t p[CHARSET_START_MAX];
};

/* By the Content-Type. */
enum charset_start_kind charset_start_kind(const struct http_fields *fields);
/* The next piece of the content, from its beginning. False: it says that it is written in a
 * character set that cannot be searched. */
bool charset_start_is_searchable(struct charset_start *start, const uint8_t *p, size_t n);

#endif
