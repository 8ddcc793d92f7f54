/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quotas: the memories from which workers take what budgets that several hosts share still have
 * (ipc/quotas.h). They are files of the state directory, limits/quota-DIGEST, beside the counters
 * of the same label (sandbox/limits.h), so that what this host has claimed is known after a
 * restart.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_QUOTAS_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_QUOTAS_H

#include "supervisor/sandbox/sandbox.h"
#include "vethguard/ipc/quotas.h"
#include "vethguard/policy/limits.h"

/* Who shares a budget by a label: sandboxes with the same value of it, under policies that the same
 * user named. "UID\nKEY=VALUE" */
#define SHARING_TEXT_MAX (MESSAGE_LABELS_MAX + 32)
/* Writes who shares with this sandbox. Returns false if the sandbox does not have the label. */
bool sharing_text(const struct sandbox *s, const struct generation *g, struct slice key,
        char out[SHARING_TEXT_MAX]);
/* A number for that text. */
uint64_t sharing_digest(const char *text);

#define QUOTAS_FDS 2 /* the memory, the bell */

/* True if several hosts share a budget of the policy by that label. */
bool quotas_are_needed(const struct generation *g, struct slice shared);
/* What the configuration lacks for the budgets of the policy, as a sentence, or NULL. */
const char *quotas_objection(const struct supervisor *sv, const struct policy *policy);
/* Gives each of them its place, tells vethguard-quota, and writes descriptors for the worker, which
 * the caller owns. Returns 0, or -errno with s->failure. */
int quotas_give(
        struct sandbox *s, const struct generation *g, struct slice shared, int fds[QUOTAS_FDS]);
/* Tells a new vethguard-quota of all memories in use. */
void quotas_tell_all(struct supervisor *sv);
/* The sandbox has ended: vethguard-quota forgets what no other sandbox uses. */
void quotas_forget(struct sandbox *s);
/* What all hosts have taken, as the server said last. Returns false if that is not known. */
bool quotas_used(const struct sandbox *s, const struct policy_limit *limit, uint64_t *used,
        enum quota_state *state);

#endif
