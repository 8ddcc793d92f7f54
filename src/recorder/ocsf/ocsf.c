/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every line has the same envelope (time, kind, sandbox, decision) and a body by class. What does
 * not change within a sandbox is escaped once and then copied. Texts from the sandbox pass through
 * json_string() with a limit each, so a line is valid JSON of bounded length whatever they hold.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "vethguard/base/version.h"
#include "vethguard/policy/policy.h"

#include "recorder/ocsf/parts.h"

#define PART_BYTES_MAX 4096

static const struct ocsf_class *const classes[] = {
        [EVENT_HTTP] = &ocsf_http,
        [EVENT_DNS] = &ocsf_dns,
        [EVENT_CONNECTION] = &ocsf_connection,
        [EVENT_FLOW] = &ocsf_flow,
        [EVENT_PACKET] = &ocsf_packet,
        [EVENT_LIFECYCLE] = &ocsf_lifecycle,
        [EVENT_FINDING] = &ocsf_finding,
        [EVENT_API] = &ocsf_api,
        [EVENT_INBOUND] = &ocsf_inbound,
};
_Static_assert(sizeof(classes) / sizeof(classes[0]) == EVENT_KIND_COUNT, "one class per kind");

/* OCSF's ids of decisions and results. */
enum { ACTION_ALLOWED = 1, ACTION_DENIED = 2, ACTION_OBSERVED = 3 };
enum {
	DISPOSITION_ALLOWED = 1,
	DISPOSITION_BLOCKED = 2,
	DISPOSITION_DROPPED = 6,
	DISPOSITION_LOGGED = 17,
	DISPOSITION_ERROR = 27
};
enum {
	SEVERITY_INFORMATIONAL = 1,
	SEVERITY_LOW = 2,
	SEVERITY_MEDIUM = 3,
	SEVERITY_HIGH = 4,
	SEVERITY_CRITICAL = 5
};
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2, STATUS_NEW = 1 };

static void format_device(struct ocsf_sandbox *sandbox, char uid[17])
{
	struct json j;

	snprintf(uid, 17, "%016" PRIx64, sandbox->uid);
	json_begin(&j, &sandbox->device);
	line_object(&j, "device");
	line_text(&j, "name", slice_from_string(sandbox->name), OCSF_NAME_MAX);
	line_plain(&j, "uid", uid);
	line_uint(&j, "type_id", 6); /* Virtual */
	line_end_object(&j);
	if (j.failed)
		buf_fini(&sandbox->device);
}

int ocsf_sandbox_policy(struct ocsf_sandbox *sandbox, struct slice policy, struct slice fingerprint)
{
	struct buf text;
	struct json j;

	buf_init(&text, PART_BYTES_MAX);
	json_begin(&j, &text);
	line_some_text(&j, "name", policy, OCSF_NAME_MAX);
	line_some_text(&j, "uid", fingerprint, OCSF_NAME_MAX);
	if (j.failed) {
		buf_fini(&text);
		return -ENOMEM;
	}
	buf_fini(&sandbox->policy);
	sandbox->policy = text;
	return 0;
}

int ocsf_sandbox_init(struct ocsf_sandbox *sandbox, uint64_t uid, struct slice name,
        struct slice policy, struct slice fingerprint)
{
	char text[17];

	memset(sandbox, 0, sizeof(*sandbox));
	name.n = name.n < OCSF_NAME_MAX ? name.n : OCSF_NAME_MAX;
	if (name.n)
		memcpy(sandbox->name, name.p, name.n);
	sandbox->uid = uid;
	buf_init(&sandbox->device, PART_BYTES_MAX);
	buf_init(&sandbox->policy, PART_BYTES_MAX);
	format_device(sandbox, text);
	if (sandbox->device.len && ocsf_sandbox_policy(sandbox, policy, fingerprint) == 0)
		return 0;
	ocsf_sandbox_fini(sandbox);
	return -ENOMEM;
}

void ocsf_sandbox_fini(struct ocsf_sandbox *sandbox)
{
	buf_fini(&sandbox->device);
	buf_fini(&sandbox->policy);
}

static int finding_severity(enum event_finding finding)
{
	switch (finding) {
	case EVENT_FINDING_FENCE_CHANGED:
	case EVENT_FINDING_BROKEN_STREAM:
	case EVENT_FINDING_CREDENTIAL_SENT:
		return SEVERITY_CRITICAL;
	case EVENT_FINDING_BINDING_MISMATCH:
	case EVENT_FINDING_PLACEHOLDER_LEAK:
	case EVENT_FINDING_SECRET:
	case EVENT_FINDING_DNS_TUNNEL:
	case EVENT_FINDING_FOREIGN_CREDENTIAL:
	case EVENT_FINDING_ROLE_DIED:
	case EVENT_FINDING_BUNDLE_REFUSED:
	case EVENT_FINDING_TOOL_CHANGED:
	case EVENT_FINDING_TOOL_INSTRUCTS:
		return SEVERITY_HIGH;
	case EVENT_FINDING_PACKETS_LOST:
		return SEVERITY_LOW;
	default:
		return SEVERITY_MEDIUM;
	}
}

static int severity(const struct event *e)
{
	if (e->kind == EVENT_FINDING)
		return finding_severity(e->finding);
	return e->decision == EVENT_ALLOWED ? SEVERITY_INFORMATIONAL : SEVERITY_LOW;
}

/* If the policy allowed it and it failed for a reason of the network, that is an error, not a
 * block. */
static bool is_failure_of_network(enum event_cause cause)
{
	return cause == EVENT_CAUSE_RESOLVE || cause == EVENT_CAUSE_CONNECT ||
	       cause == EVENT_CAUSE_UPSTREAM_TLS || cause == EVENT_CAUSE_UPSTREAM ||
	       cause == EVENT_CAUSE_CLIENT || cause == EVENT_CAUSE_TIMEOUT ||
	       cause == EVENT_CAUSE_CLOSING || cause == EVENT_CAUSE_PAUSED;
}

static void write_outcome(struct ocsf_line *line)
{
	static const int actions[] = {
	        [EVENT_ALLOWED] = ACTION_ALLOWED,
	        [EVENT_DENIED] = ACTION_DENIED,
	        [EVENT_OBSERVED] = ACTION_OBSERVED,
	        [EVENT_DROPPED] = ACTION_DENIED,
	};
	static const int dispositions[] = {
	        [EVENT_ALLOWED] = DISPOSITION_ALLOWED,
	        [EVENT_DENIED] = DISPOSITION_BLOCKED,
	        [EVENT_OBSERVED] = DISPOSITION_LOGGED,
	        [EVENT_DROPPED] = DISPOSITION_DROPPED,
	};
	const struct event *e = line->event;
	int disposition =
	        is_failure_of_network(e->cause) ? DISPOSITION_ERROR : dispositions[e->decision];
	int action = event_is_failure(e) ? ACTION_ALLOWED : actions[e->decision];

	line_uint(&line->json, "action_id", action);
	line_uint(&line->json, "disposition_id", disposition);
}

static void write_status(struct ocsf_line *line)
{
	const struct event *e = line->event;
	bool failed = e->decision == EVENT_DENIED || e->decision == EVENT_DROPPED ||
	              is_failure_of_network(e->cause);

	if (e->kind == EVENT_FINDING)
		line_uint(&line->json, "status_id", STATUS_NEW);
	else
		line_uint(&line->json, "status_id", failed ? STATUS_FAILURE : STATUS_SUCCESS);
	if (e->kind == EVENT_LIFECYCLE || e->kind == EVENT_FINDING)
		return;
	if (!ocsf_is_plain(e)) {
		struct slice code = ocsf_reason_code(e);
		char text[OCSF_REASON_MAX];

		line_some_text(&line->json, "status_code", code, OCSF_NAME_MAX);
		line_some_text(&line->json, "status_detail",
		        ocsf_reason_text(e, text, sizeof(text)), OCSF_TEXT_MAX);
	} else if (e->kind == EVENT_API || e->kind == EVENT_HTTP) {
		line_some_text(&line->json, "status_detail", e->detail, OCSF_TEXT_MAX);
	}
}

/* Only rules of the floor's file have names with these prefixes. */
static enum policy_layer layer_of(struct slice rule)
{
	return slice_starts_with(rule, SLICE("floor:"))            ? POLICY_LAYER_FLOOR
	       : slice_starts_with(rule, SLICE("infrastructure:")) ? POLICY_LAYER_INFRASTRUCTURE
	                                                           : POLICY_LAYER_POLICY;
}

static void write_control(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;
	struct slice rule = e->kind == EVENT_PACKET ? e->verdict_rule : e->rule;

	if (rule.n) {
		line_object(j, "firewall_rule");
		line_text(j, "name", rule, OCSF_NAME_MAX);
		/* The names of the fence's rules and of the policy's rules are separate name
		 * spaces. */
		line_plain(j, "type",
		        e->kind == EVENT_PACKET ? "fence" : policy_layer_name(layer_of(rule)));
		line_end_object(j);
	}
	if (line->sandbox->policy.len == 0)
		return;
	line_object(j, "policy");
	line_raw(j, buf_slice(&line->sandbox->policy));
	line_bool(j, "is_applied", e->decision != EVENT_OBSERVED);
	line_end_object(j);
}

static void write_envelope(
        struct ocsf_line *line, const struct ocsf_class *class, const char *uid, uint32_t activity)
{
	struct json *j = &line->json;
	char message[OCSF_TEXT_MAX];

	json_object(j, NULL);
	line_uint(j, "time", line->event->time_ms);
	line_uint(j, "type_uid", class->uid * 100 + activity);
	line_object(j, "metadata");
	line_plain(j, "uid", uid);
	line_uint(j, "sequence", line->sandbox->sequence + 1);
	line_raw(j, SLICE("\"version\":\"" OCSF_VERSION "\",\"product\":{\"name\":\"vethguard\","
	                  "\"vendor_name\":\"vethguard\",\"version\":\"" VERSION_TEXT "\"}"));
	line_raw(j, class->profiles);
	line_end_object(j);
	line_raw(j, class->head);
	line_uint(j, "activity_id", activity);
	line_uint(j, "severity_id", severity(line->event));
	line_text(j, "message", ocsf_message(line, message, sizeof(message)), OCSF_TEXT_MAX);
	write_status(line);
	write_outcome(line);
	write_control(line);
	line_raw(j, buf_slice(&line->sandbox->device));
}

static void format_uid(uint64_t id, char out[SEAL_UID_DIGITS + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SEAL_UID_DIGITS; i++)
		out[i] = digits[id >> (60 - 4 * i) & 15];
	out[SEAL_UID_DIGITS] = '\0';
}

int ocsf_append(struct buf *out, struct chain *chain, struct ocsf_sandbox *sandbox,
        const struct event *event)
{
	const struct ocsf_class *class = classes[event->kind];
	struct ocsf_line line = {.sandbox = sandbox, .event = event};
	size_t start = out->len;
	char uid[SEAL_UID_DIGITS + 1];
	uint32_t activity = class->activity(event);
	int rc;

	format_uid(event->id, uid);
	/* Makes room for any line at once. If there is none, the limit still holds piece by
	 * piece. */
	buf_reserve(out, OCSF_LINE_MAX);
	json_begin(&line.json, out);
	write_envelope(&line, class, uid, activity);
	class->body(&line);
	/* The object stays open: the seal closes it. */
	rc = line.json.failed ? -ENOBUFS
	                      : chain_seal(chain, out, start, uid, class->uid * 100 + activity);
	if (rc != 0) {
		out->len = start;
		return rc;
	}
	sandbox->sequence++;
	return 0;
}
