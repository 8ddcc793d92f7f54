/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url: one way to make hosts, paths and URLs canonical, used by policies, by the proxy and by every command, so that
 * what is judged is what goes on the wire (RFC 3986 section 6).
 */
#ifndef VETHGUARD_POLICY_URL_H
#define VETHGUARD_POLICY_URL_H

#include "vethguard/policy/policy.h"

/* Host name to lower case without its trailing dot; letters, digits, '-', '_' and '.', labels of 1 to 63 bytes, whole
 * at most POLICY_HOST_MAX. out has POLICY_HOST_MAX + 1 bytes and is NUL-terminated. Bytes beyond ASCII are refused
 * (hosts are A-labels). False: not a host name. An address literal is not a host name: a last label of only digits
 * (or 0x...) is refused. */
bool url_canonical_host(struct slice host, char out[POLICY_HOST_MAX + 1], size_t *n);

/* "host", "host:port", "[v6]:port" as in Host, :authority and CONNECT (RFC 9110 section 7.2). host is canonical in
 * storage (POLICY_HOST_MAX + 1 bytes) or address.family is set. port 0: none was written. False: malformed, with
 * userinfo, empty. */
struct url_authority {
	char host[POLICY_HOST_MAX + 1];
	size_t host_n;
	struct ip address;
	uint16_t port;
};
bool url_parse_authority(struct slice text, struct url_authority *out);

/* Path of a request target to its canonical form: percent-encoded unreserved bytes decoded, other escapes in upper
 * case, dot segments removed, the raw bytes "<>[]^`{|} escaped; empty segments ("//") are kept, never merged. An
 * escaped slash stays "%2F" (npm and others name things so): it is no border of a segment and no wildcard of a rule
 * takes it. Refused (false): an escaped or raw backslash, NUL or other control, a malformed escape, any other raw
 * byte outside of RFC 3986 pchar and '/', a ".." that leaves the root, an empty or dot part beside "%2F", a dot
 * segment with path parameters ("..;x"), a result over out_size. out may not overlap path. The query is not part of
 * path. */
bool url_canonical_path(struct slice path, char *out, size_t out_size, size_t *n);

/* "scheme://authority/path?query" for `policy explain METHOD URL`. path and query borrow text. False: malformed. */
struct url {
	enum policy_scheme scheme;
	struct url_authority authority; /* port: the scheme's default when none was written */
	struct slice path;              /* as written, at least "/" */
	struct slice query;             /* without '?' */
};
bool url_parse(struct slice text, struct url *out);

#endif
