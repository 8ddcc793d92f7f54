/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an image that was compiled with a floor may hold two more images. Each is
 * opened where it lies inside of the first one. policy_open() has checked both, so opening one
 * again needs no check.
 */
#include <assert.h>
#include <errno.h>

#include "policy/image/image.h"
#include "vethguard/policy/limits.h"

static const char *const names[] = {
        [POLICY_LAYER_POLICY] = "policy",
        [POLICY_LAYER_FLOOR] = "floor",
        [POLICY_LAYER_INFRASTRUCTURE] = "infrastructure",
};
static_assert(sizeof(names) / sizeof(names[0]) == POLICY_LAYER_COUNT, "one name per layer");

/* Checks an image inside of another one. It must not hold images itself. The rules of the
 * infrastructure's image are the first of the policy's too, so it cannot have more rules. */
static bool inner_is_sound(const struct policy *policy, enum image_section_id id)
{
	uint32_t count = image_count(policy, id);
	struct policy inner;

	if (count == 0)
		return true;
	if (image_open(&inner, image_section(policy, id), count) != 0 || image_has_layers(&inner))
		return false;
	return id == SECTION_FLOOR ||
	       image_header(&inner)->rule_count <= image_header(policy)->rule_count;
}

int policy_open(struct policy *policy, const void *image, size_t size)
{
	struct policy p;

	if (image_open(&p, image, size) != 0 || !inner_is_sound(&p, SECTION_FLOOR) ||
	        !inner_is_sound(&p, SECTION_INFRASTRUCTURE))
		return -EBADMSG;
	*policy = p;
	return 0;
}

static bool open_inner(const struct policy *policy, enum image_section_id id, struct policy *out)
{
	uint32_t count = image_count(policy, id);

	if (count == 0)
		return false;
	*out = (struct policy){image_section(policy, id), count};
	return true;
}

bool policy_floor(const struct policy *policy, struct policy *out)
{
	return open_inner(policy, SECTION_FLOOR, out);
}

bool policy_infrastructure(const struct policy *policy, struct policy *out)
{
	return open_inner(policy, SECTION_INFRASTRUCTURE, out);
}

bool policy_has_layers(const struct policy *policy)
{
	for (uint32_t i = 0; i < policy_limit_count(policy); i++)
		if ((image_limit_at(policy, i)->flags & LIMIT_FLOOR) != 0)
			return true;
	return image_has_layers(policy) || policy_rule_layer(policy, 0) != POLICY_LAYER_POLICY;
}

enum policy_layer policy_rule_layer(const struct policy *policy, uint32_t rule)
{
	uint32_t flags = rule < policy_rule_count(policy) ? image_rule_at(policy, rule)->flags : 0;

	return (flags & RULE_FLOOR) != 0            ? POLICY_LAYER_FLOOR
	       : (flags & RULE_INFRASTRUCTURE) != 0 ? POLICY_LAYER_INFRASTRUCTURE
	                                            : POLICY_LAYER_POLICY;
}

enum policy_layer policy_decision_layer(
        const struct policy *policy, const struct policy_decision *decision)
{
	return decision->reason == POLICY_REASON_FLOOR ? POLICY_LAYER_FLOOR
	                                               : policy_rule_layer(policy, decision->rule);
}

const char *policy_layer_name(enum policy_layer layer)
{
	return (unsigned)layer < POLICY_LAYER_COUNT ? names[layer] : "unknown";
}

bool policy_allows_upgrade(
        const struct policy *policy, const struct policy_decision *decision, struct slice protocol)
{
	struct policy floor;

	return policy_rule_allows_upgrade(policy, decision->rule, protocol) &&
	       (decision->floor_rule == 0 || !policy_floor(policy, &floor) ||
	               policy_rule_allows_upgrade(&floor, decision->floor_rule - 1, protocol));
}
