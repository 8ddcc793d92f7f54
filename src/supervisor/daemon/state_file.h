/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_file: what the daemon has to know of a sandbox to find it again after its own death: one
 * JSON file for each, sandboxes/NAME.json in the state directory. A file is written whole beside
 * the old one and renamed, so that a reader finds one or the other. It is read strictly: an unknown
 * key, a value out of bounds or a file that somebody else could have written is an error, and that
 * sandbox stays cut off.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_STATE_FILE_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_STATE_FILE_H

#include "supervisor/attach/attachments.h"
#include "supervisor/gate/gate.h"

#define STATE_FILE_MAX (256u << 10) /* bytes; labels and variables at their limits fit */
#define STATE_ERROR_MAX 512
#define STATE_SUFFIX ".json"
/* Suffix while being written: ignored if left behind by a killed daemon. */
#define STATE_FRESH_SUFFIX ".new"
#define STATE_VERSION 1
#define STATE_SEED_BYTES 16

/* An attachment as it is written to the file. Strings are owned, "" if there is none. */
struct attach_record {
	char name[MESSAGE_NAME_MAX + 1];
	uint64_t id;
	enum attach_kind kind;
	char interface[IFNAMSIZ];
	char *netns;
	pid_t pid;
	uint64_t pid_start_time;
	struct attach_container container;
	char *policy;
	bool observe;
	struct attach_pairs labels, vars; /* owned */
	uid_t uid;
	gid_t gid;
	bool asked; /* groups are known: see struct identity */
	size_t group_count;
	gid_t *groups; /* owned */
	int64_t created_ms, expires_ms;
	uint64_t generation;
	uint8_t seed[STATE_SEED_BYTES]; /* of the placeholders */
	bool paused;
	char reason[ATTACH_REASON_MAX + 1];
	/* Packets the fence had dropped when a daemon stopped that had recorded them all: the next
	 * daemon's recorder counts from there. */
	bool dropped_known;
	uint64_t dropped;
	/* Incomplete: its attach was not answered yet, or its detach has begun. A daemon that finds
	 * this at its start removes what exists of it. */
	bool undoing;
};

void attach_record_fini(struct attach_record *record);
/* record_text.c: writes what it is attached to, its policy's path, labels and variables to out, cut
 * to size: for the audit log. */
void attach_record_describe(const struct attach_record *record, char *out, size_t size);
/* Returns the identity whose rights apply; borrowed from the record. */
struct identity attach_record_identity(const struct attach_record *record);
/* Copies id into the record. Returns 0, or -ENOMEM: it has the ids and no supplementary group. */
int attach_record_set_identity(struct attach_record *record, const struct identity *id);
/* Copies pairs. Returns 0 or -ENOMEM. */
int attach_pairs_copy(struct attach_pairs *out, const struct attach_pairs *pairs);
void attach_pairs_free(struct attach_pairs *pairs);
/* Returns why these labels or variables are invalid, or NULL. *culprit: the invalid one, or
 * NULL. */
const char *attach_labels_objection(
        const struct attach_pairs *labels, const struct attach_pair **culprit);
const char *attach_vars_objection(
        const struct attach_pairs *vars, const struct attach_pair **culprit);
const char *attach_container_objection(const struct attach_container *container);

/* Writes the record and the gate's shape to the directory dir of these files. On the disk when it
 * returns. Returns 0 or -errno. */
int state_save(int dir, const struct attach_record *record, const struct gate *gate);
/* Reads a file. gate: as gate_init() left it; its shape is filled in. Returns 0, or -EINVAL or
 * -errno with one sentence in error; *record is empty then. */
int state_load(int dir, const char *file, struct attach_record *record, struct gate *gate,
        char error[STATE_ERROR_MAX]);
/* Returns 0 or -errno; a missing file is no error. */
int state_remove(int dir, const char *name);

#endif
