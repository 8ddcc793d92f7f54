/* SPDX-License-Identifier: Apache-2.0 */
/* variables: "${name}" in destinations and paths. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_VARIABLES_H
#define VETHGUARD_SRC_POLICY_LOAD_VARIABLES_H

#include "policy/load/loader.h"

/* Takes the values that the caller gives. Reports through the diags of the load. */
void variables_give(struct loader *l, const struct policy_load_options *options, const char *path);
/* Takes the variables: of a file. */
void variables_declare(struct loader *l, struct load_file *file);
/* After the last variables_declare(): those that have no value at all, and the near misses. */
void variables_check(struct loader *l);
/* Tells notes of what was given and is used nowhere. */
void variables_note_unused(const struct loader *l, const char *path, struct diag_list *notes);

bool variables_is_name(struct slice name);
bool variables_is_host_byte(char c);
/* The variable that was given or declared under a name, or NULL. */
struct load_variable *variables_find(struct loader *l, struct slice name);
/* The name that was probably meant, or NULL, out of all; given: out of those that the caller gave
 * and no file declares. */
const char *variables_nearest(const struct loader *l, struct slice name, bool given);

/* The text of a scalar with its variables replaced, in the arena; text itself where it has none.
 * What stands in the place of a variable is checked for that place. False: reported at node. */
bool variables_in_destination(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice *text);
bool variables_in_path(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice *text);

#endif
