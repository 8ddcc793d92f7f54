/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of calls about an existing sandbox, and the check of calls that take no body. */
#include <string.h>

#include "supervisor/control/members.h"

bool control_body_follow(const json_t *body, pid_t *pid, uint64_t *start_time, char *fault)
{
	enum { PROCESS, STARTED, COUNT };
	struct member m[COUNT] = {[PROCESS] = {.name = "pid", .type = MEMBER_INTEGER},
	        [STARTED] = {.name = "start_time", .type = MEMBER_INTEGER}};
	uint64_t number = 0;

	*start_time = 0;
	if (body && !members_read(body, m, COUNT, "", fault))
		return false;
	if (!m[PROCESS].value)
		return member_fault(
		        fault, "pid: the process with which the sandbox is to end is needed");
	if (!member_number(&m[PROCESS], 1, INT32_MAX, &number, fault))
		return false;
	*pid = (pid_t)number;
	return member_number(&m[STARTED], 0, INT64_MAX, start_time, fault);
}

bool control_body_reload(const json_t *body, const char **policy, char *fault)
{
	struct member m = {.name = "policy"};

	*policy = NULL;
	if (body && !members_read(body, &m, 1, "", fault))
		return false;
	*policy = member_text(&m);
	return !*policy || member_is_policy(*policy, fault);
}

bool control_body_pause(const json_t *body, const char **reason, char *fault)
{
	struct member m = {.name = "reason"};

	*reason = NULL;
	if (body && !members_read(body, &m, 1, "", fault))
		return false;
	*reason = member_text(&m);
	if (*reason && strlen(*reason) > ATTACH_REASON_MAX)
		return member_fault(fault, "reason: longer than %d bytes", ATTACH_REASON_MAX);
	return true;
}

bool control_body_approve(const json_t *body, struct attach_decision *out, char *fault)
{
	enum { FOR, ALWAYS, RULE, COUNT };
	struct member m[COUNT] = {[FOR] = {.name = "for_s", .type = MEMBER_INTEGER},
	        [ALWAYS] = {.name = "always", .type = MEMBER_BOOLEAN},
	        [RULE] = {.name = "whole_rule", .type = MEMBER_BOOLEAN}};
	uint64_t seconds = 0;
	bool always;

	if (body && !members_read(body, m, COUNT, "", fault))
		return false;
	if (!member_number(&m[FOR], 1, ATTACH_GRANT_MAX_S, &seconds, fault))
		return false;
	always = json_is_true(m[ALWAYS].value);
	if (always && m[FOR].value)
		return member_fault(fault, "for_s, always: give one of them, not both");
	out->lasts = always || m[FOR].value;
	out->for_s = (uint32_t)seconds;
	out->whole = json_is_true(m[RULE].value);
	return !out->whole || out->lasts ||
	       member_fault(fault,
	               "whole_rule: belongs to for_s or always: one request is approved once");
}

bool control_body_credential(const json_t *body, const char **credential, char *fault)
{
	struct member m = {.name = "credential"};

	*credential = NULL;
	if (body && !members_read(body, &m, 1, "", fault))
		return false;
	*credential = member_text(&m);
	if (!*credential || !**credential)
		return member_fault(fault, "credential: which one? GET .../credentials names them");
	if (strlen(*credential) > POLICY_NAME_MAX)
		return member_fault(fault, "credential: longer than %d bytes", POLICY_NAME_MAX);
	return true;
}

bool control_body_empty(const json_t *body, char *fault)
{
	return !body || json_object_size(body) == 0 ||
	       member_fault(fault, "this request takes no members");
}
