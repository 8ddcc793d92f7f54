/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: which process group owns the terminal (tcsetpgrp(3)). */
#ifndef VETHGUARD_SRC_CLI_RUN_TERMINAL_H
#define VETHGUARD_SRC_CLI_RUN_TERMINAL_H

#include <stdbool.h>

struct terminal {
	int fd;     /* the controlling terminal, close-on-exec; -1: none */
	bool owned; /* our process group was in the foreground when we started */
};

void terminal_open(struct terminal *t);
/* True if our process group is in the foreground now. */
bool terminal_is_ours(const struct terminal *t);
/* Gives the terminal back to our process group. SIGTTOU has to be blocked. */
void terminal_take(const struct terminal *t);
void terminal_close(struct terminal *t);

#endif
