/* SPDX-License-Identifier: Apache-2.0 */
/* The codes of why an event came out as it did: status_code in the log, and error.code in a refused
 * client's response. */
#include "vethguard/policy/policy.h"
#include "vethguard/wire/event.h"

#define CODE(literal)                        \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct slice cause_codes[] = {
        [EVENT_CAUSE_POLICY] = CODE("policy"),
        [EVENT_CAUSE_BINDING] = CODE("binding"),
        [EVENT_CAUSE_CREDENTIAL] = CODE("credential"),
        [EVENT_CAUSE_RESOLVE] = CODE("resolve"),
        [EVENT_CAUSE_ADDRESS] = CODE("address"),
        [EVENT_CAUSE_CONNECT] = CODE("connect"),
        [EVENT_CAUSE_UPSTREAM_TLS] = CODE("upstream-tls"),
        [EVENT_CAUSE_UPSTREAM] = CODE("upstream"),
        [EVENT_CAUSE_CLIENT] = CODE("client"),
        [EVENT_CAUSE_TIMEOUT] = CODE("timeout"),
        [EVENT_CAUSE_LIMIT] = CODE("limit"),
        [EVENT_CAUSE_UNREADABLE] = CODE("unreadable"),
        [EVENT_CAUSE_CLOSING] = CODE("closing"),
        [EVENT_CAUSE_CALLER] = CODE("caller"),
        [EVENT_CAUSE_POLICY_CHANGED] = CODE("policy-changed"),
        [EVENT_CAUSE_SEARCH_LIST] = CODE("search-list"),
        [EVENT_CAUSE_PAUSED] = CODE("paused"),
        [EVENT_CAUSE_POLICY_LIMIT] = CODE("policy-limit"),
        [EVENT_CAUSE_ASK] = CODE("ask"),
};
_Static_assert(
        sizeof(cause_codes) / sizeof(cause_codes[0]) == EVENT_CAUSE_COUNT, "one code per cause");

static const struct slice policy_codes[] = {
        [POLICY_REASON_RULE] = CODE("rule"),
        [POLICY_REASON_DEFAULT] = CODE("default"),
        [POLICY_REASON_PORT] = CODE("port"),
        [POLICY_REASON_METHOD] = CODE("method"),
        [POLICY_REASON_PATH] = CODE("path"),
        [POLICY_REASON_READING] = CODE("reading"),
        [POLICY_REASON_BAD_REQUEST] = CODE("bad-request"),
        [POLICY_REASON_UPGRADE] = CODE("upgrade"),
        [POLICY_REASON_FOREIGN] = CODE("foreign-credential"),
        [POLICY_REASON_SIGNATURE] = CODE("signature"),
        [POLICY_REASON_CONDITION] = CODE("condition"),
        [POLICY_REASON_LEAK] = CODE("leak"),
        [POLICY_REASON_SECRET] = CODE("secret"),
        [POLICY_REASON_CALLBACK] = CODE("callback"),
        [POLICY_REASON_FLOOR] = CODE("floor"),
        [POLICY_REASON_SCOPE] = CODE("scope"),
};
_Static_assert(
        sizeof(policy_codes) / sizeof(policy_codes[0]) == POLICY_REASON_COUNT, "one per reason");

struct slice event_reason_code(enum event_cause cause, uint8_t policy_reason)
{
	if (cause != EVENT_CAUSE_POLICY)
		return (unsigned)cause < EVENT_CAUSE_COUNT ? cause_codes[cause] : SLICE("unknown");
	return policy_reason < POLICY_REASON_COUNT ? policy_codes[policy_reason] : SLICE("unknown");
}
