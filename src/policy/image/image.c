/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: image_open() walks every struct of every section once and checks each
 * offset, count and index in it, so that the readers (decide.c, facts.c, explain.c) follow them
 * without checks. It does not check that the image makes sense, only that reading it stays inside
 * and ends.
 */
#include <assert.h>
#include <errno.h>

#include "policy/decide/reading.h"
#include "policy/image/image.h"
#include "policy/json/json_path.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/expose.h"
#include "vethguard/policy/limits.h"

const uint32_t image_element_size[] = {
        [SECTION_STRINGS] = 1,
        [SECTION_RULES] = sizeof(struct image_rule),
        [SECTION_ENTRIES] = sizeof(struct image_entry),
        [SECTION_RANGES] = sizeof(struct image_range),
        [SECTION_METHODS] = sizeof(struct image_text),
        [SECTION_PATTERNS] = sizeof(struct image_pattern),
        [SECTION_PROFILES] = sizeof(struct image_profile),
        [SECTION_REFS] = sizeof(uint32_t),
        [SECTION_TARGETS] = sizeof(struct image_target),
        [SECTION_NODES] = sizeof(struct image_node),
        [SECTION_CANDIDATES] = sizeof(struct image_candidate),
        [SECTION_CREDENTIALS] = sizeof(struct image_credential),
        [SECTION_ARGS] = sizeof(struct image_text),
        [SECTION_CONDITIONS] = sizeof(struct image_condition),
        [SECTION_VALUES] = sizeof(struct image_text),
        [SECTION_EXPOSES] = sizeof(struct image_expose),
        [SECTION_FROMS] = sizeof(struct image_from),
        [SECTION_LIMITS] = sizeof(struct image_limit),
        [SECTION_DLPS] = sizeof(struct image_dlp),
        [SECTION_TARGET_SLOTS] = sizeof(struct image_slot),
        [SECTION_NODE_SLOTS] = sizeof(struct image_slot),
        [SECTION_FLOOR] = 1,
        [SECTION_INFRASTRUCTURE] = 1,
};
static_assert(sizeof(image_element_size) / sizeof(image_element_size[0]) == SECTION_COUNT,
        "one size per section");

static bool header_is_sound(const struct image_header *h, size_t size)
{
	if (memcmp(h->magic, IMAGE_MAGIC, sizeof(h->magic)) != 0 || h->version != IMAGE_VERSION)
		return false;
	if (h->size != size || h->mode > POLICY_OBSERVE || h->glob_labels_max > IMAGE_LABELS_MAX)
		return false;
	if (h->leaks_pass > 1 || h->silent > 1 || h->inspect < POLICY_INSPECT_MIN ||
	        h->inspect > POLICY_INSPECT_MAX)
		return false;
	for (size_t i = 0; i < IMAGE_FINGERPRINT; i++)
		if (slice_find_byte(SLICE("0123456789abcdef"), h->fingerprint[i]) < 0)
			return false;
	for (size_t i = 0; i < SECTION_COUNT; i++) {
		const struct image_section *s = &h->sections[i];

		if (s->at % IMAGE_ALIGN != 0 || s->at < sizeof(*h) || s->at > size)
			return false;
		if (s->count > (size - s->at) / image_element_size[i])
			return false;
	}
	return true;
}

static bool range_is_inside(
        const struct policy *policy, enum image_section_id id, uint32_t first, uint32_t count)
{
	uint32_t all = image_count(policy, id);

	return first <= all && count <= all - first;
}

static bool text_is_sound(const struct policy *policy, struct image_text text, size_t max)
{
	return text.n <= max && range_is_inside(policy, SECTION_STRINGS, text.at, text.n);
}

static bool asking_is_sound(const struct policy *policy, uint32_t rule)
{
	const struct image_rule *r = image_rule_at(policy, rule);
	uint32_t count = image_header(policy)->rule_count;
	bool shadow = (r->flags & RULE_ASK) != 0 && (r->flags & RULE_DENY) != 0;

	if (((r->flags & RULE_ASK) != 0) != (r->wait_s != 0) || shadow != (rule >= count))
		return false;
	return shadow ? r->wait_s <= count : r->wait_s <= POLICY_ASK_WAIT_MAX_S;
}

static bool rules_are_sound(const struct policy *policy)
{
	uint32_t credentials = image_count(policy, SECTION_CREDENTIALS);

	if (image_header(policy)->rule_count > image_count(policy, SECTION_RULES))
		return false;

	for (uint32_t i = 0; i < image_count(policy, SECTION_RULES); i++) {
		const struct image_rule *r = image_rule_at(policy, i);

		if (!text_is_sound(policy, r->name, UINT32_MAX) ||
		        !text_is_sound(policy, r->text, UINT32_MAX) ||
		        !text_is_sound(policy, r->to, UINT32_MAX) ||
		        !text_is_sound(policy, r->upgrades, UINT32_MAX) ||
		        !text_is_sound(policy, r->seals, UINT32_MAX) ||
		        (r->seals.n && r->credential == POLICY_NONE) ||
		        !text_is_sound(policy, r->conditions, UINT32_MAX) ||
		        !text_is_sound(policy, r->file, UINT32_MAX))
			return false;
		if (!asking_is_sound(policy, i))
			return false;
		if (r->credential != POLICY_NONE && r->credential >= credentials)
			return false;
		if (!range_is_inside(
		            policy, SECTION_PATTERNS, r->first_pattern, r->pattern_count) ||
		        !range_is_inside(
		                policy, SECTION_CONDITIONS, r->first_condition, r->condition_count))
			return false;
	}
	return true;
}

static bool entries_are_sound(const struct policy *policy)
{
	for (uint32_t i = 0; i < image_count(policy, SECTION_ENTRIES); i++) {
		const struct image_entry *e = image_entry_at(policy, i);

		if (e->rule >= image_count(policy, SECTION_RULES) ||
		        e->scheme >= POLICY_SCHEME_COUNT || e->except > 1)
			return false;
		if (!range_is_inside(policy, SECTION_RANGES, e->first_range, e->range_count))
			return false;
	}
	return true;
}

static bool patterns_are_sound(const struct policy *policy)
{
	const struct image_text *method = image_section(policy, SECTION_METHODS);

	if (image_count(policy, SECTION_METHODS) > IMAGE_METHODS_MAX)
		return false;
	for (uint32_t i = 0; i < image_count(policy, SECTION_METHODS); i++)
		if (!text_is_sound(policy, method[i], POLICY_METHOD_MAX))
			return false;
	for (uint32_t i = 0; i < image_count(policy, SECTION_PATTERNS); i++) {
		const struct image_pattern *p = image_pattern_at(policy, i);

		if (!text_is_sound(policy, p->text, POLICY_PATH_MAX) || p->text.n == 0 ||
		        !text_is_sound(policy, p->reading, READING_MAX))
			return false;
	}
	return true;
}

static bool json_condition_is_sound(const struct policy *policy, const struct image_condition *c)
{
	const struct image_text *value = image_section(policy, SECTION_VALUES);

	for (uint32_t i = 0; i < c->value_count; i++)
		if (!json_value_is_sound(image_slice(policy, value[c->first_value + i])))
			return false;
	return json_path_is_sound(image_slice(policy, c->name));
}

/* True if each value of the condition begins with one of the bytes. */
static bool values_begin_with(
        const struct policy *policy, const struct image_condition *c, struct slice bytes)
{
	const struct image_text *value = image_section(policy, SECTION_VALUES);

	for (uint32_t i = 0; i < c->value_count; i++) {
		struct slice text = image_slice(policy, value[c->first_value + i]);

		if (text.n == 0 || slice_find_byte(bytes, text.p[0]) < 0)
			return false;
	}
	return true;
}

static bool conditions_are_sound(const struct policy *policy)
{
	const struct image_text *value = image_section(policy, SECTION_VALUES);

	for (uint32_t i = 0; i < image_count(policy, SECTION_VALUES); i++)
		if (!text_is_sound(policy, value[i], POLICY_VALUE_MAX + 1))
			return false;
	for (uint32_t i = 0; i < image_count(policy, SECTION_CONDITIONS); i++) {
		const struct image_condition *c = image_condition_at(policy, i);

		if (c->kind >= CONDITION_KIND_COUNT || c->need >= CONDITION_NEED_COUNT ||
		        !text_is_sound(policy, c->name, POLICY_VALUE_MAX) ||
		        !range_is_inside(policy, SECTION_VALUES, c->first_value, c->value_count))
			return false;
		if (condition_is_json(c->kind) && !json_condition_is_sound(policy, c))
			return false;
		if ((c->kind == CONDITION_MCP && !values_begin_with(policy, c, SLICE("tmd"))) ||
		        (c->kind == CONDITION_GRAPHQL &&
		                !values_begin_with(policy, c, SLICE("ofp"))) ||
		        (c->kind == CONDITION_LLM && !values_begin_with(policy, c, SLICE("mn"))) ||
		        (c->kind == CONDITION_GIT &&
		                !values_begin_with(policy, c, SLICE("/pofdt"))) ||
		        (c->kind == CONDITION_GRPC && !values_begin_with(policy, c, SLICE("sm"))))
			return false;
	}
	return true;
}

static bool profiles_are_sound(const struct policy *policy)
{
	for (uint32_t i = 0; i < image_count(policy, SECTION_PROFILES); i++) {
		const struct image_profile *p = image_profile_at(policy, i);

		if (!range_is_inside(policy, SECTION_REFS, p->first_ref, p->ref_count) ||
		        !range_is_inside(
		                policy, SECTION_REFS, p->first_ref + p->ref_count, p->except_count))
			return false;
		if (p->deny_connection > p->deny || p->deny > p->ref_count)
			return false;
	}
	for (uint32_t i = 0; i < image_count(policy, SECTION_REFS); i++)
		if (image_ref_at(policy, i) >= image_count(policy, SECTION_ENTRIES))
			return false;
	return true;
}

static bool targets_are_sound(const struct policy *policy)
{
	for (uint32_t i = 0; i < image_count(policy, SECTION_TARGETS); i++) {
		const struct image_target *t = image_target_at(policy, i);

		if (t->kind >= TARGET_KIND_COUNT ||
		        t->profile >= image_count(policy, SECTION_PROFILES))
			return false;
		if (!text_is_sound(policy, t->key, POLICY_HOST_MAX))
			return false;
		if (t->kind == TARGET_PREFIX && t->key.n != IMAGE_PREFIX_KEY)
			return false;
	}
	return true;
}

static bool nodes_are_sound(const struct policy *policy)
{
	for (uint32_t i = 0; i < image_count(policy, SECTION_NODES); i++) {
		const struct image_node *n = image_node_at(policy, i);

		if (n->profile >= image_count(policy, SECTION_PROFILES) || n->deny > 1 ||
		        !text_is_sound(policy, n->start, POLICY_PATH_MAX))
			return false;
		if (!range_is_inside(
		            policy, SECTION_CANDIDATES, n->first_candidate, n->candidate_count))
			return false;
	}
	for (uint32_t i = 0; i < image_count(policy, SECTION_CANDIDATES); i++) {
		const struct image_candidate *c = image_candidate_at(policy, i);

		if (c->entry >= image_count(policy, SECTION_ENTRIES))
			return false;
		if (c->pattern != POLICY_NONE &&
		        c->pattern >= image_count(policy, SECTION_PATTERNS))
			return false;
	}
	return true;
}

static bool slots_are_sound(const struct policy *policy, enum image_section_id id, uint32_t items)
{
	const struct image_slot *slot = image_section(policy, id);
	uint32_t count = image_count(policy, id);

	if ((count & (count - 1)) != 0 || (count == 0 && items != 0))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (slot[i].index != IMAGE_EMPTY && slot[i].index >= items)
			return false;
	return true;
}

static bool credential_is_sound(const struct policy *policy, const struct image_credential *c)
{
	const struct image_text texts[] = {
	        c->name, c->field, c->prefix, c->username, c->env, c->location};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!text_is_sound(policy, texts[i], UINT32_MAX))
			return false;
	return c->inject < POLICY_INJECT_COUNT && c->require <= 1 &&
	       c->source < POLICY_SOURCE_COUNT && c->arg_count <= POLICY_ARGV_MAX &&
	       range_is_inside(policy, SECTION_ARGS, c->first_arg, c->arg_count);
}

static bool credentials_are_sound(const struct policy *policy)
{
	const struct image_text *arg = image_section(policy, SECTION_ARGS);
	uint32_t count = image_count(policy, SECTION_CREDENTIALS);

	for (uint32_t i = 0; i < image_count(policy, SECTION_ARGS); i++)
		if (!text_is_sound(policy, arg[i], UINT32_MAX))
			return false;
	for (uint32_t i = 0; i < count; i++)
		if (!credential_is_sound(policy, image_credential_at(policy, i)))
			return false;
	return count <= POLICY_CREDENTIALS_MAX;
}

/* An address or a network is IMAGE_PREFIX_KEY bytes: family, bits, address. */
static bool network_is_sound(const struct policy *policy, struct image_text text)
{
	struct slice key = image_slice(policy, text);
	uint8_t bits;

	if (key.n != IMAGE_PREFIX_KEY)
		return false;
	bits = (uint8_t)key.p[1];
	return (key.p[0] == 4 && bits <= 32) || (key.p[0] == 6 && bits <= 128);
}

static bool from_is_sound(const struct policy *policy, const struct image_from *from)
{
	static const struct slice begins[POLICY_FROM_COUNT] = {
	        [POLICY_FROM_SANDBOX] = {"sandbox:", 8}, [POLICY_FROM_LABEL] = {"label:", 6}};

	if (!text_is_sound(policy, from->text, UINT32_MAX) ||
	        !text_is_sound(policy, from->network, IMAGE_PREFIX_KEY) ||
	        from->kind >= POLICY_FROM_COUNT)
		return false;
	if ((from->kind == POLICY_FROM_NETWORK) != (from->network.n > 0))
		return false;
	return slice_starts_with(image_slice(policy, from->text), begins[from->kind]) &&
	       (from->network.n == 0 || network_is_sound(policy, from->network));
}

static bool exposes_are_sound(const struct policy *policy)
{
	if (image_count(policy, SECTION_EXPOSES) > POLICY_EXPOSES_MAX)
		return false;
	for (uint32_t i = 0; i < image_count(policy, SECTION_FROMS); i++)
		if (!from_is_sound(policy, image_from_at(policy, i)))
			return false;
	for (uint32_t i = 0; i < image_count(policy, SECTION_EXPOSES); i++) {
		const struct image_expose *e = image_expose_at(policy, i);

		if (!text_is_sound(policy, e->name, UINT32_MAX) ||
		        !text_is_sound(policy, e->at, IMAGE_PREFIX_KEY) ||
		        (e->at.n > 0 && !network_is_sound(policy, e->at)))
			return false;
		if (e->port == 0 || (e->at_port == 0) != (e->at.n == 0) || e->connections == 0 ||
		        e->connections > POLICY_EXPOSE_CONNECTIONS_MAX)
			return false;
		if (e->from_count > POLICY_EXPOSE_FROM_MAX ||
		        !range_is_inside(policy, SECTION_FROMS, e->first_from, e->from_count))
			return false;
	}
	return true;
}

static bool hosts_are_sound(const struct image_limit *l)
{
	if (!(l->flags & LIMIT_HOSTS))
		return !(l->flags & LIMIT_LOCAL);
	return l->flags & LIMIT_BUDGET && l->shared.n && l->period_s >= POLICY_HOSTS_PERIOD_MIN_S;
}

/* Checks the limits, and their order, by which policy_limits_of() searches. */
static bool limits_are_sound(const struct policy *policy)
{
	uint32_t count = image_count(policy, SECTION_LIMITS);
	uint64_t last = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct image_limit *l = image_limit_at(policy, i);
		uint64_t place = l->rule == POLICY_NONE ? 0 : UINT64_C(1) + l->rule;

		if (l->kind >= POLICY_LIMIT_KIND_COUNT ||
		        l->flags > (LIMIT_BUDGET | LIMIT_FLOOR | LIMIT_HOSTS | LIMIT_LOCAL) ||
		        ((l->flags & LIMIT_FLOOR) != 0 && l->rule != POLICY_NONE) ||
		        l->amount == 0 || l->amount > POLICY_LIMIT_AMOUNT_MAX || place < last ||
		        (l->rule != POLICY_NONE && l->rule >= image_count(policy, SECTION_RULES)))
			return false;
		if (!hosts_are_sound(l))
			return false;
		if (l->period_s > POLICY_LIMIT_PERIOD_MAX_S ||
		        policy_limit_has_period((enum policy_limit_kind)l->kind) !=
		                (l->period_s > 0) ||
		        !text_is_sound(policy, l->shared, POLICY_NAME_MAX))
			return false;
		last = place;
	}
	return count <= POLICY_LIMITS_MAX;
}

/* Checks the order too, because policy_dlp() searches by it. */
static bool dlps_are_sound(const struct policy *policy)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < image_count(policy, SECTION_DLPS); i++) {
		const struct image_dlp *d = image_dlp_at(policy, i);
		uint64_t place = d->rule == POLICY_NONE ? 1 : UINT64_C(2) + d->rule;

		if (place <= last || d->mode >= DLP_MODE_COUNT ||
		        (d->rule != POLICY_NONE && d->rule >= image_count(policy, SECTION_RULES)))
			return false;
		last = place;
	}
	return true;
}

int image_open(struct policy *policy, const void *image, size_t size)
{
	struct policy p = {image, size};

	if (size < sizeof(struct image_header) || size > POLICY_IMAGE_MAX ||
	        (uintptr_t)image % IMAGE_ALIGN != 0)
		return -EBADMSG;
	if (!header_is_sound(image_header(&p), size) ||
	        !text_is_sound(&p, image_header(&p)->name, UINT32_MAX))
		return -EBADMSG;
	if (!rules_are_sound(&p) || !entries_are_sound(&p) || !patterns_are_sound(&p) ||
	        !conditions_are_sound(&p) || !profiles_are_sound(&p) || !targets_are_sound(&p) ||
	        !nodes_are_sound(&p) || !credentials_are_sound(&p) || !exposes_are_sound(&p) ||
	        !limits_are_sound(&p) || !dlps_are_sound(&p))
		return -EBADMSG;
	if (!slots_are_sound(&p, SECTION_TARGET_SLOTS, image_count(&p, SECTION_TARGETS)) ||
	        !slots_are_sound(&p, SECTION_NODE_SLOTS, image_count(&p, SECTION_NODES)))
		return -EBADMSG;
	*policy = p;
	return 0;
}
