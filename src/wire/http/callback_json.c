/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the JSON about a request that LangSmith's proxy sends (full_request), and writes the
 * request from it. The URL says what the request is; host, port, scheme and path beside it have to
 * agree. Fields about the connection are left out, and framing is written anew.
 */
#include <errno.h>

#include "vethguard/base/base64.h"
#include "vethguard/policy/json_find.h"
#include "vethguard/policy/url.h"
#include "vethguard/wire/callback.h"

static const char too_long[] = "the request's head is too long";
static const char no_memory[] = "no memory";

/* The parts of the JSON. */
struct described {
	const struct json_tree *tree;
	const struct json_value *headers;
	struct slice method, text, host, scheme, body;
	struct url url;
	bool cut; /* body_truncated */
};

static const struct json_value *member(const struct described *d, struct slice path)
{
	return json_tree_find(d->tree, path);
}

static bool string(const struct described *d, struct slice path, struct slice *out)
{
	return json_tree_string_of(d->tree, member(d, path), out);
}

/* --- the URL --- */

/* True if s has only visible ASCII without '#': nothing that ends a request line or begins a
 * fragment. */
static bool is_plain(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] <= 0x20 || (uint8_t)s.p[i] >= 0x7f || s.p[i] == '#')
			return false;
	return true;
}

static bool is_same_host(const struct url_authority *a, struct slice text, uint16_t default_port)
{
	struct url_authority b;

	if (!url_parse_authority(text, &b))
		return false;
	if (!b.port)
		b.port = default_port;
	return a->port == b.port && ip_equals(&a->address, &b.address) &&
	       slice_equals(slice_of(a->host, a->host_n), slice_of(b.host, b.host_n));
}

/* Compares the path beside the URL, unless the URL's path has escapes: then the other path may be
 * the decoded one. */
static bool is_same_path(const struct described *d)
{
	struct slice path;

	if (!member(d, SLICE("/request/path")) || slice_find_byte(d->url.path, '%') >= 0)
		return true;
	return string(d, SLICE("/request/path"), &path) && slice_equals(path, d->url.path);
}

static const char *read_url(struct described *d)
{
	uint16_t default_port;
	struct slice host;
	int64_t port;

	if (!string(d, SLICE("/request/url"), &d->text) || !is_plain(d->text) ||
	        !url_parse(d->text, &d->url) ||
	        (d->url.scheme != POLICY_HTTPS && d->url.scheme != POLICY_HTTP))
		return "request.url is not a whole https:// or http:// URL";
	if (!string(d, SLICE("/request/scheme"), &d->scheme) ||
	        !slice_equals(
	                d->scheme, d->url.scheme == POLICY_HTTPS ? SLICE("https") : SLICE("http")))
		return "request.scheme is not that of request.url";
	default_port = policy_scheme_default_port(d->url.scheme);
	if (!string(d, SLICE("/request/host"), &d->host) ||
	        !is_same_host(&d->url.authority, d->host, default_port))
		return "request.host is not that of request.url";
	if (!string(d, SLICE("host"), &host) ||
	        !json_tree_whole(d->tree, member(d, SLICE("port")), &port) ||
	        port != d->url.authority.port ||
	        !is_same_host(&d->url.authority, host, (uint16_t)port))
		return "host and port are not those of request.url";
	if (!is_same_path(d))
		return "request.path is not that of request.url";
	return base_url_check_path(d->url.path);
}

/* --- the fields --- */

/* Fields about the connection to the other proxy, and fields that are written anew. */
static bool is_left_out(struct slice name)
{
	static const struct slice names[] = {{"host", 4}, {"content-length", 14},
	        {"transfer-encoding", 17}, {"connection", 10}, {"keep-alive", 10},
	        {"proxy-connection", 16}, {"proxy-authorization", 19}, {"te", 2}, {"trailer", 7},
	        {"expect", 6}, {"upgrade", 7}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_equals_ignoring_case(name, names[i]))
			return true;
	return false;
}

static bool is_value(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (((uint8_t)s.p[i] < 0x20 && s.p[i] != '\t') || (uint8_t)s.p[i] == 0x7f)
			return false;
	return true;
}

static int put(struct buf *out, const struct slice *parts, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = buf_append_slice(out, parts[i]);
	return rc;
}

/* Says why a part of the head could not be appended; rc 0: returns NULL. */
static const char *why_not(int rc)
{
	return rc == 0 ? NULL : rc == -ENOBUFS ? too_long : no_memory;
}

static const char *write_field(struct slice name, struct slice value, struct buf *out)
{
	const struct slice parts[] = {name, SLICE(": "), value, SLICE("\r\n")};
	const struct slice upgrade[] = {
	        SLICE("Connection: Upgrade\r\nUpgrade: "), value, SLICE("\r\n")};

	if (!is_value(value))
		return "a value of request.headers has a control character";
	if (slice_equals_ignoring_case(name, SLICE("upgrade")))
		return why_not(put(out, upgrade, sizeof(upgrade) / sizeof(*upgrade)));
	if (is_left_out(name))
		return NULL;
	return why_not(put(out, parts, sizeof(parts) / sizeof(*parts)));
}

/* True if an earlier name differs only in the case of its letters: it could be read as the same
 * field, or as another one. */
static bool is_twice(const struct described *d, uint32_t at, struct slice name)
{
	for (uint32_t i = (uint32_t)(d->headers - d->tree->values) + 1; i < at;
	        i = json_at(d->tree, i + 1)->next)
		if (slice_equals_ignoring_case(json_text(d->tree, json_at(d->tree, i)), name))
			return true;
	return false;
}

static const char *write_values(
        const struct described *d, uint32_t list, struct slice name, struct buf *out)
{
	static const char wrong[] = "request.headers has a value that is not a list of strings";
	const struct json_value *values = json_at(d->tree, list);
	const char *why = NULL;

	if (values->kind != JSON_IS_ARRAY)
		return wrong;
	for (uint32_t i = list + 1; i < values->next && !why; i = json_at(d->tree, i)->next) {
		struct slice value;

		why = json_tree_string_of(d->tree, json_at(d->tree, i), &value)
		              ? write_field(name, value, out)
		              : wrong;
	}
	return why;
}

static const char *write_fields(const struct described *d, struct buf *out)
{
	const uint32_t first = (uint32_t)(d->headers - d->tree->values) + 1;
	const char *why = NULL;
	size_t count = 0;

	for (uint32_t i = first; i < d->headers->next && !why; i = json_at(d->tree, i + 1)->next) {
		const struct slice name = json_text(d->tree, json_at(d->tree, i));

		if (++count > PROXY_HEAD_FIELDS_MAX)
			return "request.headers has too many names";
		if (!name.n || slice_token_length(name) != name.n)
			return "request.headers has a name that no field may have";
		if (is_twice(d, i, name))
			return "request.headers has a name twice, in other letters";
		why = write_values(d, i + 1, name, out);
	}
	return why;
}

/* --- the whole --- */

static const char *read_rest(struct described *d)
{
	const struct json_value *cut = member(d, SLICE("/request/body_truncated"));

	d->headers = member(d, SLICE("/request/headers"));
	if (!string(d, SLICE("/request/method"), &d->method) || !d->method.n ||
	        slice_token_length(d->method) != d->method.n ||
	        slice_equals(d->method, SLICE("CONNECT")))
		return "request.method is not the method of a request";
	if (!d->headers || d->headers->kind != JSON_IS_OBJECT)
		return "request.headers is missing";
	if (!cut || (cut->kind != JSON_IS_TRUE && cut->kind != JSON_IS_FALSE))
		return "request.body_truncated is missing";
	d->cut = cut->kind == JSON_IS_TRUE;
	if (!string(d, SLICE("/request/body_base64"), &d->body))
		return "request.body_base64 is missing";
	return NULL;
}

static const char *write_body(const struct described *d, struct buf *out)
{
	const size_t room = d->body.n / 4 * 3 + 3;
	uint8_t *p;
	ssize_t n;

	if (d->cut)
		return buf_append_slice(out, SLICE("\r\n")) ? no_memory : NULL;
	/* The body is decoded twice, because its length comes before it. */
	p = buf_reserve(out, room);
	n = p ? base64_decode(d->body, BASE64_STRICT, p, room) : 0;
	if (!p)
		return no_memory;
	if (n < 0)
		return "request.body_base64 is not base64";
	if (n && buf_printf(out, "Content-Length: %zd\r\n", n) != 0)
		return no_memory;
	if (buf_append_slice(out, SLICE("\r\n")) != 0 || !(p = buf_reserve(out, room)))
		return no_memory;
	buf_commit(out, (size_t)base64_decode(d->body, BASE64_STRICT, p, room));
	return NULL;
}

static const char *write_described(const struct described *d, bool last, struct buf *out)
{
	const bool query = slice_find_byte(d->text, '?') >= 0;
	const struct slice parts[] = {d->method, SLICE(" "), d->scheme, SLICE("://"), d->host,
	        d->url.path, query ? SLICE("?") : SLICE(""), d->url.query,
	        SLICE(" HTTP/1.1\r\nHost: "), d->host, SLICE("\r\n"),
	        last ? SLICE("Connection: close\r\n") : SLICE("")};
	const size_t before = out->len;
	const char *why = why_not(put(out, parts, sizeof(parts) / sizeof(*parts)));

	if (!why)
		why = write_fields(d, out);
	if (!why && out->len - before > PROXY_HEAD_MAX)
		why = too_long;
	return why ? why : write_body(d, out);
}

const char *callback_write_described(
        struct slice json, bool last, bool *tells_body, struct buf *out)
{
	struct described d = {.method = SLICE("")};
	struct json_tree tree;
	const char *why;

	*tells_body = false;
	if (json_read(&tree, json) != 0) {
		json_fini(&tree);
		return "the body is not JSON that has one reading";
	}
	d.tree = &tree;
	if (json_at(&tree, 0)->kind != JSON_IS_OBJECT)
		why = "the body is not a JSON object";
	else if (!json_tree_find(&tree, SLICE("request")))
		why = "the callback does not tell the request: set full_request to true";
	else
		why = read_url(&d);
	if (!why)
		why = read_rest(&d);
	if (!why)
		why = write_described(&d, last, out);
	*tells_body = !d.cut;
	json_fini(&tree);
	return why;
}
