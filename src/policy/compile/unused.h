/* SPDX-License-Identifier: Apache-2.0 */
/* unused: finds rules that never decide a request, because another rule always does or because the
 * proxy does not read what they are about. */
#ifndef VETHGUARD_SRC_POLICY_COMPILE_UNUSED_H
#define VETHGUARD_SRC_POLICY_COMPILE_UNUSED_H

#include "policy/load/model.h"

/* Adds a note for each such rule of the main file, at the rule. The model must compile. Never names
 * a rule that could decide some request; may miss rules that could not. */
void unused_note_rules(const struct model *model, const char *main_file, struct diag_list *notes);

#endif
