/* SPDX-License-Identifier: Apache-2.0 */
/* decision: what an external decider answers about a request that waits for a person. */
#ifndef VETHGUARD_POLICY_DECISION_H
#define VETHGUARD_POLICY_DECISION_H

#include "vethguard/wire/hook_answer.h"

#define POLICY_DECISION_BYTES_MAX 4096 /* of an answer */

/* Reads {"decision": "approve" | "refuse" | "ask", "reason": TEXT, "for_s": N}. Only decision has to be there; for_s
 * (1 to HOOK_FOR_MAX_S seconds) goes only with approve. Returns NULL, or why it is no answer (static); then out's
 * verdict is HOOK_NONE. */
const char *policy_decision_read(struct slice json, struct hook_answer *out);

#endif
