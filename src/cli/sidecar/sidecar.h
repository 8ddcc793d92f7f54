/* SPDX-License-Identifier: Apache-2.0 */
/* sidecar: what the files of this folder share: a guard inside of the network namespace that it
 * guards, without a daemon (docs/sidecar.md). */
#ifndef VETHGUARD_SRC_CLI_SIDECAR_SIDECAR_H
#define VETHGUARD_SRC_CLI_SIDECAR_SIDECAR_H

#include <sys/types.h>
#include <time.h>

#include "cli/failure.h"
#include "cli/run/options.h"
#include "cli/run/supervisor.h"
#include "vethguard/fence/shared.h"

#define SIDECAR_DNS_PORT_DEFAULT 7653
/* Exit status of `sidecar init`: the fence is not in force (`sidecar run`: CLI_FAILED). */
#define SIDECAR_NOT_FENCED 1

struct sidecar_options {
	struct run_options run; /* policy, variables, config, name, audit, observe, verbose */
	struct fence_shared_spec fence;
	const char *share, *share_as; /* directory, and its path in the sandbox's containers */
	bool init;                    /* run: set the fence first, then give up the rights */
	bool check;                   /* init: change nothing */
	bool watch;                   /* run: reload when the policy's file changes */
	bool has_uid, has_loopback;
};

/* options.c: each returns 0, or -1 with *status (--help, or a mistake that was reported). The first
 * also reads the ports and pools of the configuration. */
int sidecar_init_options(char **argv, struct sidecar_options *out, int *status);
int sidecar_run_options(char **argv, struct sidecar_options *out, int *status);

/* fence.c: these need CAP_NET_ADMIN. Return 0, or -errno with a text. Sets the fence with routes
 * for the synthetic addresses and verifies it; check: only verifies. */
int sidecar_fence(struct sidecar_options *o, bool check, struct failure *failure);

/* place.c: whether a sidecar can work here at all. Returns 0, or -errno with a text. fencing: also
 * whether this namespace may be fenced. */
int sidecar_place(bool fencing, struct failure *failure);
/* The cgroup of this process, if it is told apart from others by it. Leaves zeros if not. */
void sidecar_own_cgroup(struct fence_shared_spec *spec);

/* witness.c: what is visible without rights. Called as the guard's user, before the guard listens.
 * Returns 0, or -errno with a text. */
int sidecar_witness(const struct fence_shared_spec *spec, struct failure *failure);
/* The part that may be repeated while the guard serves. */
bool sidecar_witness_again(void);

/* rights.c: fails if the guard has rights that it must not have, or another process could undo the
 * fence. by_cgroup: the fence knows the guard by its cgroup, too. Returns 0, or -errno with a text.
 */
int sidecar_check_rights(bool by_cgroup, struct failure *failure);
/* Becomes the user for good: no capability, no way to get one. Returns 0, or -errno with a text. */
int sidecar_become(uid_t uid, struct failure *failure);

/* share.c: the files for the sandbox's containers. Returns 0, or -errno with a text. */
int sidecar_share_begin(const struct sidecar_options *o, struct failure *failure);
int sidecar_share(const struct sidecar_options *o, const struct message_run_ready *ready,
        struct failure *failure);
/* Removes what says that the guard is ready. */
void sidecar_share_end(const struct sidecar_options *o);

/* watch.c: the files that the policy was read from (--watch). */
struct sidecar_watched;
struct sidecar_watch {
	size_t count;
	struct sidecar_watched *files; /* owned */
	struct timespec begun;         /* when the last reading of the policy began */
};
/* Notes the state of the files. Call this before the policy is read. */
void sidecar_watch_begin(struct sidecar_watch *w);
/* Takes the list of the files that were read. Returns 0, or -errno with the reason in failure; the
 * list then stays as it was. */
int sidecar_watch_take(
        struct sidecar_watch *w, const struct message_paths *paths, struct failure *failure);
/* True if a file has changed since it was read. */
bool sidecar_watch_changed(const struct sidecar_watch *w);
void sidecar_watch_end(struct sidecar_watch *w);

int sidecar_run(int argc, char **argv);

#endif
