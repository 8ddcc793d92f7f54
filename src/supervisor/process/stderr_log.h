/* SPDX-License-Identifier: Apache-2.0 */
/* stderr_log: what a role writes to its standard error, on its way to a person's terminal. */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_STDERR_LOG_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_STDERR_LOG_H

#include "vethguard/loop/loop.h"

#define ROLE_TEXT_NAME_MAX 64
#define ROLE_TEXT_LINE_MAX 2048     /* bytes that a line may have; a longer one becomes several */
#define ROLE_TEXT_BURST (64 * 1024) /* bytes shown at once; a sanitizer's report fits */
#define ROLE_TEXT_PER_S 64          /* bytes earned a second from then on */
#define ROLE_TEXT_RESUME \
	(4 * 1024) /* bytes earned before a role that wrote too much is heard again */

struct stderr_log {
	struct loop_io io;
	struct loop_timer pause;
	char program[ROLE_TEXT_NAME_MAX];
	int fd;              /* the reading end of a pipe, -1: none */
	const char *sandbox; /* whom it serves, for the journal (borrowed); NULL: nobody, or all */
	char line[ROLE_TEXT_LINE_MAX];
	size_t n;
	int64_t budget; /* bytes that may still be shown */
	int64_t at_ms;  /* when the budget was last counted */
};

/* A pipe whose lines appear on this process's standard error, each beginning with the program's
 * name, without anything that a terminal could obey, and not endlessly. The writing end, for the
 * role only: it never blocks whoever leaves it as it is. Or -errno. */
int stderr_log_open(struct loop *loop, struct stderr_log *text, const char *program);
/* Shows what is left, as far as the bound allows, and closes. Harmless on a closed one (zeroed, fd
 * -1). */
void stderr_log_close(struct stderr_log *text);

#endif
