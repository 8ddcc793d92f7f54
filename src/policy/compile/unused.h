/* SPDX-License-Identifier: Apache-2.0 */
/* unused: rules that can never decide, because another one always does, or because what they are
 * about is not read. */
#ifndef VETHGUARD_SRC_POLICY_COMPILE_UNUSED_H
#define VETHGUARD_SRC_POLICY_COMPILE_UNUSED_H

#include "policy/load/model.h"

/* A note for each such rule of the main file, at the rule. The model compiles. Never tells of a
 * rule that could decide some request; does not find every one that could not. */
void unused_note_rules(const struct model *model, const char *main_file, struct diag_list *notes);

#endif
