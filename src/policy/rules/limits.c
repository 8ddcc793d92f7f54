/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: limits: and budget: are mappings from a kind to an amount. A budget has only
 * kinds with a period, and may be shared by all sandboxes with the same value of a label. A rule
 * with either needs a name, because counters that outlive a reload are kept under it.
 */
#include "policy/rules/limits.h"
#include "policy/rules/rule.h"

#define TEXT_MAX 64
#define LABEL_KEY_MAX 64

static const char *const limit_keys[] = {
        "requests", "upload", "download", "tokens", "cost", "connections", "streams", "body", NULL};
static const char *const budget_keys[] = {
        "requests", "upload", "download", "tokens", "cost", "shared", "hosts", NULL};
static const struct tree_refusal limit_refused[] = {
        {"shared", "belongs under budget: a limit counts one sandbox"},
        {"hosts", "belongs under budget: a limit counts one sandbox"},
        {"rate", "does not exist here: write requests: 600/1m"},
        {"bytes", "does not exist here: write upload: or download:"}, {NULL, NULL}};
static const struct tree_refusal budget_refused[] = {
        {"connections", "belongs under limits: a budget counts what passes in a period"},
        {"streams", "belongs under limits: a budget counts what passes in a period"},
        {"body", "belongs under limits: a budget counts what passes in a period"}, {NULL, NULL}};

struct unit {
	const char *name;
	uint64_t size;
};

static const struct unit sizes[] = {{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
        {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}, {"B", 1}, {"", 1}, {NULL, 0}};
static const struct unit counts[] = {{"", 1}, {NULL, 0}};
static const struct unit tokens[] = {
        {"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {"", 1}, {NULL, 0}};
static const struct unit periods[] = {
        {"min", 60}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {NULL, 0}};

/* Reads an amount with a unit, such as "64KiB". bare: a unit without a number counts as one. */
static bool parse(
        struct slice text, const struct unit *units, uint64_t max, bool bare, uint64_t *out)
{
	for (size_t i = 0; units[i].name; i++) {
		struct slice unit = slice_from_string(units[i].name);
		uint64_t count = 1;

		if (!slice_ends_with(text, unit))
			continue;
		struct slice number = slice_of(text.p, text.n - unit.n);
		if (!(bare && number.n == 0 && unit.n) &&
		        !slice_to_u64(number, max / units[i].size, &count))
			continue;
		*out = count * units[i].size;
		return *out > 0;
	}
	return false;
}

static bool is_size(enum policy_limit_kind kind)
{
	return kind == POLICY_LIMIT_UPLOAD || kind == POLICY_LIMIT_DOWNLOAD ||
	       kind == POLICY_LIMIT_BODY;
}

static const char *example_of(enum policy_limit_kind kind)
{
	switch (kind) {
	case POLICY_LIMIT_REQUESTS:
		return "a number in a period, such as 600/1m";
	case POLICY_LIMIT_UPLOAD:
	case POLICY_LIMIT_DOWNLOAD:
		return "a size in a period, such as 10MB/1h";
	case POLICY_LIMIT_TOKENS:
		return "a number of tokens in a period, such as 1M/1d";
	case POLICY_LIMIT_COST:
		return "an amount of money in a period, such as 5/1d or 0.50/1h";
	case POLICY_LIMIT_BODY:
		return "a size, such as 64KiB or 1MB";
	default:
		return "a number, such as 16";
	}
}

/* Reads the amount before the slash, in the form of the limit's kind. */
static bool parse_amount(struct slice text, struct model_limit *out)
{
	if (out->kind == POLICY_LIMIT_COST)
		return load_decimal(text, POLICY_LIMIT_AMOUNT_MAX, &out->amount) && out->amount;
	return parse(text,
	        is_size(out->kind)                 ? sizes
	        : out->kind == POLICY_LIMIT_TOKENS ? tokens
	                                           : counts,
	        POLICY_LIMIT_AMOUNT_MAX, false, &out->amount);
}

static bool parse_limit(struct slice text, struct model_limit *out)
{
	ptrdiff_t slash = slice_find_byte(text, '/');
	bool has_period = policy_limit_has_period(out->kind);
	struct slice amount = slice_of(text.p, slash < 0 ? text.n : (size_t)slash);
	uint64_t period = 0;

	if ((slash >= 0) != has_period || !parse_amount(amount, out))
		return false;
	if (has_period && !parse(slice_of(text.p + slash + 1, text.n - (size_t)slash - 1), periods,
	                          POLICY_LIMIT_PERIOD_MAX_S, true, &period))
		return false;
	out->period_s = (uint32_t)period;
	return true;
}

/* Who shares a budget. */
struct sharing {
	struct slice shared;
	enum policy_hosts hosts;
};

static void take_limit(struct limits_parse *p, const struct tree_node *node,
        enum policy_limit_kind kind, const struct sharing *sharing)
{
	struct model_limit limit = {.rule = p->rule,
	        .kind = kind,
	        .budget = p->budget,
	        .shared = sharing->shared,
	        .hosts = sharing->hosts};
	const char *what = policy_limit_kind_name(kind);
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(p->tree, node, what, TEXT_MAX, &text))
		return;
	if (!parse_limit(text, &limit)) {
		tree_error(p->tree, node, "%s must be %s, not %s%s", what, example_of(kind),
		        tree_quote(text, quoted),
		        policy_limit_has_period(kind)
		                ? "; periods have s, m, h or d and at most 31 days"
		                : "");
		return;
	}
	if (limit.hosts && limit.period_s < POLICY_HOSTS_PERIOD_MIN_S) {
		tree_error(p->tree, node,
		        "%s: a budget that hosts share needs a period of at least 1m, not %s", what,
		        tree_quote(text, quoted));
		return;
	}
	if (p->l->model.limit_count == POLICY_LIMITS_MAX) {
		tree_error(p->tree, node, "more than %d limits in all files together",
		        POLICY_LIMITS_MAX);
		return;
	}
	p->l->model.limits[p->l->model.limit_count++] = limit;
}

static bool is_label_key(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
		            (c >= 'a' && c <= 'z') ||
		            (i > 0 && (c == '.' || c == '_' || c == '-' || c == '/'));

		if (!good)
			return false;
	}
	return s.n > 0;
}

static void take_shared(struct limits_parse *p, const struct tree_node *node, struct slice *shared)
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(p->tree, node, "shared", LABEL_KEY_MAX, &text))
		return;
	if (is_label_key(text))
		*shared = text;
	else
		tree_error(p->tree, node,
		        "shared must be the key of a label, such as team, not %s: all sandboxes "
		        "with the same value of that label share the budget",
		        tree_quote(text, quoted));
}

static void take_hosts(
        struct limits_parse *p, const struct tree_node *node, struct sharing *sharing)
{
	static const char *const words[] = {"closed", "local", NULL};
	int word = tree_word(p->tree, node, "hosts", words);

	if (word < 0)
		return;
	sharing->hosts = word == 0 ? POLICY_HOSTS_CLOSED : POLICY_HOSTS_LOCAL;
	if (!sharing->shared.n)
		tree_error(p->tree, node,
		        "hosts needs shared: the key of a label that says which sandboxes share "
		        "the "
		        "budget");
}

static void take_map(struct limits_parse *p, const struct tree_node *map)
{
	struct sharing sharing = {SLICE(""), POLICY_HOSTS_NONE};
	const struct tree_node *node;

	if (!tree_is_map(p->tree, map, p->budget ? "budget" : "limits"))
		return;
	tree_check_keys(p->tree, map, p->budget ? budget_keys : limit_keys,
	        p->budget ? budget_refused : limit_refused);
	if (p->budget && (node = tree_get(map, "shared")))
		take_shared(p, node, &sharing.shared);
	if (p->budget && (node = tree_get(map, "hosts")))
		take_hosts(p, node, &sharing);
	for (int kind = 0; kind < POLICY_LIMIT_KIND_COUNT; kind++) {
		node = tree_get(map, policy_limit_kind_name((enum policy_limit_kind)kind));
		if (node && (!p->budget || policy_limit_has_period((enum policy_limit_kind)kind)))
			take_limit(p, node, (enum policy_limit_kind)kind, &sharing);
	}
	if (!map->first)
		tree_error(p->tree, map, "%s is empty; write requests: 600/1m, for example",
		        p->budget ? "budget" : "limits");
}

void load_limits(struct limits_parse *p, const struct tree_node *map)
{
	const struct tree_node *limits = tree_get(map, "limits");
	const struct tree_node *budget = tree_get(map, "budget");

	if (limits)
		take_map(p, limits);
	p->budget = true;
	if (budget)
		take_map(p, budget);
	p->budget = false;
	if ((limits || budget) && p->rule != POLICY_NONE && !tree_get(map, "name"))
		tree_error(p->tree, limits ? limits : budget,
		        "a rule with %s needs a name: its counters are kept under it when the "
		        "policy changes; add name: to the rule",
		        limits ? "limits" : "a budget");
}

void load_limits_check(
        const struct limits_parse *p, const struct model_rule *rule, const struct tree_node *map)
{
	const struct tree_node *limits = tree_get(map, "limits");
	bool unread = rule->passthrough;

	if (!limits || (!tree_get(limits, "body") && !tree_get(limits, "streams")))
		return;
	for (size_t l = 0; l < rule->destinations.count; l++)
		for (size_t i = 0; i < rule->destinations.lists[l].count; i++) {
			enum policy_scheme scheme = rule->destinations.lists[l].items[i].scheme;

			unread |= scheme != POLICY_HTTPS && scheme != POLICY_HTTP;
		}
	if (unread)
		tree_error(p->tree, limits,
		        "streams and body are about requests, which vethguard does not read with "
		        "tcp://, udp:// and tls: passthrough; use connections, upload and "
		        "download");
}
