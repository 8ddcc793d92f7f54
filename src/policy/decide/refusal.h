/* SPDX-License-Identifier: Apache-2.0 */
/* refusal: conditions of allow rules note here what they do not take. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_REFUSAL_H
#define VETHGUARD_SRC_POLICY_DECIDE_REFUSAL_H

#include "policy/image.h"
#include "vethguard/policy/refusal.h"

/* How far a rule agreed before it refused. */
enum refusal_weight {
	REFUSAL_KIND = 1, /* the request is of another kind, or cannot be read */
	REFUSAL_PLACE,    /* ... names another repository, operation or method */
	REFUSAL_NAME,     /* ... names another tool, field, model or ref */
	REFUSAL_VALUE     /* ... has another argument or amount */
};

/* Notes the sentence "WHAT "NAME" WHY" if somebody asked for it, unless a rule that agreed as far
 * has noted another one. name: from the request; without bytes it is left out. Returns false. */
bool refusal_note(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, enum refusal_weight weight, const char *what,
        struct slice name, const char *why);

#endif
