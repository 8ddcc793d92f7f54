/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill: puts a credential's value in place of its placeholder in a request's body that is held. The
 * body stays as it is; the values, escaped for where they stand, lie in locked memory and are sent
 * between its parts.
 */
#ifndef VETHGUARD_SRC_PROXY_INJECT_FILL_H
#define VETHGUARD_SRC_PROXY_INJECT_FILL_H

#include "proxy/inject/substitute.h"

#define FILL_BODY_MAX (1u << 20) /* bytes of a body in which a placeholder is replaced */
#define FILL_GAPS_MAX 32         /* placeholders in one body */

enum fill_form {
	FILL_NONE, /* nothing is replaced */
	FILL_FORM, /* application/x-www-form-urlencoded */
	FILL_JSON,
	FILL_MULTIPART, /* multipart/form-data (RFC 7578) */
	FILL_TEXT,      /* UTF-8 without escapes: a WebSocket's message */
};

/* The kind of a body, by its Content-Type. */
struct fill_kind {
	enum fill_form form;
	struct slice boundary; /* MULTIPART: as the Content-Type field has it */
};

struct fill_gap {
	size_t at, n;       /* what is replaced, in the body */
	struct slice value; /* escaped; in text */
};

struct fill {
	struct secret text;
	size_t length; /* bytes of the body as it is sent */
	size_t count;
	struct fill_gap gaps[FILL_GAPS_MAX];
};

/* The kind of the request's body, if its credential is replaced in that kind, else FILL_NONE.
 * sealed: the request is for a token endpoint, which takes tokens as a form or as JSON. */
struct fill_kind fill_kind_of(
        const struct http_fields *fields, const struct policy_credential *spec, bool sealed);
/* True if the body is compressed, so that no placeholder can be found in it. */
bool fill_is_coded(const struct http_fields *fields);
extern const char fill_no_memory[];
/* NULL, or why nothing can be replaced in this body: fill_no_memory, or a fault of the body. */
const char *fill_check(const struct fill_kind *kind, struct slice body);
/* Finds the placeholders in a body that fill_check() has passed. Returns 0; -E2BIG: more than
 * FILL_GAPS_MAX; -EBADMSG: the value cannot stand there; or -errno. */
int fill_make(struct fill *fill, const struct fill_kind *kind, const struct substitute *s,
        struct slice body);
void fill_fini(struct fill *fill);
/* The bytes sent from that offset on, as far as they lie in one piece; empty at the end. */
struct slice fill_from(const struct fill *fill, struct slice body, size_t offset);

#endif
