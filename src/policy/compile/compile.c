/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation, in the order of policy_compile(): credentials and rules become structs; each
 * destination of a rule gives a pair (target, entry); the pairs become profiles; and the entries of
 * profiles are filed by path (compile/profiles.c). A policy with one rule for 100,000 hosts has one
 * profile and as many nodes as the rule has paths. Numbers are given in order of appearance, so the
 * same files give the same image apart from the random key of its tables.
 */
#include <errno.h>

#include "policy/compile/compile.h"
#include "policy/decide/reading.h"
#include "policy/url/pattern.h"

#define ENTRY_LOOK_BACK \
	8 /* entries of a rule searched for an equal one; a missed one only makes a duplicate */

/* The variable and the shape of its placeholder, as read_env() of facts.c splits them. */
static struct image_text compile_env(struct compiler *c, const struct policy_credential *from)
{
	if (!from->placeholder.n)
		return compile_text(c, from->env);
	return compile_text(c, arena_printf(c->model->arena, "%.*s %.*s %u", SLICE_ARG(from->env),
	                               SLICE_ARG(from->placeholder), from->placeholder_n));
}

static void compile_credential(struct compiler *c, const struct policy_credential *from)
{
	struct image_credential to = {
	        .name = compile_text(c, from->name),
	        .field = compile_text(c, from->field),
	        .prefix = compile_text(c, from->prefix),
	        .username = compile_text(c, from->username),
	        .env = compile_env(c, from),
	        .location = compile_text(c, from->location),
	        .inject = from->inject,
	        .source = from->source,
	        .first_arg = (uint32_t)c->sections[SECTION_ARGS].n,
	        .arg_count = (uint32_t)from->argc,
	        .ttl_s = from->ttl_s,
	        .timeout_ms = from->timeout_ms,
	        .require = from->require,
	};

	for (size_t i = 0; i < from->argc; i++) {
		struct image_text arg = compile_text(c, from->argv[i]);

		compile_push(c, SECTION_ARGS, &arg);
	}
	compile_push(c, SECTION_CREDENTIALS, &to);
}

/* Denies are compared with every reading of a path; allows also with the shortest reading. */
static struct image_text compile_reading(
        struct compiler *c, const struct model_rule *rule, struct slice pattern)
{
	char bytes[READING_MAX];
	struct slice reading = slice_of(bytes, reading_of_pattern(pattern, bytes));

	if (!rule->deny)
		reading.n = reading_shortest(reading, bytes);
	reading = arena_copy(c->model->arena, reading);
	c->failed |= c->model->arena->failed;
	return compile_text(c, reading);
}

static void compile_patterns(struct compiler *c, const struct model_rule *rule)
{
	for (size_t i = 0; i < rule->path_count && !c->failed; i++) {
		struct image_pattern pattern = {
		        .text = compile_text(c, rule->paths[i]),
		        .reading = compile_reading(c, rule, rule->paths[i]),
		        .rank = pattern_rank(rule->paths[i]),
		        .simple = reading_pattern_is_simple(rule->paths[i]),
		};

		compile_push(c, SECTION_PATTERNS, &pattern);
	}
}

static void compile_conditions(struct compiler *c, const struct model_rule *rule)
{
	for (size_t i = 0; i < rule->condition_count; i++) {
		const struct model_condition *from = &rule->conditions[i];
		struct image_condition to = {
		        .name = compile_text(c, from->name),
		        .kind = from->kind,
		        .need = from->need,
		        .first_value = (uint32_t)c->sections[SECTION_VALUES].n,
		        .value_count = (uint32_t)from->value_count,
		};

		for (size_t k = 0; k < from->value_count; k++) {
			struct image_text value = compile_text(c, from->values[k]);

			compile_push(c, SECTION_VALUES, &value);
		}
		compile_push(c, SECTION_CONDITIONS, &to);
	}
}

/* The entry of a rule for a scheme and ports. Reuses an equal entry if it is among the last few. */
static uint32_t entry_of(struct compiler *c, struct image_entry want, size_t first_entry)
{
	size_t n = c->sections[SECTION_ENTRIES].n;

	for (size_t i = n; i > first_entry && n - i < ENTRY_LOOK_BACK; i--)
		if (memcmp(compile_entry(c, (uint32_t)i - 1), &want, sizeof(want)) == 0)
			return (uint32_t)i - 1;
	return compile_push(c, SECTION_ENTRIES, &want);
}

/* The range of one port. Reuses an equal range of the same rule if it is among the last few. */
static uint32_t range_of(struct compiler *c, uint16_t port, size_t first_range)
{
	struct image_range want = {port, port};
	size_t n = c->sections[SECTION_RANGES].n;

	for (size_t i = n; i > first_range && n - i < ENTRY_LOOK_BACK; i--)
		if (memcmp(vec_at(&c->sections[SECTION_RANGES], i - 1), &want, sizeof(want)) == 0)
			return (uint32_t)i - 1;
	return compile_push(c, SECTION_RANGES, &want);
}

static void count_glob_labels(struct image_header *h, struct slice suffix)
{
	uint32_t labels = 1;

	for (size_t i = 0; i < suffix.n; i++)
		labels += suffix.p[i] == '.';
	if (h->glob_labels_max < labels)
		h->glob_labels_max = labels;
	if (h->glob_labels_min == 0 || h->glob_labels_min > labels)
		h->glob_labels_min = labels;
}

static uint32_t target_of(struct compiler *c, struct slice key)
{
	bool added;
	uint32_t id = intern_put(&c->targets, key, &added);
	struct slice bare = slice_of(key.p + 1, key.n - 1);
	struct image_target target = {.kind = (uint32_t)key.p[0]};

	if (id == UINT32_MAX)
		c->failed = true;
	if (!added)
		return id;
	if (target.kind == TARGET_GLOB)
		count_glob_labels(&c->header, bare);
	if (target.kind == TARGET_PREFIX) {
		uint32_t *bits = bare.p[0] == 4 ? c->header.prefix4_bits : c->header.prefix6_bits;
		uint8_t n = (uint8_t)bare.p[1];

		bits[n / 32] |= 1u << (n % 32);
	}
	target.key = compile_text(c, bare);
	compile_push(c, SECTION_TARGETS, &target);
	return id;
}

/* want: has the rule, and tells whether the destination is one of its exceptions. */
static void compile_destination(struct compiler *c, struct image_entry want,
        const struct model_destination *d, size_t first_entry, uint32_t first_range)
{
	const struct model_rule *rule = compile_rule(c, want.rule);
	struct compile_pair pair = {.order = want.except ? COMPILE_EXCEPT : compile_order(rule),
	        .pattern = POLICY_NONE};

	want.scheme = d->scheme;

	if (d->port == 0 && rule->port_count > 0) {
		want.first_range = first_range;
		want.range_count = (uint32_t)rule->port_count;
	} else {
		uint16_t port = d->port ? d->port : policy_scheme_default_port(d->scheme);

		want.first_range = range_of(c, port, first_range + rule->port_count);
		want.range_count = 1;
	}
	pair.entry = entry_of(c, want, first_entry);
	pair.owner = target_of(c, d->key);
	if (!vec_append(&c->pairs, &pair, 1))
		c->failed = true;
}

static void compile_rule_destinations(struct compiler *c, uint32_t index)
{
	const struct model_rule *rule = compile_rule(c, index);
	size_t first_entry = c->sections[SECTION_ENTRIES].n;
	uint32_t first_range = (uint32_t)c->sections[SECTION_RANGES].n;

	if (!vec_append(&c->sections[SECTION_RANGES], rule->ports, rule->port_count))
		c->failed = true;
	for (uint32_t except = 0; except <= 1; except++) {
		const struct model_lists *of = except ? &rule->except : &rule->destinations;

		for (size_t l = 0; l < of->count && !c->failed; l++)
			for (size_t i = 0; i < of->lists[l].count && !c->failed; i++)
				compile_destination(c,
				        (struct image_entry){.rule = index, .except = except},
				        &of->lists[l].items[i], first_entry, first_range);
	}
}

static struct slice seals_text(struct compiler *c, const struct model_rule *rule)
{
	return rule->seals ? arena_printf(c->model->arena, "%.*s (answers are sealed)",
	                             SLICE_ARG(c->model->credentials[rule->credential].c.name))
	                   : SLICE("");
}

static void compile_one_rule(struct compiler *c, uint32_t index)
{
	const struct model_rule *rule = compile_rule(c, index);
	struct image_rule out = {
	        .name = compile_text(c, rule->name),
	        .text = compile_text(c, rule->reason),
	        .to = compile_text(c, rule->to),
	        .file = compile_text(c, slice_from_string(rule->mark.file)),
	        .methods = rule->methods,
	        .line = rule->mark.line,
	        .flags = (rule->deny ? RULE_DENY : 0u) |
	                 (rule->passthrough ? RULE_PASSTHROUGH : 0u) |
	                 (rule->has_methods ? RULE_METHODS : 0u) |
	                 (rule->path_count ? RULE_PATHS : 0u) |
	                 (rule->except.count ? RULE_EXCEPT : 0u) |
	                 (rule->condition_count ? RULE_CONDITIONS : 0u) |
	                 (model_has_condition(rule, CONDITION_MCP) ? RULE_MCP : 0u) |
	                 (model_has_condition(rule, CONDITION_GRAPHQL) ? RULE_GRAPHQL : 0u) |
	                 (rule->layer == POLICY_LAYER_FLOOR ? RULE_FLOOR : 0u) |
	                 (rule->layer == POLICY_LAYER_INFRASTRUCTURE ? RULE_INFRASTRUCTURE : 0u) |
	                 (rule->counts_tokens ? RULE_TOKENS : 0u) | (rule->wait_s ? RULE_ASK : 0u),
	        .credential = rule->credential,
	        .first_pattern = (uint32_t)c->sections[SECTION_PATTERNS].n,
	        .pattern_count = (uint32_t)rule->path_count,
	        .upgrades = compile_text(c, rule->upgrades),
	        .conditions = compile_text(c, rule->conditions_text),
	        .first_condition = (uint32_t)c->sections[SECTION_CONDITIONS].n,
	        .condition_count = (uint32_t)rule->condition_count,
	        .wait_s = rule->wait_s,
	        .seals = compile_text(c, seals_text(c, rule)),
	};

	memcpy(out.token_weights, rule->token_weights, sizeof(out.token_weights));
	memcpy(out.token_prices, rule->token_prices, sizeof(out.token_prices));
	compile_push(c, SECTION_RULES, &out);
	compile_patterns(c, rule);
	compile_conditions(c, rule);
	compile_rule_destinations(c, index);
}

static int refuse_size(struct compiler *c, const char *what)
{
	const struct model_rule *rule = c->model->rules.n ? compile_rule(c, 0) : NULL;

	diag_add(c->model->diags, rule ? rule->mark.file : "policy", 0, 0,
	        "the policy is too large to compile: %s; split it or name fewer of them", what);
	return -EINVAL;
}

static void compile_inner(
        struct compiler *c, enum image_section_id id, const struct model_inner *inner)
{
	if (inner->image && !vec_append(&c->sections[id], inner->image, inner->size))
		c->failed = true;
}

static int compile_all(struct compiler *c)
{
	for (size_t i = 0; i < c->model->credential_count; i++)
		compile_credential(c, &c->model->credentials[i].c);
	for (size_t i = 0; i < c->model->method_count; i++) {
		struct image_text method = compile_text(c, c->model->methods[i]);

		compile_push(c, SECTION_METHODS, &method);
	}
	for (uint32_t i = 0; i < c->model->rules.n && !c->failed; i++) {
		compile_one_rule(c, i);
		if (c->pairs.n > MODEL_PAIRS_MAX)
			return refuse_size(c, "too many destinations in all rules together");
	}
	compile_exposes(c);
	compile_limits(c);
	compile_dlps(c);
	compile_inner(c, SECTION_FLOOR, &c->model->floor);
	compile_inner(c, SECTION_INFRASTRUCTURE, &c->model->infrastructure);
	compile_profiles(c);
	for (uint32_t i = 0; i < c->sections[SECTION_PROFILES].n && !c->failed; i++) {
		compile_profile_nodes(c, i);
		if (c->candidates.n > MODEL_CANDIDATES_MAX)
			return refuse_size(c, "too many paths for differing destinations");
	}
	compile_candidates(c);
	return c->failed ? -ENOMEM : 0;
}

static void compiler_init(struct compiler *c, struct model *model)
{
	memset(c, 0, sizeof(*c));
	c->model = model;
	for (int i = 0; i < SECTION_COUNT; i++)
		vec_init(&c->sections[i], image_element_size[i]);
	intern_init(&c->strings);
	intern_init(&c->targets);
	intern_init(&c->profiles);
	intern_init(&c->nodes);
	vec_init(&c->string_at, sizeof(uint32_t));
	vec_init(&c->pairs, sizeof(struct compile_pair));
	vec_init(&c->candidates, sizeof(struct compile_pair));
	vec_init(&c->lists, sizeof(uint32_t));
}

static void compiler_fini(struct compiler *c)
{
	for (int i = 0; i < SECTION_COUNT; i++)
		vec_fini(&c->sections[i]);
	intern_fini(&c->strings);
	intern_fini(&c->targets);
	intern_fini(&c->profiles);
	intern_fini(&c->nodes);
	vec_fini(&c->string_at);
	vec_fini(&c->pairs);
	vec_fini(&c->candidates);
	vec_fini(&c->lists);
}

int policy_compile(struct model *model, uint8_t **image, size_t *size)
{
	struct compiler c;
	int rc;

	compiler_init(&c, model);
	rc = compile_all(&c);
	if (rc == 0)
		rc = compile_check_conflicts(&c);
	if (rc == 0)
		rc = compile_write(&c, image, size);
	compiler_fini(&c);
	return rc;
}
