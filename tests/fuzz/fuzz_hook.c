/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_hook: any bytes as the answer of an external decider, and as what the process that asked it
 * passes on. A decision survives being passed on; anything else decides nothing.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/policy/decision.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);
	struct hook_answer a, again;
	char written[HOOK_ANSWER_MAX + 1];
	size_t n;

	if (policy_decision_read(text, &a)) {
		must(a.verdict == HOOK_NONE && !a.for_s && !a.reason[0]);
	} else {
		n = hook_answer_write(&a, written);
		must(n > 0 && n <= HOOK_ANSWER_MAX &&
		        hook_answer_read(slice_of(written, n), &again));
		must(memcmp(&a, &again, sizeof(a)) == 0);
	}
	if (hook_answer_read(text, &a)) {
		n = hook_answer_write(&a, written);
		must(n == size && memcmp(written, data, n) == 0);
	}
	return 0;
}
