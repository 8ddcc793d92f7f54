/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the facts are read when the event is recorded, from the body that is still
 * held. Nothing is read of a request that carries a placeholder or a secret, or that a finding is
 * about: its names may hold what was found.
 *
 * Holding a body to learn from it must not refuse a request that mode observe would let pass. So
 * only a body of a known length up to the policy's bound (inspect) is held, and only while the
 * worker's other bodies leave half of the room.
 */
#include "proxy/exchange/facts.h"

#include "proxy/exchange/authorize.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/leaks/secrets.h"
#include "vethguard/policy/body.h"

/* True if the body is of a kind that has facts. */
static bool has_wanted_type(const struct http_fields *fields)
{
	static const struct slice types[] = {
	        {"application/json", 16}, {"application/x-git-receive-pack-request", 38}};
	bool wanted = false;

	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];
		ptrdiff_t semicolon = slice_find_byte(f->value, ';');
		struct slice type = slice_trim(
		        slice_of(f->value.p, semicolon < 0 ? f->value.n : (size_t)semicolon));

		if (!http_names_alike(f->name, SLICE("content-type")))
			continue;
		for (size_t k = 0; k < sizeof(types) / sizeof(*types); k++)
			wanted |= slice_equals_ignoring_case(type, types[k]);
	}
	return wanted;
}

bool facts_hold_body(const struct exchange *ex)
{
	const struct http_request *r = &ex->request;
	const struct policy *policy = ex->proxy->config.policy;

	return ex->verdict.allowed && ex->verdict.decision.observed &&
	       !message_form_is_asked(ex->client->form) && !r->wants_upgrade &&
	       r->body == HTTP_BODY_LENGTH && r->content_length > 0 &&
	       r->content_length <= policy_inspect(policy) &&
	       r->content_length + ex->proxy->body_held <= HOLDING_ALL_MAX / 2 &&
	       has_wanted_type(&r->fields);
}

struct slice facts_of(const struct exchange *ex, uint8_t out[REQUEST_FACTS_BYTES_MAX])
{
	const struct http_request *r = &ex->request;
	const struct verdict *j = &ex->verdict;
	const struct policy_fields fields = authorize_fields(&r->fields);
	const struct policy_body *body = ex->holding ? &ex->holding->body : NULL;
	const bool is_read = body && body->state == POLICY_BODY_READ;
	const struct policy_request request = {.method = r->method,
	        .path = slice_of(r->path, r->path_n),
	        .query = r->query,
	        .fields = &fields,
	        .body = is_read ? body : NULL};
	size_t n;

	if (!r->version || !r->path_n || (!is_read && j->allowed && !j->decision.observed) ||
	        j->finding || j->decision.reason == POLICY_REASON_LEAK ||
	        j->decision.reason == POLICY_REASON_SECRET || scanning_is_over(&ex->scanning) ||
	        secrets_are_found(ex))
		return SLICE("");
	n = policy_request_facts(&request, out);
	if (n && ex->value_refused)
		n = request_facts_flag(out, n, REQUEST_FACT_VALUE);
	return slice_of(out, n);
}
