/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recorder is told: the log, each sandbox, the supervisor's own events, the end of a
 * sandbox. All of it can be told again, to a recorder that takes over from one that was killed: the
 * descriptors are kept, and an event until the recorder says that it is in the log. That the
 * recorder has just died is no failure here: it is told again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/journal.h"
#include "supervisor/audit_file.h"
#include "supervisor/supervisor.h"

/* An event on its way, oldest first. */
struct told {
	struct told *next;
	uint64_t id; /* of its message: the recorder passes over those it has */
	size_t n;
	uint8_t encoded[];
};

static uint8_t buffer[MESSAGE_BYTES_MAX];

static int say(struct supervisor *sv, size_t n, const int *fds, size_t fd_count)
{
	int error;

	if (!role_runs(&sv->recorder))
		return 0;
	error = role_send(&sv->recorder, buffer, n, fds, fd_count);
	return error == -EPIPE ? 0 : error;
}

static int say_start(struct supervisor *sv)
{
	const struct recording *r = &sv->recording;
	const int fds[] = {r->log, r->reader, r->journal};
	struct message_recorder_start m = {slice_from_string(r->path), (uint8_t)log_level()};

	return say(sv,
	        message_recorder_start_encode(
	                buffer, sizeof buffer, MESSAGE_RECORDER_START, supervisor_next_id(sv), &m),
	        fds, 3);
}

int recording_start(struct supervisor *sv, const char *path, int log)
{
	struct recording *r = &sv->recording;

	r->log = log;
	r->reader = audit_file_reader(log);
	r->journal = r->reader < 0 ? r->reader : journal_create();
	if (r->journal < 0) {
		int error = r->journal;

		if (r->reader >= 0)
			close(r->reader);
		close(log);
		return error;
	}
	snprintf(r->path, sizeof r->path, "%s", path);
	sv->log_given = true;
	return say_start(sv);
}

void recording_fini(struct supervisor *sv)
{
	if (!sv->log_given)
		return;
	close(sv->recording.log);
	close(sv->recording.reader);
	close(sv->recording.journal);
	sv->log_given = false;
}

int recording_open(struct supervisor *sv, struct sandbox *s)
{
	struct message_recorder_sandbox m = {.sandbox_id = s->id,
	        .sandbox = slice_from_string(s->name),
	        .policy = policy_name(&s->generation->settings.policy),
	        .fingerprint = policy_fingerprint(&s->generation->settings.policy),
	        .gate4 = s->gate.gate4,
	        .gate6 = s->gate.gate6,
	        .has_packets = true};
	const int fds[] = {s->ring[0], s->ring[1], s->ring[2], s->gate.packets};

	return say(sv,
	        message_recorder_sandbox_encode(buffer, sizeof buffer, MESSAGE_RECORDER_SANDBOX,
	                supervisor_next_id(sv), &m),
	        fds, 4);
}

static int say_event(struct supervisor *sv, const struct sandbox *s, const struct told *told)
{
	struct message_recorder_event m = {s->id, slice_of(told->encoded, told->n)};

	return say(sv,
	        message_recorder_event_encode(
	                buffer, sizeof buffer, MESSAGE_RECORDER_EVENT, told->id, &m),
	        NULL, 0);
}

int recording_end(struct supervisor *sv, struct sandbox *s)
{
	struct message_sandbox m = {s->id, gate_dropped(&s->gate)};

	return say(sv,
	        message_sandbox_encode(
	                buffer, sizeof buffer, MESSAGE_RECORDER_END, s->summary_request, &m),
	        NULL, 0);
}

static int open_again(struct supervisor *sv, struct sandbox *s)
{
	int error = recording_open(sv, s);

	for (const struct told *t = s->told; t && !error; t = t->next)
		error = say_event(sv, s, t);
	if (!error && s->state == SANDBOX_SUMMING)
		error = recording_end(sv, s);
	return error;
}

int recording_again(struct supervisor *sv)
{
	struct sandbox *s, *next;
	int error = sv->log_given ? say_start(sv) : 0;

	HASH_ITER(hh, sv->sandboxes, s, next)
	{
		if (s->recording && !error)
			error = open_again(sv, s);
	}
	return error;
}

bool recording_told(const struct sandbox *s, uint64_t id)
{
	const struct told *t = s->told;

	while (t && t->id != id)
		t = t->next;
	return t != NULL;
}

void recording_taken(struct sandbox *s, uint64_t id)
{
	while (s->told && s->told->id <= id) {
		struct told *first = s->told;

		s->told = first->next;
		free(first);
	}
}

void recording_forget(struct sandbox *s)
{
	recording_taken(s, UINT64_MAX);
	for (size_t i = 0; i < 3; i++) {
		if (s->ring[i] >= 0)
			close(s->ring[i]);
		s->ring[i] = -1;
	}
}

static struct told *keep(struct sandbox *s, uint64_t id, const struct event *event)
{
	static uint8_t encoded[EVENT_BYTES_MAX];
	size_t n = event_encode(event, encoded, sizeof encoded);
	struct told *told = malloc(sizeof *told + n), **last = &s->told;

	if (!told)
		return NULL;
	told->next = NULL;
	told->id = id;
	told->n = n;
	memcpy(told->encoded, encoded, n);
	while (*last)
		last = &(*last)->next;
	*last = told;
	return told;
}

static void tell(struct supervisor *sv, struct sandbox *s, struct event *event)
{
	struct told *told;

	if (!s->recording)
		return;
	random_bytes(&event->id,
	        sizeof event->id); /* the worker numbers its own: no counter is shared */
	event->time_ms = clock_real_ms();
	told = keep(s, supervisor_next_id(sv), event);
	if (!told || say_event(sv, s, told) != 0)
		log_error("an event of %s could not be given to the recorder", s->name);
}

void tell_lifecycle(struct supervisor *sv, struct sandbox *s, enum event_lifecycle what)
{
	struct event event = {
	        .kind = EVENT_LIFECYCLE, .decision = EVENT_ALLOWED, .lifecycle = what};

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

void tell_finding(
        struct supervisor *sv, struct sandbox *s, enum event_finding finding, const char *text)
{
	tell_what_should_not_be(sv, s, finding, EVENT_DENIED, text);
}

void tell_observed(
        struct supervisor *sv, struct sandbox *s, enum event_finding finding, const char *text)
{
	tell_what_should_not_be(sv, s, finding, EVENT_OBSERVED, text);
}
