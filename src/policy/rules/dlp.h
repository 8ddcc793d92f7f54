/* SPDX-License-Identifier: Apache-2.0 */
/* load_dlp: reads what a policy or a rule says about secrets in requests. */
#ifndef VETHGUARD_SRC_POLICY_RULES_DLP_H
#define VETHGUARD_SRC_POLICY_RULES_DLP_H

#include "policy/load/loader.h"

/* Reads the value of dlp:. Returns false after a report. */
bool load_dlp(struct tree *tree, struct tree_node *node, struct dlp_settings *out);

#endif
