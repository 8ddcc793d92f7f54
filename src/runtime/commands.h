/* SPDX-License-Identifier: Apache-2.0 */
/* commands: the calls at which vethguard-runtime does something. Each returns the exit status. */
#ifndef VETHGUARD_SRC_RUNTIME_COMMANDS_H
#define VETHGUARD_SRC_RUNTIME_COMMANDS_H

#include "runtime/line.h"
#include "runtime/settings.h"

/* create and run: guards the container's network namespace, changes its configuration, and has the
 * real runtime make it. The guard ends with this process until the container's own process is
 * known. */
int command_create(const struct settings *s, const struct line *line, struct fault *fault);
/* start: the container's first process runs its first instruction only if its guard is in order. */
int command_start(const struct settings *s, const struct line *line, struct fault *fault);
/* delete: the container, and then everything of its guard. */
int command_delete(const struct settings *s, const struct line *line, struct fault *fault);
/* exec: another process in the container gets the same variables as the first. */
int command_exec(const struct settings *s, const struct line *line, struct fault *fault);
/* restore: a container from a checkpoint is refused if it would have to be guarded. */
int command_restore(const struct settings *s, const struct line *line, struct fault *fault);
/* hook: of an engine that calls another runtime; the container's state is on standard input. */
int command_hook(const struct settings *s, const struct line *line, struct fault *fault);

#endif
