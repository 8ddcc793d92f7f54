/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what goes upstream: the head, made from the authorized struct, with the credential if one
 * is bound, and the trailers that may pass. A head with a credential is written in locked memory
 * only and wiped once it is encrypted.
 *
 * A request with a credential asks for the whole response, as it is or in a coding that vethguard
 * can decompress, so that vethguard can search it.
 */

#include "proxy/exchange/authorize.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/override.h"
#include "proxy/http/content.h"
#include "proxy/http/cookie.h"
#include "proxy/http/websocket.h"
#include "proxy/inject/filling.h"
#include "proxy/inject/registry.h"
#include "proxy/inject/substitute.h"
#include "proxy/leaks/foreign.h"
#include "proxy/rewrite/tools.h"
#include "proxy/signing/signing.h"

static int send_head(struct exchange *ex, struct outgoing *head)
{
	head->request = &ex->request;
	head->ends = exchange_ends_with_head(ex);
	return ex->upstream->ops->send_head(ex->upstream, head);
}

/* gRPC and the Connect protocol compress each message by itself, which no content coding shows. */
static void ask_for_plain_messages(struct http_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		struct http_field *f = &fields->items[i];

		if (slice_equals_ignoring_case(f->name, SLICE("grpc-accept-encoding")) ||
		        slice_equals_ignoring_case(f->name, SLICE("connect-accept-encoding")))
			f->value = SLICE("identity");
	}
}

/* Fields that would make the response come in pieces, as a difference to another one (RFC 3229),
 * or in other bytes. Request-Range is the name of Range before RFC 2068; Apache httpd still
 * obeys it. */
static const struct slice shaping[] = {
        {"range", 5}, {"if-range", 8}, {"request-range", 13}, {"a-im", 4}, {"accept-charset", 14}};
#define SHAPING_RANGES 2 /* the first of them stay if the range is widened */

/* Asks for codings that can be searched, and for the whole response or a part that was widened:
 * otherwise the sandbox could fetch an echo of the credential in pieces, none of which holds all of
 * it. A server may always answer a range request with the whole (RFC 9110 section 14.2). */
static void limit_response(struct exchange *ex)
{
	struct http_fields *fields = &ex->request.fields;
	bool plain = ex->verdict.decision.seals || tools_are_wanted(ex) || ex->tokens;
	bool ranged = !plain && ranging_begin(ex);
	unsigned accepted = plain || ranged ? 0 : content_accepted(fields);

	if (!ranged)
		ranging_drop(ex);
	ex->redacting.accepted = content_forbids_transform(fields) ? 0 : accepted;
	for (size_t i = ranged ? SHAPING_RANGES : 0; i < sizeof(shaping) / sizeof(*shaping); i++)
		http_drop(fields, shaping[i]);
	ask_for_plain_messages(fields);
	http_drop(fields, SLICE("accept-encoding"));
	http_add(fields, SLICE("Accept-Encoding"), content_asking_for(accepted));
}

int exchange_send_plain(struct exchange *ex)
{
	struct outgoing head = {
	        .has_query = ex->request.has_query,
	        .query = ex->request.query,
	};

	http_drop_hop_by_hop(&ex->request.fields);
	if (tools_are_wanted(ex) || ex->tokens)
		limit_response(ex);
	if (ex->request.wants_websocket)
		websocket_limit_offer(&ex->request.fields);
	return send_head(ex, &head);
}

/* Appends to out the sandbox's query without the injected parameter, then that parameter. out then
 * holds the credential. Separators stay as they were, but for '&' beside what was left out. */
static int inject_query(
        struct buf *out, const struct http_request *r, struct slice name, struct slice value)
{
	struct slice rest = r->has_query ? r->query : SLICE(""), pair;
	const char *follows = rest.p; /* where the next one starts if its separator stays */
	int rc = 0;

	while (rc == 0 && url_parameter_next(&rest, &pair)) {
		if (url_parameter_is(pair, name))
			continue;
		if (out->len)
			rc = buf_append(out, follows == pair.p ? pair.p - 1 : "&", 1);
		if (rc == 0)
			rc = buf_append_slice(out, pair);
		follows = rest.p;
	}
	if (rc == 0 && out->len)
		rc = buf_append_slice(out, SLICE("&"));
	if (rc == 0)
		rc = buf_append_slice(out, name);
	if (rc == 0)
		rc = buf_append_slice(out, SLICE("="));
	if (rc == 0)
		rc = buf_append_slice(out, value);
	return rc;
}

/* Appends to out the injected cookie, then, unless it is to be alone, the sandbox's other cookies.
 * out then holds the credential. Fields that the sandbox does not send on (Connection names them)
 * count as not there.
 */
static int inject_cookie(struct buf *out, const struct http_request *r, struct slice name,
        struct slice value, bool alone)
{
	int rc = buf_append_slice(out, name);

	if (rc == 0)
		rc = buf_append_slice(out, SLICE("="));
	if (rc == 0)
		rc = buf_append_slice(out, value);
	for (size_t i = 0; i < r->fields.count && !alone; i++) {
		const struct http_field *f = &r->fields.items[i];
		struct slice rest = f->value, pair;

		if (f->dropped || !slice_equals_ignoring_case(f->name, SLICE("cookie")))
			continue;
		while (rc == 0 && cookie_next(&rest, &pair)) {
			if (cookie_is(pair, name))
				continue;
			rc = buf_append_slice(out, SLICE("; "));
			if (rc == 0)
				rc = buf_append_slice(out, pair);
		}
	}
	return rc;
}

int exchange_inject(struct outgoing *head, const struct http_request *r,
        const struct policy_credential *spec, struct slice value, struct buf *text)
{
	int rc;

	if (spec->inject == POLICY_INJECT_QUERY) {
		rc = inject_query(text, r, spec->field, value);
		head->has_query = true;
		head->query = buf_slice(text);
		return rc;
	}
	for (struct inject_rest rest = {0}; head->field_count < OUTGOING_FIELDS_MAX;
	        head->field_count++) {
		struct outgoing_field *f = &head->fields[head->field_count];

		if (!inject_field_next(spec, &rest, &f->name, &value, &f->value))
			break;
	}
	if (spec->inject != POLICY_INJECT_COOKIE)
		return 0;
	rc = inject_cookie(text, r, spec->field, value, spec->require);
	head->fields[0].value = buf_slice(text);
	return rc;
}

/* Signs the request and sends it otherwise unchanged. The signing key is not sent, so the response
 * need not be searched for it. */
static int send_signed(struct exchange *ex, const struct policy_credential *spec, struct buf *text)
{
	struct http_request *r = &ex->request;
	struct outgoing head = {.request = r, .secret = true};
	int rc;

	http_drop_hop_by_hop(&r->fields);
	if (spec->require)
		http_drop(&r->fields, SLICE("cookie"));
	if (r->wants_websocket)
		websocket_limit_offer(&r->fields);
	rc = spec->inject == POLICY_INJECT_HMAC ? signing_hmac(ex, spec, &head, text)
	                                        : signing_sign(ex, spec, &head, text);
	return rc ? rc : send_head(ex, &head);
}

void exchange_substitute(
        const struct exchange *ex, const struct policy_credential *spec, struct substitute *out)
{
	*out = (struct substitute){.store = ex->proxy->config.credentials,
	        .spec = spec,
	        .credential = ex->verdict.decision.credential,
	        .value = secret_slice(&ex->credential->rendered),
	        .jar = secret_slice(&ex->credential->jar),
	        .sealed = spec->source == POLICY_SOURCE_SEALED};
}

/* Sends the head with the credential's value in place of its placeholder, and fills the body. */
static int send_substituted(struct exchange *ex, const struct policy_credential *spec,
        struct outgoing *head, struct buf *text)
{
	struct substitute_saved saved;
	struct substitute s;
	int rc;

	exchange_substitute(ex, spec, &s);
	s.text = text;
	rc = substitute_fields(&s, &ex->request.fields, &saved);
	if (rc == 0)
		rc = substitute_path(&s, &ex->request, head);
	if (rc == 0)
		rc = substitute_query(&s, head);
	if (rc == 0 && filling_is_secret(ex))
		rc = filling_fill(ex, &s);
	if (rc == 0)
		rc = send_head(ex, head);
	substitute_restore(&saved);
	return rc;
}

int exchange_send_with_credential(struct exchange *ex)
{
	struct proxy *proxy = ex->proxy;
	struct http_request *r = &ex->request;
	struct policy_credential spec;
	struct buf text = proxy_secret_text(proxy, SECRET_TEXT);
	struct slice value = secret_slice(&ex->credential->rendered);
	struct outgoing head = {.has_query = r->has_query, .query = r->query, .secret = true};
	/* The key of a certificate stays here, so no response can hold it. */
	const bool is_sent = !ex->credential->identity;
	int rc;

	policy_credential(proxy->config.policy, ex->verdict.decision.credential, &spec);
	if (ex->verdict.is_signed) {
		if (ex->verdict.decision.seals)
			limit_response(ex);
		rc = send_signed(ex, &spec, &text);
		secret_wipe(text.mem, text.len);
		return rc;
	}
	http_drop_hop_by_hop(&r->fields);
	if (is_sent)
		limit_response(ex);
	if (r->wants_websocket && is_sent) /* deflated frames could not be searched */
		http_drop(&r->fields, SLICE("sec-websocket-extensions"));
	if (spec.require && spec.inject != POLICY_INJECT_COOKIE)
		http_drop(&r->fields, SLICE("cookie")); /* whose account they mean is not known */
	if (spec.inject == POLICY_INJECT_PLACEHOLDER) {
		rc = send_substituted(ex, &spec, &head, &text);
	} else if (spec.inject == POLICY_INJECT_SIGV4) { /* a login with what the program has */
		rc = send_head(ex, &head);
	} else if (spec.inject == POLICY_INJECT_DOCKER_REGISTRY) {
		rc = registry_fill_head(ex, &head, &text);
		if (rc == 0)
			rc = send_head(ex, &head);
	} else {
		rc = exchange_inject(&head, r, &spec, value, &text);
		if (rc == 0)
			rc = send_head(ex, &head);
	}
	secret_wipe(text.mem, text.len);
	return rc;
}

/* --- trailers --- */

/* False for fields that may not be in a trailer section (RFC 9110 section 6.5.1), that carry
 * credentials, that ask for something other than what was authorized, or that choose how the
 * response is written: a server may merge trailers into the head. */
static bool may_trail(
        const struct policy *policy, struct slice name, const struct policy_credential *spec)
{
	static const struct slice never[] = {{"transfer-encoding", 17}, {"content-length", 14},
	        {"host", 4}, {"authorization", 13}, {"cookie", 6}, {"content-encoding", 16},
	        {"content-type", 12}, {"trailer", 7}, {"connection", 10}, {"te", 2}, {"expect", 6},
	        {"upgrade", 7}, {"set-cookie", 10}, {"proxy-authorization", 19},
	        {"proxy-authenticate", 18}, {"keep-alive", 10}, {"content-range", 13},
	        {"proxy-connection", 16}, {"accept-encoding", 15}, {"grpc-accept-encoding", 20},
	        {"connect-accept-encoding", 23}, {"grpc-encoding", 13},
	        {"connect-content-encoding", 24}};

	if (foreign_is_replaced(name, spec) || override_is_named(name) ||
	        foreign_is_key_field(name) || policy_names_field(policy, name))
		return false;
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
		if (http_names_alike(name, never[i]))
			return false;
	for (size_t i = 0; i < sizeof(shaping) / sizeof(*shaping); i++)
		if (http_names_alike(name, shaping[i]))
			return false;
	return true;
}

/* Moves the lines that may pass to the beginning of the buffer in which all of them are. The buffer
 * is the parser's own, and nobody else reads it any more. */
struct slice exchange_filter_trailers(struct exchange *ex, struct slice trailers)
{
	char *kept = (char *)(uintptr_t)trailers.p;
	struct policy_credential spec = {0};
	size_t kept_n = 0;

	if (ex->credential)
		policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, &spec);
	while (trailers.n) {
		const char *lf = memchr(trailers.p, '\n', trailers.n);
		size_t n = lf ? (size_t)(lf - trailers.p) + 1 : trailers.n;
		ptrdiff_t colon = slice_find_byte(slice_of(trailers.p, n), ':');

		if (colon > 0 &&
		        may_trail(ex->proxy->config.policy, slice_of(trailers.p, (size_t)colon),
		                &spec) &&
		        !((ex->redacting.decompress || ranging_cuts(ex->ranging)) &&
		                content_is_digest(slice_of(trailers.p, (size_t)colon)))) {
			memmove(kept + kept_n, trailers.p, n);
			kept_n += n;
		}
		trailers = slice_of(trailers.p + n, trailers.n - n);
	}
	return slice_of(kept, kept_n);
}

struct slice exchange_request_trailers(struct exchange *ex, struct slice trailers)
{
	trailers = exchange_filter_trailers(ex, trailers);
	exchange_scan_request(ex, (const uint8_t *)trailers.p, trailers.n);
	return trailers;
}
