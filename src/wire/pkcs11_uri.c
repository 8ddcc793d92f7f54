/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a pkcs11: URI is a list of attributes, each at most once, separated by ';' (RFC 7512
 * section 2.3). An unknown attribute is refused: ignoring it could select more keys than the
 * operator meant.
 */
#include "vethguard/wire/pkcs11_uri.h"

#include <stdio.h>
#include <string.h>

#define SCHEME "pkcs11:"
#define LABEL_MAX 32 /* bytes of a token's label (CK_TOKEN_INFO) */

static const char *const names[PKCS11_ATTRIBUTES] = {
        [PKCS11_TOKEN] = "token",
        [PKCS11_MANUFACTURER] = "manufacturer",
        [PKCS11_MODEL] = "model",
        [PKCS11_SERIAL] = "serial",
        [PKCS11_OBJECT] = "object",
        [PKCS11_ID] = "id",
};

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_unreserved(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("-._~", c));
}

/* pk11-pchar: unreserved characters and some of the reserved ones; all else is percent-encoded. */
static bool is_plain(char c)
{
	return is_unreserved(c) || (c && strchr(":[]@!$'()*+,=&", c));
}

static const char *decode(struct slice in, bool any_bytes, char out[PKCS11_VALUE_MAX], size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < in.n; i++) {
		int c = (uint8_t)in.p[i];

		if (c == '%') {
			const bool whole = in.n - i > 2;
			int high = whole ? hex(in.p[i + 1]) : -1;
			int low = whole ? hex(in.p[i + 2]) : -1;

			if (high < 0 || low < 0)
				return "a '%' has to be followed by two hexadecimal digits";
			c = high * 16 + low;
			i += 2;
		} else if (!is_plain((char)c)) {
			return "a character has to be percent-encoded (a blank is %20)";
		}
		if (*n == PKCS11_VALUE_MAX)
			return "a value has more than 128 bytes";
		if (c == 0 && !any_bytes)
			return "only an id may hold a NUL";
		out[(*n)++] = (char)c;
	}
	return *n ? NULL : "a value is empty";
}
_Static_assert(PKCS11_VALUE_MAX == 128, "as the text says");

static const char *take_type(struct slice value)
{
	return slice_equals(value, SLICE("private")) ? NULL : "type is \"private\" or left out";
}

static const char *take_slot(struct slice value, struct pkcs11_uri *out)
{
	if (out->has_slot)
		return "an attribute is given twice";
	out->has_slot = true;
	return slice_to_u64(value, UINT32_MAX, &out->slot) ? NULL : "slot-id is a decimal number";
}

static const char *take(struct slice name, struct slice value, struct pkcs11_uri *out)
{
	if (slice_equals(name, SLICE("type")))
		return take_type(value);
	if (slice_equals(name, SLICE("slot-id")))
		return take_slot(value, out);
	for (size_t i = 0; i < PKCS11_ATTRIBUTES; i++) {
		if (!slice_equals(name, slice_from_string(names[i])))
			continue;
		if (out->values[i].given)
			return "an attribute is given twice";
		out->values[i].given = true;
		return decode(value, i == PKCS11_ID, out->values[i].bytes, &out->values[i].n);
	}
	return "known attributes are token, serial, manufacturer, model, slot-id, object, id and "
	       "type";
}

static const char *refuse_query(struct slice query)
{
	if (slice_starts_with(query, SLICE("pin-")))
		return "the PIN does not belong in the URI: the configuration names its "
		       "source, as pin of the token";
	if (slice_starts_with(query, SLICE("module-")))
		return "the module does not belong in the URI: the configuration names its "
		       "file, as module of the token";
	return "nothing may follow a '?'";
}

const char *pkcs11_uri_parse_token(struct slice text, struct pkcs11_uri *out)
{
	const size_t scheme = sizeof(SCHEME) - 1;
	const char *why = NULL;
	ptrdiff_t at;

	memset(out, 0, sizeof(*out));
	if (!slice_starts_with(text, SLICE(SCHEME)) || text.n > PKCS11_URI_MAX)
		return "it has to begin with \"pkcs11:\" and to have at most 1024 bytes";
	text = slice_of(text.p + scheme, text.n - scheme);
	at = slice_find_byte(text, '?');
	if (at >= 0)
		return refuse_query(slice_of(text.p + at + 1, text.n - (size_t)at - 1));
	while (!why && text.n > 0) {
		struct slice one = text;
		ptrdiff_t equals;

		at = slice_find_byte(text, ';');
		if (at >= 0)
			one.n = (size_t)at;
		text = at < 0 ? slice_of("", 0)
		              : slice_of(text.p + at + 1, text.n - (size_t)at - 1);
		equals = slice_find_byte(one, '=');
		why = equals < 0 ? "each attribute is NAME=VALUE"
		                 : take(slice_of(one.p, (size_t)equals),
		                           slice_of(one.p + equals + 1, one.n - (size_t)equals - 1),
		                           out);
	}
	if (why)
		return why;
	if (!out->values[PKCS11_TOKEN].given && !out->values[PKCS11_SERIAL].given && !out->has_slot)
		return "it does not say which token: token=LABEL or serial=NUMBER";
	return NULL;
}

bool pkcs11_uri_names_key(const struct pkcs11_uri *uri)
{
	return uri->values[PKCS11_OBJECT].given || uri->values[PKCS11_ID].given;
}

const char *pkcs11_uri_parse(struct slice text, struct pkcs11_uri *out)
{
	const char *why = pkcs11_uri_parse_token(text, out);

	if (why || pkcs11_uri_names_key(out))
		return why;
	return "it does not say which key: object=LABEL or id=%01";
}

void pkcs11_uri_of_token(struct slice label, char out[PKCS11_TOKEN_URI_MAX])
{
	size_t n = (size_t)snprintf(out, PKCS11_TOKEN_URI_MAX, SCHEME "token=");

	for (size_t i = 0; i < label.n && i < LABEL_MAX; i++)
		n += (size_t)snprintf(out + n, PKCS11_TOKEN_URI_MAX - n,
		        is_unreserved(label.p[i]) ? "%c" : "%%%02X", (uint8_t)label.p[i]);
}
_Static_assert(sizeof(SCHEME "token=") + 3 * LABEL_MAX <= PKCS11_TOKEN_URI_MAX, "it fits");
_Static_assert(PKCS11_URI_MAX == 1024, "as the text says");

bool pkcs11_uri_matches(const struct pkcs11_uri *uri, enum pkcs11_attribute attribute,
        const unsigned char *padded, size_t n)
{
	if (!uri->values[attribute].given)
		return true;
	while (n > 0 && (padded[n - 1] == ' ' || padded[n - 1] == 0))
		n--;
	return n == uri->values[attribute].n &&
	       memcmp(padded, uri->values[attribute].bytes, n) == 0;
}
