/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base_url: requests to the gateway itself that stand for requests to another host (RFC 9112 section 3.2.1).
 * The path names the session and the host:
 *
 *   /s/TOKEN/https/api.example.com/v1/models     is   https://api.example.com/v1/models
 *   /s/TOKEN/http/plain.example.com:8080/        is   http://plain.example.com:8080/
 *
 * Pure and strict. An intermediary that makes paths canonical could turn one host into another one, so dot
 * segments are refused, however they are written, and host and token are plain letters.
 */
#ifndef VETHGUARD_WIRE_BASE_URL_H
#define VETHGUARD_WIRE_BASE_URL_H

#include "vethguard/wire/proxy_head.h"

/* The request that a request to a base URL stands for. */
struct base_url {
	struct slice token;     /* empty: it is not in the path */
	bool https;             /* else http */
	struct slice authority; /* host or host:port, as written */
	struct slice path;      /* path and query; begins with '/' */
};

/* Reads the target of a request in origin-form. Returns NULL, or what is wrong with it (static; tells nothing of the
 * token). The result borrows target. */
const char *base_url_parse(struct slice target, struct base_url *out);
/* Checks path and query: no dot segments and no fragment. Returns NULL, or what is wrong (static). */
const char *base_url_check_path(struct slice path);
/* True if text is a host, or a host and a port, as a base URL may have them: no IPv6 literal, no userinfo. */
bool base_url_is_authority(struct slice text);

/* Appends the head at p as the request that it stands for, in absolute-form, with the Host that belongs to it,
 * without Proxy-Authorization, and without the fields named `without` (empty: none). If the token is in the path,
 * fields that could hold it are left out, too: Referer, and those that Vercel's proxy adds. Otherwise like
 * proxy_head_write(). */
int base_url_write(const uint8_t *p, const struct proxy_head *head, const struct base_url *url, struct slice without,
        struct buf *out);
/* The field name of key i of struct proxy_head. */
struct slice base_url_key_name(enum proxy_key_field key);

#endif
