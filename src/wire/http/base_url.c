/* SPDX-License-Identifier: Apache-2.0 */
#include "vethguard/wire/base_url.h"

#define PREFIX "/s/"
#define AUTHORITY_MAX 259 /* a host of 253 bytes, ':', five digits */
#define HOST_MAX 253

static bool is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

/* Takes the text before the next '/' off *rest, which then begins behind it. Returns false if
 * there is no '/'. */
static bool take_segment(struct slice *rest, struct slice *out)
{
	ptrdiff_t slash = slice_find_byte(*rest, '/');

	if (slash < 0)
		return false;
	*out = slice_of(rest->p, (size_t)slash);
	*rest = slice_of(rest->p + slash + 1, rest->n - (size_t)slash - 1);
	return true;
}

static bool is_token(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_letter_or_digit(s.p[i]) && !is_one_of(s.p[i], "-_.~"))
			return false;
	return s.n > 0 && s.n <= PROXY_PROOF_MAX && !slice_equals(s, SLICE(".")) &&
	       !slice_equals(s, SLICE(".."));
}

static bool is_host(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_letter_or_digit(s.p[i]) && !is_one_of(s.p[i], "-_."))
			return false;
	return s.n > 0 && s.n <= HOST_MAX && s.p[0] != '.';
}

bool base_url_is_authority(struct slice text)
{
	ptrdiff_t colon = slice_find_byte(text, ':');
	uint64_t port;

	if (text.n > AUTHORITY_MAX)
		return false;
	if (colon < 0)
		return is_host(text);
	return is_host(slice_of(text.p, (size_t)colon)) && text.p[colon + 1] != '0' &&
	       slice_to_u64(slice_of(text.p + colon + 1, text.n - (size_t)colon - 1), 65535, &port);
}

/* Counts the dots at the beginning of a segment; escaped dots count too. */
static bool is_dots(struct slice s)
{
	size_t dots = 0, at = 0;

	while (at < s.n) {
		if (s.p[at] == '.')
			at++;
		else if (s.n - at >= 3 && s.p[at] == '%' && s.p[at + 1] == '2' &&
		         (s.p[at + 2] | 0x20) == 'e')
			at += 3;
		else
			break;
		dots++;
	}
	/* Some servers cut parameters off: "..;x". */
	return (dots == 1 || dots == 2) && (at == s.n || s.p[at] == ';');
}

/* Some servers read an escaped slash or backslash as a slash. */
static size_t separator(struct slice s, size_t at)
{
	if (s.p[at] == '/' || s.p[at] == '\\')
		return 1;
	if (s.n - at < 3 || s.p[at] != '%')
		return 0;
	if (s.p[at + 1] == '2' && (s.p[at + 2] | 0x20) == 'f')
		return 3;
	return s.p[at + 1] == '5' && (s.p[at + 2] | 0x20) == 'c' ? 3 : 0;
}

const char *base_url_check_path(struct slice path)
{
	ptrdiff_t mark = slice_find_byte(path, '?');
	size_t begin = 0, at = 0;

	if (slice_find_byte(path, '#') >= 0)
		return "a fragment in the path";
	if (mark >= 0)
		path.n = (size_t)mark;
	while (at <= path.n) {
		size_t n = at < path.n ? separator(path, at) : 1;

		if (!n) {
			at++;
			continue;
		}
		if (is_dots(slice_of(path.p + begin, at - begin)))
			return "a dot segment in the path";
		begin = at += n;
	}
	return NULL;
}

const char *base_url_parse(struct slice target, struct base_url *out)
{
	struct slice rest = target, scheme;

	*out = (struct base_url){.token = SLICE(""), .authority = SLICE(""), .path = SLICE("")};
	if (!slice_starts_with(target, SLICE(PREFIX)))
		return "a base URL is /s/TOKEN/https/HOST/...";
	rest = slice_of(rest.p + sizeof(PREFIX) - 1, rest.n - sizeof(PREFIX) + 1);
	if (!take_segment(&rest, &out->token) || !is_token(out->token))
		return "a base URL has a token behind /s/";
	if (!take_segment(&rest, &scheme))
		return "a base URL has https or http behind the token";
	out->https = slice_equals(scheme, SLICE("https"));
	if (!out->https && !slice_equals(scheme, SLICE("http")))
		return "a base URL has https or http behind the token";
	if (!take_segment(&rest, &out->authority))
		return "a base URL has a host and a path that begins with a slash";
	if (!base_url_is_authority(out->authority))
		return "a base URL has a plain host name behind https, perhaps with a port";
	out->path = slice_of(rest.p - 1, rest.n + 1);
	return base_url_check_path(out->path);
}

struct slice base_url_key_name(enum proxy_key_field key)
{
	switch (key) {
	case PROXY_KEY_AUTHORIZATION:
		return SLICE("authorization");
	case PROXY_KEY_X_API_KEY:
		return SLICE("x-api-key");
	default:
		return SLICE("x-goog-api-key");
	}
}

static int put_request_line(const struct proxy_head *head, const struct base_url *url,
        struct slice version, struct buf *out)
{
	const struct slice parts[] = {head->method, SLICE(" "),
	        url->https ? SLICE("https://") : SLICE("http://"), url->authority, url->path,
	        SLICE(" "), version, SLICE("\r\nHost: "), url->authority, SLICE("\r\n")};
	int rc = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !rc; i++)
		rc = buf_append_slice(out, parts[i]);
	return rc;
}

/* True for fields that may hold the URL, and so the token: Referer, and those that Vercel's proxy
 * adds to a request that it forwards (the audience of its OIDC token is the URL). */
static bool may_hold_the_token(struct slice name)
{
	static const char *const names[] = {"referer", "vercel-sandbox-oidc-token",
	        "vercel-forwarded-host", "vercel-forwarded-scheme", "vercel-forwarded-port",
	        "vercel-forwarded-path"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_equals_ignoring_case(name, slice_from_string(names[i])))
			return true;
	return false;
}

int base_url_write(const uint8_t *p, const struct proxy_head *head, const struct base_url *url,
        struct slice without, struct buf *out)
{
	const char *version = head->target.p + head->target.n + 1;
	struct slice line, name;
	size_t at = 0;
	int rc = put_request_line(head, url, slice_of(version, strlen("HTTP/1.1")), out);

	while (!rc && proxy_head_next_field(p, head, &at, &line, &name)) {
		if (slice_equals_ignoring_case(name, SLICE("host")) ||
		        slice_equals_ignoring_case(name, SLICE("proxy-authorization")) ||
		        (without.n && slice_equals_ignoring_case(name, without)) ||
		        (url->token.n && may_hold_the_token(name)))
			continue;
		rc = buf_append_slice(out, line);
	}
	if (!rc && head->last)
		rc = buf_append_slice(out, SLICE("Connection: close\r\n"));
	return rc ? rc : buf_append_slice(out, SLICE("\r\n"));
}
