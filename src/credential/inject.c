/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the whole value is checked before a byte of it is written anywhere. Then
 * each way of injecting computes its size, allocates secret memory of exactly that size, and writes
 * once.
 */
#include "vethguard/credential/inject.h"

#include <errno.h>

#include "vethguard/base/base64.h"
#include "vethguard/credential/mask.h"

/* True for a valid field value (RFC 9110 section 5.5): visible characters, obs-text, and between
 * them SP and HTAB. */
static bool is_field_text(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return slice_trim(s).n == s.n;
}

static bool is_unreserved(uint8_t c) /* RFC 3986 section 2.3 */
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

/* True for cookie-octets (RFC 6265 section 4.1.1): whatever else ends a cookie's value somewhere.
 */
static bool is_cookie_text(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];

		if (c <= ' ' || c >= 0x7f || strchr("\",;\\", c))
			return false;
	}
	return true;
}

/* True for printable ASCII: other passwords would have to be normalized first (SASLprep, RFC 4013),
 * which leaves these as they are. */
static bool is_password(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < ' ' || s.p[i] > '~')
			return false;
	return true;
}

static void put(struct secret *out, const void *p, size_t n)
{
	if (n > 0)
		memcpy(out->p + out->n, p, n);
	out->n += n;
}

static int room(struct secret *out, size_t n)
{
	return n > SECRET_MAX ? -EMSGSIZE : secret_alloc(out, n);
}

static int render_prefixed(struct slice prefix, struct slice value, struct secret *out)
{
	int rc = room(out, prefix.n + value.n);

	if (rc < 0)
		return rc;
	put(out, prefix.p, prefix.n);
	put(out, value.p, value.n);
	return 0;
}

static int render_query(struct slice value, struct secret *out)
{
	static const char digits[16] = "0123456789ABCDEF";
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < value.n; i++)
		n += is_unreserved((uint8_t)value.p[i]) ? 1 : 3;
	rc = room(out, n);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < value.n; i++) {
		uint8_t c = (uint8_t)value.p[i];
		char escape[3] = {'%', digits[c >> 4], digits[c & 15]};

		if (is_unreserved(c))
			put(out, &c, 1);
		else
			put(out, escape, sizeof(escape));
	}
	return 0;
}

/* RFC 7617: the username has no colon; the password may have one. */
static int render_basic(struct slice username, struct slice value, struct secret *out)
{
	struct slice scheme = SLICE("Basic ");
	struct secret pair;
	int rc;

	if (username.n > 0 ? slice_find_byte(username, ':') >= 0 : slice_find_byte(value, ':') < 0)
		return -EINVAL;
	rc = inject_pair(username, value, &pair);
	if (rc < 0)
		return rc;
	rc = room(out, scheme.n + BASE64_SIZE(pair.n));
	if (rc == 0) {
		put(out, scheme.p, scheme.n);
		out->n += base64_encode(pair.p, pair.n, base64_standard, out->p + out->n);
	}
	secret_free(&pair);
	return rc;
}

int inject_pair(struct slice username, struct slice value, struct secret *out)
{
	int rc = room(out, username.n + 1 + value.n);

	if (rc < 0)
		return rc;
	if (username.n > 0) {
		put(out, username.p, username.n);
		put(out, ":", 1);
	}
	put(out, value.p, value.n);
	return 0;
}

/* Returns what a name in a template stands for. */
static struct slice meaning(
        const struct policy_credential *credential, struct slice name, struct slice value)
{
	return slice_equals(name, SLICE("value"))      ? value
	       : slice_equals(name, SLICE("username")) ? credential->username
	                                               : SLICE("");
}

/* Goes over all templates. Returns the sum of their bytes, and writes them if out has room. */
static size_t walk_fields(
        const struct policy_credential *credential, struct slice value, struct secret *out)
{
	struct slice rest = credential->prefix, field, text, literal, name;
	size_t n = 0;

	for (bool first = true; policy_field_next(&rest, &field, &text); first = false) {
		if (!first && out->p)
			put(out, "\n", 1);
		n += !first;
		while (policy_template_next(&text, &literal, &name)) {
			struct slice piece = literal.n ? literal : meaning(credential, name, value);

			if (out->p)
				put(out, piece.p, piece.n);
			n += piece.n;
		}
	}
	return n;
}

static int render_fields(
        const struct policy_credential *credential, struct slice value, struct secret *out)
{
	size_t n = walk_fields(credential, value, out);
	int rc = n ? room(out, n) : -EINVAL;

	if (rc == 0)
		walk_fields(credential, value, out);
	return rc;
}

int inject_render(
        const struct policy_credential *credential, struct slice value, struct secret *out)
{
	*out = (struct secret){0};
	if (value.n < MASK_VALUE_MIN || !is_field_text(value))
		return -EINVAL;
	switch (credential->inject) {
	case POLICY_INJECT_BEARER:
		return render_prefixed(SLICE("Bearer "), value, out);
	case POLICY_INJECT_BASIC:
	case POLICY_INJECT_DOCKER_REGISTRY: /* for the token service */
		return render_basic(credential->username, value, out);
	case POLICY_INJECT_HEADER:
		return render_prefixed(credential->prefix, value, out);
	case POLICY_INJECT_QUERY:
		return render_query(value, out);
	case POLICY_INJECT_COOKIE:
		return is_cookie_text(value) ? render_prefixed(SLICE(""), value, out) : -EINVAL;
	case POLICY_INJECT_FIELDS:
		return render_fields(credential, value, out);
	case POLICY_INJECT_PLACEHOLDER:
		return render_prefixed(SLICE(""), value, out);
	case POLICY_INJECT_POSTGRES:
		return is_password(value) ? render_prefixed(SLICE(""), value, out) : -EINVAL;
	case POLICY_INJECT_CLIENT_CERTIFICATE: /* not in the request */
	case POLICY_INJECT_HMAC:
	case POLICY_INJECT_SIGV4: /* each request is signed separately */
	case POLICY_INJECT_COUNT:
		break;
	}
	return -EINVAL;
}

struct slice inject_field(const struct policy_credential *credential)
{
	switch (credential->inject) {
	case POLICY_INJECT_BEARER:
	case POLICY_INJECT_BASIC:
	case POLICY_INJECT_SIGV4:
	case POLICY_INJECT_DOCKER_REGISTRY:
		return SLICE("authorization");
	case POLICY_INJECT_HEADER:
		return credential->field;
	case POLICY_INJECT_COOKIE:
		return SLICE("cookie");
	case POLICY_INJECT_QUERY:
	case POLICY_INJECT_HMAC:
	case POLICY_INJECT_PLACEHOLDER:
	case POLICY_INJECT_CLIENT_CERTIFICATE:
	case POLICY_INJECT_POSTGRES:
	case POLICY_INJECT_FIELDS:
	case POLICY_INJECT_COUNT:
		break;
	}
	return (struct slice){"", 0};
}

bool inject_field_next(const struct policy_credential *credential, struct inject_rest *rest,
        struct slice *name, struct slice *rendered, struct slice *value)
{
	struct slice template;
	bool begun = rest->begun;
	ptrdiff_t end;
	size_t n;

	rest->begun = true;
	if (credential->inject != POLICY_INJECT_FIELDS &&
	        credential->inject != POLICY_INJECT_HMAC) {
		*name = inject_field(credential);
		*value = *rendered;
		return !begun && name->n;
	}
	if (!begun)
		rest->fields = credential->prefix;
	if (!policy_field_next(&rest->fields, name, &template))
		return false;
	end = slice_find_byte(*rendered, '\n');
	n = end < 0 ? rendered->n : (size_t)end;
	*value = slice_of(rendered->p, n);
	n += end >= 0;
	*rendered = slice_of(rendered->p + n, rendered->n - n);
	return true;
}
