/* SPDX-License-Identifier: Apache-2.0 */
/* refusal: conditions of allow rules note here what they refuse. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_REFUSAL_H
#define VETHGUARD_SRC_POLICY_DECIDE_REFUSAL_H

#include "policy/image/image.h"
#include "vethguard/policy/refusal.h"

/* How far a rule agreed with the request before it refused. */
enum refusal_weight {
	REFUSAL_KIND = 1, /* the request is of another kind or for another git repository, or cannot
	                     be read */
	REFUSAL_PLACE, /* ... names another operation, service or method, or has no body that can be
	                  read */
	REFUSAL_NAME,  /* ... names another tool, field, model or ref */
	REFUSAL_VALUE  /* ... has another argument or amount */
};

/* Notes the sentence "WHAT "NAME" WHY" in request->refusal, if that is not NULL, unless a rule that
 * agreed as far or farther has noted one. name: from the request; it is escaped, and left out if it
 * is empty. Always returns false. */
bool refusal_note(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, enum refusal_weight weight, const char *what,
        struct slice name, const char *why);

#endif
