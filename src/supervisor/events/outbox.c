/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's own events: what it did, what it saw, what it was asked. Each event is kept
 * until the recorder confirms that it is in the log. A new recorder is sent all of them again and
 * ignores those in the log. The recorder is sent as many in advance as it has room for.
 */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "supervisor/events/files.h"
#include "supervisor/events/private.h"

/* A pending event; lists begin with the oldest. */
struct told {
	struct told *next;
	struct recorded *of; /* the owner of this list */
	UT_hash_handle hh;   /* by id, in recording.by_id */
	uint64_t id;         /* of its message: the recorder ignores those it has */
	size_t n;
	uint8_t encoded[];
};

static uint8_t buffer[MESSAGE_BYTES_MAX];

static int say_event(struct supervisor *sv, uint64_t sandbox_id, const struct told *told)
{
	struct message_recorder_event m = {sandbox_id, slice_of(told->encoded, told->n)};
	size_t n = message_recorder_event_encode(
	        buffer, sizeof(buffer), MESSAGE_RECORDER_EVENT, told->id, &m);

	return recording_say(sv, buffer, n, NULL, 0);
}

static void complain(int error)
{
	if (error)
		log_error("an event could not be given to the recorder: %s", strerror(-error));
}

static size_t cost_of(const struct told *t)
{
	return t->n + MESSAGE_RECORDER_EVENT_COST;
}

/* What cannot be sent now is sent with the next event, or when one is in the log. */
static void say_next(struct supervisor *sv, struct recorded *of)
{
	struct told *t;
	int rc = 0;

	while (!of->held && (t = of->next_told) != NULL && !rc &&
	        of->ahead + cost_of(t) <= MESSAGE_RECORDER_AHEAD_MAX) {
		rc = say_event(sv, of->id, t);
		if (rc)
			break;
		of->next_told = t->next;
		of->ahead += cost_of(t);
	}
	complain(rc);
}

void outbox_say_again(struct supervisor *sv, struct recorded *of)
{
	of->next_told = of->told;
	of->ahead = 0;
	say_next(sv, of);
}

void outbox_forget(struct supervisor *sv, struct recorded *of, uint64_t up_to, bool for_good)
{
	while (of->told && of->told->id <= up_to) {
		struct told *first = of->told;

		if (of->next_told == first)
			of->next_told = first->next;
		else
			of->ahead -= cost_of(first);
		of->told = first->next;
		sv->recording.told_count--;
		HASH_DEL(sv->recording.by_id, first);
		if (for_good)
			recording_remove_event(&sv->recording, of->id, first->id);
		free(first);
	}
}

void outbox_move(struct recorded *of)
{
	for (struct told *t = of->told; t; t = t->next)
		t->of = of;
}

static struct told *find_told(const struct supervisor *sv, uint64_t id)
{
	struct told *t;

	HASH_FIND(hh, sv->recording.by_id, &id, sizeof(id), t);
	return t;
}

void recording_taken(struct supervisor *sv, uint64_t id)
{
	struct told *t = find_told(sv, id);
	struct recorded *of = t ? t->of : NULL;

	if (!of)
		return;
	outbox_forget(sv, of, id, true);
	say_next(sv, of);
	recording_end_waiting(sv, of);
	recording_end_orphans(sv, of);
}

/* Returns NULL if there is no memory, or too many events wait. */
static struct told *append(
        struct supervisor *sv, struct recorded *of, uint64_t id, const uint8_t *encoded, size_t n)
{
	bool full = sv->recording.told_count >= RECORDING_TOLD_MAX;
	struct told *told = full ? NULL : malloc(sizeof(*told) + n), **last = &of->told;

	if (full && !sv->recorder_life.stall.why[0])
		role_kill(&sv->recorder, "it writes nothing of what it is told into the log");
	if (!told) {
		sv->recording.outage.lost++;
		return NULL;
	}
	told->next = NULL;
	told->of = of;
	told->id = id;
	told->n = n;
	HASH_ADD(hh, sv->recording.by_id, id, sizeof(told->id), told);
	if (!told->hh.tbl) {
		free(told);
		return NULL;
	}
	sv->recording.told_count++;
	memcpy(told->encoded, encoded, n);
	while (*last)
		last = &(*last)->next;
	*last = told;
	if (!of->next_told)
		of->next_told = told;
	return told;
}

/* The recorder was told that the sandbox has ended, and may have forgotten it. A later event, such
 * as a call about it while the daemon stops, is recorded as the daemon's own. */
static bool has_ended(const struct sandbox *s)
{
	return s && s->persistent && (s->state == SANDBOX_SUMMING || s->state == SANDBOX_ENDED);
}

static void tell(struct supervisor *sv, struct sandbox *s, struct event *event)
{
	static uint8_t encoded[EVENT_BYTES_MAX];
	struct recorded *of = recording_of(sv, has_ended(s) ? NULL : s);
	struct told *told;
	size_t n;

	if (!of->open)
		return;
	/* Random, because workers number theirs: no counter is shared. */
	random_bytes(&event->id, sizeof(event->id));
	event->time_ms = clock_real_ms();
	n = event_encode(event, encoded, sizeof(encoded));
	told = append(sv, of, supervisor_next_id(sv), encoded, n);
	if (told)
		recording_keep_event(&sv->recording, of->id, told->id, encoded, n);
	complain(told ? 0 : -ENOBUFS);
	say_next(sv, of);
}

void outbox_restore(
        struct supervisor *sv, struct recorded *of, uint64_t id, const uint8_t *encoded, size_t n)
{
	if (find_told(sv, id))
		return;

	complain(append(sv, of, id, encoded, n) ? 0 : -ENOBUFS);
	say_next(sv, of);
}

static struct slice text_or_none(const char *text)
{
	return text ? slice_from_string(text) : SLICE("");
}

void outbox_lifecycle(
        struct supervisor *sv, struct sandbox *s, enum event_lifecycle what, const char *cause)
{
	struct event event = {.kind = EVENT_LIFECYCLE,
	        .decision = EVENT_ALLOWED,
	        .lifecycle = what,
	        .detail = text_or_none(cause)};

	tell(sv, s, &event);
}

static void tell_what_should_not_be(struct supervisor *sv, struct sandbox *s,
        enum event_finding finding, enum event_decision decision, const char *text)
{
	struct event event = {.kind = EVENT_FINDING,
	        .decision = decision,
	        .finding = finding,
	        .cause = EVENT_CAUSE_CLOSING,
	        .detail = slice_from_string(text)};

	tell(sv, s, &event);
}

void outbox_finding(
        struct supervisor *sv, struct sandbox *s, enum event_finding finding, const char *text)
{
	tell_what_should_not_be(sv, s, finding, EVENT_DENIED, text);
}

void outbox_observed(
        struct supervisor *sv, struct sandbox *s, enum event_finding finding, const char *text)
{
	tell_what_should_not_be(sv, s, finding, EVENT_OBSERVED, text);
}

#define STATUS_REFUSED 400 /* RFC 9110 section 15.5; and above */

void outbox_api(struct supervisor *sv, struct sandbox *s, const struct outbox_call *call)
{
	bool refused = call->status >= STATUS_REFUSED;
	struct event event = {.kind = EVENT_API,
	        .decision = refused ? EVENT_DENIED : EVENT_ALLOWED,
	        .cause = refused ? EVENT_CAUSE_CALLER : EVENT_CAUSE_POLICY,
	        .operation = text_or_none(call->operation),
	        .method = text_or_none(call->method),
	        .target = text_or_none(call->target),
	        .user_agent = text_or_none(call->user_agent),
	        .user = text_or_none(call->user),
	        .user_id = call->user_id,
	        .process_id = call->process_id,
	        .host = text_or_none(s ? s->name : call->sandbox),
	        .status = call->status,
	        .detail = text_or_none(refused ? call->error : call->done)};

	if (call->looks && sv->recording.told_count >= RECORDING_LOOKS_MAX) {
		sv->recording.outage.looks++;
		log_info("%s by uid %u (pid %u) is not in the audit log, which cannot be written",
		        call->operation, (unsigned)call->user_id, (unsigned)call->process_id);
	} else {
		tell(sv, s, &event);
	}
}

void outbox_policy_change(
        struct supervisor *sv, struct sandbox *s, const struct outbox_policy *change)
{
	struct event event = {.kind = EVENT_LIFECYCLE,
	        .decision = EVENT_ALLOWED,
	        .lifecycle = EVENT_POLICY_CHANGED,
	        .policy = change->name,
	        .fingerprint = change->fingerprint,
	        .old_policy = change->old_name,
	        .old_fingerprint = change->old_fingerprint,
	        .generation = change->generation,
	        .detail = text_or_none(change->difference)};

	tell(sv, s, &event);
}
