/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url: the one way to make hosts, paths and URLs canonical. Policies, the proxy and every command use it, so that
 * what is judged is what goes on the wire (RFC 3986 section 6).
 */
#ifndef VETHGUARD_POLICY_URL_H
#define VETHGUARD_POLICY_URL_H

#include "vethguard/policy/policy.h"

/* Converts a host name to lower case without its trailing dot. Accepts letters, digits, '-', '_' and '.', labels of 1
 * to 63 bytes, at most POLICY_HOST_MAX bytes in all. Bytes beyond ASCII are refused (hosts are A-labels), and so is a
 * last label of only digits (or 0x...), because it makes an address literal. out is NUL-terminated. Returns false if
 * host is not a host name. */
bool url_canonical_host(struct slice host, char out[POLICY_HOST_MAX + 1], size_t *n);

/* Parses "host", "host:port" or "[v6]:port" as in Host, :authority and CONNECT (RFC 9110 section 7.2). Sets either
 * host (canonical) or address; port 0 means that none was written. Returns false if text is malformed, has userinfo
 * or is empty. */
struct url_authority {
	char host[POLICY_HOST_MAX + 1];
	size_t host_n;
	struct ip address;
	uint16_t port;
};
bool url_parse_authority(struct slice text, struct url_authority *out);

/* Converts the path of a request target (without the query) to its canonical form:
 * - Percent-encoded unreserved bytes are decoded; other escapes are written in upper case.
 * - Dot segments are removed; the raw bytes "<>[]^`{|} are escaped.
 * - Empty segments ("//") are kept, never merged.
 * - An escaped slash stays "%2F" (npm and others name things so): it does not end a segment, and no wildcard of a
 *   rule matches it.
 *
 * Returns false for: an escaped or raw backslash, NUL or other control; a malformed escape; any other raw byte
 * outside of RFC 3986 pchar and '/'; a ".." that leaves the root; an empty or dot part beside "%2F"; a dot segment
 * with path parameters ("..;x"); a result over out_size. out may not overlap path. */
bool url_canonical_path(struct slice path, char *out, size_t out_size, size_t *n);

/* The parameters of a query (application/x-www-form-urlencoded). */
/* Takes the next parameter ("name=value", never empty) off rest. Returns false at the end. */
bool url_parameter_next(struct slice *rest, struct slice *pair);
/* Returns what follows the parameter's '=', as written. */
struct slice url_parameter_value(struct slice pair);
/* Decodes a name or value into out, which has text.n bytes: '+' is a space; an invalid escape stays as it is. */
struct slice url_parameter_decode(struct slice text, char *out);
/* Returns false if a '%' does not begin a valid escape, or begins the escape of a NUL. */
bool url_escapes_are_sound(struct slice text);
/* True if the parameter has that name, however it is encoded: an upstream decodes a name before it compares it. */
bool url_parameter_is(struct slice pair, struct slice name);
/* True if the parameter has that name or one that some server takes for it: in letters of another case, with '-', '.'
 * or a space instead of '_', or as a list ("key[]"). */
bool url_parameter_resembles(struct slice pair, struct slice name);

/* Parses "scheme://authority/path?query" for `policy explain METHOD URL`. path and query borrow text. Returns false
 * if text is malformed. */
struct url {
	enum policy_scheme scheme;
	struct url_authority authority; /* port: the scheme's default when none was written */
	struct slice path;              /* as written, at least "/" */
	struct slice query;             /* without '?' */
};
bool url_parse(struct slice text, struct url *out);

#endif
