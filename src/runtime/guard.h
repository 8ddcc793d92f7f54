/* SPDX-License-Identifier: Apache-2.0 */
/* guard: the calls of the daemon's control API that stand behind a container's life. */
#ifndef VETHGUARD_SRC_RUNTIME_GUARD_H
#define VETHGUARD_SRC_RUNTIME_GUARD_H

#include <jansson.h>
#include <sys/types.h>

#include "vethguard/adapter/environment.h"
#include "runtime/entry.h"
#include "runtime/request.h"

#define GUARD_NAME_MAX 64 /* bytes of a sandbox's name, as the daemon allows */

/* True for a name that the daemon could have given: letters, digits, '.', '_' and '-'. */
bool guard_name_is_plain(const char *name);
/* Attaches: body is a request of POST /v1/sandboxes (consumed). Returns the answer (owned) or NULL
 * with a fault. taken: the name or namespace belongs to another sandbox already. */
json_t *guard_attach(const struct settings *s, json_t *body, bool *taken, struct fault *fault);
/* What to set inside; owned, or NULL with a fault. */
json_t *guard_env(const struct settings *s, const char *name, struct fault *fault);
/* The sandbox whose namespace this file is (owned), or NULL: none, or a fault. */
json_t *guard_find_netns(const struct settings *s, const char *netns, struct fault *fault);
/* The sandbox ends with this process from now on. */
bool guard_follow(const struct settings *s, const char *name, pid_t pid, uint64_t start_time,
        struct fault *fault);
/* True if the sandbox is served, or paused; waits a little for one that starts again. */
bool guard_is_served(const struct settings *s, const char *name, struct fault *fault);
/* Returns true if there is no such sandbox any more. */
bool guard_detach(const struct settings *s, const char *name, struct fault *fault);

#endif
