/* SPDX-License-Identifier: Apache-2.0 */
/* Why an event came out as it did: a code for machines (status_code) and a sentence for people
 * (status_detail). */
#include <stdio.h>

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
        [EVENT_CAUSE_CALLER] = OCSF_CONSTANT("caller"),
        [EVENT_CAUSE_POLICY_CHANGED] = OCSF_CONSTANT("policy-changed"),
        [EVENT_CAUSE_SEARCH_LIST] = OCSF_CONSTANT("search-list"),
};
_Static_assert(
        sizeof(cause_codes) / sizeof(cause_codes[0]) == EVENT_CAUSE_COUNT, "one code per cause");

static const struct slice policy_codes[] = {
        [POLICY_REASON_RULE] = OCSF_CONSTANT("rule"),
        [POLICY_REASON_DEFAULT] = OCSF_CONSTANT("default"),
        [POLICY_REASON_PORT] = OCSF_CONSTANT("port"),
        [POLICY_REASON_METHOD] = OCSF_CONSTANT("method"),
        [POLICY_REASON_PATH] = OCSF_CONSTANT("path"),
        [POLICY_REASON_READING] = OCSF_CONSTANT("reading"),
        [POLICY_REASON_BAD_REQUEST] = OCSF_CONSTANT("bad-request"),
        [POLICY_REASON_UPGRADE] = OCSF_CONSTANT("upgrade"),
};
_Static_assert(
        sizeof(policy_codes) / sizeof(policy_codes[0]) == POLICY_REASON_COUNT, "one per reason");

static bool is_beyond_a_rate(const struct event *event)
{
	return slice_equals(event->verdict_rule, SLICE("rate"));
}

bool ocsf_is_plain(const struct event *event)
{
	return event->decision == EVENT_ALLOWED && event->cause == EVENT_CAUSE_POLICY;
}

struct slice ocsf_reason_code(const struct event *event)
{
	if (event->kind == EVENT_PACKET)
		return is_beyond_a_rate(event) ? cause_codes[EVENT_CAUSE_LIMIT] : SLICE("fence");
	/* Of what mode observe let pass: why it would have been refused, whatever became of it. */
	if (event->cause != EVENT_CAUSE_POLICY && event->decision != EVENT_OBSERVED)
		return cause_codes[event->cause];
	return policy_codes[event->policy_reason];
}

struct slice ocsf_failure_code(const struct event *event)
{
	return event->cause != EVENT_CAUSE_POLICY && event->decision == EVENT_OBSERVED
	               ? cause_codes[event->cause]
	               : SLICE("");
}

/* Without the event's own words. */
static struct slice plain_text(const struct event *event)
{
	if (event->kind == EVENT_PACKET)
		return is_beyond_a_rate(event)
		               ? SLICE("more in a second than the configuration's limits allow")
		               : SLICE("the fence lets no such packet pass");
	if (event->cause != EVENT_CAUSE_POLICY)
		return slice_from_string(event_cause_text(event->cause));
	return slice_from_string(policy_reason_text(event->policy_reason));
}

struct slice ocsf_reason_text(const struct event *event, char *out, size_t out_size)
{
	struct slice how = event->detail.n ? event->detail : plain_text(event);
	const char *why = policy_reason_text(event->policy_reason);
	size_t n;

	if (!ocsf_failure_code(event).n)
		return how;
	snprintf(out, out_size, "%s; then it failed: ", why);
	n = strlen(out);
	if (how.n > out_size - n)
		how.n = out_size - n;
	memcpy(out + n, how.p, how.n);
	return slice_of(out, n + how.n);
}
