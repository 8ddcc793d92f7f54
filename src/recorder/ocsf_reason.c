/* SPDX-License-Identifier: Apache-2.0 */
/* Why an event came out as it did: a code for machines (status_code) and a sentence for people
 * (status_detail). */
#include "vethguard/policy/policy.h"

#include "recorder/ocsf_parts.h"

static const struct slice cause_codes[] = {
        [EVENT_CAUSE_POLICY] = OCSF_CONSTANT("policy"),
        [EVENT_CAUSE_BINDING] = OCSF_CONSTANT("binding"),
        [EVENT_CAUSE_CREDENTIAL] = OCSF_CONSTANT("credential"),
        [EVENT_CAUSE_RESOLVE] = OCSF_CONSTANT("resolve"),
        [EVENT_CAUSE_ADDRESS] = OCSF_CONSTANT("address"),
        [EVENT_CAUSE_CONNECT] = OCSF_CONSTANT("connect"),
        [EVENT_CAUSE_UPSTREAM_TLS] = OCSF_CONSTANT("upstream-tls"),
        [EVENT_CAUSE_UPSTREAM] = OCSF_CONSTANT("upstream"),
        [EVENT_CAUSE_CLIENT] = OCSF_CONSTANT("client"),
        [EVENT_CAUSE_TIMEOUT] = OCSF_CONSTANT("timeout"),
        [EVENT_CAUSE_LIMIT] = OCSF_CONSTANT("limit"),
        [EVENT_CAUSE_UNREADABLE] = OCSF_CONSTANT("unreadable"),
        [EVENT_CAUSE_CLOSING] = OCSF_CONSTANT("closing"),
};
_Static_assert(
        sizeof(cause_codes) / sizeof(cause_codes[0]) == EVENT_CAUSE_COUNT, "one code per cause");

static const struct {
	struct slice code, text;
} policy_reasons[] = {
        [POLICY_REASON_RULE] = {OCSF_CONSTANT("rule"),
                OCSF_CONSTANT("a deny rule of the policy names it")},
        [POLICY_REASON_DEFAULT] = {OCSF_CONSTANT("default"),
                OCSF_CONSTANT("no rule of the policy names the destination")},
        [POLICY_REASON_PORT] = {OCSF_CONSTANT("port"),
                OCSF_CONSTANT("the policy names the host, but not this port or scheme")},
        [POLICY_REASON_METHOD] = {OCSF_CONSTANT("method"),
                OCSF_CONSTANT("the policy allows the destination, but not this method")},
        [POLICY_REASON_PATH] = {OCSF_CONSTANT("path"),
                OCSF_CONSTANT("the policy allows the destination, but not this path")},
        [POLICY_REASON_BAD_REQUEST] = {OCSF_CONSTANT("bad-request"),
                OCSF_CONSTANT("the request cannot be judged")},
};
_Static_assert(sizeof(policy_reasons) / sizeof(policy_reasons[0]) == POLICY_REASON_COUNT,
        "one per reason");

bool ocsf_is_plain(const struct event *event)
{
	return event->decision == EVENT_ALLOWED && event->cause == EVENT_CAUSE_POLICY;
}

struct slice ocsf_reason_code(const struct event *event)
{
	if (event->kind == EVENT_PACKET)
		return SLICE("fence");
	if (event->cause != EVENT_CAUSE_POLICY)
		return cause_codes[event->cause];
	return policy_reasons[event->policy_reason].code;
}

struct slice ocsf_reason_text(const struct event *event)
{
	if (event->kind == EVENT_PACKET)
		return SLICE("the fence lets no such packet pass");
	if (event->cause != EVENT_CAUSE_POLICY)
		return slice_from_string(event_cause_text(event->cause));
	return policy_reasons[event->policy_reason].text;
}
