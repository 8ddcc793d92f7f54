/* SPDX-License-Identifier: Apache-2.0 */
/* Events that the supervisor itself has to tell: when a sandbox began and ended, and what should
 * not have happened. */
#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

static void record(struct supervisor *sv, const struct sandbox *s, struct event *event)
{
	static uint8_t encoded[EVENT_BYTES_MAX], message[EVENT_BYTES_MAX + 64];

	if (!s->recording || !role_runs(&sv->recorder))
		return;
	random_bytes(&event->id,
	        sizeof event->id); /* the worker numbers its own: no counter is shared */
	event->time_ms = clock_real_ms();
	struct message_recorder_event m = {
	        s->id, slice_of(encoded, event_encode(event, encoded, sizeof encoded))};
	size_t n = message_recorder_event_encode(
	        message, sizeof message, MESSAGE_RECORDER_EVENT, supervisor_next_id(sv), &m);
	if (role_send(&sv->recorder, message, n, NULL, 0) != 0)
		log_error("an event of %s could not be given to the recorder", s->name);
}

void record_lifecycle(struct supervisor *sv, const struct sandbox *s, enum event_lifecycle what)
{
	struct event event = {
	        .kind = EVENT_LIFECYCLE, .decision = EVENT_ALLOWED, .lifecycle = what};

	record(sv, s, &event);
}

void record_finding(struct supervisor *sv, const struct sandbox *s, enum event_finding finding,
        const char *text)
{
	struct event event = {.kind = EVENT_FINDING,
	        .decision = EVENT_DENIED,
	        .finding = finding,
	        .cause = EVENT_CAUSE_CLOSING,
	        .detail = slice_from_string(text)};

	record(sv, s, &event);
}
