/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_watch: tells when the files of a policy have changed (inotify(7) on their folders), once
 * per burst of changes. It reads no file: the callback loads them, and if that fails nothing
 * changes. Files on a file system that may stop answering (local_file.h) are not watched, and the
 * log says so.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_POLICY_WATCH_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_POLICY_WATCH_H

#include <stddef.h>

#include "vethguard/loop/loop.h"

#define POLICY_WATCH_QUIET_MS 300  /* told when the folders were quiet for this long */
#define POLICY_WATCH_LATE_MS 3000  /* told after this long even without a quiet time */
#define POLICY_WATCH_RETRY_MS 5000 /* interval at which missing folders are looked for */
#define POLICY_WATCH_FOLDERS_MAX 4096

struct policy_watch;

/* changed(context, owner) is called from the loop, once for each owner with a file that has changed
 * since it was set or last told. It may set and forget owners. Returns NULL with -errno in *error
 * on failure. */
struct policy_watch *policy_watch_new(
        struct loop *loop, void (*changed)(void *context, void *owner), void *context, int *error);
void policy_watch_free(struct policy_watch *watch);
/* Sets the files (absolute paths, copied) of an owner, instead of those set before. A missing
 * folder is no error. Returns 0, -ENOMEM or -ENOSPC (too many folders, or the kernel's limit on
 * watches); after an error the owner has none. */
int policy_watch_set(
        struct policy_watch *watch, void *owner, const char *const *files, size_t count);
/* Tells about owner once more, after POLICY_WATCH_RETRY_MS: it could not be served now. */
void policy_watch_again(struct policy_watch *watch, void *owner);
/* Allowed for an unknown owner. */
void policy_watch_forget(struct policy_watch *watch, void *owner);

#endif
