/* SPDX-License-Identifier: Apache-2.0 */
/* stderr_log: forwards what a role writes to its standard error to the supervisor's, which may be a
 * terminal. */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_STDERR_LOG_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_STDERR_LOG_H

#include "vethguard/loop/loop.h"

#define ROLE_TEXT_NAME_MAX 64
#define ROLE_TEXT_LINE_MAX 2048     /* bytes of a line; a longer line becomes several */
#define ROLE_TEXT_BURST (64 * 1024) /* bytes shown at once; a sanitizer's report fits */
#define ROLE_TEXT_PER_S 64          /* bytes per second after that */
/* Budget in bytes that a role which wrote too much has to regain before it is read again. */
#define ROLE_TEXT_RESUME (4 * 1024)

struct stderr_log {
	struct loop_io io;
	struct loop_timer pause;
	char program[ROLE_TEXT_NAME_MAX];
	int fd;              /* read end of a pipe, -1: none */
	const char *sandbox; /* its sandbox, for the journal (borrowed); NULL: none, or all */
	char line[ROLE_TEXT_LINE_MAX];
	size_t n;
	int64_t budget; /* bytes that may still be shown */
	int64_t at_ms;  /* when the budget was last computed */
};

/* Makes a pipe whose lines appear on this process's standard error, each beginning with the
 * program's name, without terminal control sequences, and limited in amount. Returns the write end,
 * for the role only (it does not block as long as the role leaves it so), or -errno. */
int stderr_log_open(struct loop *loop, struct stderr_log *text, const char *program);
/* Shows what is left, within the budget, and closes. Allowed on a closed one (zeroed, fd -1). */
void stderr_log_close(struct stderr_log *text);

#endif
