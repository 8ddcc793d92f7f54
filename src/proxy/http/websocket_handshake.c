/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake of a WebSocket (RFC 6455 section 4) and the only extension that is understood,
 * permessage-deflate (RFC 7692). No other is offered, because its frames could not be read. An
 * upstream whose answer does not match the request has switched to something unknown and is
 * refused.
 */
#include <string.h>

#include "proxy/http/websocket.h"
#include "vethguard/base/base64.h"
#include "vethguard/base/hash.h"
#include "vethguard/tls/digest.h"

#define KEY_BYTES 16 /* RFC 6455 section 4.1 */

void websocket_key(char out[WEBSOCKET_KEY_MAX + 1])
{
	uint8_t random[KEY_BYTES];

	random_bytes(random, sizeof(random));
	out[base64_encode(random, sizeof(random), base64_standard, out)] = 0;
}
_Static_assert(WEBSOCKET_KEY_MAX == BASE64_SIZE(KEY_BYTES), "a key fits");

int websocket_accept(struct slice key, char out[WEBSOCKET_ACCEPT_MAX + 1])
{
	const struct slice parts[] = {key, SLICE("258EAFA5-E914-47DA-95CA-C5AB0DC85B11")};

	return digest_sha1_base64(parts, 2, out);
}
_Static_assert(WEBSOCKET_ACCEPT_MAX == DIGEST_SHA1_BASE64, "an accept is a SHA-1 in base64");

static bool accepts(struct slice key, struct slice accept)
{
	char expected[WEBSOCKET_ACCEPT_MAX + 1];

	return websocket_accept(key, expected) == 0 &&
	       slice_equals(accept, slice_from_string(expected));
}

bool websocket_accepts(const char *key, struct slice accept)
{
	return accepts(slice_from_string(key), accept);
}

/* --- extensions --- */

static void skip_blanks(struct slice *s)
{
	while (s->n && (*s->p == ' ' || *s->p == '\t'))
		*s = slice_of(s->p + 1, s->n - 1);
}

/* True if the next character is c, which is taken. */
static bool take(struct slice *s, char c)
{
	skip_blanks(s);
	if (!s->n || *s->p != c)
		return false;
	*s = slice_of(s->p + 1, s->n - 1);
	skip_blanks(s);
	return true;
}

static struct slice take_token(struct slice *s)
{
	size_t n = 0;
	struct slice token;

	skip_blanks(s);
	while (n < s->n && http_is_tchar((uint8_t)s->p[n]))
		n++;
	token = slice_of(s->p, n);
	*s = slice_of(s->p + n, s->n - n);
	return token;
}

/* Takes "8" to "15", also in quotes. 0: something else. */
static uint8_t take_bits(struct slice *s)
{
	bool quoted = take(s, '"');
	struct slice token = take_token(s);

	if (quoted && (!s->n || !take(s, '"')))
		return 0;
	if (token.n == 1 && (token.p[0] == '8' || token.p[0] == '9'))
		return (uint8_t)(token.p[0] - '0');
	if (token.n == 2 && token.p[0] == '1' && token.p[1] >= '0' && token.p[1] <= '5')
		return (uint8_t)(10 + token.p[1] - '0');
	return 0;
}

enum parameter { CLIENT_FORGETS, SERVER_FORGETS, CLIENT_WINDOW, SERVER_WINDOW, PARAMETER_COUNT };

/* Takes one parameter with its value; *seen has a bit for each parameter that has come. */
static bool take_parameter(
        struct slice *s, bool answer, unsigned *seen, struct websocket_deflate *out)
{
	static const struct slice names[PARAMETER_COUNT] = {
	        [CLIENT_FORGETS] = {"client_no_context_takeover", 26},
	        [SERVER_FORGETS] = {"server_no_context_takeover", 26},
	        [CLIENT_WINDOW] = {"client_max_window_bits", 22},
	        [SERVER_WINDOW] = {"server_max_window_bits", 22},
	};
	struct slice name = take_token(s);
	unsigned which = 0;
	uint8_t bits = 0;
	bool has_value;

	while (which < PARAMETER_COUNT && !slice_equals_ignoring_case(name, names[which]))
		which++;
	if (which == PARAMETER_COUNT || *seen & 1u << which)
		return false;
	*seen |= 1u << which;
	has_value = take(s, '=');
	if (has_value && (bits = take_bits(s)) == 0)
		return false;
	if (which == CLIENT_FORGETS)
		out->forgets = true;
	if (which == CLIENT_WINDOW && has_value)
		out->window_bits = bits;
	if (which == CLIENT_WINDOW && !answer)
		return true; /* an offer may leave the value open */
	return has_value == (which == CLIENT_WINDOW || which == SERVER_WINDOW);
}

/* Takes one permessage-deflate with its parameters. */
static bool take_deflate(struct slice *s, bool answer, struct websocket_deflate *out)
{
	unsigned seen = 0;

	*out = (struct websocket_deflate){.agreed = true, .window_bits = 15};
	if (!slice_equals_ignoring_case(take_token(s), SLICE("permessage-deflate")))
		return false;
	while (take(s, ';'))
		if (!take_parameter(s, answer, &seen, out))
			return false;
	skip_blanks(s);
	return true;
}

static bool offer_is_understood(struct slice value)
{
	struct websocket_deflate one;

	do {
		if (!take_deflate(&value, false, &one))
			return false;
	} while (take(&value, ','));
	return value.n == 0;
}

void websocket_limit_offer(struct http_fields *request)
{
	for (size_t i = 0; i < request->count; i++) {
		const struct http_field *f = &request->items[i];

		if (f->known == HTTP_SEC_WEBSOCKET_EXTENSIONS && !f->dropped &&
		        !offer_is_understood(f->value)) {
			http_drop(request, SLICE("sec-websocket-extensions"));
			return;
		}
	}
}

/* --- the response --- */

/* The only field with that name, or NULL if there is none or more than one. */
static const struct http_field *only(const struct http_fields *fields, struct slice name)
{
	const struct http_field *found = NULL;

	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];

		if (f->dropped || !slice_equals_ignoring_case(f->name, name))
			continue;
		if (found)
			return NULL;
		found = f;
	}
	return found;
}

static const char *check_extensions(const struct http_fields *request,
        const struct http_fields *response, struct websocket_deflate *out)
{
	static const char unknown[] = "the upstream chose a WebSocket extension that was not "
	                              "offered";
	const struct http_field *chosen = http_find(response, HTTP_SEC_WEBSOCKET_EXTENSIONS);
	struct slice value;

	*out = (struct websocket_deflate){0};
	if (!chosen)
		return NULL;
	if (!http_find(request, HTTP_SEC_WEBSOCKET_EXTENSIONS) ||
	        chosen != only(response, SLICE("sec-websocket-extensions")))
		return unknown;
	value = chosen->value;
	return take_deflate(&value, true, out) && value.n == 0 ? NULL : unknown;
}

const char *websocket_check_answer(const struct http_fields *request,
        const struct http_fields *response, struct websocket_deflate *out)
{
	static const char unasked[] = "the upstream switched protocols without being asked";
	const struct http_field *upgrade = only(response, SLICE("upgrade")),
	                        *accept = only(response, SLICE("sec-websocket-accept")),
	                        *version = only(request, SLICE("sec-websocket-version")),
	                        *key = only(request, SLICE("sec-websocket-key"));

	if (!upgrade || !slice_equals_ignoring_case(upgrade->value, SLICE("websocket")))
		return unasked;
	if (!key || !version || !slice_equals(version->value, SLICE("13")))
		return "the upstream agreed to a WebSocket that the request did not ask for with "
		       "one key and version 13";
	if (!accept || !accepts(key->value, accept->value))
		return "the upstream's answer to the WebSocket handshake has a wrong "
		       "Sec-WebSocket-Accept";
	return check_extensions(request, response, out);
}
