/* SPDX-License-Identifier: Apache-2.0 */
/* What a refusal says: its title, the reason, and what an agent should do next. */
#include "proxy/deny/deny.h"

#define TARGET_SHOWN_MAX 512

const char *deny_kind(enum event_cause cause)
{
	if (cause == EVENT_CAUSE_POLICY_LIMIT)
		return "limited";
	return cause == EVENT_CAUSE_POLICY || cause == EVENT_CAUSE_ASK ? "denied" : "failed";
}

const char *deny_title(enum event_cause cause)
{
	switch (cause) {
	case EVENT_CAUSE_POLICY:
	case EVENT_CAUSE_POLICY_CHANGED:
		return "Not allowed by the sandbox's network policy";
	case EVENT_CAUSE_BINDING:
		return "The request names more than one destination";
	case EVENT_CAUSE_CLIENT:
		return "Malformed request";
	case EVENT_CAUSE_CREDENTIAL:
		return "The credential for this destination is not available";
	case EVENT_CAUSE_ADDRESS:
		return "The destination's address is not allowed";
	case EVENT_CAUSE_RESOLVE:
		return "The destination's name could not be resolved";
	case EVENT_CAUSE_UPSTREAM_TLS:
		return "The destination could not be verified";
	case EVENT_CAUSE_PAUSED:
		return "The sandbox is paused";
	case EVENT_CAUSE_ASK:
		return "A person has to approve this request, and has not";
	case EVENT_CAUSE_POLICY_LIMIT:
		return "A limit of the sandbox's network policy is reached";
	default:
		return "The request could not be carried out";
	}
}

/* What the agent should do next, or ask the operator for, after a refusal by the policy. */
static const char *advice_for_denied(const struct policy_decision *d)
{
	switch (d->reason) {
	case POLICY_REASON_UPGRADE:
		return "Do not retry. If the task needs this, ask the operator to name the "
		       "protocol under \"upgrade\" of the rule, quoting rule and event; or use a "
		       "WebSocket, where the service offers one.";
	case POLICY_REASON_FOREIGN:
		return "The right credential is attached outside of the sandbox. Send the request "
		       "again without a key or token of your own.";
	case POLICY_REASON_LEAK:
		return "Do not retry as it is. Leave the value of the key's variable out of what "
		       "is sent; the key itself is attached outside of the sandbox where it "
		       "belongs.";
	case POLICY_REASON_SECRET:
		return "Do not retry as it is. Leave the secret that \"detail\" names out of what "
		       "is sent; a key that the task needs is attached outside of the sandbox. If "
		       "it "
		       "is none, ask the operator to except the format under \"dlp\" of the rule, "
		       "quoting rule and event.";
	case POLICY_REASON_SIGNATURE:
		return "The right signature is made outside of the sandbox, for the regions and "
		       "services that the operator has named. Sign with any key for one of these.";
	case POLICY_REASON_CALLBACK:
		return "Do not retry. Another proxy asks vethguard about this sandbox's requests, "
		       "and this one cannot be decided or carried out in that way. Tell the "
		       "operator, quoting \"detail\" and event.";
	case POLICY_REASON_SCOPE:
		return "The credential is for certain repositories and actions of the registry. "
		       "If the task needs another one, ask the operator to name it under "
		       "\"repositories\" or \"actions\" of the credential, quoting URL and event.";
	case POLICY_REASON_CONDITION:
		return "The policy allows this place only with certain query parameters, header "
		       "fields or bodies. If the task needs this request as it is, ask the "
		       "operator, quoting method, URL and event.";
	case POLICY_REASON_FLOOR:
		return "Do not retry; choose another way. The organisation's floor refuses this to "
		       "every sandbox, so a change of this policy does not help. If the task needs "
		       "this, ask the operator, quoting method, URL and event.";
	default:
		return d->rule != POLICY_NONE
		               ? "An operator's rule refuses this on purpose. Do not retry; choose "
		                 "another way."
		               : "Do not retry. If the task needs this, ask the operator to allow "
		                 "it in the policy, quoting method, URL and event; 'vethguard "
		                 "audit suggest' shows the operator the rule.";
	}
}

#define ADVICE_RETRY "The policy allows this request; the destination failed. Retrying may help."

/* What the agent should do next after any other refusal. */
static const char *advice_for_failed(enum event_cause cause)
{
	static const char *const texts[EVENT_CAUSE_COUNT] = {
	        [EVENT_CAUSE_BINDING] =
	                "Name the same host in the URL, in Host and in the TLS handshake. If the "
	                "client does so already, ask the operator, quoting the event.",
	        [EVENT_CAUSE_CREDENTIAL] = "Retrying helps only after the operator has repaired "
	                                   "the credential. Ask for that, quoting rule and event.",
	        [EVENT_CAUSE_RESOLVE] = ADVICE_RETRY,
	        [EVENT_CAUSE_ADDRESS] = "Do not retry. If the task needs this host, ask the "
	                                "operator to allow its address, quoting host and event.",
	        [EVENT_CAUSE_CONNECT] = ADVICE_RETRY,
	        [EVENT_CAUSE_UPSTREAM_TLS] =
	                "The policy allows this request, but the destination's TLS or certificate "
	                "was refused. If that lasts, ask the operator, quoting host and event.",
	        [EVENT_CAUSE_UPSTREAM] = ADVICE_RETRY,
	        [EVENT_CAUSE_CLIENT] =
	                "Correct what \"detail\" says about the request, and send it again.",
	        [EVENT_CAUSE_TIMEOUT] = ADVICE_RETRY,
	        [EVENT_CAUSE_LIMIT] = "Retry later, with fewer or smaller requests at a time. If "
	                              "that does not help, ask the operator, quoting the event.",
	        [EVENT_CAUSE_UNREADABLE] = "Ask the destination for a response in UTF-8 without "
	                                   "compression (Accept-Encoding: identity).",
	        [EVENT_CAUSE_CLOSING] = "Retry later, over a new connection. If that does not "
	                                "help, ask the operator, quoting the event.",
	        [EVENT_CAUSE_POLICY_CHANGED] =
	                "Do not retry. If the task needs this, ask the operator to allow it in the "
	                "policy, quoting method, URL and event.",
	        [EVENT_CAUSE_ASK] = "Do not retry unless you know that somebody approves now. Tell "
	                            "the operator what this request is for, quoting rule and "
	                            "event; 'vethguard ask' shows it while it waits.",
	        [EVENT_CAUSE_PAUSED] = "The operator has stopped all traffic of this sandbox. Do "
	                               "not retry until it is resumed.",
	};

	return texts[cause] ? texts[cause]
	                    : "If this is unexpected, ask the operator, quoting the event.";
}

void deny_put_request(const struct exchange *ex, struct buf *text)
{
	char destination[POLICY_HOST_MAX + 16];
	char target[TARGET_SHOWN_MAX], method[64];
	const struct http_request *r = &ex->request;
	bool connect = r->version && slice_equals(r->method, SLICE("CONNECT"));

	struct destination d = ex->destination;

	if (!connect &&
	        d.port == policy_scheme_default_port(ex->client->tls ? POLICY_HTTPS : POLICY_HTTP))
		d.port = 0;
	destination_text(&d, destination);
	if (r->version)
		buf_printf(text, "%s %s%s%s", slice_escape(r->method, method, sizeof(method)),
		        connect           ? ""
		        : ex->client->tls ? "https://"
		                          : "http://",
		        destination,
		        connect ? ""
		                : slice_escape(
		                          slice_of(r->path, r->path_n), target, sizeof(target)));
	else
		buf_printf(text, "connection to %s", destination);
}

void deny_put_detail(const struct exchange *ex, struct buf *text)
{
	deny_put_request(ex, text);
	buf_append_slice(text, SLICE(": "));
	if (ex->cause == EVENT_CAUSE_CREDENTIAL) /* only the operator may know the source */
		buf_printf(text, "the credential is not available; the audit log says why");
	else
		buf_printf(text, "%s",
		        ex->detail ? ex->detail : policy_reason_text(ex->verdict.decision.reason));
}

struct slice deny_reason(const struct exchange *ex)
{
	uint32_t rule = ex->verdict.decision.rule;

	if (ex->cause == EVENT_CAUSE_PAUSED)
		return slice_from_string(ex->detail);
	return rule == POLICY_NONE ? SLICE("") : policy_rule_text(ex->proxy->config.policy, rule);
}

void deny_put_message(const struct exchange *ex, struct buf *text)
{
	struct slice reason = deny_reason(ex);

	buf_append_slice(text, SLICE("vethguard: "));
	deny_put_detail(ex, text);
	if (ex->cause == EVENT_CAUSE_POLICY && reason.n) {
		buf_append_slice(text, SLICE(": "));
		buf_append_slice(text, reason);
	}
	buf_printf(text, " (event %016llx)", (unsigned long long)ex->id);
}

const char *deny_advice(const struct exchange *ex)
{
	if (ex->cause == EVENT_CAUSE_POLICY_LIMIT)
		return limit_retry_s(&ex->limiting.hit)
		               ? "Do not retry before the time that Retry-After tells; until then "
		                 "every request that counts against this limit is refused. If the "
		                 "task needs more, ask the operator to raise the limit, quoting "
		                 "rule and event."
		               : "Do not retry: the request alone is larger than the limit. Send "
		                 "less, or ask the operator to raise the limit, quoting rule and "
		                 "event.";
	return ex->cause == EVENT_CAUSE_POLICY ? advice_for_denied(&ex->verdict.decision)
	                                       : advice_for_failed(ex->cause);
}
