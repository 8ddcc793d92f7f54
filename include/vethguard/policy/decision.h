/* SPDX-License-Identifier: Apache-2.0 */
/* decision: what an external decider answers about a request that waits for a person. */
#ifndef VETHGUARD_POLICY_DECISION_H
#define VETHGUARD_POLICY_DECISION_H

#include "vethguard/wire/hook_answer.h"

#define POLICY_DECISION_BYTES_MAX 4096 /* of an answer */

/* Reads {"decision": "approve" | "refuse" | "ask", "reason": TEXT, "for_s": N}, of which only the decision is needed.
 * Returns NULL, or why it is no answer (static). */
const char *policy_decision_read(struct slice json, struct hook_answer *out);

#endif
