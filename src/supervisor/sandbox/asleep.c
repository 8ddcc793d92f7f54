/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session without a connection has no worker: it is ASLEEP. The first connection that proves it
 * wakes it (process/gateway_sessions.c): a worker of the pool is started for the session, and the
 * connection waits for that worker.
 *
 * While a worker serves, the supervisor asks it now and then whether anything is open. It asks the
 * worker, and not the gateway, because only the worker knows of requests that go on after a client
 * is gone. A worker that lies keeps its own session awake, or loses its own connections.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

/* --- beginning without a worker --- */

/* Notes which CA will sign for the sandbox, as far as that is known without a worker. */
static void know_ca(struct sandbox *s, const struct message_keeper_ca *view)
{
	const size_t n = sizeof(s->root);

	if (!s->root_known)
		memcpy(s->root, view->cas[0].root.p, n);
	s->root_known = true;
	for (size_t i = 0; i < view->count && !s->ca_known; i++) {
		if (memcmp(view->cas[i].root.p, s->root, n) != 0)
			continue;
		memcpy(s->ca, view->cas[i].fingerprint.p, sizeof(s->ca));
		s->ca_known = true;
	}
}

int sandbox_know_root(struct sandbox *s)
{
	const struct message_keeper_ca *view = ca_view(s->supervisor);

	if (!view)
		return -EAGAIN;
	if (view->count == 0 || view->unusable || view->trusted.n > MESSAGE_PEM_MAX)
		return sandbox_failed(
		        s, -ENOKEY, "no CA can sign for it: %.*s", SLICE_ARG(view->notes));
	sandbox_trust(s, view->trusted);
	know_ca(s, view);
	return 0;
}

enum sandbox_state sandbox_sleep_when_ready(struct sandbox *s)
{
	const bool recorded = s->supervisor->recorder_life.ready;
	const int rc = sandbox_know_root(s);

	if (rc == 0 && recorded) {
		loop_timer_cancel(&s->timer);
		outbox_lifecycle(s->supervisor, s, EVENT_START, NULL);
		log_sandbox(LOG_LEVEL_INFO, s->name, "ready");
		return SANDBOX_ASLEEP;
	}
	if (rc == -ENOKEY)
		return sandbox_cut_off(s);
	if (loop_now_ms(s->supervisor->loop) < s->sleep.ready_until_ms) {
		loop_timer_set(&s->timer, SANDBOX_READY_LOOK_MS);
		return SANDBOX_STARTING;
	}
	snprintf(s->failure, sizeof(s->failure), "not ready after %d s: waiting for%s%s",
	        SANDBOX_START_MS / 1000, rc ? " the keeper" : "", recorded ? "" : " the recorder");
	return sandbox_cut_off(s);
}

/* --- waking --- */

enum sandbox_state sandbox_wake(struct sandbox *s)
{
	s->failure[0] = 0;
	s->sleep.waking = true;
	return sandbox_start_another(s);
}

/* --- falling asleep --- */

/* True if the policy has sealed credentials: such a login ends with the last worker. */
static bool has_logins(const struct sandbox *s)
{
	const struct policy *policy = &s->generation->settings->policy;
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(policy); i++) {
		policy_credential(policy, i, &c);
		if (c.source == POLICY_SOURCE_SEALED)
			return true;
	}
	return false;
}

/* True if the worker may be ended once it is idle. No other worker may be left: one of an earlier
 * generation may still have connections, and has to be told of the next generation. */
static bool may_sleep(const struct sandbox *s)
{
	return s->session && s->state == SANDBOX_SERVING && s->current &&
	       s->instances == s->current && !s->current->next && !sandbox_is_changing(s) &&
	       !s->quiescing && !has_logins(s);
}

static int64_t look_ms(const struct sandbox *s)
{
	return s->supervisor->gateway.config.keep_worker_ms / SANDBOX_IDLE_LOOKS;
}

void sandbox_begin_looking(struct sandbox *s)
{
	s->sleep.idle = 0;
	s->sleep.question = 0;
	s->sleep.waking = false;
	loop_timer_set(&s->timer, look_ms(s));
}

enum sandbox_state sandbox_look(struct sandbox *s)
{
	if (!s->session)
		return SANDBOX_SERVING;
	loop_timer_set(&s->timer, look_ms(s));
	if (s->sleep.entered != s->gateway.entered)
		s->sleep.idle = 0;
	s->sleep.entered = s->gateway.entered;
	s->sleep.question = supervisor_next_id(s->supervisor);
	if (!may_sleep(s) || instance_ask_stats(s->current, s->sleep.question) != 0)
		s->sleep.question = 0;
	return SANDBOX_SERVING;
}

static bool is_idle(const struct message_worker_stats *m)
{
	return !m->connections_open && !m->streams_open && !m->exchanges_open && !m->flows_open &&
	       !m->visits_open && !m->backlog_bytes;
}

void sandbox_add_past(const struct sandbox *s, struct message_worker_stats *m)
{
	const struct message_worker_stats *past = &s->sleep.past;

	for (size_t i = 0; i < MESSAGE_STATS_KINDS; i++) {
		m->kinds[i].allowed += past->kinds[i].allowed;
		m->kinds[i].denied += past->kinds[i].denied;
		m->kinds[i].failed += past->kinds[i].failed;
	}
	m->findings += past->findings;
	m->bytes_out += past->bytes_out;
	m->bytes_in += past->bytes_in;
	m->connections += past->connections;
	m->queries_refused += past->queries_refused;
	m->refusals_delayed += past->refusals_delayed;
	m->limits_met += past->limits_met;
}

bool sandbox_take_look(
        struct sandbox *s, struct instance *i, uint64_t id, const struct message_worker_stats *m)
{
	struct message_worker_stats sum = *m;

	if (!s->sleep.question || id != s->sleep.question)
		return false;
	s->sleep.question = 0;
	s->sleep.idle = is_idle(m) ? s->sleep.idle + 1 : 0;
	if (s->sleep.idle < SANDBOX_IDLE_IN_A_ROW || i != s->current || !may_sleep(s) ||
	        s->sleep.entered != s->gateway.entered)
		return true;
	sandbox_add_past(s, &sum);
	s->sleep.past = sum;
	sandbox_event(s, SANDBOX_IDLE);
	return true;
}

enum sandbox_state sandbox_fall_asleep(struct sandbox *s)
{
	struct instance *i = s->current;

	s->current = NULL;
	s->failure[0] = 0;
	loop_timer_cancel(&s->timer);
	instance_enter(i, INSTANCE_ENDING);
	role_stop(&i->worker, supervisor_next_id(s->supervisor), SANDBOX_STOP_MS);
	log_sandbox(LOG_LEVEL_DEBUG, s->name, "its worker is ended: it has no connections");
	return SANDBOX_ASLEEP;
}

/* --- while it is asleep --- */

/* Its last worker may not have exited yet: the pause is complete when it has. */
enum sandbox_state sandbox_pause_asleep(struct sandbox *s)
{
	struct instance *i;

	DL_FOREACH(s->instances, i)
	i->quiesced = true;
	s->quiescing = s->instances != NULL;
	return SANDBOX_ASLEEP;
}

void sandbox_examine_sources(
        const struct sandbox *s, void (*tell)(void *context, const char *fault), void *context)
{
	const struct generation *g = s->generation;
	struct sources *own;

	if (s->current) {
		sources_examine(&s->current->sources, tell, context);
		return;
	}
	own = g ? malloc(sizeof(*own)) : NULL;
	if (!own)
		return;
	sources_init(own, s->supervisor->loop, &g->settings->policy, NULL);
	own->identity = g->identity;
	own->settings = g->settings;
	snprintf(own->directory, sizeof(own->directory), "%s", s->directory);
	sources_examine(own, tell, context);
	sources_fini(own);
	free(own);
}
