/* SPDX-License-Identifier: Apache-2.0 */
#include "vethguard/wire/hook_answer.h"

#include <stdio.h>

#define DIGITS 10

size_t hook_answer_write(const struct hook_answer *answer, char out[HOOK_ANSWER_MAX + 1])
{
	int n = snprintf(out, HOOK_ANSWER_MAX + 1, "%c%010u%s", (char)answer->verdict,
	        (unsigned)answer->for_s, answer->reason);

	return n > 0 ? (size_t)n : 0;
}

bool hook_answer_read(struct slice text, struct hook_answer *out)
{
	uint64_t for_s;

	memset(out, 0, sizeof(*out));
	if (text.n < 1 + DIGITS || text.n > HOOK_ANSWER_MAX ||
	        !slice_to_u64(slice_of(text.p + 1, DIGITS), HOOK_FOR_MAX_S, &for_s))
		return false;
	if (text.p[0] != HOOK_NONE && text.p[0] != HOOK_APPROVE && text.p[0] != HOOK_REFUSE)
		return false;
	if (for_s && text.p[0] != HOOK_APPROVE)
		return false;
	for (size_t i = 1 + DIGITS; i < text.n; i++)
		if (text.p[i] < ' ' || text.p[i] > '~')
			return false;
	out->verdict = (enum hook_verdict)text.p[0];
	out->for_s = (uint32_t)for_s;
	memcpy(out->reason, text.p + 1 + DIGITS, text.n - 1 - DIGITS);
	return true;
}
