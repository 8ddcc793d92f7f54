/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the keys that concern all requests of a policy. A floor has them under defaults:. */
#include "policy/load/loader.h"
#include "policy/rules/dlp.h"
#include "vethguard/policy/body.h"

void load_top(struct loader *l, struct tree *tree, const struct tree_node *map)
{
	static const char *const modes[] = {"enforce", "observe", NULL};
	static const char *const leaks[] = {"block", "alert", NULL};
	static const char *const switches[] = {"on", "off", NULL};
	const struct tree_node *mode = tree_get(map, "mode");
	const struct tree_node *inspect = tree_get(map, "inspect");
	const struct tree_node *on_leak = tree_get(map, "on_leak");
	const struct tree_node *internal = tree_get(map, "internal");
	struct tree_node *dlp = tree_get(map, "dlp");
	uint64_t bytes;

	if (mode)
		l->model.mode =
		        tree_word(tree, mode, "mode", modes) == 1 ? POLICY_OBSERVE : POLICY_ENFORCE;
	if (inspect && tree_bytes(tree, inspect, "inspect", POLICY_INSPECT_MIN, POLICY_INSPECT_MAX,
	                       &bytes))
		l->model.inspect = (uint32_t)bytes;
	if (on_leak)
		l->model.leaks_pass = tree_word(tree, on_leak, "on_leak", leaks) == 1;
	if (internal)
		l->model.silent = tree_word(tree, internal, "internal", switches) == 1;
	if (dlp)
		l->model.has_dlp = load_dlp(tree, dlp, &l->model.dlp);
}
