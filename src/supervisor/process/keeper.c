/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of the keeper: its messages, and what follows when it dies.
 *
 * The keeper serves all workers: each message is about one of them, found by the id of the request
 * or of the instance. When the keeper dies, a run's sandbox is cut off: nothing can be signed
 * without the keeper, and its root CA is lost. The daemon's root CA is a file, so another keeper is
 * started, and every worker gets a socket pair to it. keeper_health.c checks that the keeper still
 * answers; ca.c sees to its CAs.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/daemon/root_file.h"
#include "supervisor/os/priority.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* Returns an instance that has a sandbox, or NULL. */
static struct instance *find_instance(struct supervisor *sv, uint64_t id)
{
	struct instance *i;

	HASH_FIND(by_id, sv->instances, &id, sizeof(id), i);
	return i && i->sandbox ? i : NULL;
}

static struct instance *find_request(struct supervisor *sv, uint64_t id)
{
	struct instance *i;

	HASH_FIND(by_request, sv->requests, &id, sizeof(id), i);
	return i && !i->keeper_ready ? i : NULL;
}

/* The worker with this id got another intermediate. */
static int on_other_ca(struct supervisor *sv, uint64_t id, const struct message_keeper_root *m)
{
	const struct instance *i = find_instance(sv, id);

	if (i && i == i->sandbox->current)
		sandbox_take_root(i->sandbox, m);
	return 0;
}

static int on_root(struct supervisor *sv, struct ipc_message *message)
{
	struct message_keeper_root m;
	struct instance *i;

	if (message_keeper_root_decode(&message->body, &m) != 0)
		return -EBADMSG;
	priority_take_back(sv->keeper.pid);
	i = find_request(sv, message->head.id);
	if (!i) /* its worker may be gone; an id that was never given out is an error */
		return message->head.id <= sv->last_id ? on_other_ca(sv, message->head.id, &m)
		                                       : -EBADMSG;
	sandbox_take_root(i->sandbox, &m);
	instance_keeper_answered(i);
	return 0;
}

static void answer_source(struct supervisor *sv, uint64_t id, const struct source_result *r)
{
	struct message_source m = {.opened = r->fd >= 0,
	        .same = r->fd < 0 && r->same,
	        .ttl_s = r->ttl_s,
	        .retry_s = r->retry_s,
	        .error = slice_from_string(r->fd >= 0 ? NULL : r->error)};
	size_t n = message_source_encode(buffer, sizeof(buffer), MESSAGE_SOURCE, id, &m);
	int rc = role_send(&sv->keeper, buffer, n, &r->fd, r->fd >= 0);

	if (rc && rc != -EPIPE) /* -EPIPE: its death is handled in on_keeper_dead() */
		log_error("the keeper could not be answered: %s", strerror(-rc));
}

void supervisor_on_source(struct sources *sources, uint64_t id, const struct source_result *result)
{
	struct instance *i = container_of(sources, struct instance, sources);

	if (result->error) /* at level debug: the keeper logs it for people */
		log_sandbox(LOG_LEVEL_DEBUG, i->sandbox->name, "%s", result->error);
	answer_source(i->supervisor, id, result);
	if (result->fd >= 0)
		close(result->fd);
}

static int on_source_open(struct supervisor *sv, struct ipc_message *message)
{
	struct message_source_open m;

	if (message_source_open_decode(&message->body, &m) != 0)
		return -EBADMSG;
	struct instance *i = find_instance(sv, m.sandbox_id);
	if (!i || !i->generation || i->state == INSTANCE_ENDING) {
		answer_source(sv, message->head.id, &(struct source_result){.fd = -1, .error = ""});
		return 0;
	}
	if (m.generation != i->credentials->number)
		return 0; /* nothing waits for this any more; the keeper does not know yet */
	sources_open(&i->sources, message->head.id, m.credential, m.renew, m.discard);
	return 0;
}

/* id of an instance: this worker, which may be a spare one, broke the protocol with the keeper and
 * is not trusted any more, or the keeper has no room for it. id of a request: the keeper refused
 * it. */
static void on_keeper_failed(struct role *role, uint64_t id)
{
	struct supervisor *sv = container_of(role, struct supervisor, keeper);
	struct instance *i;
	char text[ROLE_HOW_MAX];

	priority_take_back(role->pid);
	HASH_FIND(by_id, sv->instances, &id, sizeof(id), i);
	if (i) {
		role_kill(&i->worker, role->last_words);
		role->last_words[0] = 0;
		return;
	}
	i = find_request(sv, id);
	snprintf(text, sizeof(text), "%s", role->last_words);
	role->last_words[0] = 0; /* they are not about the keeper's own end */
	if (!i)
		return;
	if (i->sandbox->persistent && i->sandbox->state != SANDBOX_STARTING)
		role_kill(&i->worker, text);
	else
		sandbox_fail(i->sandbox, "the keeper refuses: %s", text);
}

static int on_keeper_ready(struct supervisor *sv, struct ipc_message *message)
{
	int rc;

	if (!reader_done(&message->body))
		return -EBADMSG;
	if (sv->persistent && !sv->keeper_life.ready) {
		rc = root_file_keep(sv->ca);
		if (rc) {
			log_error("the root CA's file cannot be kept: %s", strerror(-rc));
			return -EBADMSG;
		}
	}
	sv->keeper_life.ready = true;
	if (!sv->persistent) /* the daemon's keeper is ready when its CAs are known */
		supervisor_roles_ready(sv);
	return 0;
}

static int on_ca(struct supervisor *sv, struct ipc_message *message)
{
	int rc = sv->persistent && sv->keeper_life.ready ? ca_answered(sv, message) : -EBADMSG;

	if (!rc && !sv->ca_life.ready && !sv->ca_life.id && !token_is_pending(sv)) {
		sv->ca_life.ready = true;
		supervisor_roles_ready(sv);
	}
	return rc;
}

static int on_keeper_message(struct role *role, struct ipc_message *message)
{
	struct supervisor *sv = container_of(role, struct supervisor, keeper);

	sv->keeper_life.health.missed = 0; /* the keeper may be busy, but it does not hang */
	switch (message->head.type) {
	case MESSAGE_KEEPER_READY:
		return on_keeper_ready(sv, message);
	case MESSAGE_KEEPER_HERE:
		return keeper_health_answered(sv, message);
	case MESSAGE_KEEPER_ROOT:
		return on_root(sv, message);
	case MESSAGE_KEEPER_CA:
		return on_ca(sv, message);
	case MESSAGE_KEEPER_CREDENTIALS:
		return credential_answered(sv, message);
	case MESSAGE_KEEPER_TOKEN_SAYS:
		return token_told(sv, message);
	case MESSAGE_KEEPER_KEY_TOKEN_LATE:
		return key_tokens_late(sv, message);
	case MESSAGE_SOURCE_OPEN:
		return on_source_open(sv, message);
	default:
		return -EBADMSG;
	}
}

/* The keeper's end. */

static void lose(struct sandbox *s, const void *context)
{
	sandbox_fail(s, "the keeper %s; the sandbox is cut off from every network",
	        (const char *)context);
}

/* Connects all workers, including the pool's, to the new keeper. */
static void give_keeper(struct supervisor *sv)
{
	struct instance *i, *next;

	HASH_ITER(by_id, sv->instances, i, next)
	{
		if (role_runs(&i->worker) && i->state != INSTANCE_ENDING &&
		        instance_new_keeper(i) != 0)
			role_kill(&i->worker, "it cannot be given to another keeper");
	}
}

static void start_again(struct supervisor *sv)
{
	int rc = keeper_start(sv);

	if (!rc) {
		give_keeper(sv);
		return;
	}
	log_error("no keeper can be started: %s", strerror(-rc));
	if (role_runs(&sv->keeper))
		role_kill(&sv->keeper, "it cannot be told what it needs"); /* another one follows */
	else
		loop_timer_set(&sv->keeper_life.timer, ROLE_PAUSE_MS);
}

static void on_keeper_time(struct loop_timer *timer)
{
	start_again(container_of(timer, struct supervisor, keeper_life.timer));
}

static void tell_death(struct sandbox *s, const void *context)
{
	char text[ROLE_HOW_MAX + 128];

	snprintf(text, sizeof(text), "The keeper %.900s. Another one is started.",
	        (const char *)context);
	outbox_observed(s->supervisor, s, EVENT_FINDING_ROLE_DIED, text);
}

/* The next keeper numbers its questions from one again, so a value that is being fetched for this
 * keeper would answer a question about another sandbox's credential. */
static void stop_sources(struct supervisor *sv)
{
	struct instance *i, *next;

	HASH_ITER(by_id, sv->instances, i, next)
	sources_stop(&i->sources);
}

/* Workers go on with the certificates and credentials they have. What needs the keeper is refused
 * until the next one is ready. */
static void replace(struct supervisor *sv, const char *how)
{
	int64_t now_ms = loop_now_ms(sv->loop);
	int64_t *oldest =
	        &sv->keeper_life.deaths_ms[sv->keeper_life.death_count++ % KEEPER_RESTARTS_MAX];
	bool often = sv->keeper_life.death_count > KEEPER_RESTARTS_MAX &&
	             now_ms - *oldest <= KEEPER_RESTARTS_MS;

	*oldest = now_ms;
	stop_sources(sv);
	supervisor_for_each(sv, tell_death, how);
	log_warn("the keeper %s; another one is started%s", how,
	        often ? ", after a pause, because that was too often" : "");
	if (often)
		loop_timer_set(&sv->keeper_life.timer, ROLE_PAUSE_MS);
	else
		start_again(sv);
}

static void on_keeper_dead(struct role *role, const char *how)
{
	struct supervisor *sv = container_of(role, struct supervisor, keeper);

	if (sv->persistent)
		ca_lost(sv);
	credential_keeper_lost(sv);
	if (!role->stopping && sv->persistent && sv->keeper_life.ready)
		replace(sv, how);
	else if (!role->stopping && sv->keeper_life.on_lost)
		sv->keeper_life.on_lost(sv, how);
	else if (!role->stopping)
		supervisor_for_each(sv, lose, how);
	supervisor_stop_when_alone(sv);
}

static int start_with(struct supervisor *sv, int root)
{
	int rc = role_start(sv->loop, &sv->keeper, "vethguard-keeper", "the keeper", -1,
	        on_keeper_message, on_keeper_dead);
	if (!rc) {
		sv->keeper.on_failed = on_keeper_failed;
		role_wait_for_room(&sv->keeper, ROLE_ROOM_MS, ROLE_ROOM_ALL_MS);
		size_t n = message_empty(
		        buffer, sizeof(buffer), MESSAGE_KEEPER_START, supervisor_next_id(sv));
		rc = role_send(&sv->keeper, buffer, n, &root, root >= 0);
	}
	return rc;
}

/* Starts the keeper; in the daemon with the root CA's file. */
int keeper_start(struct supervisor *sv)
{
	int root = -1, rc = 0;

	if (sv->persistent && !sv->keeper_life.timer.event)
		rc = loop_timer_open(sv->loop, &sv->keeper_life.timer, on_keeper_time);
	if (!rc && sv->persistent)
		root = root_file_open(sv->ca);
	if (!rc && sv->persistent && root < 0)
		rc = root;
	if (!rc)
		rc = start_with(sv, root);
	if (!rc && sv->persistent)
		rc = ca_begin(sv);
	if (root >= 0)
		close(root);
	return rc;
}
