/* SPDX-License-Identifier: Apache-2.0 */
/* The reason for an event's result: a code for machines (status_code) and a sentence for people
 * (status_detail). */
#include <stdio.h>

#include "vethguard/policy/policy.h"

#include "recorder/ocsf/parts.h"

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
		return is_beyond_a_rate(event) ? event_reason_code(EVENT_CAUSE_LIMIT, 0)
		                               : SLICE("fence");
	/* If mode observe allowed it: why it would have been denied, whatever its result. */
	return event_reason_code(
	        event->decision == EVENT_OBSERVED ? EVENT_CAUSE_POLICY : event->cause,
	        event->policy_reason);
}

struct slice ocsf_failure_code(const struct event *event)
{
	return event->cause != EVENT_CAUSE_POLICY && event->decision == EVENT_OBSERVED
	               ? event_reason_code(event->cause, 0)
	               : SLICE("");
}

/* The reason without the event's own detail. */
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
