/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry: what is kept of a guarded container from its create to its delete. It is a directory with
 * state.json and the files that are mounted into the container. The entry names a process: at first
 * the one that prepares the container, then the container's own. The guard ends with this process.
 * When it is gone, the next call of any container removes what is left.
 */
#ifndef VETHGUARD_SRC_RUNTIME_ENTRY_H
#define VETHGUARD_SRC_RUNTIME_ENTRY_H

#include <jansson.h>
#include <limits.h>
#include <sys/types.h>

#include "vethguard/base/slice.h"
#include "runtime/line.h"
#include "runtime/settings.h"

#define ENTRY_DIRECTORY_DEFAULT "/run/vethguard/runtime"
#define ENTRY_KEY_MAX 40           /* with the NUL */
#define ENTRY_STATE_MAX (1u << 20) /* bytes of state.json */
#define ENTRIES_LOOK_MAX 64 /* looked at in one call, so that a thousand containers delay none */
#define ENTRY_SHOWN 0644
#define ENTRY_HIDDEN 0600 /* variables that the engine gives to a process may be secrets */

/* Members of the state. */
#define ENTRY_ID "id"
#define ENTRY_SANDBOX "sandbox" /* name of the guard; shared guards belong to another entry */
#define ENTRY_SHARED "shared"
#define ENTRY_BUNDLE "bundle"
#define ENTRY_NETNS "netns"
#define ENTRY_OWN_NETNS "own_netns" /* the file was made here */
#define ENTRY_LINK "link"           /* how the link was before it was put aside; see link.h */
#define ENTRY_ENV "env"             /* variables, as "NAME=VALUE" */
#define ENTRY_NET_ADMIN "net_admin" /* the container may have CAP_NET_ADMIN */
#define ENTRY_PID "pid"
#define ENTRY_START_TIME "start_time"

struct entry {
	char key[ENTRY_KEY_MAX];
	char path[PATH_MAX]; /* of its directory */
	json_t *state;       /* owned; NULL: none */
};

/* The key of the container of this id, whose runtime keeps its state below root. Two engines may
 * use the same id. */
void entry_name(struct entry *e, const struct settings *s, const char *root, const char *id);
/* Makes the directory and writes the state. Returns false with a fault: there is such a container.
 */
bool entry_make(struct entry *e, const struct settings *s, json_t *state, struct fault *fault);
/* Returns true with the state of a container that this program guards; false without a fault: it
 * does not. */
bool entry_load(struct entry *e, struct fault *fault);
/* Writes the state in one step. */
bool entry_save(const struct entry *e, struct fault *fault);
/* Names the process with which it ends. Returns false if there is no such process. */
bool entry_set_process(struct entry *e, pid_t pid);
/* Writes a file. mode: ENTRY_SHOWN for what every process of the container may read, else
 * ENTRY_HIDDEN. path: of the file, afterwards. */
bool entry_write(const struct entry *e, const char *name, mode_t mode, struct slice bytes,
        char path[PATH_MAX], struct fault *fault);
const char *entry_text(const struct entry *e, const char *member); /* "": none */
bool entry_is(const struct entry *e, const char *member);
/* Takes away the namespace's file and the directory, and puts the bundle's configuration back. */
void entry_remove(struct entry *e);
/* Removes entries whose process is gone: all, or if there are many, some that chance chooses. */
void entries_tidy(const struct settings *s);
void entry_free(struct entry *e);

#endif
