/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the policy once more about a refused request, to word the refusal. */
#include "proxy/deny/refused.h"

#include <string.h>

#include "proxy/exchange/authorize.h"
#include "proxy/exchange/exchange.h"
#include "vethguard/policy/refusal.h"

void refused_explain(
        struct exchange *ex, const struct policy *policy, const struct policy_body *body)
{
	const struct http_request *r = &ex->request;
	const struct policy_fields fields = authorize_fields(&r->fields);
	const struct policy_request question = {
	        .scheme = ex->client->tls ? POLICY_HTTPS : POLICY_HTTP,
	        .host = destination_host(&ex->destination),
	        .address = ex->destination.address,
	        .port = ex->destination.port,
	        .method = r->method,
	        .path = r->asterisk ? SLICE("/") : slice_of(r->path, r->path_n),
	        .query = r->query,
	        .fields = &fields,
	        .body = body,
	};
	struct policy_refusal refusal;

	if ((ex->verdict.allowed && !ex->verdict.decision.observed) || ex->verdict.detail ||
	        ex->kept_detail || ex->verdict.decision.reason != POLICY_REASON_CONDITION ||
	        !policy_explain_refusal(policy, &question, &refusal))
		return;
	ex->value_refused = refusal.of_value;
	if (!ex->verdict.allowed)
		ex->kept_detail = strdup(refusal.text);
}
