/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charset: tells whether a response is written so that a search for a credential's bytes can find
 * them.
 */
#ifndef VETHGUARD_SRC_PROXY_REDACT_CHARSET_H
#define VETHGUARD_SRC_PROXY_REDACT_CHARSET_H

#include "proxy/http/http.h"

/* False if a Content-Type names a character set in which ASCII characters do not have their ASCII
 * bytes, or one that is not known here, or if it names one in a way that readers may take
 * differently (RFC 8187, RFC 2231). */
bool charset_is_searchable(const struct http_fields *fields);

/* Bytes of a body's beginning that are looked at: enough for an XML declaration. */
#define CHARSET_START_MAX 160

/* What the beginning of a body may reveal about its character set. */
enum charset_start_kind {
	CHARSET_START_ANY,  /* nothing: nobody reads this type as text, or all of it was seen */
	CHARSET_START_MARK, /* no type is given: check for a byte order mark */
	CHARSET_START_TEXT  /* also check for NUL bytes (UTF-16) and an XML declaration */
};

struct charset_start {
	enum charset_start_kind kind;
	uint8_t n;
	uint8_t p[CHARSET_START_MAX];
};

/* Chosen by the Content-Type. */
enum charset_start_kind charset_start_kind(const struct http_fields *fields);
/* Takes the next piece of the content, from its beginning on. False: the content shows that it is
 * in a character set that cannot be searched. */
bool charset_start_is_searchable(struct charset_start *start, const uint8_t *p, size_t n);

#endif
