/* SPDX-License-Identifier: Apache-2.0 */
/* Counts tokens; see token_count.h. */
#include "proxy/limit/token_count.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"
#include "vethguard/base/log.h"

#define BYTES_PER_TOKEN 4 /* for estimates: about as many as a token of English text has */

struct token_count {
	struct token_meter meter;
	uint64_t told[TOKEN_KINDS]; /* in fields of the response's head */
	bool coded; /* the content is compressed, although plain content was asked for */
	bool whole;
};

/* Amazon Bedrock tells the counts in these fields, because the body's form is the model's own. */
static const struct {
	struct slice name;
	enum token_kind kind;
} fields[] = {{{"x-amzn-bedrock-input-token-count", 32}, TOKEN_INPUT},
        {{"x-amzn-bedrock-cache-read-input-token-count", 43}, TOKEN_CACHED},
        {{"x-amzn-bedrock-output-token-count", 33}, TOKEN_OUTPUT}};

static uint32_t rule_of(const struct exchange *ex)
{
	return ex->verdict.decision.rule;
}

bool token_count_begin(struct exchange *ex, const char **why)
{
	if (!policy_counts_tokens(ex->proxy->config.policy, rule_of(ex)))
		return true;
	if (ex->request.wants_websocket || ex->request.upgrade.n) {
		*why = "the policy counts tokens here, which cannot be done once a connection has "
		       "changed its protocol";
		return false;
	}
	if (!exchange_has_body(ex)) /* a list of models, for example */
		return true;
	ex->tokens = calloc(1, sizeof(*ex->tokens));
	if (!ex->tokens)
		*why = "no memory to count tokens";
	return ex->tokens;
}

void token_count_head(struct exchange *ex, const struct http_response *r)
{
	struct token_count *t = ex->tokens;

	for (size_t i = 0; i < r->fields.count; i++) {
		const struct http_field *f = &r->fields.items[i];
		uint64_t n;

		for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++)
			if (slice_equals_ignoring_case(f->name, fields[k].name) &&
			        slice_to_u64(f->value, TOKEN_METER_MOST, &n))
				t->told[fields[k].kind] = n;
		t->coded |= slice_equals_ignoring_case(f->name, SLICE("content-encoding")) &&
		            !slice_equals_ignoring_case(f->value, SLICE("identity"));
	}
}

void token_count_take(struct exchange *ex, const uint8_t *p, size_t n)
{
	token_meter_take(&ex->tokens->meter, p, n);
}

void token_count_whole(struct exchange *ex)
{
	ex->tokens->whole = true;
}

static uint64_t estimate(uint64_t bytes)
{
	uint64_t n = (bytes + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;

	return n < TOKEN_METER_MOST ? n : TOKEN_METER_MOST;
}

/* Completes the response's counts in out by fields of the head and by estimates. told: the body had
 * some. */
static void complete(const struct exchange *ex, bool told, uint64_t out[TOKEN_KINDS])
{
	const struct token_count *t = ex->tokens;
	const uint64_t answer = estimate(t->coded ? ex->bytes_in * BYTES_PER_TOKEN : ex->bytes_in);

	for (int k = 0; k < TOKEN_KINDS; k++) {
		told |= t->told[k] > 0;
		out[k] = out[k] > t->told[k] ? out[k] : t->told[k];
	}
	if ((told && t->whole) || ex->status >= 400)
		return; /* a server that refuses bills nothing, unless it says so */
	if (!out[TOKEN_INPUT] && !out[TOKEN_CACHED])
		out[TOKEN_INPUT] = estimate(ex->bytes_out);
	if (out[TOKEN_OUTPUT] < answer)
		out[TOKEN_OUTPUT] = answer;
}

void token_count_fini(struct exchange *ex)
{
	static const enum policy_limit_kind kinds[] = {POLICY_LIMIT_TOKENS, POLICY_LIMIT_COST};
	const struct policy *policy = ex->proxy->config.policy;
	uint64_t n[TOKEN_KINDS];
	bool told;

	if (!ex->tokens)
		return;
	told = token_meter_read(&ex->tokens->meter, n);
	if (ex->sending.state != SENDING_NOTHING && rule_of(ex) < policy_rule_count(policy)) {
		complete(ex, told, n);
		log_debug("event %016" PRIx64 ": tokens: %" PRIu64 " in, %" PRIu64
		          " cached, %" PRIu64 " out%s",
		        ex->id, n[TOKEN_INPUT], n[TOKEN_CACHED], n[TOKEN_OUTPUT],
		        told && ex->tokens->whole ? "" : " (estimated)");
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			limit_charge(ex->proxy, rule_of(ex), kinds[i],
			        policy_tokens_amount(policy, rule_of(ex), kinds[i], n));
	}
	free(ex->tokens);
	ex->tokens = NULL;
}
