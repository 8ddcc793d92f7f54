/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proposal: a rule that the sandbox proposes to its operator, with a reason. It allows methods and paths of one https
 * or http destination that has a name, and nothing else: no address, no credential, no tunnel, no other sandbox. Both
 * the worker, which reads the sandbox's JSON, and the supervisor check every byte with the functions here.
 */
#ifndef VETHGUARD_POLICY_PROPOSAL_H
#define VETHGUARD_POLICY_PROPOSAL_H

#include "vethguard/policy/policy.h"

struct buf;

#define PROPOSAL_BYTES_MAX 4096 /* of the JSON text */
#define PROPOSAL_METHODS_MAX 8
#define PROPOSAL_PATHS_MAX 8
#define PROPOSAL_PATH_MAX 256
#define PROPOSAL_REASON_MAX 500                       /* bytes, at least one */
#define PROPOSAL_TO_MAX (POLICY_HOST_MAX + 2 + 8 + 6) /* scheme, "*.", name and port */
#define PROPOSAL_METHODS_TEXT_MAX (PROPOSAL_METHODS_MAX * (POLICY_METHOD_MAX + 1))
#define PROPOSAL_PATHS_TEXT_MAX (PROPOSAL_PATHS_MAX * (PROPOSAL_PATH_MAX + 1))

/* Texts are NUL-terminated. Methods and paths are words with one space between them. */
struct policy_proposal {
	char to[PROPOSAL_TO_MAX + 1]; /* "https://api.example.com", also for the names below one */
	char methods[PROPOSAL_METHODS_TEXT_MAX];
	char paths[PROPOSAL_PATHS_TEXT_MAX];
	char reason[PROPOSAL_REASON_MAX + 1]; /* UTF-8, as the sandbox wrote it: escape it before you show it */
};

/* Reads {"to": URL, "methods": [...], "paths": [...], "reason": TEXT}. Returns 0; -EBADMSG with *fault, one sentence
 * (static); or -ENOMEM. */
int policy_proposal_read(struct policy_proposal *out, struct slice json, const char **fault);
/* Takes the four texts, in the form that they have in the struct, from another process. Returns false if one of them
 * does not pass the same checks; only that the reason is UTF-8 is not checked. */
bool policy_proposal_take(
        struct policy_proposal *out, struct slice to, struct slice methods, struct slice paths, struct slice reason);
/* Appends a policy with this rule alone, named "proposal-ID" (ID: 16 hex digits), which is loaded beside the sandbox's
 * own (policy_load_options.more). Returns 0 or -errno. */
int policy_proposal_write(const struct policy_proposal *proposal, uint64_t id, struct buf *out);

#endif
