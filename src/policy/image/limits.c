/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the image has the policy's limits first, then the rules' in the order of the
 * rules, so policy_limits_of() finds the limits of a rule by bisection. */
#include "vethguard/policy/limits.h"

#include <assert.h>
#include <stdio.h>

#include "policy/image/image.h"

static const char *const kind_names[] = {
        [POLICY_LIMIT_REQUESTS] = "requests",
        [POLICY_LIMIT_UPLOAD] = "upload",
        [POLICY_LIMIT_DOWNLOAD] = "download",
        [POLICY_LIMIT_TOKENS] = "tokens",
        [POLICY_LIMIT_COST] = "cost",
        [POLICY_LIMIT_CONNECTIONS] = "connections",
        [POLICY_LIMIT_STREAMS] = "streams",
        [POLICY_LIMIT_BODY] = "body",
};
static_assert(
        sizeof(kind_names) / sizeof(kind_names[0]) == POLICY_LIMIT_KIND_COUNT, "a name per kind");

uint32_t policy_limit_count(const struct policy *policy)
{
	return image_count(policy, SECTION_LIMITS);
}

void policy_limit(const struct policy *policy, uint32_t index, struct policy_limit *out)
{
	const struct image_limit *l = image_limit_at(policy, index);

	*out = (struct policy_limit){.rule = l->rule,
	        .kind = (enum policy_limit_kind)l->kind,
	        .amount = l->amount,
	        .period_s = l->period_s,
	        .budget = (l->flags & LIMIT_BUDGET) != 0,
	        .floor = (l->flags & LIMIT_FLOOR) != 0,
	        .shared = image_slice(policy, l->shared),
	        .hosts = l->flags & LIMIT_LOCAL   ? POLICY_HOSTS_LOCAL
	                 : l->flags & LIMIT_HOSTS ? POLICY_HOSTS_CLOSED
	                                          : POLICY_HOSTS_NONE};
}

/* Returns the place of a rule, or of the policy (0), in the order of limits. */
static uint64_t place_of(uint32_t rule)
{
	return rule == POLICY_NONE ? 0 : UINT64_C(1) + rule;
}

/* Returns the index of the first limit at this place or a later one. */
static uint32_t find_place(const struct policy *policy, uint64_t place)
{
	uint32_t low = 0, high = policy_limit_count(policy);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (place_of(image_limit_at(policy, middle)->rule) < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void policy_limits_of(const struct policy *policy, uint32_t rule, uint32_t *first, uint32_t *count)
{
	*first = find_place(policy, place_of(rule));
	*count = find_place(policy, place_of(rule) + 1) - *first;
}

bool policy_limit_has_period(enum policy_limit_kind kind)
{
	return kind <= POLICY_LIMIT_COST;
}

/* --- tokens --- */

const char *const policy_token_names[TOKEN_KINDS] = {"input", "cached", "output"};

#define TOKENS_MOST UINT64_C(1000000000) /* of each kind; no product with a weight overflows */

static bool is_of_tokens(const struct policy *policy, uint32_t rule)
{
	uint32_t first, count;

	policy_limits_of(policy, rule, &first, &count);
	for (uint32_t i = first; i < first + count; i++) {
		const uint32_t kind = image_limit_at(policy, i)->kind;

		if (kind == POLICY_LIMIT_TOKENS || kind == POLICY_LIMIT_COST)
			return true;
	}
	return false;
}

bool policy_counts_tokens(const struct policy *policy, uint32_t rule)
{
	return rule < policy_rule_count(policy) && policy_limit_count(policy) > 0 &&
	       image_rule_at(policy, rule)->flags & RULE_TOKENS &&
	       (is_of_tokens(policy, rule) || is_of_tokens(policy, POLICY_NONE));
}

void policy_rule_tokens(const struct policy *policy, uint32_t rule, enum policy_limit_kind kind,
        uint32_t out[TOKEN_KINDS])
{
	const struct image_rule *r = image_rule_at(policy, rule);

	memcpy(out, kind == POLICY_LIMIT_COST ? r->token_prices : r->token_weights,
	        sizeof(r->token_prices));
}

uint64_t policy_tokens_amount(const struct policy *policy, uint32_t rule,
        enum policy_limit_kind kind, const uint64_t tokens[TOKEN_KINDS])
{
	uint32_t each[TOKEN_KINDS];
	uint64_t sum = 0;

	policy_rule_tokens(policy, rule, kind, each);
	for (int k = 0; k < TOKEN_KINDS; k++)
		sum += (tokens[k] < TOKENS_MOST ? tokens[k] : TOKENS_MOST) * each[k];
	sum = sum / POLICY_MILLIONTHS + (sum % POLICY_MILLIONTHS > 0);
	return sum < POLICY_LIMIT_AMOUNT_MAX ? sum : POLICY_LIMIT_AMOUNT_MAX;
}

const char *policy_limit_kind_name(enum policy_limit_kind kind)
{
	return kind_names[kind];
}

/* --- words --- */

const char *policy_hosts_word(enum policy_hosts hosts)
{
	static const char *const words[POLICY_HOSTS_COUNT] = {
	        [POLICY_HOSTS_CLOSED] = "closed", [POLICY_HOSTS_LOCAL] = "local"};

	return words[hosts];
}

const char *policy_limit_shared_text(
        const struct policy_limit *limit, char out[POLICY_LIMIT_SHARED_MAX])
{
	char label[2 * POLICY_NAME_MAX];

	out[0] = 0;
	if (limit->shared.n)
		snprintf(out, POLICY_LIMIT_SHARED_MAX, ", shared by label %s%s",
		        slice_escape(limit->shared, label, sizeof(label)),
		        limit->hosts == POLICY_HOSTS_CLOSED
		                ? " over hosts (closed without their server)"
		        : limit->hosts == POLICY_HOSTS_LOCAL
		                ? " over hosts (a host's share without their server)"
		                : "");
	return out;
}

static bool is_size(enum policy_limit_kind kind)
{
	return kind == POLICY_LIMIT_UPLOAD || kind == POLICY_LIMIT_DOWNLOAD ||
	       kind == POLICY_LIMIT_BODY;
}

/* Writes a size with the largest unit that divides it. */
static int put_size(char *out, size_t size, uint64_t bytes)
{
	static const struct {
		uint64_t bytes;
		const char *unit;
	} units[] = {{1000000000, "GB"}, {1 << 30, "GiB"}, {1000000, "MB"}, {1 << 20, "MiB"},
	        {1000, "KB"}, {1 << 10, "KiB"}, {1, "B"}};
	size_t i = 0;

	while (bytes % units[i].bytes)
		i++;
	return snprintf(
	        out, size, "%llu%s", (unsigned long long)(bytes / units[i].bytes), units[i].unit);
}

static void put_period(char *out, size_t size, uint32_t s)
{
	if (s % 86400 == 0)
		snprintf(out, size, "/%ud", s / 86400);
	else if (s % 3600 == 0)
		snprintf(out, size, "/%uh", s / 3600);
	else if (s % 60 == 0)
		snprintf(out, size, "/%um", s / 60);
	else
		snprintf(out, size, "/%us", s);
}

const char *policy_decimal(uint64_t millionths, char out[POLICY_DECIMAL_MAX])
{
	int n = snprintf(out, POLICY_DECIMAL_MAX, "%llu.%06llu",
	        (unsigned long long)(millionths / POLICY_MILLIONTHS),
	        (unsigned long long)(millionths % POLICY_MILLIONTHS));

	while (out[n - 1] == '0')
		out[--n] = '\0';
	if (out[n - 1] == '.')
		out[n - 1] = '\0';
	return out;
}

const char *policy_limit_text(const struct policy_limit *limit, char out[POLICY_LIMIT_TEXT_MAX])
{
	char number[POLICY_DECIMAL_MAX];
	size_t n = (size_t)snprintf(
	        out, POLICY_LIMIT_TEXT_MAX, "%s ", policy_limit_kind_name(limit->kind));

	if (limit->kind == POLICY_LIMIT_COST)
		n += (size_t)snprintf(out + n, POLICY_LIMIT_TEXT_MAX - n, "%s",
		        policy_decimal(limit->amount, number));
	else if (is_size(limit->kind))
		n += (size_t)put_size(out + n, POLICY_LIMIT_TEXT_MAX - n, limit->amount);
	else
		n += (size_t)snprintf(out + n, POLICY_LIMIT_TEXT_MAX - n, "%llu",
		        (unsigned long long)limit->amount);
	if (limit->period_s)
		put_period(out + n, POLICY_LIMIT_TEXT_MAX - n, limit->period_s);
	return out;
}

void policy_limit_key(const struct policy *policy, const struct policy_limit *limit,
        uint8_t out[POLICY_LIMIT_KEY])
{
	static const struct hash_key keys[2] = {{0x6c696d6974206b65, 1}, {0x6c696d6974206b65, 2}};
	struct slice name = policy_rule_name(policy, limit->rule);
	char text[POLICY_NAME_MAX + 256];
	int n = snprintf(text, sizeof(text), "%s\n%d\n%.*s%s", policy_limit_kind_name(limit->kind),
	        limit->budget, SLICE_ARG(name), limit->floor ? "\nfloor" : "");
	size_t used = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

	for (size_t i = 0; i < 2; i++) {
		uint64_t hash = hash_bytes(&keys[i], text, used);

		memcpy(out + i * sizeof(hash), &hash, sizeof(hash));
	}
}
