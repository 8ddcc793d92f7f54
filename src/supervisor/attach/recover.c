/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovers what an earlier daemon has left: state files and pinned gates. Each sandbox is handled
 * separately: one whose file is damaged, whose gate is gone or whose policy no longer loads stays
 * cut off, is logged as an error and shown as failed; the others are served. Nothing is guessed,
 * and nothing that belongs to an unreadable file is removed.
 *
 * All state files are read first, so that every name and id is known. Then each sandbox has its
 * turn (recovery_queue.c). While another daemon still serves them (upgrade.h), the gates do not
 * listen before their turn: new connections belong to that daemon.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/process.h"
#include "supervisor/attach/attachment.h"

static void fail(struct attachment *a, const char *text)
{
	char told[sizeof(a->trouble) + MESSAGE_NAME_MAX + 16];

	snprintf(a->trouble, sizeof(a->trouble), "%.400s; it stays cut off from every network",
	        text);
	log_sandbox(LOG_LEVEL_ERROR, a->record.name, "%s", a->trouble);
	snprintf(told, sizeof(told), "Sandbox %s: %s.", a->record.name, a->trouble);
	outbox_finding(a->all->supervisor, NULL, EVENT_FINDING_CUT_OFF, told);
}

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

/* True if its process or namespace has ended while no daemon ran. It is removed after all
 * attachments were looked at. */
static bool has_ended(struct attachment *a)
{
	a->gone = a->record.pid ? attachment_process_is_gone(a) : attachment_netns_is_gone(a);
	if (a->gone)
		snprintf(a->trouble, sizeof(a->trouble), "it has ended");
	return a->gone;
}

static int adopt_gate(struct attachment *a, struct gate *shape)
{
	char pin[MESSAGE_PATH_MAX + 1], text[GATE_WHY_MAX + 64];
	int rc;

	attachment_pin(a->all, a->record.id, pin);
	rc = gate_adopt(shape, a->all->supervisor->gates, pin);
	if (rc > 0)
		log_sandbox(LOG_LEVEL_WARN, a->record.name, "its fence was put in order: %s",
		        shape->why);
	if (rc >= 0)
		return 0;
	if (rc == -ENOLINK && has_ended(a))
		return rc;
	snprintf(text, sizeof(text), "its gate cannot be taken over: %s", shape->why);
	fail(a, text);
	return rc;
}

static int adopt_socket(struct attachment *a, struct gate *shape)
{
	int rc = a->record.kind == ATTACH_SESSION ? gate_open_socket(shape, -1, 0)
	                                          : attachment_adopt_socket(a, shape);

	if (rc)
		fail(a, shape->why);
	return rc;
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
		fail(a, text);
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
		fail(a, text ? text : attach_load_failure(status));
	free(text);
	return g;
}

/* The configuration may have other bounds than the fence was made with. */
static void set_bounds(struct attachment *a)
{
	struct sandbox *s = a->sandbox;
	const struct fence_bounds bounds = sandbox_bounds(&s->generation->settings->config.limits);
	int rc;

	if (memcmp(&bounds, &s->gate.bounds, sizeof(bounds)) == 0)
		return;
	rc = gate_set_traffic(&s->gate, s->gate.udp_ports, s->gate.udp_port_count, &bounds);
	if (!rc)
		rc = attachment_save(a);
	if (rc)
		log_sandbox(
		        LOG_LEVEL_WARN, a->record.name, "bounds of its fence: %s", strerror(-rc));
}

/* The policy may have other ports than the gate was made for. */
static void settle_ports(struct attachment *a, const struct gate *shape)
{
	struct sandbox *s = a->sandbox;
	int rc;

	sandbox_settle_ports(s);
	if (s->gate.udp_port_count == shape->udp_port_count &&
	        memcmp(s->gate.udp_ports, shape->udp_ports, sizeof(shape->udp_ports)) == 0)
		return;
	gate_close_handed_out(&s->gate); /* the worker gets listeners for the new ports */
	rc = attachment_save(a);
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its state cannot be written: %s",
		        strerror(-rc));
}

/* Sets where the recorder counts dropped packets from, if its journal has no entry for this
 * sandbox. The state file's number is used once: the next daemon would count the same packets
 * again. shared: the former daemon's recorder reads copies as well. */
static void count_from(struct attachment *a, bool shared)
{
	struct sandbox *s = a->sandbox;
	int rc = 0;

	s->dropped_before = shared                    ? MESSAGE_DROPPED_UNKNOWN
	                    : a->record.dropped_known ? a->record.dropped
	                                              : gate_dropped(&s->gate).packets;
	if (a->record.dropped_known) {
		a->record.dropped_known = false;
		rc = attachment_save(a);
	}
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its state cannot be written: %s",
		        strerror(-rc));
}

/* What it knows decides which CA signs for it. Where nothing is recorded, zeros stand for the
 * oldest. */
static void set_root(const struct attachment *a)
{
	a->sandbox->root_known = true;
	memcpy(a->sandbox->root, a->record.root, sizeof(a->record.root));
}

static void adopt(struct attachment *a, const struct gate *shape, struct generation *g, bool shared)
{
	struct sandbox *s = sandbox_new(a->all->supervisor, &a->owner, true);

	if (!s) {
		generation_put(g);
		fail(a, "no memory");
		return;
	}
	if (sandbox_set_id(s, a->record.id) != 0) {
		sandbox_free(s);
		generation_put(g);
		fail(a, "no memory");
		return;
	}
	a->sandbox = s;
	s->generation = g;
	s->labels = attach_labels_lines(&a->record.labels);
	set_root(a);
	attachment_watch_policy(a);
	s->gate = *shape;
	set_bounds(a);
	count_from(a, shared);
	memcpy(s->seed, a->record.seed, sizeof(s->seed));
	snprintf(s->name, sizeof(s->name), "%s", a->record.name);
	if (a->record.kind == ATTACH_LISTEN)
		s->listen = &a->record.listen;
	else if (a->record.kind == ATTACH_SESSION)
		s->session = &a->record.session;
	else
		attachment_pin(a->all, s->id, s->pin);
	settle_ports(a, shape);
	s->paused = a->record.paused;
	snprintf(s->pause_reason, sizeof(s->pause_reason), "%s", a->record.reason);
	sandbox_event(s, SANDBOX_ADOPT);
	attachment_admit(a);
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
		fail(a, error);
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
	struct attachments *all = a->all;
	struct generation *g = load(a, files);
	struct gate shape;
	bool shared, socket;

	if (!g && (a->left || a->reading))
		return;
	attachment_forget_knock(a);
	if (!g) {
		cut_off(a);
		return;
	}
	gate_move(&shape, &a->gate);
	if (all->take)
		all->take(all, a->record.id, &shape.packets);
	socket = a->record.kind == ATTACH_LISTEN || a->record.kind == ATTACH_SESSION;
	shared = !socket && shape.packets >= 0;
	if ((socket ? adopt_socket(a, &shape) : adopt_gate(a, &shape)) != 0) {
		generation_put(g);
		attachment_hold(a);
		return;
	}
	gate_init(&a->gate);
	adopt(a, &shape, g, shared);
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
		fail(a, text);
		cut_off(a);
	}
	settings_files_free(files);
	recovery_queue_end(all);
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

static bool is_known(struct attachments *all, const char *pin)
{
	struct attachment *a, *next;
	uint64_t id = strtoull(pin, NULL, 16);

	if (supervisor_find(all->supervisor, id))
		return true;
	HASH_ITER(hh, all->by_name, a, next)
	{
		if (!a->sandbox && a->record.id == id)
			return true;
	}
	return false;
}

/* Removes files that are named by a sandbox's id and belong to no known sandbox. Removes nothing if
 * a state file could not be read: they may belong to that sandbox. */
static void remove_orphans(struct attachments *all, DIR *dir, const char *what)
{
	bool mounted = strcmp(what, "netns") == 0;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[2 * MESSAGE_PATH_MAX];

		if (all->damaged || slice_hex_digit(entry->d_name[0]) < 0 ||
		        is_known(all, entry->d_name))
			continue;
		log_warn("%s of %s belongs to no sandbox and is removed", entry->d_name, what);
		snprintf(path, sizeof(path), "%s/%s", all->pins, entry->d_name);
		if (mounted)
			umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
		unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

static DIR *open_directory(int fd)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return own < 0 ? NULL : fdopendir(own);
}

static void finish(struct attachments *all)
{
	struct attachment *a, *next;

	HASH_ITER(hh, all->by_name, a, next)
	watch_one(a);
	/* Left by an attach that was never answered: made before the state was written. */
	remove_orphans(all, opendir(all->pins), "netns");
	remove_orphans(all, open_directory(all->supervisor->names), "names");
	remove_orphans(all, open_directory(all->supervisor->limits), "limits");
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
	DIR *dir = open_directory(all->state);
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
