/* SPDX-License-Identifier: Apache-2.0 */
/* One attachment: the callbacks of its sandbox, what it watches, what is kept of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "supervisor/ask/hooks.h"
#include "supervisor/ask/proposals.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/attach/process.h"
#include "supervisor/recover/recover.h"
#include "supervisor/session/session.h"

/* Callbacks of its sandbox. */

static struct attachment *attachment_of(struct sandbox_owner *owner)
{
	return container_of(owner, struct attachment, owner);
}

static void on_variables_needed(struct sandbox_owner *owner, const struct message_names *names)
{
	(void)names;
	sandbox_fail(attachment_of(owner)->sandbox, "an attached sandbox has no variables to give");
}

/* Its state was written before the keeper told which root it gets. */
static void note_root(struct attachment *a, const struct sandbox *s)
{
	const struct message_keeper_ca *view = ca_view(s->supervisor);
	int rc = view && view->count > 1 ? attachment_save(a) : 0;

	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its state cannot be written: %s",
		        strerror(-rc));
}

static void on_ready(struct sandbox_owner *owner, struct sandbox *s)
{
	struct attachment *a = attachment_of(owner);
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};

	note_root(a, s);
	attachment_admit(a);
	attachment_answer(a, OPERATION_ATTACH, 0, &result);
}

enum attach_status attachment_fault_status(const struct sandbox *s)
{
	static const enum attach_status statuses[] = {[GATE_FAULT_OWN] = ATTACH_FAILED,
	        [GATE_FAULT_ASKED] = ATTACH_INVALID,
	        [GATE_FAULT_TAKEN] = ATTACH_CONFLICT};

	return statuses[s->fault];
}

static void on_failed(struct sandbox_owner *owner, const char *text)
{
	struct attachment *a = attachment_of(owner);
	const struct attach_result result = {
	        .status = attachment_fault_status(a->sandbox), .text = text};

	a->detaching = true; /* it never served */
	attachment_answer(a, OPERATION_ATTACH, 0, &result);
}

static void on_summary(struct sandbox_owner *owner, const struct message_summary *summary)
{
	struct attachment *a = attachment_of(owner);

	a->summed = true;
	a->summary = *summary;
	a->summary.unusual_count = 0; /* those point into the message */
}

bool attachment_is_over(const struct attachment *a)
{
	return a->record.kind == ATTACH_INTERFACE && a->record.expires_ms &&
	       a->record.expires_ms <= clock_real_ms();
}

bool attachment_is_left(const struct attachment *a)
{
	return a->left || a->reading;
}

enum attach_status attachment_trouble(const struct attachment *a)
{
	return attachment_is_over(a) ? ATTACH_CONFLICT : ATTACH_FAILED;
}

/* The daemon stops and the sandbox stays: notes the dropped packets that are in the log. Otherwise
 * the journal's notes count. */
static void note_dropped(struct attachment *a, const struct sandbox *s)
{
	int rc;

	if (a->detaching || s->is_given || s->unsummed || !s->recorded.open)
		return;
	a->record.dropped_known = true;
	a->record.dropped = s->recorded.dropped_at_end;
	rc = attachment_save(a);
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its state cannot be written: %s",
		        strerror(-rc));
}

static void on_ended(struct sandbox_owner *owner, struct sandbox *s)
{
	struct attachment *a = attachment_of(owner);

	note_dropped(a, s);
	attachment_end(a);
}

static void on_changed(struct sandbox_owner *owner, struct sandbox *s)
{
	struct attachment *a = attachment_of(owner);

	if (s->state == SANDBOX_SERVING || s->state == SANDBOX_CLOSED)
		attachment_answer_claim(a, NULL, NULL);
	attachment_credentials_changed(a);
	recovery_queue_end(a->all);
	if (a->all->on_changed)
		a->all->on_changed(a->all);
}

/* An attachment without a process to follow ends with its namespace. */
static bool on_link_gone(struct sandbox_owner *owner)
{
	struct attachment *a = attachment_of(owner);

	if (a->detaching || !attachment_netns_is_gone(a))
		return false;
	log_sandbox(LOG_LEVEL_INFO, a->record.name, "its network namespace %s has ended",
	        a->record.netns);
	attachment_detach(a, true);
	return true;
}

static void on_stats(
        struct sandbox_owner *owner, uint64_t id, const struct message_worker_stats *worker)
{
	struct attachment *a = attachment_of(owner);

	attachment_tell_stats(a, id, worker);
}

void attachment_take_over(struct attachment *a)
{
	const struct generation *g = a->sandbox->generation;

	a->record.generation = g->number;
	if (attach_record_set_identity(&a->record, &g->identity) != 0)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name,
		        "no memory for the groups of the user who named its policy: the policy is "
		        "read without them from now on");
	attachment_watch_policy(a);
	if (a->new_policy) {
		free(a->record.policy);
		a->record.policy = a->new_policy;
		a->new_policy = NULL;
	}
	int rc = attachment_save(a);
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its state cannot be written: %s",
		        strerror(-rc));
}

static void on_replaced(struct sandbox_owner *owner, struct sandbox *s, const char *error)
{
	struct attachment *a = attachment_of(owner);
	char text[SANDBOX_FAILURE_MAX];
	struct attach_result result = {
	        .status = error ? ATTACH_FAILED : ATTACH_OK, .text = "", .attachment = a};

	if (error && a->detaching) {
		result.status = ATTACH_CONFLICT;
		result.text = "the sandbox is being detached";
	} else if (error) {
		snprintf(text, sizeof(text), "the earlier policy stays in force: %.1900s", error);
		result.text = text;
		log_sandbox(LOG_LEVEL_WARN, a->record.name, "%s", text);
	} else {
		attachment_take_over(a);
		log_sandbox(LOG_LEVEL_INFO, a->record.name, "policy of generation %llu is in force",
		        (unsigned long long)a->record.generation);
	}
	free(a->new_policy);
	a->new_policy = NULL;
	result.diff = error ? NULL : s->generation->difference;
	attachment_answer(a, OPERATION_RELOAD, 0, &result);
}

static void on_operated(struct sandbox_owner *owner, struct instance *i, uint64_t id,
        const struct message_worker_credentials *m)
{
	attachment_credentials_operated(attachment_of(owner), i, id, m);
}

static void on_credentials(
        struct sandbox_owner *owner, uint64_t id, const struct message_keeper_credentials *m)
{
	attachment_credentials_answered(attachment_of(owner), id, m);
}

static void on_quiesced(struct sandbox_owner *owner, struct sandbox *s)
{
	struct attachment *a = attachment_of(owner);
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};

	(void)s;
	attachment_answer(a, OPERATION_PAUSE, 0, &result);
}

static void on_proposed(struct sandbox_owner *owner, struct instance *i, uint64_t id,
        const struct message_worker_proposal *m)
{
	proposals_take(attachment_of(owner), i, id, m);
}

static void on_asked(struct sandbox_owner *owner, uint64_t id, const struct message_worker_ask *m)
{
	hooks_tell_ask(attachment_of(owner), id, m);
}

static void on_tell_proposals(struct sandbox_owner *owner, struct instance *i)
{
	proposals_tell(attachment_of(owner), i);
}

/* Life of an attachment. */

static void on_expiry(struct loop_alarm *alarm)
{
	struct attachment *a = container_of(alarm, struct attachment, expiry);

	log_sandbox(LOG_LEVEL_INFO, a->record.name, "its time is over");
	attachment_detach(a, true);
}

static void on_process_end(struct loop_io *io, unsigned events)
{
	struct attachment *a = container_of(io, struct attachment, process);

	(void)events;
	loop_io_close(io);
	log_sandbox(LOG_LEVEL_INFO, a->record.name, "its process %d has ended", (int)a->record.pid);
	attachment_detach(a, true);
}

struct attachment *attachment_new(struct attachments *all)
{
	struct attachment *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->all = all;
	a->pidfd = -1;
	gate_init(&a->gate);
	a->owner = (struct sandbox_owner){.variables_needed = on_variables_needed,
	        .ready = on_ready,
	        .failed = on_failed,
	        .summary = on_summary,
	        .ended = on_ended,
	        .changed = on_changed,
	        .link_gone = on_link_gone,
	        .stats = on_stats,
	        .operated = on_operated,
	        .credentials = on_credentials,
	        .replaced = on_replaced,
	        .quiesced = on_quiesced,
	        .proposed = on_proposed,
	        .asked = on_asked,
	        .tell_proposals = on_tell_proposals};
	if (loop_alarm_open(all->supervisor->loop, &a->expiry, on_expiry) == 0)
		return a;
	free(a);
	return NULL;
}

int attachment_enter(struct attachment *a)
{
	HASH_ADD_STR(a->all->by_name, record.name, a);
	if (!a->hh.tbl)
		return -ENOMEM;
	a->all->session_count += a->record.kind == ATTACH_SESSION;
	return 0;
}

void attachment_free(struct attachment *a)
{
	struct attachments *all = a->all;

	gate_unlink_end(a->unlinking);
	attachment_answer_all(a);
	attachment_credentials_end(a);
	attachment_refuse_later(a);
	proposals_free(a);
	if (a->reading)
		all->readings--;
	attach_reading_cancel(a->reading);
	attachment_forget_policy(a);
	attachment_leave_prepared(a);
	recovery_queue_forget(a);
	if (a->hh.tbl) {
		HASH_DEL(all->by_name, a);
		all->session_count -= a->record.kind == ATTACH_SESSION;
	}
	attachment_leave_target(a);
	if (a->sandbox)
		sandbox_free(a->sandbox);
	gate_close(&a->gate);
	loop_alarm_cancel(&a->expiry);
	loop_io_close(&a->process);
	if (a->pidfd >= 0)
		close(a->pidfd);
	free(a->new_policy);
	attach_record_fini(&a->record);
	free(a);
	if (all->stopping && !all->by_name && all->on_empty)
		all->on_empty(all);
}

/* Returns 0 or -ENOMEM, with the record as it was. */
static int record_revoked(struct attachment *a)
{
	const struct generation *g = a->sandbox->generation;
	static char names[POLICY_CREDENTIALS_MAX][POLICY_NAME_MAX + 1];
	struct attach_pair items[POLICY_CREDENTIALS_MAX];
	struct attach_pairs now = {0, items}, copy = {0};
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(&g->settings->policy); i++) {
		if (!(g->revoked >> i & 1))
			continue;
		policy_credential(&g->settings->policy, i, &c);
		snprintf(names[i], sizeof(names[i]), "%.*s", SLICE_ARG(c.name));
		items[now.count++] = (struct attach_pair){names[i], ""};
	}
	if (attach_pairs_copy(&copy, &now) != 0)
		return -ENOMEM;
	attach_pairs_free(&a->record.revoked);
	a->record.revoked = copy;
	return 0;
}

/* The root is recorded while there is more than one; without a record the oldest is meant. So
 * earlier versions read what they can serve. */
int attachment_save(struct attachment *a)
{
	const struct message_keeper_ca *view = ca_view(a->all->supervisor);

	if (a->sandbox && a->sandbox->ca_known &&
	        (a->record.root_known || (view && view->count > 1))) {
		a->record.root_known = true;
		memcpy(a->record.root, a->sandbox->root, sizeof(a->record.root));
	}
	if (a->sandbox && a->sandbox->generation && record_revoked(a) < 0)
		return -ENOMEM;
	return state_save(a->all->state, &a->record, a->sandbox ? &a->sandbox->gate : &a->gate);
}

void attachment_pin(const struct attachments *all, uint64_t id, char out[MESSAGE_PATH_MAX + 1])
{
	snprintf(out, MESSAGE_PATH_MAX + 1, "%.4000s/%016llx", all->pins, (unsigned long long)id);
}

int attachment_watch(struct attachment *a)
{
	struct loop *loop = a->all->supervisor->loop;

	if (a->record.expires_ms) {
		int64_t left_ms = a->record.expires_ms - clock_real_ms();

		loop_alarm_set(&a->expiry, left_ms);
	}
	if (a->record.pid == 0) {
		attachment_find_target(a);
		return 0;
	}
	if (a->pidfd < 0)
		a->pidfd = attach_process_open(a->record.pid, a->record.pid_start_time);
	if (a->pidfd < 0)
		return a->pidfd;
	attachment_find_target(a);
	return loop_io_open_level(loop, &a->process, a->pidfd, LOOP_READ, on_process_end);
}

bool attachment_process_is_gone(const struct attachment *a)
{
	int fd = attach_process_open(a->record.pid, a->record.pid_start_time);

	if (fd >= 0)
		close(fd);
	return fd == -ESRCH;
}

int attachment_watch_beside(const struct attachment *a, struct loop_io *io, int pidfd)
{
	return loop_io_open_level(a->all->supervisor->loop, io, pidfd, LOOP_READ, on_process_end);
}

void attachment_follow_watch(struct attachment *a, struct loop_io *io)
{
	loop_io_close(&a->process);
	if (a->pidfd >= 0)
		close(a->pidfd);
	a->pidfd = io->fd;
	loop_io_move(io, &a->process, on_process_end);
}
