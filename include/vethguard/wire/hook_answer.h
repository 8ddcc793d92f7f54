/* SPDX-License-Identifier: Apache-2.0 */
/* hook_answer: what an external decider has answered, as vethguard-fetch passes it on to the supervisor: one letter,
 * ten digits, and the reason. */
#ifndef VETHGUARD_WIRE_HOOK_ANSWER_H
#define VETHGUARD_WIRE_HOOK_ANSWER_H

#include "vethguard/base/slice.h"

#define HOOK_REASON_MAX 256
#define HOOK_FOR_MAX_S (31u * 86400)
#define HOOK_ANSWER_MAX (1 + 10 + HOOK_REASON_MAX)

enum hook_verdict {
	HOOK_NONE = 'n', /* nothing was decided: a person is asked */
	HOOK_APPROVE = 'a',
	HOOK_REFUSE = 'r'
};

struct hook_answer {
	enum hook_verdict verdict;
	uint32_t for_s; /* APPROVE: also what is like it, for this time; 0: once */
	char reason[HOOK_REASON_MAX + 1];
};

/* Writes it. Returns the number of bytes. */
size_t hook_answer_write(const struct hook_answer *answer, char out[HOOK_ANSWER_MAX + 1]);
/* Reads it. Returns false if it is none. */
bool hook_answer_read(struct slice text, struct hook_answer *out);

#endif
