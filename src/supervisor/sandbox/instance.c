/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes: how they are made, their messages, their end. workers.c decides what follows
 * for the sandbox. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/os/priority.h"
#include "supervisor/sandbox/asks.h"
#include "supervisor/sandbox/team.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

struct generation *generation_new(uint64_t number)
{
	struct generation *g = calloc(1, sizeof(*g));

	if (g) {
		g->refs = 1;
		g->number = number;
	}
	return g;
}

struct generation *generation_get(struct generation *g)
{
	g->refs++;
	return g;
}

void generation_put(struct generation *g)
{
	if (!g || --g->refs)
		return;
	settings_put(g->settings);
	identity_fini(&g->identity);
	free(g->difference);
	memory_bundle_put(g->trusted);
	if (g->has_team)
		close(g->team);
	free(g);
}

static int on_ready(struct instance *i, struct ipc_message *message)
{
	if (!reader_done(&message->body) || i->worker_request == 0 ||
	        message->head.id != i->worker_request || i->worker_ready)
		return -EBADMSG;
	priority_take_back(i->worker.pid);
	i->worker_ready = true;
	sandbox_instance_progress(i->sandbox, i);
	return 0;
}

static int on_retired(struct instance *i, struct ipc_message *message)
{
	struct message_worker_retired m;

	if (message_worker_retired_decode(&message->body, &m) != 0 || !i->reauthorizing)
		return -EBADMSG;
	i->reauthorizing = false;
	if (i->state == INSTANCE_RETIRED)
		loop_timer_cancel(&i->timer);
	log_sandbox(LOG_LEVEL_INFO, i->sandbox->name,
	        "under the policy of generation %llu, %llu of the former worker's connections "
	        "were closed and %llu go on",
	        (unsigned long long)m.generation, (unsigned long long)m.closed,
	        (unsigned long long)m.left);
	sandbox_reauthorized(i->sandbox);
	return 0;
}

static int on_stats(struct instance *i, struct ipc_message *message)
{
	struct message_worker_stats m;
	struct sandbox_owner *owner = i->sandbox->owner;

	if (message_worker_stats_decode(&message->body, &m) != 0 || !owner->stats)
		return -EBADMSG;
	if (!sandbox_take_look(i->sandbox, i, message->head.id, &m) &&
	        !team_take_stats(i->sandbox, i, message->head.id, &m))
		owner->stats(owner, message->head.id, &m);
	return 0;
}

static int on_credentials(struct instance *i, struct ipc_message *message)
{
	static struct message_worker_credentials m;
	struct sandbox_owner *owner = i->sandbox->owner;

	if (message_worker_credentials_decode(&message->body, &m) != 0 || !owner->operated)
		return -EBADMSG;
	owner->operated(owner, i, message->head.id, &m);
	return 0;
}

static int on_proposal(struct instance *i, struct ipc_message *message)
{
	struct sandbox_owner *owner = i->sandbox->owner;
	struct message_worker_proposal m;
	struct policy_proposal checked;

	if (message_worker_proposal_decode(&message->body, &m) != 0 || message->fd_count ||
	        !policy_proposal_take(&checked, m.to, m.methods, m.paths, m.reason))
		return -EBADMSG;
	if (owner->proposed) {
		owner->proposed(owner, i, message->head.id, &m);
		return 0;
	}
	instance_tell_proposed(i, message->head.id,
	        &(struct message_worker_proposed){
	                MESSAGE_PROPOSAL_REFUSED, m.to, SLICE("nobody takes proposals here")});
	return 0;
}

static int on_message(struct role *role, struct ipc_message *message)
{
	struct instance *i = container_of(role, struct instance, worker);

	if (!i->sandbox)
		return -EBADMSG;
	switch (message->head.type) {
	case MESSAGE_WORKER_READY:
		return on_ready(i, message);
	case MESSAGE_WORKER_RETIRED:
		return on_retired(i, message);
	case MESSAGE_WORKER_STATS:
		return on_stats(i, message);
	case MESSAGE_WORKER_REACH:
		return instance_on_reach(i, message);
	case MESSAGE_WORKER_CALL:
		return instance_on_call(i, message);
	case MESSAGE_WORKER_ASSOCIATE:
		return instance_on_associate(i, message);
	case MESSAGE_WORKER_ASSOCIATE_END:
		return instance_on_associate_end(i, message);
	case MESSAGE_WORKER_CREDENTIALS:
		return on_credentials(i, message);
	case MESSAGE_WORKER_ASK:
		return asks_take(i, message);
	case MESSAGE_WORKER_ASK_END:
		return asks_take_end(i, message);
	case MESSAGE_WORKER_PROPOSAL:
		return on_proposal(i, message);
	default:
		return -EBADMSG;
	}
}

static void on_dead(struct role *role, const char *how)
{
	struct instance *i = container_of(role, struct instance, worker);

	if (i->sandbox)
		sandbox_instance_dead(i->sandbox, i, how);
	else
		worker_pool_dead(i->supervisor, i, how);
}

static void on_time(struct loop_timer *timer)
{
	struct instance *i = container_of(timer, struct instance, timer);

	sandbox_instance_late(i->sandbox, i);
}

struct instance *instance_new(struct supervisor *sv, struct slice root)
{
	struct instance *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->supervisor = sv;
	i->id = supervisor_next_id(sv);
	sources_init(&i->sources, sv->loop, NULL, supervisor_on_source);
	i->sources.book = &sv->leases;
	int rc = loop_timer_open(sv->loop, &i->timer, on_time);
	HASH_ADD(by_id, sv->instances, id, sizeof(i->id), i);
	if (!rc && !i->by_id.tbl)
		rc = -ENOMEM;
	if (!rc)
		rc = role_start(sv->loop, &i->worker, "vethguard-worker", "the worker", sv->mounts,
		        on_message, on_dead);
	if (!rc) {
		role_bound(&i->worker, ROLE_WORKER_BURST, ROLE_WORKER_PER_S);
		rc = instance_meet_keeper(i, root);
	}
	if (!rc)
		return i;
	role_fini(&i->worker);
	if (i->by_id.tbl)
		HASH_DELETE(by_id, sv->instances, i);
	loop_timer_close(&i->timer);
	free(i);
	errno = -rc;
	return NULL;
}

void instance_give(struct instance *i, struct sandbox *s)
{
	i->sandbox = s;
	DL_APPEND(s->instances, i);
	i->worker.text.sandbox = s->name;
	if (s->name[0])
		snprintf(i->worker.label, sizeof(i->worker.label), "the worker of %s", s->name);
}

void instance_hold(struct instance *i)
{
	size_t n = message_empty(
	        buffer, sizeof(buffer), MESSAGE_WORKER_HOLD, supervisor_next_id(i->supervisor));

	role_send(&i->worker, buffer, n, NULL, 0);
}

static void send_pause(struct instance *i, enum message_pause why, const char *text)
{
	const struct message_worker_pause pause = {why, slice_from_string(text)};
	size_t n = message_worker_pause_encode(buffer, sizeof(buffer), MESSAGE_WORKER_PAUSE,
	        supervisor_next_id(i->supervisor), &pause);
	int rc = role_send(&i->worker, buffer, n, NULL, 0);

	if (rc)
		role_give_up(&i->worker, rc, "it cannot be told to pause");
}

static void send_resume(struct instance *i)
{
	const struct message_worker_resume resume = {MESSAGE_PAUSE_OPERATOR};
	size_t n = message_worker_resume_encode(buffer, sizeof(buffer), MESSAGE_WORKER_RESUME,
	        supervisor_next_id(i->supervisor), &resume);

	role_send(&i->worker, buffer, n, NULL, 0);
}

void instance_pause(struct instance *i, const char *reason)
{
	if (reason)
		send_pause(i, MESSAGE_PAUSE_OPERATOR, reason);
	else
		send_resume(i);
}

void instance_close_egress(struct instance *i, const char *why)
{
	send_pause(i, MESSAGE_PAUSE_EGRESS, why);
}

int instance_ask_stats(struct instance *i, uint64_t id)
{
	return role_send(&i->worker, buffer,
	        message_empty(buffer, sizeof(buffer), MESSAGE_WORKER_STATS_GET, id), NULL, 0);
}

int instance_operate(struct instance *i, uint64_t id, const struct message_credential_ask *ask)
{
	return role_send(&i->worker, buffer,
	        message_credential_ask_encode(
	                buffer, sizeof(buffer), MESSAGE_WORKER_CREDENTIAL, id, ask),
	        NULL, 0);
}

int instance_asks_keeper(struct instance *i, uint64_t request)
{
	if (i->by_request.tbl)
		HASH_DELETE(by_request, i->supervisor->requests, i);
	i->keeper_request = request;
	HASH_ADD(by_request, i->supervisor->requests, keeper_request, sizeof(request), i);
	return i->by_request.tbl ? 0 : -ENOMEM;
}

bool instance_is_ready(const struct instance *i)
{
	return i->keeper_ready && i->worker_ready;
}

static const char *const state_names[] = {
        [INSTANCE_POOLED] = "POOLED",
        [INSTANCE_STARTING] = "STARTING",
        [INSTANCE_SERVING] = "SERVING",
        [INSTANCE_RETIRED] = "RETIRED",
        [INSTANCE_ENDING] = "ENDING",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == INSTANCE_STATE_COUNT, "a name per state");

void instance_enter(struct instance *i, enum instance_state state)
{
	if (i->state != state)
		log_sandbox(LOG_LEVEL_DEBUG, i->sandbox ? i->sandbox->name : "",
		        "worker %d: %s -> %s", (int)i->worker.pid, state_names[i->state],
		        state_names[state]);
	i->state = state;
}

void instance_serves(struct instance *i)
{
	worker_pool_refill(i->supervisor);
	loop_timer_cancel(&i->timer);
	instance_enter(i, INSTANCE_SERVING);
	i->serving_since_ms = loop_now_ms(i->supervisor->loop);
}

void instance_free(struct instance *i)
{
	asks_forget(i);
	instance_forget_associations(i);
	team_forget(i);
	if (i->sandbox)
		DL_DELETE(i->sandbox->instances, i);
	HASH_DELETE(by_id, i->supervisor->instances, i);
	if (i->by_request.tbl)
		HASH_DELETE(by_request, i->supervisor->requests, i);
	role_fini(&i->worker);
	if (i->ring)
		recording_ring_end(i->supervisor, i->sandbox, i->ring);
	sources_fini(&i->sources);
	generation_put(i->generation);
	generation_put(i->credentials);
	loop_timer_close(&i->timer);
	free(i);
}
