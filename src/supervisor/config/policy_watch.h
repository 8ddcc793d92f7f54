/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_watch: tells when the files of a policy have changed (inotify(7) on their folders), once
 * per run of changes. It reads no file: whoever is told loads them, and where that fails nothing
 * changes. Files that may lie where nobody answers (local_file.h) are not watched, with a word in
 * the log.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_POLICY_WATCH_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_POLICY_WATCH_H

#include <stddef.h>

#include "vethguard/loop/loop.h"

#define POLICY_WATCH_QUIET_MS 300  /* nothing has happened in the folders for so long */
#define POLICY_WATCH_LATE_MS 3000  /* something has, all the time: told all the same */
#define POLICY_WATCH_RETRY_MS 5000 /* folders that are not there are looked for again */
#define POLICY_WATCH_FOLDERS_MAX 4096

struct policy_watch;

/* changed(context, owner) comes from the loop, once for an owner some of whose files are not what
 * they were when they were set, or when it was told last. It may set and forget owners. NULL:
 * -errno in *error. */
struct policy_watch *policy_watch_new(
        struct loop *loop, void (*changed)(void *context, void *owner), void *context, int *error);
void policy_watch_free(struct policy_watch *watch);
/* The files (absolute paths, copied) of an owner, in place of those set before. 0, -ENOMEM or
 * -ENOSPC (too many folders, or the kernel's bound on watches): then the owner has none. A folder
 * that is not there is no error. */
int policy_watch_set(
        struct policy_watch *watch, void *owner, const char *const *files, size_t count);
/* Tells about owner once more, after a while: it could not be served now. */
void policy_watch_again(struct policy_watch *watch, void *owner);
/* Harmless on one that is not known. */
void policy_watch_forget(struct policy_watch *watch, void *owner);

#endif
