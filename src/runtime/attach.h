/* SPDX-License-Identifier: Apache-2.0 */
/* attach: what a runtime and a hook ask the daemon for, and which engine is behind it. */
#ifndef VETHGUARD_SRC_RUNTIME_ATTACH_H
#define VETHGUARD_SRC_RUNTIME_ATTACH_H

#include "runtime/guard.h"

/* What happens to a container. */
enum attach_choice { ATTACH_GUARD, ATTACH_LEAVE, ATTACH_NO };

/* Whether the container is to be guarded, and by which policy: the request's, or the
 * configuration's for those that name none. ATTACH_NO: with a fault. */
enum attach_choice attach_choose(const struct settings *s, struct request *r, struct fault *fault);
/* The body of POST /v1/sandboxes without its place (owned); NULL with a fault. config: the
 * container's configuration; pid: with which the guard ends. */
json_t *attach_body(const struct settings *s, const struct request *r, const json_t *config,
        const struct line *line, pid_t pid, struct fault *fault);
/* Attaches; a name that is taken and that nobody asked for is left to the daemon to make up. place:
 * "netns" or NULL. */
json_t *attach_ask(
        const struct settings *s, const struct request *r, json_t *body, struct fault *fault);

/* The engine behind a call, as far as it shows: "docker", "podman", ..., "oci". */
const char *attach_engine(const json_t *config, const struct line *line);

#endif
