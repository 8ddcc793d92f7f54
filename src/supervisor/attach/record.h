/* SPDX-License-Identifier: Apache-2.0 */
/* record: what is known of an attachment and outlives the daemon (daemon/state_file.h writes it).
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_RECORD_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_RECORD_H

#include "supervisor/attach/attachments.h"
#include "supervisor/os/listen_socket.h"
#include "supervisor/os/session_token.h"

#define ATTACH_SEED_BYTES 16

/* An attachment as it is written to the file. Strings are owned, "" if there is none. */
struct attach_record {
	char name[MESSAGE_NAME_MAX + 1];
	uint64_t id;
	enum attach_kind kind;
	char interface[IFNAMSIZ];
	char *netns;
	struct listen_socket listen;
	struct session_token session;
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
	uint8_t seed[ATTACH_SEED_BYTES]; /* of the placeholders */
	bool prepared;   /* no policy yet; only name, id, netns and the identity count */
	bool claimed;    /* it was */
	bool root_known; /* false: the oldest that there is */
	uint8_t root[MESSAGE_FINGERPRINT_BYTES]; /* fingerprint of the root that it knows */
	bool paused;
	char reason[ATTACH_REASON_MAX + 1];
	struct attach_pairs revoked; /* owned; names of credentials, with empty values */
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
/* Returns labels as lines "KEY=VALUE" (malloc'd), or NULL: none, or no memory. */
char *attach_labels_lines(const struct attach_pairs *labels);
/* Returns why these labels or variables are invalid, or NULL. *culprit: the invalid one, or
 * NULL. */
const char *attach_labels_objection(
        const struct attach_pairs *labels, const struct attach_pair **culprit);
const char *attach_vars_objection(
        const struct attach_pairs *vars, const struct attach_pair **culprit);
const char *attach_container_objection(const struct attach_container *container);

#endif
