/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses to requests by a base URL (wire/base_url.h). The client sees the gateway where the
 * upstream sees itself, so references of the response's head are written anew:
 *
 * - Location and Content-Location become relative to the request's path. The worker does not know
 *   the token, and needs no token: "../" leads from /s/TOKEN/https/HOST/a to /s/TOKEN/https/HOST/.
 * - Set-Cookie loses Domain, and Path where the host is part of the path: without it a client sends
 *   the cookie to the directory of the request only (RFC 6265 section 5.1.4).
 *
 * Pages of a browser may read responses (CORS). All upstreams share the gateway's origin there, so
 * a document among them becomes an origin of its own (CSP's sandbox), and links of it do not tell
 * its URL, which may hold the token.
 */
#include "proxy/exchange/exchange.h"

static const char cross_origin[] = "access-control-allow-origin: *\r\n"
                                   "access-control-expose-headers: *\r\n"
                                   "cross-origin-resource-policy: cross-origin\r\n"
                                   "content-security-policy: sandbox\r\n"
                                   "referrer-policy: no-referrer\r\n";

/* Fields of the upstream that would take effect for the gateway's whole name. */
static const struct slice left_out[] = {{"access-control-allow-origin", 27},
        {"access-control-allow-credentials", 32}, {"access-control-expose-headers", 29},
        {"cross-origin-resource-policy", 28}, {"referrer-policy", 15},
        {"strict-transport-security", 25}, {"alt-svc", 7}, {"clear-site-data", 15},
        {"service-worker-allowed", 22}};

static bool is_left_out(const struct http_field *f)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (slice_equals_ignoring_case(f->name, left_out[i]))
			return true;
	return false;
}

/* --- references --- */

/* The target of a reference: path, query and fragment are as written. */
struct place {
	bool same; /* scheme, host and port are the request's */
	bool https;
	struct url_authority authority;
	struct slice rest; /* begins with '/', or is empty: the root */
};

/* The length of a scheme with its colon (RFC 3986 section 3.1), or 0. */
static size_t scheme_length(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		const char c = (char)(s.p[i] | 0x20);

		if (s.p[i] == ':')
			return i ? i + 1 : 0;
		if ((c < 'a' || c > 'z') && (i == 0 || !strchr("0123456789+-.", s.p[i])))
			return 0;
	}
	return 0;
}

/* Reads "authority/path". Returns false for an authority that a base URL cannot name. */
static bool read_authority(const struct exchange *ex, struct slice s, struct place *out)
{
	const struct destination *d = &ex->destination;
	size_t n = 0;
	uint16_t port;

	while (n < s.n && s.p[n] != '/' && s.p[n] != '?' && s.p[n] != '#')
		n++;
	if (!url_parse_authority(slice_of(s.p, n), &out->authority) ||
	        out->authority.address.family == 6)
		return false;
	out->rest = slice_of(s.p + n, s.n - n);
	port = policy_scheme_default_port(out->https ? POLICY_HTTPS : POLICY_HTTP);
	if (out->authority.port == port)
		out->authority.port = 0;
	out->same = out->https == ex->client->tls &&
	            (out->authority.port ? out->authority.port : port) == d->port &&
	            slice_equals(slice_of(out->authority.host, out->authority.host_n),
	                    destination_host(d)) &&
	            ip_equals(&out->authority.address, &d->address);
	return true;
}

/* Returns false if the reference stays as it is: it is relative, or no base URL can name its
 * target. */
static bool read_reference(const struct exchange *ex, struct slice s, struct place *out)
{
	const size_t scheme = scheme_length(s);

	*out = (struct place){.https = ex->client->tls, .same = true, .rest = s};
	if (scheme) {
		out->https = slice_equals_ignoring_case(slice_of(s.p, scheme), SLICE("https:"));
		if (!out->https &&
		        !slice_equals_ignoring_case(slice_of(s.p, scheme), SLICE("http:")))
			return false;
		s = slice_of(s.p + scheme, s.n - scheme);
	}
	if (slice_starts_with(s, SLICE("//")))
		return read_authority(ex, slice_of(s.p + 2, s.n - 2), out);
	return !scheme && s.n && s.p[0] == '/';
}

static int put_authority(struct buf *out, const struct place *to)
{
	char ip[IP_TEXT_MAX];
	int rc = to->authority.address.family
	                 ? buf_printf(out, "%s", ip_format(&to->authority.address, ip))
	                 : buf_append(out, to->authority.host, to->authority.host_n);

	return rc || !to->authority.port ? rc : buf_printf(out, ":%u", to->authority.port);
}

/* Appends a relative path from the directory of the request's path: up to the root of its host,
 * and, if the target is on another host, further up to that of the token. */
static int put_way(struct buf *out, const struct http_request *r, const struct place *to)
{
	size_t up = to->same ? 0 : 2;
	int rc = 0;

	for (size_t i = 1; i < r->path_n; i++)
		up += r->path[i] == '/';
	if (up == 0)
		rc = buf_append_slice(out, SLICE("./"));
	while (up-- && !rc)
		rc = buf_append_slice(out, SLICE("../"));
	if (rc || to->same)
		return rc;
	rc = buf_append_slice(out, to->https ? SLICE("https/") : SLICE("http/"));
	if (!rc)
		rc = put_authority(out, to);
	return rc ? rc : buf_append_slice(out, SLICE("/"));
}

/* Appends value, a reference, rewritten for the client. */
static int put_reference(struct buf *out, const struct exchange *ex, struct slice value)
{
	struct place to;
	bool rooted;
	int rc;

	if (!read_reference(ex, value, &to))
		return buf_append_slice(out, value);
	rooted = to.rest.n && to.rest.p[0] == '/';
	if (ex->client->form == MESSAGE_FORM_BASE_PATH) {
		rc = put_way(out, &ex->request, &to);
		if (rooted)
			to.rest = slice_of(to.rest.p + 1, to.rest.n - 1);
	} else if (to.same) {
		/* "//x" would be another host. */
		rc = buf_append_slice(out, slice_starts_with(to.rest, SLICE("//")) ? SLICE("/.")
		                           : rooted                                ? SLICE("")
		                                                                   : SLICE("/"));
	} else {
		return buf_append_slice(out, value);
	}
	return rc ? rc : buf_append_slice(out, to.rest);
}

/* --- cookies --- */

static bool is_attribute(struct slice part, struct slice name)
{
	ptrdiff_t equals = slice_find_byte(part, '=');

	return slice_equals_ignoring_case(
	        slice_trim(slice_of(part.p, equals < 0 ? part.n : (size_t)equals)), name);
}

static int put_cookie(struct buf *out, const struct exchange *ex, struct slice value)
{
	bool first = true;
	int rc = 0;

	while (value.n && !rc) {
		ptrdiff_t end = slice_find_byte(value, ';');
		struct slice part = slice_of(value.p, end < 0 ? value.n : (size_t)end);
		const size_t used = part.n + (end < 0 ? 0 : 1);

		value = slice_of(value.p + used, value.n - used);
		if (!first && (is_attribute(part, SLICE("domain")) ||
		                      (is_attribute(part, SLICE("path")) &&
		                              ex->client->form == MESSAGE_FORM_BASE_PATH)))
			continue;
		rc = first ? 0 : buf_append_slice(out, SLICE(";"));
		if (!rc)
			rc = buf_append_slice(out, part);
		first = false;
	}
	return rc;
}

/* --- the head --- */

typedef int (*put_value)(struct buf *out, const struct exchange *ex, struct slice value);

static put_value writer_of(const struct http_field *f)
{
	if (slice_equals_ignoring_case(f->name, SLICE("location")) ||
	        slice_equals_ignoring_case(f->name, SLICE("content-location")))
		return put_reference;
	return slice_equals_ignoring_case(f->name, SLICE("set-cookie")) ? put_cookie : NULL;
}

static int put_changed(struct buf *out, const struct exchange *ex, const struct http_fields *fields)
{
	int rc = 0;

	for (size_t i = 0; i < fields->count && !rc; i++) {
		const struct http_field *f = &fields->items[i];
		const put_value put = f->dropped ? NULL : writer_of(f);

		if (!put)
			continue;
		rc = buf_append_slice(out, f->name);
		if (!rc)
			rc = buf_append_slice(out, SLICE(": "));
		if (!rc)
			rc = put(out, ex, f->value);
		if (!rc)
			rc = buf_append_slice(out, SLICE("\r\n"));
	}
	return rc;
}

int client_base_response(
        struct buf *out, const struct exchange *ex, const struct http_response *response)
{
	struct http_response rest = *response;
	int rc;

	for (size_t i = 0; i < rest.fields.count; i++) {
		struct http_field *f = &rest.fields.items[i];

		f->dropped = f->dropped || is_left_out(f) || writer_of(f);
	}
	rc = http1_write_response(
	        out, &rest, ex->client_version, ex->client->keep_alive, SLICE(""));
	if (rc)
		return rc;
	out->len -= 2; /* the empty line follows what is added */
	rc = put_changed(out, ex, &response->fields);
	if (!rc)
		rc = buf_append_slice(out, SLICE(cross_origin));
	return rc ? rc : buf_append_slice(out, SLICE("\r\n"));
}
