/* SPDX-License-Identifier: Apache-2.0 */
/* process: the real runtime, and what it says about a container. */
#ifndef VETHGUARD_SRC_RUNTIME_PROCESS_H
#define VETHGUARD_SRC_RUNTIME_PROCESS_H

#include <jansson.h>
#include <sys/types.h>

#include "runtime/line.h"
#include "runtime/settings.h"

#define PROCESS_STATE_MAX (1u << 20) /* bytes of an answer */
#define PROCESS_EXIT 1               /* as runc exits with an error of its own */

/* Becomes the real runtime with the words of the line. Returns the exit status of a failure, which
 * it has reported. */
int process_become(const struct settings *s, const struct line *line, struct fault *fault);
/* Runs it with these words and waits; signals that end or tell something go on to it. Returns its
 * exit status as a shell would (128 and the signal's number), or -errno. */
int process_run(const struct settings *s, char *const words[]);
/* The state of a container as the real runtime tells it (owned), or NULL. */
json_t *process_state(const struct settings *s, const struct line *line);
/* Deletes the container by force. */
void process_delete(const struct settings *s, const struct line *line);
/* The pid of the container's first process: from the file that the engine named, else by asking. 0:
 * unknown. */
pid_t process_init(const struct settings *s, const struct line *line);

#endif
