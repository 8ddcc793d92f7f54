/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in the configuration. */
#include <string.h>

#include "policy/config/read.h"
#include "policy/load/loader.h"

bool config_read_path(
        struct tree *tree, const struct tree_node *node, const char *what, char out[PATH_MAX])
{
	struct slice text, path;

	if (!tree_text(tree, node, what, PATH_MAX / 2, &text))
		return false;
	path = load_join(tree->arena, load_absolute(tree->arena, tree->file), text);
	if (tree->arena->failed || path.n >= PATH_MAX) {
		tree_error(tree, node, "%s: the path is too long", what);
		return false;
	}
	memcpy(out, path.p, path.n + 1);
	return true;
}
