/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of files that hold a secret. */
#include <string.h>

#include "policy/config/read.h"
#include "policy/credentials/source.h"

void config_read_key_file(
        struct tree *tree, const struct tree_node *node, const char *what, char out[PATH_MAX])
{
	struct policy_credential source = {0};

	tree->secretive = true;
	load_source_value(tree, node, slice_from_string(tree->file), &source);
	tree->secretive = false;
	if (source.source == POLICY_SOURCE_FILE && source.location.n &&
	        source.location.n < PATH_MAX)
		memcpy(out, source.location.p, source.location.n);
	else if (!tree->wrong)
		tree_error(tree, node, "%s has to be file:PATH", what);
}
