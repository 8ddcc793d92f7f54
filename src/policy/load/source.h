/* SPDX-License-Identifier: Apache-2.0 */
/* load_source: what a policy says of where a credential's value comes from. All report and go on.
 * The tree is secretive: what stands there may be a secret that somebody wrote into the policy. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_SOURCE_H
#define VETHGUARD_SRC_POLICY_LOAD_SOURCE_H

#include "policy/load/loader.h"

/* Takes source: of a credential's mapping (or of an override of it). policy: the path of the file
 * that has it, which paths are relative to. */
void load_source(struct tree *tree, const struct tree_item *item, struct slice policy,
        struct model_credential *out);
/* Takes ttl: and timeout:, after load_source(). */
void load_source_times(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out);

/* Whether name can be a variable of an environment, at most 64 bytes. */
bool load_check_variable(
        struct tree *tree, const struct tree_node *node, const char *what, struct slice name);
bool load_is_among(struct slice word, const char *const words[]);
extern const char load_later[]; /* "is not supported by this version" */

#endif
