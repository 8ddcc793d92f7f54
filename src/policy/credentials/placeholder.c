/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the policy only gives what surrounds the part that vethguard fills in, so no
 * text of a policy makes a placeholder that is a real key. An author who writes a real key here by
 * mistake leaves out the dots, and gets a message that does not show the key.
 */
#include "policy/credentials/source.h"
#include "vethguard/policy/placeholder.h"

static bool take_shape(struct tree *tree, const struct tree_node *node, struct slice *shape)
{
	const char *wrong;

	if (!tree_text(tree, node, "placeholder", PLACEHOLDER_SHAPE_MAX, shape))
		return false;
	wrong = placeholder_check_shape(*shape);
	if (wrong)
		tree_error(tree, node,
		        "placeholder %s; write START...END, for example "
		        "\"github_pat_...\"",
		        wrong);
	return !wrong;
}

/* The length with room for all digits, at most PLACEHOLDER_MAX. */
static size_t usual_length(struct slice shape)
{
	size_t n = shape.n - PLACEHOLDER_GAP_N + PLACEHOLDER_MARK_N + PLACEHOLDER_DIGITS;

	return n < PLACEHOLDER_MAX ? n : PLACEHOLDER_MAX;
}

void load_placeholder(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "placeholder");
	const struct tree_node *length = tree_get(map, "placeholder-length");
	struct slice shape;
	uint64_t n;

	if (!node) {
		if (length)
			tree_error(tree, length, "placeholder-length needs placeholder");
		return;
	}
	if (!tree_get(map, "env")) {
		tree_error(tree, node, "placeholder needs env: the variable that holds it");
		return;
	}
	if (!take_shape(tree, node, &shape))
		return;
	n = usual_length(shape);
	if (length && !tree_uint(tree, length, "placeholder-length", placeholder_shape_min(shape),
	                      PLACEHOLDER_MAX, &n))
		return;
	out->placeholder = shape;
	out->placeholder_n = (uint32_t)n;
}
