/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox is to be: its name and policy, labels, variables and time. */
#include <string.h>

#include "supervisor/control/body_terms.h"

bool body_is_there(const json_t *body, struct control_attach *out, char *fault)
{
	memset(out, 0, sizeof(*out));
	return body || member_fault(fault, "the request has no body");
}

bool body_terms_read(
        const struct body_terms *terms, uint64_t ttl_s, struct control_attach *out, char *fault)
{
	struct attach_request *request = &out->request;

	if (!member_pairs(terms->labels, out->labels, ATTACH_LABELS_MAX, &request->labels, fault) ||
	        !member_pairs(terms->vars, out->vars, ATTACH_VARS_MAX, &request->vars, fault) ||
	        !member_number(terms->ttl, 1, ATTACH_TTL_MAX_S, &ttl_s, fault))
		return false;
	request->name = member_text(terms->name);
	request->policy = member_text(terms->policy);
	request->observe = json_is_true(terms->observe->value);
	request->ttl_s = (uint32_t)ttl_s;
	return true;
}

bool body_terms_check(const struct attach_request *request, char *fault)
{
	if (request->name && !request->name[0])
		return member_fault(fault, "name: is empty; without it, one is made up");
	if (!request->policy)
		return member_fault(fault, "policy: the absolute path of a policy file is needed");
	return member_is_policy(request->policy, fault);
}
