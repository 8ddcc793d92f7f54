/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of calls that prepare a namespace and claim one. */
#include <string.h>

#include "supervisor/control/body_terms.h"

bool control_body_prepare(const json_t *body, struct control_attach *out, char *fault)
{
	enum { PREPARED_NAME, PREPARED_NETNS, PREPARED_ADDRESSES, COUNT };
	struct member m[COUNT] = {[PREPARED_NAME] = {.name = "name"},
	        [PREPARED_NETNS] = {.name = "netns"},
	        [PREPARED_ADDRESSES] = {.name = "addresses"}};
	struct attach_request *request = &out->request;
	const char *addresses;

	if (!body_is_there(body, out, fault) || !members_read(body, m, COUNT, "", fault))
		return false;
	addresses = member_text(&m[PREPARED_ADDRESSES]);
	*request = (struct attach_request){.purpose = ATTACH_TO_PREPARE,
	        .kind = ATTACH_NETNS,
	        .name = member_text(&m[PREPARED_NAME]),
	        .netns = member_text(&m[PREPARED_NETNS]),
	        .same_addresses = addresses && strcmp(addresses, "same") == 0};
	if (!request->netns)
		return member_fault(
		        fault, "netns: the absolute path of a network namespace is needed");
	if (addresses && !request->same_addresses && strcmp(addresses, "own") != 0)
		return member_fault(fault, "addresses: \"same\" or \"own\"");
	return member_is_absolute("netns", request->netns, fault);
}

enum {
	CLAIM_NAME,
	CLAIM_NETNS,
	CLAIM_POLICY,
	CLAIM_OBSERVE,
	CLAIM_LABELS,
	CLAIM_VARS,
	CLAIM_TTL,
	CLAIM_LIKE,
	CLAIM_WAIT,
	CLAIM_MEMBERS
};

bool control_body_claim(const json_t *body, struct control_attach *out, char *fault)
{
	struct member m[CLAIM_MEMBERS] = {[CLAIM_NAME] = {.name = "name"},
	        [CLAIM_NETNS] = {.name = "netns"},
	        [CLAIM_POLICY] = {.name = "policy"},
	        [CLAIM_OBSERVE] = {.name = "observe", .type = MEMBER_BOOLEAN},
	        [CLAIM_LABELS] = {.name = "labels", .type = MEMBER_OBJECT},
	        [CLAIM_VARS] = {.name = "vars", .type = MEMBER_OBJECT},
	        [CLAIM_TTL] = {.name = "ttl_s", .type = MEMBER_INTEGER},
	        [CLAIM_LIKE] = {.name = "like"},
	        [CLAIM_WAIT] = {.name = "wait", .type = MEMBER_BOOLEAN}};
	const struct body_terms terms = {&m[CLAIM_NAME], &m[CLAIM_POLICY], &m[CLAIM_OBSERVE],
	        &m[CLAIM_LABELS], &m[CLAIM_VARS], &m[CLAIM_TTL]};
	struct attach_request *request = &out->request;

	if (!body_is_there(body, out, fault) || !members_read(body, m, CLAIM_MEMBERS, "", fault) ||
	        !body_terms_read(&terms, 0, out, fault))
		return false;
	request->purpose = ATTACH_TO_CLAIM;
	request->kind = ATTACH_NETNS;
	request->netns = member_text(&m[CLAIM_NETNS]);
	request->like = member_text(&m[CLAIM_LIKE]);
	request->wait = json_is_true(m[CLAIM_WAIT].value);
	return body_terms_check(request, fault) &&
	       (!request->netns || member_is_absolute("netns", request->netns, fault));
}
