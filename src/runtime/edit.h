/* SPDX-License-Identifier: Apache-2.0 */
/* edit: the changes of a container's configuration: its network namespace, its mounts, its
 * variables, its hooks. */
#ifndef VETHGUARD_SRC_RUNTIME_EDIT_H
#define VETHGUARD_SRC_RUNTIME_EDIT_H

#include <jansson.h>

#include "vethguard/adapter/environment.h"
#include "runtime/fault.h"

/* The path of the network namespace that the configuration names (borrowed); "": it wants a new
 * one. Returns NULL with a fault: the host's network is asked for, or what is there cannot be
 * guarded. */
const char *edit_find_netns(const json_t *config, struct fault *fault);
bool edit_set_netns(json_t *config, const char *path, struct fault *fault);
/* True if a mount lies on the path or on a directory above it, other than the root itself: what is
 * there belongs to that mount. exact: not what lies on the path itself. */
bool edit_is_covered(const json_t *config, const char *path, bool exact);
/* Mounts a file of the host over the path, in place of a mount that is there. */
bool edit_add_mount(json_t *config, const char *path, const char *source, struct fault *fault);
/* Sets these variables in a process (config.json's, or that of exec); proxies of elsewhere are
 * removed. */
bool edit_set_variables(json_t *process, const struct environment *env, struct fault *fault);
/* True if a process of the container may have CAP_NET_ADMIN. */
bool edit_has_net_admin(const json_t *config);
/* Removes the hook by which Docker puts its own links into the namespace. Returns true if there was
 * one. */
bool edit_drop_docker_hook(json_t *config);
bool edit_annotate(json_t *config, const char *key, const char *value, struct fault *fault);

#endif
