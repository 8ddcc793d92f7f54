/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request asks for: its target (path, absolute URL, authority or asterisk) and the authority
 * it names, in canonical form, for every version of HTTP. Anything that two readers could take
 * differently is refused, with a text for the sandbox.
 */
#include <stdio.h>

#include "proxy/http/http.h"

/* Parses the query after '?' and the canonical path before it. */
static const char *parse_path(struct http_request *r, struct slice path)
{
	ptrdiff_t mark = slice_find_byte(r->target, '?');

	if (mark >= 0) {
		r->has_query = true;
		r->query = slice_of(r->target.p + mark + 1, r->target.n - (size_t)mark - 1);
	}
	if (memchr(r->target.p, '#', r->target.n))
		return "fragment in the request target";
	if (!url_canonical_path(path, r->path, sizeof(r->path), &r->path_n))
		return "path cannot be made canonical";
	return NULL;
}

static const char *parse_absolute(struct http_request *r)
{
	struct url url;

	if (!url_parse(r->target, &url) ||
	        (url.scheme != POLICY_HTTP && url.scheme != POLICY_HTTPS))
		return "request target is neither a path nor an http URL";
	r->absolute = true;
	r->scheme = url.scheme;
	r->authority = url.authority;
	r->has_authority = true;
	return parse_path(r, url.path);
}

const char *http_parse_target(struct http_request *r)
{
	ptrdiff_t mark;

	if (slice_equals(r->method, SLICE("CONNECT"))) {
		r->has_authority = url_parse_authority(r->target, &r->authority);
		if (!r->has_authority || !r->authority.port)
			return "CONNECT needs host:port";
		return NULL;
	}
	if (slice_equals(r->target, SLICE("*")) && slice_equals(r->method, SLICE("OPTIONS"))) {
		r->asterisk = true;
		r->path[0] = '*';
		r->path_n = 1;
		return NULL;
	}
	if (r->target.n && r->target.p[0] != '/')
		return parse_absolute(r);
	mark = slice_find_byte(r->target, '?');
	return parse_path(r, mark >= 0 ? slice_of(r->target.p, (size_t)mark) : r->target);
}

static uint16_t port_of(const struct http_request *r, const struct url_authority *a)
{
	return a->port ? a->port : policy_scheme_default_port(r->scheme);
}

static bool same_authority(
        const struct http_request *r, const struct url_authority *a, const struct url_authority *b)
{
	return a->host_n == b->host_n && memcmp(a->host, b->host, a->host_n) == 0 &&
	       ip_equals(&a->address, &b->address) && port_of(r, a) == port_of(r, b);
}

const char *http_parse_host(struct http_request *r)
{
	struct url_authority host;
	unsigned count = 0;
	bool connect = slice_equals(r->method, SLICE("CONNECT")) && !r->protocol.n;

	for (size_t i = 0; i < r->fields.count; i++) {
		if (r->fields.items[i].known != HTTP_HOST)
			continue;
		count++;
		if (!connect && !url_parse_authority(r->fields.items[i].value, &host))
			return "malformed Host";
	}
	if (count > 1)
		return "more than one Host";
	if (connect)
		return NULL;
	if (count == 0)
		return r->version == 11 || (r->version == 20 && !r->has_authority) ? "no Host"
		                                                                   : NULL;
	if (r->has_authority)
		return same_authority(r, &host, &r->authority)
		               ? NULL
		               : "Host differs from the request target";
	r->authority = host;
	r->has_authority = true;
	return NULL;
}

bool http_host_is_other(const struct http_request *r)
{
	struct url_authority host;
	unsigned count = 0;

	for (size_t i = 0; i < r->fields.count; i++) {
		if (r->fields.items[i].known != HTTP_HOST)
			continue;
		count++;
		if (!url_parse_authority(r->fields.items[i].value, &host))
			return false;
	}
	return count == 1 && r->has_authority && !same_authority(r, &host, &r->authority);
}

struct slice http_authority_text(const struct http_request *r, char *out)
{
	const struct url_authority *a = &r->authority;
	char ip[IP_TEXT_MAX];
	int n = (int)a->host_n;

	if (a->address.family)
		n = snprintf(out, HTTP_AUTHORITY_MAX, a->address.family == 6 ? "[%s]" : "%s",
		        ip_format(&a->address, ip));
	else
		memcpy(out, a->host, a->host_n);
	if (a->port && a->port != policy_scheme_default_port(r->scheme))
		n += snprintf(out + n, HTTP_AUTHORITY_MAX - (size_t)n, ":%u", a->port);
	return slice_of(out, (size_t)n);
}
