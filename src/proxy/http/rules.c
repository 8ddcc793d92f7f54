/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a head may hold and what it says about its body: one set of rules for every version of HTTP,
 * independent of any library's tables. docs/http.md has the rules; a test checks each of them over
 * HTTP/1.1 and over HTTP/2.
 */
#include "proxy/http/http.h"
#include "vethguard/policy/method.h"

#define BYTES (~UINT64_C(0) / 255) /* 1 in each byte */
#define HIGHS (BYTES << 7)

static struct http_fault fault(uint16_t status, const char *why)
{
	return (struct http_fault){status, why};
}

struct http_fault http_check_method(struct slice method)
{
	enum policy_method kind = policy_method_of(method);

	switch (kind) {
	case POLICY_METHOD_FINE:
	case POLICY_METHOD_TRACE: /* answered after the policy was asked */
		return HTTP_SOUND;
	case POLICY_METHOD_TOO_LONG: /* RFC 9112 section 3 */
		return fault(HTTP_NOT_IMPLEMENTED, policy_method_fault(kind));
	default:
		return fault(HTTP_MALFORMED, policy_method_fault(kind));
	}
}

struct http_fault http_check_target(struct slice target)
{
	if (target.n > HTTP_TARGET_MAX)
		return fault(HTTP_TARGET_TOO_LONG, "request target too long");
	for (size_t i = 0; i < target.n; i++)
		if (target.p[i] <= ' ' || (uint8_t)target.p[i] >= 0x7f)
			return fault(HTTP_MALFORMED,
			        "a byte in the request target that no URL may have");
	return HTTP_SOUND;
}

/* True if one of eight bytes is a control character (tab included) or DEL. */
static bool may_have_control(uint64_t eight)
{
	uint64_t below_space = (eight - BYTES * 0x20) & ~eight;
	uint64_t del = eight ^ (BYTES * 0x7f);

	return ((below_space | ((del - BYTES) & ~del)) & HIGHS) != 0;
}

bool http_is_value(struct slice s)
{
	size_t i = 0;

	while (i < s.n) {
		uint64_t eight;
		uint8_t c;

		if (s.n - i >= sizeof(eight)) {
			memcpy(&eight, s.p + i, sizeof(eight));
			if (!may_have_control(eight)) {
				i += sizeof(eight);
				continue;
			}
		}
		c = (uint8_t)s.p[i++];
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* --- the body's length (RFC 9110 section 8.6, RFC 9112 section 6.3) --- */

/* Reads a response's lengths: a server may give the same one several times (RFC 9112 section 6.3,
 * rule 5). */
static const char *read_lengths(struct slice value, bool *has, uint64_t *length)
{
	struct slice item;
	bool any = false;
	uint64_t n;

	while (http_list_next(&value, &item)) {
		if (!slice_to_u64(item, INT64_MAX, &n))
			return "content-length is not a number";
		if (*has && n != *length)
			return "content-length given twice, with different values";
		*has = any = true;
		*length = n;
	}
	return any ? NULL : "content-length is not a number";
}

const char *http_read_length(
        const struct http_fields *fields, bool response, bool *has, uint64_t *length)
{
	const char *why = NULL;

	*has = false;
	*length = 0;
	for (size_t i = 0; i < fields->count && !why; i++) {
		const struct http_field *f = &fields->items[i];

		if (f->known != HTTP_CONTENT_LENGTH)
			continue;
		if (response) {
			why = read_lengths(f->value, has, length);
		} else if (*has) {
			why = "content-length given twice";
		} else {
			*has = true;
			if (!slice_to_u64(f->value, INT64_MAX, length))
				why = "content-length is not a number";
		}
	}
	return why;
}

enum http_body http_body_of_nothing(struct slice method)
{
	static const struct slice usual[] = {{"POST", 4}, {"PUT", 3}, {"PATCH", 5}};

	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (slice_equals(method, usual[i]))
			return HTTP_BODY_LENGTH;
	return HTTP_BODY_NONE;
}

/* True for a coding's name, perhaps with parameters (RFC 9112 section 7). */
static bool is_coding(struct slice item)
{
	size_t n = slice_token_length(item);

	return n > 0 && (n == item.n || item.p[n] == ';' || item.p[n] == ' ' || item.p[n] == '\t');
}

struct http_fault http_read_codings(const struct http_fields *fields, bool *chunked)
{
	bool given = false, ends_chunked = false, others = false;

	*chunked = false;
	for (size_t i = 0; i < fields->count; i++) {
		struct slice rest = fields->items[i].value, item;

		if (fields->items[i].known != HTTP_TRANSFER_ENCODING)
			continue;
		given = true;
		while (http_list_next(&rest, &item)) {
			ends_chunked = slice_equals_ignoring_case(item, SLICE("chunked"));
			if (ends_chunked && *chunked)
				return fault(HTTP_MALFORMED, "chunked given twice");
			if (!is_coding(item))
				return fault(HTTP_MALFORMED, "a malformed transfer-encoding");
			*chunked |= ends_chunked;
			others |= !ends_chunked;
		}
	}
	if (given && !ends_chunked)
		return fault(HTTP_MALFORMED, "transfer-encoding that does not end in chunked");
	return others ? fault(HTTP_NOT_IMPLEMENTED, "transfer-encoding other than chunked")
	              : HTTP_SOUND;
}

/* --- what a request expects --- */

struct http_fault http_read_expect(struct http_request *r)
{
	r->expects_continue = false;
	for (size_t i = 0; i < r->fields.count && r->version >= 11; i++) {
		struct slice rest = r->fields.items[i].value, item;

		if (r->fields.items[i].known != HTTP_EXPECT)
			continue;
		while (http_list_next(&rest, &item)) {
			if (!slice_equals_ignoring_case(item, SLICE("100-continue")))
				return fault(
				        HTTP_EXPECTATION_FAILED, "Expect other than 100-continue");
			r->expects_continue = true;
		}
	}
	return HTTP_SOUND;
}
