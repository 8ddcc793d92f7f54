/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovers what an earlier daemon has left: state files and pinned gates. Each sandbox is handled
 * separately: one whose file is damaged, whose gate is gone or whose policy no longer loads stays
 * cut off, is logged as an error and shown as failed; the others are served. Nothing is guessed,
 * and nothing that belongs to an unreadable file is removed.
 *
 * All state files are read first, so that every name and id is known. Then each sandbox has its
 * turn (recovery_queue.c), in which its gate is taken over (adopt.c). What belongs to none is
 * removed at the end (orphans.c). While another daemon still serves them (upgrade.h), the gates do
 * not listen before their turn: new connections belong to that daemon.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/os/directory.h"
#include "supervisor/recover/recover.h"
#include "supervisor/session/session.h"

/* The name of the sandbox of a damaged file. */
static bool name_of(const char *file, const char *suffix, char out[MESSAGE_NAME_MAX + 1])
{
	size_t n = strlen(file), end = strlen(suffix);

	if (n <= end || n - end > MESSAGE_NAME_MAX || strcmp(file + n - end, suffix) != 0)
		return false;
	memcpy(out, file, n - end);
	out[n - end] = 0;
	return message_name_is_plain(slice_from_string(out));
}

/* The attachment's policy cannot be loaded now: it stays cut off until a reload can load it. */
static void has_no_policy(struct attachment *a, const char *text)
{
	a->recoverable = true;
	attachment_stays_cut_off(a, text);
}

static void on_read(
        void *context, struct settings_files *files, enum attach_status status, const char *text);

/* Starts a child that reads the policy; the sandbox's turn comes again afterwards. */
static void read_first(struct attachment *a, const struct identity *identity)
{
	struct attachments *all = a->all;
	struct policy_variable variables[ATTACH_VARS_MAX];
	const struct policy_load_options options =
	        attach_load_options(a->record.observe, &a->record.vars, variables);
	enum attach_status status;
	char text[ATTACH_READ_TEXT_MAX];

	a->slow = true;
	if (all->readings >= RECOVERY_READINGS) {
		a->left = true;
		return;
	}
	a->reading = attachments_read(
	        all, a->record.policy, identity, &options, on_read, a, &status, text);
	if (a->reading)
		all->readings++;
	else
		has_no_policy(a, text);
}

/* Returns NULL if it failed, or if it is left for later or being read. */
static struct generation *load(struct attachment *a, const struct settings_files *files)
{
	const struct identity identity = attach_record_identity(&a->record);
	enum attach_status status;
	char *text;
	struct generation *g =
	        attachment_load(a, a->record.policy, &identity, files, &status, &text);

	if (!g && status == ATTACH_BUSY && files == &settings_no_files)
		read_first(a, &identity);
	else if (!g)
		has_no_policy(a, text ? text : attach_load_failure(status));
	free(text);
	return g;
}

/* True if it had expired before: there is no gate any more. Its rules may have been flushed
 * meanwhile. */
static bool recover_shut(struct attachment *a)
{
	char pin[MESSAGE_PATH_MAX + 1];

	attachment_pin(a->all, a->record.id, pin);
	if (!attachment_is_over(a) || access(pin, F_OK) == 0)
		return false;
	attachment_settle_shut(a);
	return true;
}

static void on_knock(struct gate *gate)
{
	attachment_knocked(container_of(gate, struct attachment, gate));
}

static void listen_early(struct attachment *a)
{
	char pin[MESSAGE_PATH_MAX + 1];

	if (a->record.prepared)
		return; /* nobody is to wait there */
	attachment_pin(a->all, a->record.id, pin);
	if (gate_listen_early(&a->gate, pin) == 0)
		gate_await(&a->gate, a->all->supervisor->loop, on_knock);
}

/* The daemon died before the attach was answered, so nobody knows the sandbox and nobody will
 * detach it; or during a detach. The state file names what exists of it: the link, the interface,
 * its rules. */
static void undo_unfinished(struct attachment *a)
{
	log_sandbox(LOG_LEVEL_WARN, a->record.name,
	        "it was being attached or detached when the daemon ended: what is left of it is "
	        "removed");
	attachment_undo(a);
	attachment_free(a);
}

static void read_one(struct attachments *all, const char *file)
{
	struct attachment *a = attachment_new(all);
	char error[STATE_ERROR_MAX];
	struct gate shape;
	bool whole;

	if (!a) {
		log_error("%s: no memory: its sandbox stays cut off", file);
		all->damaged = true; /* nothing of it is removed */
		return;
	}
	gate_init(&shape);
	whole = state_load(all->state, file, &a->record, &shape, error) == 0;
	if (!whole) {
		name_of(file, STATE_SUFFIX, a->record.name);
		all->damaged = true;
	}
	if (attachment_enter(a) != 0) {
		log_error("%s: no memory: its sandbox stays cut off", file);
		all->damaged = true;
		attachment_free(a);
		return;
	}
	if (a->record.interface[0])
		attachment_find_target(a);
	if (!whole) {
		attachment_stays_cut_off(a, error);
		return;
	}
	supervisor_id_is_used(all->supervisor, a->record.id);
	gate_move(&a->gate, &shape);
	if (a->record.undoing) {
		undo_unfinished(a);
		return;
	}
	a->left = !recover_shut(a);
}

static void cut_off(struct attachment *a)
{
	gate_close(&a->gate);
	attachment_hold(a);
}

static void recover_one(struct attachment *a, const struct settings_files *files)
{
	struct generation *g = load(a, files);

	if (!g && (a->left || a->reading))
		return;
	attachment_forget_knock(a);
	if (!g) {
		cut_off(a);
		return;
	}
	attachment_adopt(a, g);
}

static void on_read(
        void *context, struct settings_files *files, enum attach_status status, const char *text)
{
	struct attachment *a = context;
	struct attachments *all = a->all;

	(void)status;
	a->reading = NULL;
	all->readings--;
	if (files) {
		recover_one(a, files);
	} else {
		attachment_forget_knock(a);
		has_no_policy(a, text);
		cut_off(a);
	}
	settings_files_free(files);
	recovery_queue_end(all);
}

void attachment_recover_again(struct attachment *a, const char *policy, struct generation *g,
        attach_done done, void *context)
{
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};
	char *named = policy ? strdup(policy) : NULL;

	if (policy && !named) {
		attach_refuse(done, context, ATTACH_FAILED, "no memory");
		return;
	}
	gate_release(&a->gate);
	a->trouble[0] = 0;
	attachment_adopt(a, generation_get(g));
	if (!a->sandbox) {
		free(named);
		attach_refuse(done, context, ATTACH_FAILED, "%s", a->trouble);
		if (a->gone)
			attachment_detach(a, true);
		return;
	}
	a->recoverable = false;
	a->new_policy = named;
	attachment_take_over(a);
	log_sandbox(
	        LOG_LEVEL_INFO, a->record.name, "its policy is loaded: it is no longer cut off");
	done(context, &result);
}

static void watch_one(struct attachment *a)
{
	bool waits = !a->sandbox && attachment_is_over(a);
	int rc = a->detaching || waits ? 0 : attachment_watch(a);

	if (rc == -ESRCH || (a->gone && !a->detaching)) {
		log_sandbox(LOG_LEVEL_INFO, a->record.name, "its %s has ended meanwhile",
		        a->record.pid ? "process" : "network namespace");
		attachment_detach(a, true);
	} else if (rc) {
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its end cannot be noticed: %s",
		        strerror(-rc));
	}
}

static void finish(struct attachments *all)
{
	struct attachment *a, *next;

	HASH_ITER(hh, all->by_name, a, next)
	watch_one(a);
	attachments_remove_orphans(all);
	all->on_recovered(all);
}

static void take_turn(struct attachment *a)
{
	if (a->record.prepared)
		attachment_recover_prepared(a);
	else
		recover_one(a, &settings_no_files);
}

int attachments_recover(struct attachments *all)
{
	const struct recovery_queue turns = {all->take ? NULL : listen_early, take_turn, finish};
	DIR *dir = directory_list(all->state);
	struct dirent *entry;
	char name[MESSAGE_NAME_MAX + 1];

	if (!dir) {
		log_error("the state directory cannot be read: %s", strerror(errno));
		all->damaged = true;
	}
	while (dir && (entry = readdir(dir)))
		if (name_of(entry->d_name, STATE_SUFFIX, name))
			read_one(all, entry->d_name);
		else if (!all->take && name_of(entry->d_name, STATE_FRESH_SUFFIX, name))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	attachments_drop_claimed(all);
	attachments_open_tokens(all);
	return recovery_queue_run(all, &turns);
}
