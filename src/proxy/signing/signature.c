/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's own signature is never verified, because its keys are worth nothing. But the real
 * signature will name the same region, service and fields, as far as the policy permits. So the
 * sandbox's signature is parsed strictly: a request with two signatures, or with one that cannot be
 * parsed, is refused.
 */
#include "proxy/signing/signature.h"

static const char unread[] = "the request's signature of AWS cannot be read";
static const char twice[] = "the request has more than one signature of AWS";
static const char version_4a[] =
        "the request is signed by Signature Version 4A, which holds in several regions and needs "
        "another kind of key: vethguard signs with Version 4 only; address one region's endpoint, "
        "and no multi-Region access point";
static const char version_2[] = "the request is signed by Signature Version 2, which AWS has given "
                                "up: vethguard signs with Version 4 only";

/* --- the credential and the names --- */

/* Takes the part after the last slash off s. Returns false if there is no slash. */
static bool take_last(struct slice *s, struct slice *part)
{
	const char *slash = s->n ? memrchr(s->p, '/', s->n) : NULL;

	if (!slash)
		return false;
	*part = slice_of(slash + 1, s->n - (size_t)(slash + 1 - s->p));
	s->n = (size_t)(slash - s->p);
	return true;
}

/* Parses KEY/DAY/REGION/SERVICE/aws4_request. */
static void read_credential(struct signature *out, struct slice text)
{
	struct slice end, day;

	if (!take_last(&text, &end) || !slice_equals(end, SLICE("aws4_request")) ||
	        !take_last(&text, &out->service) || !take_last(&text, &out->region) ||
	        !take_last(&text, &day) || day.n != SIGV4_DAY || !text.n ||
	        !sigv4_is_region(out->region) || !sigv4_is_service(out->service))
		out->fault = unread;
	out->key = text;
}

bool signature_covers(const struct signature *signature, struct slice name)
{
	struct slice rest = signature->names;

	while (rest.n) {
		ptrdiff_t end = slice_find_byte(rest, ';');
		size_t n = end < 0 ? rest.n : (size_t)end;

		if (slice_equals_ignoring_case(slice_of(rest.p, n), name))
			return true;
		n += end >= 0;
		rest = slice_of(rest.p + n, rest.n - n);
	}
	return false;
}

/* --- the Authorization field --- */

/* Parses "Credential=..., SignedHeaders=..., Signature=..." in any order. */
static void read_parameters(struct signature *out, struct slice list)
{
	struct slice item, credential = SLICE(""), signature = SLICE("");

	while (http_list_next(&list, &item)) {
		ptrdiff_t equals = slice_find_byte(item, '=');
		struct slice name = slice_of(item.p, equals < 0 ? item.n : (size_t)equals);
		struct slice value =
		        equals < 0 ? SLICE("")
		                   : slice_of(item.p + equals + 1, item.n - (size_t)equals - 1);
		struct slice *into = slice_equals(name, SLICE("Credential"))      ? &credential
		                     : slice_equals(name, SLICE("SignedHeaders")) ? &out->names
		                     : slice_equals(name, SLICE("Signature"))     ? &signature
		                                                                  : NULL;

		if (!into || into->n || !value.n) {
			out->fault = unread;
			return;
		}
		*into = value;
	}
	if (!credential.n || !out->names.n || !signature.n)
		out->fault = unread;
	else
		read_credential(out, credential);
}

/* Takes the scheme's name off the value of Authorization. */
static bool take_scheme(struct slice *value, struct slice scheme)
{
	if (value->n <= scheme.n ||
	        !slice_equals_ignoring_case(slice_of(value->p, scheme.n), scheme) ||
	        value->p[scheme.n] != ' ')
		return false;
	*value = slice_of(value->p + scheme.n + 1, value->n - scheme.n - 1);
	return true;
}

/* An Authorization field of another scheme is not a signature. It is not sent on, because the
 * credential replaces it. */
static void read_authorization(struct signature *out, struct slice value)
{
	if (take_scheme(&value, SLICE("AWS4-ECDSA-P256-SHA256")))
		out->fault = version_4a;
	else if (take_scheme(&value, SLICE("AWS")))
		out->fault = version_2;
	else if (!take_scheme(&value, SLICE(SIGV4_ALGORITHM)))
		return;
	else if (out->form != SIGNATURE_NONE)
		out->fault = twice;
	else
		read_parameters(out, value);
	out->form = SIGNATURE_FIELD;
}

/* --- the query --- */

static const struct slice parameters[] = {{"X-Amz-Algorithm", 15}, {"X-Amz-Credential", 16},
        {"X-Amz-Date", 10}, {"X-Amz-Expires", 13}, {"X-Amz-SignedHeaders", 19},
        {"X-Amz-Signature", 15}, {"X-Amz-Security-Token", 20}, {"X-Amz-Region-Set", 16}};
enum { ALGORITHM, CREDENTIAL, DATE, EXPIRES, NAMES, SIGNATURE, TOKEN, REGION_SET };

bool signature_is_parameter(struct slice pair)
{
	for (size_t i = 0; i < sizeof(parameters) / sizeof(*parameters); i++)
		if (url_parameter_resembles(pair, parameters[i]))
			return true;
	return false;
}

/* Returns the value, decoded into out's own memory; empty if there is no room. */
static struct slice decode(struct signature *out, struct slice pair)
{
	ptrdiff_t equals = slice_find_byte(pair, '=');
	char *from = out->decoded + out->decoded_n;
	size_t n = 0;

	for (size_t i = (size_t)equals + 1; equals >= 0 && i < pair.n; i++) {
		char c = pair.p[i];

		if (out->decoded_n + n == sizeof(out->decoded))
			return SLICE("");
		if (c == '%' && pair.n - i > 2 && slice_hex_digit(pair.p[i + 1]) >= 0 &&
		        slice_hex_digit(pair.p[i + 2]) >= 0) {
			c = (char)((unsigned)slice_hex_digit(pair.p[i + 1]) << 4 |
			           (unsigned)slice_hex_digit(pair.p[i + 2]));
			i += 2;
		}
		from[n++] = c;
	}
	out->decoded_n += n;
	return slice_of(from, n);
}

/* True if all are digits, as in the URL's lifetime. AWS checks its bound itself. */
static bool is_number(struct slice s)
{
	uint64_t seconds;

	return slice_to_u64(s, 31536000, &seconds);
}

static void set_query(struct signature *out, const struct slice found[])
{
	if (out->form != SIGNATURE_NONE) {
		out->fault = twice;
		return;
	}
	out->form = SIGNATURE_QUERY;
	if (slice_equals(found[ALGORITHM], SLICE("AWS4-ECDSA-P256-SHA256")) || found[REGION_SET].n)
		out->fault = version_4a;
	else if (!slice_equals(found[ALGORITHM], SLICE(SIGV4_ALGORITHM)) || !found[CREDENTIAL].n ||
	         !found[NAMES].n || !found[SIGNATURE].n ||
	         (found[EXPIRES].n && !is_number(found[EXPIRES])))
		out->fault = unread;
	if (out->fault)
		return;
	out->names = found[NAMES];
	out->expires = found[EXPIRES];
	read_credential(out, found[CREDENTIAL]);
}

static void set_payload(struct signature *out, struct slice value, bool in_query)
{
	if (out->payload.n && !slice_equals(out->payload, value))
		out->fault = "the request says twice how its body is signed";
	out->payload = value;
	out->payload_in_query = in_query;
}

static void read_query(struct signature *out, struct slice query)
{
	struct slice found[sizeof(parameters) / sizeof(*parameters)] = {{NULL, 0}};
	struct slice pair;
	bool any = false;

	while (url_parameter_next(&query, &pair) && !out->fault) {
		if (url_parameter_is(pair, SLICE("X-Amz-Content-Sha256")))
			set_payload(out, decode(out, pair), true);
		else if (url_parameter_is(pair, SLICE("AWSAccessKeyId")))
			out->fault = version_2;
		for (size_t i = 0; i < sizeof(parameters) / sizeof(*parameters); i++) {
			if (i == TOKEN || i == DATE ||
			        !url_parameter_resembles(pair, parameters[i]))
				continue;
			any |= i == ALGORITHM || i == SIGNATURE;
			if (found[i].n)
				out->fault = twice;
			found[i] = decode(out, pair);
		}
	}
	if (any && !out->fault)
		set_query(out, found);
}

/* --- the body --- */

static bool is_hash(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (slice_hex_digit(s.p[i]) < 0)
			return false;
	return s.n == SIGV4_HEX;
}

static void read_payload(struct signature *out)
{
	struct slice word = out->payload;

	if (!word.n)
		return;
	if (is_hash(word) || slice_equals(word, SLICE(SIGV4_UNSIGNED)) ||
	        slice_equals(word, SLICE("STREAMING-UNSIGNED-PAYLOAD-TRAILER")))
		out->body = SIGNATURE_BODY_WORD;
	else if (slice_equals(word, SLICE("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")))
		out->body = SIGNATURE_BODY_CHUNKS;
	else if (slice_equals(word, SLICE("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")))
		out->body = SIGNATURE_BODY_CHUNKS_AND_TRAILER;
	else if (slice_starts_with(word, SLICE("STREAMING-AWS4-ECDSA-")))
		out->fault = version_4a;
	else if (slice_equals(word, SLICE("STREAMING-AWS4-HMAC-SHA256-EVENTS")))
		out->fault = "the request's body is a stream of signed events, which cannot be "
		             "signed here";
	else
		out->fault = "the request names an unknown way to sign its body "
		             "(x-amz-content-sha256)";
}

void signature_read(const struct http_request *request, struct signature *out)
{
	memset(out, 0, offsetof(struct signature, decoded));
	for (size_t i = 0; i < request->fields.count && !out->fault; i++) {
		const struct http_field *f = &request->fields.items[i];

		if (f->known == HTTP_AUTHORIZATION)
			read_authorization(out, slice_trim(f->value));
		else if (slice_equals_ignoring_case(f->name, SLICE("x-amz-content-sha256")))
			set_payload(out, f->value, false);
	}
	if (request->has_query && !out->fault)
		read_query(out, request->query);
	if (!out->fault)
		read_payload(out);
	if (!out->fault && out->form == SIGNATURE_QUERY && out->body > SIGNATURE_BODY_WORD)
		out->fault = "a presigned URL cannot have a body that is signed in chunks";
}

const char *signature_check(struct signature *signature, const struct policy_credential *spec)
{
	if (signature->fault)
		return signature->fault;
	if (signature->form == SIGNATURE_NONE && policy_signs_for_one(spec)) {
		signature->region = spec->field;
		signature->service = spec->prefix;
	}
	if (signature->form == SIGNATURE_NONE && !signature->region.n)
		return "the request is not signed, and the policy's credential names several "
		       "regions or services: give the client any access key and secret, so that "
		       "its signature says which it means";
	return policy_signs_for(spec, signature->region, signature->service)
	               ? NULL
	               : "the request is signed for a region or service that the policy's "
	                 "credential does not name";
}
