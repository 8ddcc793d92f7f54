/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a floor is one file of the organisation's for all policies of a machine:
 *
 *   allow: [...]           what policies may allow at most; without it, anything
 *   deny: [...]            what no policy can allow
 *   infrastructure: [...]  what no policy can deny
 *   limits:, budget:       hold beside a policy's own
 *   defaults: {...}        for policies that do not say otherwise
 *
 * The floor is read before the policy, so that no variable, group or credential of the policy has a
 * meaning in it. The infrastructure's rules and the floor's deny rules become the first rules of
 * the policy. The floor's allow rules become an image inside of the policy's; the infrastructure's
 * rules and the floor's deny rules become another (decide/layers.c). If a floor cannot be used, no
 * policy loads.
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/compile/compile.h"
#include "policy/load/loader.h"
#include "policy/rules/limits.h"
#include "policy/rules/rule.h"

static const char *const floor_keys[] = {
        "vethguard", "allow", "deny", "infrastructure", "limits", "budget", "defaults", NULL};
#define OF_POLICY "belongs in a policy, not into a floor"
#define OF_DEFAULTS "belongs in a policy, or under defaults: as what policies inherit"
#define SELF_CONTAINED "belongs in a policy: a floor is one file that depends on nothing"
static const struct tree_refusal floor_refused[] = {{"name", OF_POLICY}, {"credentials", OF_POLICY},
        {"expose", OF_POLICY}, {"ask", "belongs in a policy: a floor allows or refuses"},
        {"mode", OF_DEFAULTS}, {"inspect", OF_DEFAULTS}, {"on_leak", OF_DEFAULTS},
        {"dlp", OF_DEFAULTS}, {"internal", OF_DEFAULTS}, {"include", SELF_CONTAINED},
        {"variables", SELF_CONTAINED}, {"groups", SELF_CONTAINED}, {NULL, NULL}};
static const char *const default_keys[] = {
        "mode", "inspect", "on_leak", "dlp", "internal", "limits", "budget", NULL};

static void check_top(struct tree *tree)
{
	const struct tree_node *defaults;

	if (!tree_is_map(tree, tree->root, "a floor"))
		return;
	tree_check_keys(tree, tree->root, floor_keys, floor_refused);
	load_check_version(tree);
	defaults = tree_get(tree->root, "defaults");
	if (defaults && tree_is_map(tree, defaults, "defaults"))
		tree_check_keys(tree, defaults, default_keys, NULL);
}

/* Loads the floor's own limits, which hold beside a policy's. */
static void load_floor_limits(struct loader *l, struct tree *tree)
{
	size_t before = l->model.limit_count;

	load_limits(&(struct limits_parse){l, tree, POLICY_NONE, false}, tree->root);
	for (size_t i = before; i < l->model.limit_count; i++)
		l->model.limits[i].floor = true;
}

static void load_floor_rules(struct loader *l, struct tree *tree)
{
	struct vec none = l->floor_rules;

	l->bounded = tree_get(tree->root, "allow") != NULL;
	load_rules(l, &l->floor, "allow");
	l->floor_rules = l->model.rules;
	l->model.rules = none;
	/* The allow rules go into an image of their own, so other rules may have their names. */
	intern_fini(&l->rule_names);
	intern_init(&l->rule_names);
	l->name_rules.n = 0;
	load_rules(l, &l->floor, "infrastructure");
	load_rules(l, &l->floor, "deny");
	l->infrastructure = l->model.rules.n;
}

static int read_file(struct loader *l, const char *path, char **text, size_t *n)
{
	char objection[POLICY_WRITERS_TEXT_MAX] = "";
	const struct policy_writers *writers = NULL;
	int rc;

	if (l->reader->read_floor)
		rc = l->reader->read_floor(l->reader->context, path, text, n, objection);
	else
		rc = l->reader->read(l->reader->context, path, text, n);
	if (rc == 0 && !l->reader->read_floor && l->reader->writers)
		writers = l->reader->writers(l->reader->context);
	if (writers && l->options->notes)
		diag_add(l->options->notes, path, 0, 0, "%s",
		        policy_writers_text(writers, objection));
	else if (objection[0] && rc != -ENOMEM) {
		diag_add(l->model.diags, path, 0, 0,
		        "the floor cannot be trusted, so no policy is loaded: it %s", objection);
		return -EINVAL;
	}
	if (rc == 0 || rc == -ENOMEM || (rc == -ENOENT && !l->options->floor_required))
		return rc;
	diag_add(l->model.diags, path, 0, 0, "cannot read the floor, so no policy is loaded: %s",
	        rc == -EFBIG    ? "the file is too large"
	        : rc == -EINVAL ? "not a regular file"
	                        : strerror(-rc));
	return -EINVAL;
}

int load_floor(struct loader *l)
{
	struct tree *tree = &l->floor.tree;
	char *text = NULL;
	size_t n = 0;
	int rc;

	if (!l->options || !l->options->floor)
		return 0;
	rc = read_file(l, l->options->floor, &text, &n);
	if (rc == -ENOENT || rc == -ENOMEM)
		return rc == -ENOENT ? 0 : rc;
	tree->arena = &l->arena;
	tree->diags = l->model.diags;
	tree->file = arena_copy(&l->arena, slice_from_string(l->options->floor)).p;
	if (rc == 0)
		rc = tree_parse(tree, text, n);
	free(text);
	l->wrong |= rc == -EINVAL;
	if (rc != 0)
		return rc == -EINVAL ? 0 : rc;
	check_top(tree);
	if (!tree->wrong)
		load_floor_rules(l, tree);
	if (!tree->wrong)
		load_floor_limits(l, tree);
	l->wrong |= tree->wrong;
	return 0;
}

void load_floor_defaults(struct loader *l, const struct tree_node *main)
{
	struct tree *tree = &l->floor.tree;
	const struct tree_node *defaults = tree->root ? tree_get(tree->root, "defaults") : NULL;
	size_t before = l->model.limit_count, kept = before;

	if (!defaults)
		return;
	load_top(l, tree, defaults);
	load_limits(&(struct limits_parse){l, tree, POLICY_NONE, false}, defaults);
	for (size_t i = before; i < l->model.limit_count; i++) {
		const struct model_limit limit = l->model.limits[i];

		if (!tree_get(main, limit.budget ? "budget" : "limits"))
			l->model.limits[kept++] = limit;
	}
	l->model.limit_count = kept;
	l->wrong |= tree->wrong;
}

/* Compiles rules as a policy that has nothing else. */
static int compile_rules(struct loader *l, const struct vec *rules, size_t count, const char *name,
        struct model_inner *out)
{
	struct model *model = malloc(sizeof(*model));
	int rc = -ENOMEM;

	if (!model)
		return rc;
	*model = l->model;
	model->name = slice_from_string(name);
	model->mode = POLICY_ENFORCE;
	model->leaks_pass = model->has_dlp = false;
	model->floor = model->infrastructure = (struct model_inner){NULL, 0};
	model->credential_count = model->expose_count = model->limit_count = 0;
	model->rule_count = (uint32_t)count;
	vec_init(&model->rules, sizeof(struct model_rule));
	if (count == 0 || vec_append(&model->rules, vec_at(rules, 0), count))
		rc = policy_compile(model, &out->image, &out->size);
	vec_fini(&model->rules);
	free(model);
	return rc;
}

int load_floor_compile(struct loader *l)
{
	bool allows = false;
	int rc = 0;

	for (size_t i = 0; i < l->infrastructure; i++)
		allows |= !((const struct model_rule *)vec_at(&l->model.rules, i))->deny;
	if (l->bounded)
		rc = compile_rules(l, &l->floor_rules, l->floor_rules.n, "floor", &l->model.floor);
	if (rc == 0 && allows)
		rc = compile_rules(l, &l->model.rules, l->infrastructure, "infrastructure",
		        &l->model.infrastructure);
	return rc;
}
