/* SPDX-License-Identifier: Apache-2.0 */
/* ask: what the commands about requests that wait for a person share. */
#ifndef VETHGUARD_SRC_CLI_ASK_ASK_H
#define VETHGUARD_SRC_CLI_ASK_ASK_H

#include "cli/attach/commands.h"

#define ASK_PREFIX_MIN 4 /* digits of an id that suffice, if they are those of one only */

/* A person's decision, as it is sent. */
struct ask_decision {
	bool approves, always, whole_rule;
	uint64_t for_s; /* 0: once, unless always */
	const char *reason;
};

/* Makes the call about the request whose id begins so, and prints what was done. Returns the exit
 * status. */
int ask_decide(const struct control_line *line, const char *id, const struct ask_decision *d);
/* Does what a line says: "approve ID", "approve ID 1h", "approve ID always", "refuse ID REASON".
 * Changes text. */
void ask_decide_line(const struct control_line *line, char *text);

#endif
