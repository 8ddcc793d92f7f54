/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeper and recorder serve all sandboxes: their messages are sorted here and given to the sandbox
 * they are about, found by id, never by anything that the sender could point with. When either of
 * them dies, every sandbox is cut off: without a recorder nothing may happen, and without a keeper
 * nothing can be signed.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

uint64_t supervisor_next_id(struct supervisor *sv)
{
	return ++sv->last_id;
}

static struct sandbox *find(struct supervisor *sv, uint64_t id)
{
	struct sandbox *s;

	HASH_FIND(hh, sv->sandboxes, &id, sizeof id, s);
	return s;
}

static void for_each(struct supervisor *sv, void (*what)(struct sandbox *s, const void *context),
        const void *context)
{
	struct sandbox *s, *next;

	HASH_ITER(hh, sv->sandboxes, s, next)
	what(s, context);
}

/* Keeper. */

static int on_root(struct supervisor *sv, struct ipc_message *message)
{
	struct message_keeper_root m;
	struct sandbox *s, *next;

	if (message_keeper_root_decode(&message->body, &m) != 0)
		return -EBADMSG;
	HASH_ITER(hh, sv->sandboxes, s, next)
	{
		if (s->keeper_request != message->head.id || s->keeper_ready)
			continue;
		memcpy(s->root_pem, m.root_pem.p, m.root_pem.n);
		s->root_pem[m.root_pem.n] = 0;
		s->keeper_ready = true;
		sandbox_event(s, SANDBOX_PROGRESS);
		return 0;
	}
	/* Its sandbox may have ended meanwhile; an id that was never given out is another matter.
	 */
	return message->head.id <= sv->last_id ? 0 : -EBADMSG;
}

static void answer_source(struct supervisor *sv, uint64_t id, int fd, const char *error)
{
	struct message_source m = {
	        .opened = fd >= 0, .error = slice_from_string(fd >= 0 ? NULL : error)};
	size_t n = message_source_encode(buffer, sizeof buffer, MESSAGE_SOURCE, id, &m);
	int result = role_send(&sv->keeper, buffer, n, &fd, fd >= 0);

	if (result)
		log_error("the keeper could not be answered: %s", strerror(-result));
}

void supervisor_on_source(struct sources *sources, uint64_t id, int fd, const char *error)
{
	struct sandbox *s = container_of(sources, struct sandbox, sources);

	if (error)
		log_debug("%s: %s", s->name, error); /* the keeper tells people */
	answer_source(s->supervisor, id, fd, error);
	if (fd >= 0)
		close(fd);
}

static int on_source_open(struct supervisor *sv, struct ipc_message *message)
{
	struct message_source_open m;

	if (message_source_open_decode(&message->body, &m) != 0)
		return -EBADMSG;
	struct sandbox *s = find(sv, m.sandbox_id);
	if (!s || (s->state != SANDBOX_STARTING && s->state != SANDBOX_SERVING)) {
		answer_source(sv, message->head.id, -1, "there is no such sandbox");
		return 0;
	}
	sources_open(&s->sources, message->head.id, m.credential);
	return 0;
}

static void on_keeper_failed(struct role *role, uint64_t id)
{
	struct supervisor *sv = container_of(role, struct supervisor, keeper);
	struct sandbox *s, *next;

	HASH_ITER(hh, sv->sandboxes, s, next)
	{
		if (s->keeper_request == id && !s->keeper_ready) {
			char text[ROLE_HOW_MAX];

			snprintf(text, sizeof text, "%s", role->last_words);
			role->last_words[0] = 0;
			sandbox_fail(s, "the keeper refuses: %s", text);
			return;
		}
	}
}

static int on_keeper_message(struct role *role, struct ipc_message *message)
{
	struct supervisor *sv = container_of(role, struct supervisor, keeper);

	switch (message->head.type) {
	case MESSAGE_KEEPER_READY:
		return reader_done(&message->body) ? 0 : -EBADMSG;
	case MESSAGE_KEEPER_ROOT:
		return on_root(sv, message);
	case MESSAGE_SOURCE_OPEN:
		return on_source_open(sv, message);
	default:
		return -EBADMSG;
	}
}

/* Recorder. */

static void tell_progress(struct sandbox *s, const void *context)
{
	(void)context;
	sandbox_event(s, SANDBOX_PROGRESS);
}

static int on_recorder_ready(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body) || sv->recorder_ready)
		return -EBADMSG;
	sv->recorder_ready = true;
	for_each(sv, tell_progress, NULL);
	return 0;
}

static void pause_worker(struct sandbox *s, const void *context)
{
	struct message_text m = {*(const struct slice *)context};
	size_t n = message_text_encode(
	        buffer, sizeof buffer, MESSAGE_WORKER_PAUSE, supervisor_next_id(s->supervisor), &m);

	if (role_runs(&s->worker))
		role_send(&s->worker, buffer, n, NULL, 0);
}

static void resume_worker(struct sandbox *s, const void *context)
{
	size_t n = message_empty(
	        buffer, sizeof buffer, MESSAGE_WORKER_RESUME, supervisor_next_id(s->supervisor));

	(void)context;
	if (role_runs(&s->worker))
		role_send(&s->worker, buffer, n, NULL, 0);
}

static int on_stalled(struct supervisor *sv, struct ipc_message *message)
{
	struct message_text m;
	char shown[512];

	if (message_text_decode(&message->body, &m) != 0)
		return -EBADMSG;
	log_error("the audit log cannot be written, so everything is refused: %s",
	        slice_escape(m.text, shown, sizeof shown));
	for_each(sv, pause_worker, &m.text);
	return 0;
}

static int on_flowing(struct supervisor *sv, struct ipc_message *message)
{
	if (!reader_done(&message->body))
		return -EBADMSG;
	log_warn("the audit log can be written again");
	for_each(sv, resume_worker, NULL);
	return 0;
}

static int on_summary(struct supervisor *sv, struct ipc_message *message)
{
	struct message_summary m;
	struct sandbox *s, *next;

	if (message_summary_decode(&message->body, &m) != 0)
		return -EBADMSG;
	HASH_ITER(hh, sv->sandboxes, s, next)
	{
		if (s->state != SANDBOX_SUMMING || s->summary_request != message->head.id)
			continue;
		s->owner->summary(s->owner, &m);
		sandbox_event(s, SANDBOX_SUMMED);
		return 0;
	}
	return message->head.id <= sv->last_id ? 0 : -EBADMSG;
}

/* Under a sandbox's id: its events cannot be read, from the beginning or because its worker wrote
 * what it must not. */
static void on_recorder_failed(struct role *role, uint64_t id)
{
	struct supervisor *sv = container_of(role, struct supervisor, recorder);
	struct sandbox *s = find(sv, id);
	char text[ROLE_HOW_MAX];

	if (!s)
		return;
	snprintf(text, sizeof text, "%s", role->last_words);
	role->last_words[0] = 0;
	if (s->state == SANDBOX_STARTING)
		s->recording = false; /* it knows nothing of this sandbox */
	sandbox_fail(s, "%s The sandbox is cut off from every network.", text);
}

static int on_recorder_message(struct role *role, struct ipc_message *message)
{
	struct supervisor *sv = container_of(role, struct supervisor, recorder);

	switch (message->head.type) {
	case MESSAGE_RECORDER_READY:
		return on_recorder_ready(sv, message);
	case MESSAGE_RECORDER_STALLED:
		return on_stalled(sv, message);
	case MESSAGE_RECORDER_FLOWING:
		return on_flowing(sv, message);
	case MESSAGE_RECORDER_SUMMARY:
		return on_summary(sv, message);
	default:
		return -EBADMSG;
	}
}

/* Their ends. */

struct death {
	const char *who, *how;
};

static void lose(struct sandbox *s, const void *context)
{
	const struct death *death = context;

	sandbox_fail(s, "%s %s; the sandbox is cut off from every network", death->who, death->how);
}

static void lose_recorder(struct sandbox *s, const void *context)
{
	(void)context;
	sandbox_event(s, SANDBOX_RECORDER_GONE);
}

static void stop_when_alone(struct supervisor *sv)
{
	if (sv->finishing && !role_runs(&sv->keeper) && !role_runs(&sv->recorder))
		loop_stop(sv->loop);
}

static void on_keeper_dead(struct role *role, const char *how)
{
	struct supervisor *sv = container_of(role, struct supervisor, keeper);
	struct death death = {"the keeper", how};

	if (!role->stopping)
		for_each(sv, lose, &death);
	stop_when_alone(sv);
}

static void on_recorder_dead(struct role *role, const char *how)
{
	struct supervisor *sv = container_of(role, struct supervisor, recorder);
	struct death death = {"the recorder", how};

	sv->recorder_ready = false;
	if (!role->stopping)
		for_each(sv, lose, &death);
	for_each(sv, lose_recorder, NULL);
	stop_when_alone(sv);
}

int supervisor_start(struct supervisor *sv, struct loop *loop, const char **step)
{
	sv->loop = loop;
	*step = "the recorder";
	int error = role_start(loop, &sv->recorder, "vethguard-recorder", "the recorder",
	        on_recorder_message, on_recorder_dead);
	if (error)
		return error;
	sv->recorder.on_failed = on_recorder_failed;
	*step = "the keeper";
	error = role_start(loop, &sv->keeper, "vethguard-keeper", "the keeper", on_keeper_message,
	        on_keeper_dead);
	if (error)
		return error;
	sv->keeper.on_failed = on_keeper_failed;
	size_t n =
	        message_empty(buffer, sizeof buffer, MESSAGE_KEEPER_START, supervisor_next_id(sv));
	return role_send(&sv->keeper, buffer, n, NULL, 0);
}

int supervisor_start_log(struct supervisor *sv, const char *path, int fd)
{
	struct message_recorder_start m = {slice_from_string(path), (uint8_t)log_level()};
	size_t n = message_recorder_start_encode(
	        buffer, sizeof buffer, MESSAGE_RECORDER_START, supervisor_next_id(sv), &m);

	sv->log_given = true;
	return role_send(&sv->recorder, buffer, n, &fd, 1);
}

void supervisor_finish(struct supervisor *sv, int status)
{
	if (status && !sv->status)
		sv->status = status;
	if (sv->finishing)
		return;
	sv->finishing = true;
	if (!sv->log_given) { /* it still waits for its first message: there is nothing to flush */
		sv->recorder.stopping = true;
		role_kill(&sv->recorder, "there is nothing to record");
	}
	role_stop(&sv->recorder, supervisor_next_id(sv), SUPERVISOR_STOP_MS);
	role_stop(&sv->keeper, supervisor_next_id(sv), SUPERVISOR_STOP_MS);
	stop_when_alone(sv);
}

void supervisor_fini(struct supervisor *sv)
{
	struct sandbox *s, *next;

	HASH_ITER(hh, sv->sandboxes, s, next)
	sandbox_free(s);
	role_fini(&sv->keeper);
	role_fini(&sv->recorder);
}
