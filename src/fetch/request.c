/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the arguments of a fetch; see fetch/request.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/request.h"
#include "vethguard/base/ip.h"

#define HTTPS_PORT 443
#define HTTP_PORT 80

static bool read_port(struct slice text, uint16_t usual, uint16_t *out)
{
	uint64_t n;

	*out = usual;
	if (text.n == 0)
		return true;
	if (!slice_to_u64(text, UINT16_MAX, &n) || n == 0)
		return false;
	*out = (uint16_t)n;
	return true;
}

static bool stays_on_the_link(struct slice host)
{
	struct ip ip;

	if (!ip_parse(host, &ip))
		return false;
	return ip_classify(&ip) == IP_METADATA || ip_classify(&ip) == IP_LINK_LOCAL;
}

bool fetch_site_read(struct slice url, struct fetch_site *out)
{
	const bool plain = slice_starts_with(url, SLICE("http://"));
	const size_t scheme = plain ? 7 : 8;
	struct slice rest = url, port = SLICE("");
	ptrdiff_t end;

	if (!plain && !slice_starts_with(rest, SLICE("https://")))
		return false;
	rest = slice_of(rest.p + scheme, rest.n - scheme);
	end = slice_find_byte(rest, '/');
	if (end >= 0)
		rest.n = (size_t)end;
	end = rest.n && rest.p[0] == '[' ? slice_find_byte(rest, ']') : slice_find_byte(rest, ':');
	if (rest.n && rest.p[0] == '[' && end > 0) { /* an IPv6 address */
		port = slice_of(rest.p + end + 1, rest.n - (size_t)end - 1);
		rest = slice_of(rest.p + 1, (size_t)end - 1);
		if (port.n && port.p[0] != ':')
			return false;
		port = port.n ? slice_of(port.p + 1, port.n - 1) : port;
	} else if (end >= 0) {
		port = slice_of(rest.p + end + 1, rest.n - (size_t)end - 1);
		rest.n = (size_t)end;
	}
	if (rest.n == 0 || rest.n > FETCH_HOST_MAX || slice_find_byte(rest, '@') >= 0)
		return false;
	memcpy(out->host, rest.p, rest.n);
	out->host[rest.n] = '\0';
	return read_port(port, plain ? HTTP_PORT : HTTPS_PORT, &out->port) &&
	       (!plain || stays_on_the_link(rest));
}

bool fetch_request_read_urls(struct fetch_request *request)
{
	for (uint32_t i = 0; i < request->message.site_count; i++)
		if (!fetch_site_read(request->message.sites[i].url, &request->sites[i]))
			return false;
	return true;
}

struct slice fetch_argument(const struct fetch_request *request, const char *key)
{
	const size_t n = strlen(key);

	for (uint32_t i = 1; i < request->message.argument_count; i++) {
		struct slice a = request->message.arguments[i];

		if (a.n > n && memcmp(a.p, key, n) == 0 && a.p[n] == '=')
			return slice_of(a.p + n + 1, a.n - n - 1);
	}
	return SLICE("");
}

/* True for an argument that stands for a secret; the supervisor has left out its path. */
static bool is_secret(struct slice argument)
{
	static const char *const names[] = {
	        "token=file:", "secret_id=file:", "jwt=file:", "client_secret=file:",
	        "private_key=file:", "refresh_token=file:", "subject_token=file:", "key=file:",
	        "keys=file:", "web_identity_token=file:", "federated_token=file:"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_equals(argument, slice_from_string(names[i])))
			return true;
	return false;
}

struct slice fetch_secret(const struct fetch_request *request, const char *key)
{
	const size_t n = strlen(key);
	size_t at = 0;

	for (uint32_t i = 1; i < request->message.argument_count; i++) {
		struct slice a = request->message.arguments[i];

		if (!is_secret(a) || at == MESSAGE_FETCH_SECRETS_MAX)
			continue;
		if (a.n > n && memcmp(a.p, key, n) == 0 && a.p[n] == '=')
			return request->secrets[at];
		at++;
	}
	return SLICE("");
}

bool fetch_url_at(struct slice base, const char *path, char *out, size_t out_size)
{
	while (base.n && base.p[base.n - 1] == '/')
		base.n--;
	return snprintf(out, out_size, "%.*s%s", SLICE_ARG(base), path) < (int)out_size;
}

bool fetch_url(const struct fetch_request *request, const char *path, char *out, size_t out_size)
{
	return fetch_url_at(request->message.sites[0].url, path, out, out_size);
}
