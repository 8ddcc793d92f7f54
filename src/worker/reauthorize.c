/* SPDX-License-Identifier: Apache-2.0 */
/* Handles what the supervisor sends while the worker works: pauses, a policy to retire under, a
 * question for figures. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "vethguard/base/linux.h"
#include "worker/worker.h"

/* --- pauses --- */

static enum event_cause cause_of(enum message_pause why)
{
	return why == MESSAGE_PAUSE_OPERATOR ? EVENT_CAUSE_PAUSED : EVENT_CAUSE_CLOSING;
}

/* Applies the pauses. If there are several, a refused client is told the operator's reason. */
void worker_apply_pauses(struct worker *w)
{
	enum event_cause cause = EVENT_CAUSE_CLOSING;
	const char *why = NULL;

	for (size_t i = 0; i <= MESSAGE_PAUSE_OPERATOR; i++) {
		if (!w->pauses[i].on)
			continue;
		why = w->pauses[i].text;
		cause = cause_of((enum message_pause)i);
	}
	if (w->proxy)
		proxy_pause(w->proxy, cause, why);
}

/* Refuses everything from now on. */
static void worker_pause(struct worker *w, enum message_pause why, struct slice text)
{
	w->pauses[why].on = true;
	snprintf(w->pauses[why].text, sizeof(w->pauses[why].text), "%s%.*s",
	        why == MESSAGE_PAUSE_OPERATOR ? "the sandbox is paused: " : "", SLICE_ARG(text));
	worker_apply_pauses(w);
	if (w->proxy && why != MESSAGE_PAUSE_RECORDER)
		proxy_end_all(w->proxy, cause_of(why), w->pauses[why].text);
}

void worker_resume(struct worker *w, enum message_pause why)
{
	if (why == MESSAGE_PAUSE_RECORDER)
		events_hold(&w->events, false);
	w->pauses[why].on = false;
	worker_apply_pauses(w);
}

int worker_be_quiet(struct worker *w, struct ipc_message *m)
{
	struct message_worker_pause pause;

	switch (m->head.type) {
	case MESSAGE_WORKER_PAUSE:
		if (message_worker_pause_decode(&m->body, &pause) < 0)
			return -EBADMSG;
		worker_pause(w, pause.why, pause.text);
		return 0;
	case MESSAGE_WORKER_HOLD:
		events_hold(&w->events, true);
		return 0;
	default:
		return -EBADMSG;
	}
}

/* --- retiring --- */

/* A policy that replaces the present one, and which of its credentials are the same. */
struct successor {
	struct worker *worker;
	struct policy policy;
	uint64_t generation;
	uint32_t count;
	uint32_t before[POLICY_CREDENTIALS_MAX]; /* index in the new policy -> index in the old */
};

static void match_credentials(struct successor *s)
{
	const struct policy *old = &s->worker->policy;
	uint32_t count = policy_credential_count(old);

	s->count = policy_credential_count(&s->policy);
	for (uint32_t i = 0; i < s->count; i++) {
		s->before[i] = POLICY_NONE;
		for (uint32_t j = 0; j < count; j++)
			if (policy_credential_equals(&s->policy, i, old, j))
				s->before[i] = j;
	}
}

/* Puts the new policy in force, in the place that everybody reads. Questions to the keeper under
 * the old policy's indices are asked again. */
static void change(void *context)
{
	struct successor *s = context;
	struct worker *w = s->worker;
	struct policy old = w->policy;
	bool asks_again = s->generation > w->generation;

	if (credential_store_renumber(w->credentials, s->before, s->count) < 0) {
		worker_fail(w, "no memory for a new policy");
		return;
	}
	w->policy = s->policy;
	w->generation = s->generation;
	munmap((void *)(uintptr_t)old.image, old.size);
	if (asks_again)
		credential_store_ask_again(w->credentials);
}

static void send_retired(struct worker *w, uint64_t id, uint64_t closed)
{
	const struct message_worker_retired m = {
	        w->generation, closed, w->proxy ? proxy_left(w->proxy) : 0};
	uint8_t message[64];

	ipc_send(&w->supervisor, message,
	        message_worker_retired_encode(
	                message, sizeof(message), MESSAGE_WORKER_RETIRED, id, &m),
	        NULL, 0);
}

/* Connections that are queued at the listeners were authorized by no policy yet: they get the new
 * one. */
int worker_retire(struct worker *w, uint64_t id, uint64_t generation, int image)
{
	struct successor s = {.worker = w, .generation = generation};
	uint64_t closed = 0;
	int rc = worker_map_policy(image, &s.policy);

	if (rc < 0 || generation < w->generation)
		return rc < 0 ? rc : -EBADMSG;
	match_credentials(&s);
	w->stop_id = id;
	if (w->proxy)
		closed = proxy_reauthorize(w->proxy, &s.policy, change, &s);
	else
		change(&s);
	if (w->state == WORKER_SERVING) {
		responder_finish(w->responder);
		w->responder = NULL;
		proxy_retire(w->proxy, worker_when_idle, w);
	} else if (!w->proxy) {
		worker_when_idle(w);
	}
	if (w->state != WORKER_STOPPING)
		worker_set_state(w, WORKER_RETIRING);
	send_retired(w, id, closed);
	return 0;
}

/* --- figures --- */

static enum message_stats_kind kind_of(const struct event *e)
{
	switch (e->kind) {
	case EVENT_HTTP:
		return MESSAGE_STATS_HTTP;
	case EVENT_DNS:
		return MESSAGE_STATS_DNS;
	case EVENT_INBOUND:
		return MESSAGE_STATS_INBOUND;
	default:
		return MESSAGE_STATS_CONNECTION;
	}
}

void worker_count(struct worker *w, const struct event *e)
{
	struct message_worker_stats *s = &w->stats;
	enum message_stats_kind kind = kind_of(e);

	if (e->kind == EVENT_FINDING) {
		s->findings++;
		return;
	}
	if (event_is_failure(e) || (e->decision == EVENT_OBSERVED && event_upstream_failed(e)))
		s->kinds[kind].failed++;
	else if (e->decision != EVENT_DENIED)
		s->kinds[kind].allowed++;
	else
		s->kinds[kind].denied++;
	s->bytes_out += e->bytes_out;
	s->bytes_in += e->bytes_in;
}

void worker_send_stats(struct worker *w, uint64_t id)
{
	struct message_worker_stats m = w->stats;
	uint8_t message[256];

	m.generation = w->generation;
	if (w->proxy)
		proxy_count(w->proxy, &m);
	m.names_kept = names_count(w->names);
	m.queries_refused = w->responder ? responder_refused(w->responder) : 0;
	m.backlog_bytes = w->events.backlog.len;
	m.heap_bytes = heap_bytes_used();
	ipc_send(&w->supervisor, message,
	        message_worker_stats_encode(message, sizeof(message), MESSAGE_WORKER_STATS, id, &m),
	        NULL, 0);
}
