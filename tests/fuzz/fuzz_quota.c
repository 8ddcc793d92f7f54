/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an answer of the quota server, in one piece and byte by byte: both read the same.
 * Beyond memory safety: what is kept is within its bounds, and what a budget takes of it too.
 */
#include <stdlib.h>
#include <string.h>

#include "quota/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static enum reply_status read_by(const uint8_t *data, size_t size, size_t step, struct reply *out)
{
	enum reply_status status = REPLY_MORE;
	struct reply_reader r;

	require(reply_open(&r));
	for (size_t at = 0; at < size && status == REPLY_MORE; at += step)
		status = reply_feed(&r, data + at, size - at < step ? size - at : step);
	*out = r.reply;
	reply_close(&r);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct script_question q = {
	        .amount = 1000, .part_ms = 60000, .need = 10, .extra = 20};
	struct script_answer answer;
	struct reply whole, pieces;
	enum reply_status status = read_by(data, size, size ? size : 1, &whole);

	/* Bytes behind an answer are wrong in one piece, and unread byte by byte. */
	if (status != REPLY_WRONG)
		require(read_by(data, size, 1, &pieces) == status);
	if (status != REPLY_WHOLE)
		return 0;
	require(memcmp(&whole, &pieces, sizeof(whole)) == 0);
	require(whole.kind < REPLY_KIND_COUNT && whole.count <= REPLY_NUMBERS_MAX);
	require(memchr(whole.text, 0, sizeof(whole.text)));
	if (!script_read(&q, &whole, &answer))
		return 0;
	require(answer.granted <= 30 && answer.room <= 1000 && answer.part >= 0);
	require(answer.into_ms >= 0 && answer.into_ms < 60000 && answer.wait_ms >= -1);
	return 0;
}
