/* SPDX-License-Identifier: Apache-2.0 */
/* condition_asked: a request, and a condition that a rule asks of it. Each value of the condition
 * begins with a byte that tells its type (the GIT_VALUE_*, GRPC_VALUE_* and so on of image.h). */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_CONDITION_ASKED_H
#define VETHGUARD_SRC_POLICY_DECIDE_CONDITION_ASKED_H

#include "policy/decide/condition.h"
#include "policy/decide/refusal.h"

struct condition_asked {
	const struct policy *policy;
	const struct policy_request *request;
	const struct image_rule *rule;
	const struct image_condition *condition;
};

/* True if some value has the type. */
bool condition_has_type(const struct condition_asked *a, char type);
/* True if some value of the type matches the text. fold: letters of any case match. */
bool condition_has_value(const struct condition_asked *a, char type, struct slice text, bool fold);
/* Notes why an allow rule does not hold; see refusal_note(). Returns false. */
bool condition_refuse(const struct condition_asked *a, enum refusal_weight weight, const char *what,
        struct slice name, const char *why);
/* True if denies() is true for the request's path as written, or for its shortest form (reading.h).
 */
bool condition_denies(const struct condition_asked *a,
        bool (*denies)(const struct condition_asked *a, struct slice path));

#endif
