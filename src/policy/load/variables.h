/* SPDX-License-Identifier: Apache-2.0 */
/* variables: "${name}" in destinations and paths. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_VARIABLES_H
#define VETHGUARD_SRC_POLICY_LOAD_VARIABLES_H

#include "policy/load/loader.h"

/* Takes the values that the caller gives. Reports faults through the diags of the load. */
void variables_give(struct loader *l, const struct policy_load_options *options, const char *path);
/* Reads the variables: of a file. */
void variables_declare(struct loader *l, struct load_file *file);
/* Call after the last variables_declare(): reports variables without any value, and near misses. */
void variables_check(struct loader *l);
/* Notes variables that were given and are used nowhere. */
void variables_note_unused(const struct loader *l, const char *path, struct diag_list *notes);

bool variables_is_name(struct slice name);
bool variables_is_host_byte(char c);
/* The variable given or declared under name, or NULL. */
struct load_variable *variables_find(struct loader *l, struct slice name);
/* The variable's name that is nearest to name, or NULL. given: search only names that the caller
 * gave and no file declares; else all. */
const char *variables_nearest(const struct loader *l, struct slice name, bool given);

/* Replaces the variables in a scalar's text. *text is the result, in the arena, or the text itself
 * if it has none. Each value is checked for the place it fills. False: reported at node. */
bool variables_in_destination(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice *text);
bool variables_in_path(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice *text);
/* The same for a value of a condition. */
bool variables_in_value(
        struct loader *l, struct tree *tree, const struct tree_node *node, struct slice *text);

#endif
