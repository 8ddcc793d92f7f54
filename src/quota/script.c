/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the server has, for each budget and each part of its period, one hash: what
 * each host has claimed in that part, and the sum. A question tells all claims of the asking host,
 * so asking twice changes nothing, an answer that is lost is made good by the next question, and a
 * server that has lost its data gets it back. A hash expires when its part does not count any more.
 *
 * Why no more than the amount passes in any span as long as the period: what is got in part P may
 * be taken until the end of part P + 1 (and by a worker that was stopped at the wrong moment, a
 * little later). P counts until the end of part P + SCRIPT_PARTS. So at the moment of the last
 * grant of those that are taken within a span of 60 parts, all of the others still count, and the
 * sum of all that counts is never beyond the amount when something is granted.
 */
#include "quota/script.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/ipc/quotas.h"

#define ARGUMENTS_BEFORE_CLAIMS 12
#define NUMBER_MAX 24
_Static_assert(SCRIPT_PARTS + 2 <= QUOTAS_CLAIMS, "a host keeps all claims that count");

/* The text that the server runs is a part of this program. */
__asm__(".pushsection .rodata\n"
        "quota_script:\n"
        ".incbin \"src/quota/quota.lua\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char quota_script[] __attribute__((visibility("hidden")));

size_t script_command(const struct script_question *q, char **out)
{
	const char *arguments[ARGUMENTS_BEFORE_CLAIMS + 2 * QUOTAS_CLAIMS];
	char numbers[6 + 2 * QUOTAS_CLAIMS][NUMBER_MAX];
	const uint64_t fixed[] = {
	        q->amount, q->part_ms, q->need, q->extra, SCRIPT_SETTLE_MS, SCRIPT_PARTS};
	char key[SCRIPT_NAME_MAX + 32];
	size_t count = 0, used = 0;
	int n;

	snprintf(key, sizeof(key), "vethguard:quota:{%s}", q->name);
	arguments[count++] = "EVAL";
	arguments[count++] = quota_script;
	arguments[count++] = "2";
	arguments[count++] = key;
	arguments[count++] = SCRIPT_SINCE;
	arguments[count++] = q->host;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		snprintf(numbers[used], NUMBER_MAX, "%" PRIu64, fixed[i]);
		arguments[count++] = numbers[used++];
	}
	for (size_t i = 0; i < q->claim_count && i < QUOTAS_CLAIMS; i++) {
		snprintf(numbers[used], NUMBER_MAX, "%" PRId64, q->claims[i].part);
		arguments[count++] = numbers[used++];
		snprintf(numbers[used], NUMBER_MAX, "%" PRIu64, q->claims[i].amount);
		arguments[count++] = numbers[used++];
	}
	n = redisFormatCommandArgv(out, (int)count, arguments, NULL);
	return n > 0 ? (size_t)n : 0;
}

bool script_read(
        const struct script_question *q, const struct reply *reply, struct script_answer *out)
{
	const int64_t *n = reply->numbers;
	const int64_t longest_ms = (SCRIPT_PARTS + 2) * (int64_t)q->part_ms + SCRIPT_SETTLE_MS;

	if (reply->kind != REPLY_LIST || reply->count != 6)
		return false;
	if (n[0] < 0 || n[0] > INT64_MAX / (int64_t)q->part_ms - 2 || n[1] < 0 ||
	        n[1] >= (int64_t)q->part_ms)
		return false;
	if (n[2] < 0 || (uint64_t)n[2] > q->need + q->extra || n[3] < 0 ||
	        (uint64_t)n[3] > q->amount || n[4] < -1 || n[4] > longest_ms || n[5] < 0)
		return false;
	*out = (struct script_answer){.part = n[0],
	        .into_ms = n[1],
	        .granted = (uint64_t)n[2],
	        .room = (uint64_t)n[3],
	        .wait_ms = n[4],
	        .since_ms = n[5]};
	return true;
}
