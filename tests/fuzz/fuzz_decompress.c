/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compressed body. The first byte chooses the coding, the next seeds the cuts, the third chooses
 * the room that is given at a time. However the body is cut, it must give the same bytes or be
 * damaged for good, and never give more at a time than there is room for.
 */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/credential/decompress.h"

#define OUT_MAX (1u << 20) /* enough is enough: the rest of a bomb is more of the same */
#define STEP_MAX 16384     /* what may come beyond the room (decompress.c) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
	struct buf out;
	int error;
	bool complete;
};

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* room 0: all at once. */
static void run(enum decompress_coding coding, const uint8_t *p, size_t n, unsigned seed,
        size_t room, struct result *result)
{
	struct decompress_memory memory = {0};
	struct decompress *u = decompress_new(coding, &memory);
	bool more = false;

	require(u != NULL);
	buf_init(&result->out, OUT_MAX + 2 * STEP_MAX);
	for (size_t at = 0; (at < n || more) && !result->error && result->out.len < OUT_MAX;) {
		size_t step = room ? (seed = seed * 1103515245 + 12345) / 65536 % 40 : n, used = 0;
		size_t limit = result->out.len + (room ? room : OUT_MAX);

		if (step > n - at)
			step = n - at;
		limit = limit < OUT_MAX ? limit : OUT_MAX;
		result->error = decompress_feed(u, p + at, step, &used, &result->out, limit);
		require(result->error == 0 || result->error == -EBADMSG || result->error == -EFBIG);
		require(used <= step && result->out.len <= limit + STEP_MAX);
		more = result->out.len >= limit;
		require(result->error || more || used == step);
		at += used;
	}
	result->complete = decompress_complete(u);
	if (result->error) {
		size_t used = 0;

		require(!result->complete);
		require(decompress_feed(u, p, n, &used, &result->out, OUT_MAX) == result->error);
	}
	decompress_free(u);
	require(memory.used == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result whole = {.error = 0}, pieces = {.error = 0};
	enum decompress_coding coding;
	size_t n;

	if (size < 3)
		return 0;
	coding = (enum decompress_coding)(data[0] % DECOMPRESS_CODING_COUNT);
	run(coding, data + 3, size - 3, 0, 0, &whole);
	run(coding, data + 3, size - 3, data[1], 1 + (size_t)data[2] * 16, &pieces);
	n = whole.out.len < pieces.out.len ? whole.out.len : pieces.out.len;
	require(n == 0 || memcmp(buf_bytes(&whole.out), buf_bytes(&pieces.out), n) == 0);
	if (whole.out.len < OUT_MAX && pieces.out.len < OUT_MAX) {
		require(whole.error == pieces.error && whole.complete == pieces.complete);
		require(whole.error || whole.out.len == pieces.out.len);
	}
	buf_fini(&whole.out);
	buf_fini(&pieces.out);
	return 0;
}
