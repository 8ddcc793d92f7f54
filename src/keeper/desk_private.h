/* SPDX-License-Identifier: Apache-2.0 */
/* desk_private: one question to the desk; for the files that implement desk.h. */
#ifndef VETHGUARD_SRC_KEEPER_DESK_PRIVATE_H
#define VETHGUARD_SRC_KEEPER_DESK_PRIVATE_H

#include "keeper/desk.h"

struct question {
	struct message_keeper_ca_ask ask;
	struct authorities next;
	int64_t now_s;
	bool changes; /* what is in the file */
	bool every;
	bool trying; /* the token's key is being tried; until the result is known the earlier CAs
	                stay in force */
	char why[CA_WHY_MAX];
};

/* desk_answer.c. Sends what q->next says, or, if not good, what holds. Fills in q->why if that does
 * not fit into an answer. Returns 0 or -errno. */
int desk_answer(struct desk *desk, struct question *q, uint64_t id, bool good);

/* desk_files.c. Reads the configuration's files, as q->ask says, into q->next, where the configured
 * CA leads. fds: in the order of the bits of q->ask. Returns true if they could be used; otherwise
 * q->next.problem says why not.
 */
bool desk_configure(struct question *q, struct token *token, const int *fds, int64_t retires_s);

#endif
