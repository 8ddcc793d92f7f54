/* SPDX-License-Identifier: Apache-2.0 */
/* hook_answer: an external decider's answer, as vethguard-fetch passes it on to the supervisor: one letter (the
 * verdict), ten digits (for_s), and the reason. */
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
	uint32_t for_s; /* APPROVE: seconds in which similar requests are approved too; 0: only this one is */
	char reason[HOOK_REASON_MAX + 1];
};

/* Writes the answer. Returns the number of bytes. */
size_t hook_answer_write(const struct hook_answer *answer, char out[HOOK_ANSWER_MAX + 1]);
/* Reads an answer. Returns false if the text is none. */
bool hook_answer_read(struct slice text, struct hook_answer *out);

#endif
