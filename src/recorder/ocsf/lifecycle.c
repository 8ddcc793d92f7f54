/* SPDX-License-Identifier: Apache-2.0 */
/* Application Lifecycle (6002): changes of a sandbox or the daemon; and API Activity (6003): the
 * calls that asked for them. */
#include <inttypes.h>
#include <stdio.h>

#include "recorder/ocsf/parts.h"

#define PROFILES OCSF_CONSTANT("\"profiles\":[\"host\",\"record_integrity\",\"security_control\"]")

#define ACTIVITY_OTHER 99

/* Application Lifecycle. */

#define LIFECYCLE_CLASS 6002
_Static_assert(LIFECYCLE_CLASS * 100 + ACTIVITY_OTHER == OCSF_TYPE_LOG_ENDED,
        "what ends a file is known by its type");

static const uint32_t lifecycle_activities[] = {
        [EVENT_START] = 3,           /* Start */
        [EVENT_STOP] = 4,            /* Stop */
        [EVENT_ADOPTED] = 5,         /* Restart */
        [EVENT_WORKER_REPLACED] = 5, /* Restart */
        [EVENT_PAUSED] = 7,          /* Disable */
        [EVENT_RESUMED] = 6,         /* Enable */
        [EVENT_POLICY_CHANGED] = 8,  /* Update */
        [EVENT_LOG_OPENED] = 8,      /* Update */
        [EVENT_LOG_ENDED] = ACTIVITY_OTHER,
};
_Static_assert(
        sizeof(lifecycle_activities) / sizeof(lifecycle_activities[0]) == EVENT_LIFECYCLE_COUNT,
        "one activity each");

static uint32_t lifecycle_activity(const struct event *event)
{
	return lifecycle_activities[event->lifecycle];
}

/* The new policy is that of the line itself. */
static void write_change(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	line_object(j, "unmapped");
	line_uint(j, "generation", ocsf_long(e->generation));
	line_some_text(j, "old_policy", e->old_policy, OCSF_NAME_MAX);
	line_some_text(j, "old_fingerprint", e->old_fingerprint, OCSF_NAME_MAX);
	line_some_text(j, "difference", e->detail, OCSF_DIFFERENCE_MAX);
	line_end_object(j);
}

static void lifecycle_body(struct ocsf_line *line)
{
	struct json *j = &line->json;
	char uid[SEAL_UID_DIGITS + 1];

	snprintf(uid, sizeof(uid), "%016" PRIx64, line->sandbox->uid);
	if (line->event->lifecycle == EVENT_LOG_ENDED)
		line_plain(j, "activity_name", "Log File Ended");
	line_object(j, "app");
	line_text(j, "name", slice_from_string(line->sandbox->name), OCSF_NAME_MAX);
	line_plain(j, "uid", uid);
	line_end_object(j);
	if (line->event->lifecycle == EVENT_POLICY_CHANGED)
		write_change(line);
	else
		line_some_text(j, "status_detail", line->event->detail, OCSF_TEXT_MAX);
}

const struct ocsf_class ocsf_lifecycle = {
        .uid = LIFECYCLE_CLASS,
        .head = OCSF_CONSTANT("\"class_uid\":6002,\"category_uid\":6"),
        .profiles = PROFILES,
        .activity = lifecycle_activity,
        .body = lifecycle_body,
};

/* API Activity. */

static const struct operation {
	struct slice name;
	uint32_t activity;
} operations[] = {
        {OCSF_CONSTANT("sandboxes.attach"), 1}, /* Create */
        {OCSF_CONSTANT("sandboxes.list"), 2},   /* Read */
        {OCSF_CONSTANT("sandboxes.get"), 2}, {OCSF_CONSTANT("sandboxes.env"), 2},
        {OCSF_CONSTANT("sandboxes.stats"), 2}, {OCSF_CONSTANT("status.get"), 2},
        {OCSF_CONSTANT("roles.get"), 2}, {OCSF_CONSTANT("audit.get"), 2},
        {OCSF_CONSTANT("sandboxes.reload"), 3}, /* Update */
        {OCSF_CONSTANT("sandboxes.follow"), 3}, {OCSF_CONSTANT("sandboxes.pause"), 3},
        {OCSF_CONSTANT("sandboxes.resume"), 3}, {OCSF_CONSTANT("reload"), 3},
        {OCSF_CONSTANT("upgrade"), 3}, {OCSF_CONSTANT("sandboxes.detach"), 4}, /* Delete */
};

static uint32_t api_activity(const struct event *event)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (slice_equals(operations[i].name, event->operation))
			return operations[i].activity;
	return ACTIVITY_OTHER;
}

static struct slice operation_or_none(const struct event *e)
{
	return e->operation.n ? e->operation : SLICE("none");
}

static void write_api(struct json *j, const struct event *e)
{
	line_object(j, "api");
	line_text(j, "operation", operation_or_none(e), OCSF_NAME_MAX);
	line_raw(j, SLICE("\"service\":{\"name\":\"vethguardd\"}"));
	if (e->status) {
		line_object(j, "response");
		line_uint(j, "code", e->status);
		if (e->decision == EVENT_DENIED)
			line_some_text(j, "error_message", e->detail, OCSF_TEXT_MAX);
		line_end_object(j);
	}
	line_end_object(j);
}

static void write_actor(struct json *j, const struct event *e)
{
	char uid[16];

	snprintf(uid, sizeof(uid), "%" PRIu32, e->user_id);
	line_object(j, "actor");
	line_object(j, "user");
	line_some_text(j, "name", e->user, OCSF_NAME_MAX);
	line_plain(j, "uid", uid);
	line_end_object(j);
	if (e->process_id) {
		line_object(j, "process");
		line_uint(j, "pid", e->process_id);
		line_end_object(j);
	}
	line_end_object(j);
}

static void write_resources(struct json *j, const struct event *e)
{
	if (!e->host.n)
		return;
	json_array(j, "resources");
	json_object(j, NULL);
	line_text(j, "name", e->host, OCSF_NAME_MAX);
	line_plain(j, "type", "sandbox");
	line_end_object(j);
	json_end_array(j);
}

static void api_body(struct ocsf_line *line)
{
	struct json *j = &line->json;
	const struct event *e = line->event;

	if (api_activity(e) == ACTIVITY_OTHER)
		line_text(j, "activity_name", operation_or_none(e), OCSF_NAME_MAX);
	write_api(j, e);
	write_actor(j, e);
	write_resources(j, e);
	/* The other end of a Unix socket on this machine has no address. */
	line_raw(j, SLICE("\"src_endpoint\":{\"name\":\"control socket\"}"));
	if (e->target.n)
		ocsf_control_request(line);
}

const struct ocsf_class ocsf_api = {
        .uid = 6003,
        .head = OCSF_CONSTANT("\"class_uid\":6003,\"category_uid\":6"),
        .profiles = PROFILES,
        .activity = api_activity,
        .body = api_body,
};
