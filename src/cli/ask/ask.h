/* SPDX-License-Identifier: Apache-2.0 */
/* ask: shared by the commands about requests that wait for a person. */
#ifndef VETHGUARD_SRC_CLI_ASK_ASK_H
#define VETHGUARD_SRC_CLI_ASK_ASK_H

#include "cli/attach/commands.h"

#define ASK_PREFIX_MIN 4 /* digits of an id; more are needed if several ids begin with them */

/* A person's decision, as the control API takes it. */
struct ask_decision {
	bool approves, always, whole_rule;
	uint64_t for_s; /* seconds that the approval lasts; 0: once, unless always is set */
	const char *reason;
};

/* Sends the decision about the one request whose id begins with `id`, and prints the result.
 * Returns the exit status. */
int ask_decide(const struct control_line *line, const char *id, const struct ask_decision *d);
/* Carries out a typed line: "approve ID", "approve ID 1h", "approve ID always", "refuse ID REASON".
 * Changes text. */
void ask_decide_line(const struct control_line *line, char *text);

#endif
