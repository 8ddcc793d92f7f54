/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: one byte of value length, the value, one byte that seeds the cuts and the spellings, the
 * text. The text is taken as it is, and once more with a random spelling of the value in it. What
 * is covered in place must be what naive_mask.h finds, no byte more or less. The stream, cut
 * anywhere, must give the same, must not hold more than the longest occurrence, and must agree with
 * the fast path.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/credential/naive_mask.h"
#include "vethguard/credential/mask.h"

#define NAIVE_MOST 512 /* bytes of text that are compared: it is slow */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static unsigned long seeded;

static int next_random(void)
{
	seeded = seeded * 6364136223846793005ul + 1442695040888963407ul;
	return (int)(seeded >> 40);
}

static uint64_t cover_whole(
        const struct mask *mask, const struct naive *naive, uint8_t *whole, size_t n)
{
	static bool covered[NAIVE_MOST];
	static char before[NAIVE_MOST];
	uint64_t found;

	if (n <= NAIVE_MOST)
		memcpy(before, whole, n);
	found = mask_in_place(mask, whole, n);
	if (n > NAIVE_MOST)
		return found;
	naive_run(naive, before, n, covered);
	for (size_t i = 0; i < n; i++)
		require(whole[i] == (covered[i] ? '*' : (uint8_t)before[i]));
	return found;
}

static void run(const struct mask *mask, const struct naive *naive, size_t value_bytes,
        unsigned seed, const uint8_t *text, size_t n)
{
	struct mask_stream s;
	struct buf out;
	uint8_t *whole = malloc(n + 1);
	uint64_t found;

	require(whole != NULL);
	memcpy(whole, text, n);
	found = cover_whole(mask, naive, whole, n);
	buf_init(&out, n + 1);
	require(mask_stream_init(&s, mask) == 0);
	for (size_t at = 0; at < n;) {
		size_t step = 1 + (seed = seed * 1103515245 + 12345) / 65536 % 40, before = out.len;
		bool clean;

		if (step > n - at)
			step = n - at;
		clean = mask_stream_clean(&s, text + at, step);
		if (clean)
			require(s.held == 0 && buf_append(&out, text + at, step) == 0);
		else
			require(mask_stream_feed(&s, text + at, step, &out) == 0);
		require(!clean || out.len == before + step);
		require(s.held <= 12 * (value_bytes * 4 / 3 + 4));
		at += step;
		require(out.len + s.held == at);
	}
	require(mask_stream_end(&s, &out) == 0);
	require(out.len == n && memcmp(buf_slice(&out).p, whole, n) == 0);
	require(s.found == found);
	mask_stream_fini(&s);
	buf_fini(&out);
	free(whole);
}

/* A caller that only wants to know. */
static void run_search(const struct mask *mask, unsigned seed, const uint8_t *text, size_t n)
{
	struct mask_stream s;
	bool found = false;
	uint8_t *whole = malloc(n + 1);

	require(whole != NULL);
	memcpy(whole, text, n);
	require(mask_stream_init(&s, mask) == 0);
	for (size_t at = 0; at < n;) {
		size_t step = 1 + (seed = seed * 1103515245 + 12345) / 65536 % 40;

		if (step > n - at)
			step = n - at;
		found |= mask_stream_search(&s, text + at, step);
		at += step;
	}
	require(found == (mask_in_place(mask, whole, n) > 0));
	mask_stream_fini(&s);
	free(whole);
}

/* A caller that now and then does not wait: no byte is lost or given twice, and each is covered
 * or unchanged. */
static void run_impatient(const struct mask *mask, unsigned seed, const uint8_t *text, size_t n)
{
	struct mask_stream s;
	struct buf out;
	uint8_t *whole = malloc(n + 1);

	require(whole != NULL);
	memcpy(whole, text, n);
	mask_in_place(mask, whole, n);
	buf_init(&out, 2 * n + 1); /* room for what is held is asked for as a whole */
	require(mask_stream_init(&s, mask) == 0);
	for (size_t at = 0; at < n;) {
		size_t step = 1 + (seed = seed * 1103515245 + 12345) / 65536 % 40;

		if (step > n - at)
			step = n - at;
		require(mask_stream_feed(&s, text + at, step, &out) == 0);
		at += step;
		if (seed & 1u << 20 || at == n)
			require(mask_stream_show(&s, &out) == 0);
		else if (seed & 1u << 21)
			require(mask_stream_pause(&s, &out) == 0);
		require(s.shown <= s.held && out.len + s.held - s.shown == at);
	}
	for (size_t i = 0; i < n; i++)
		require(buf_bytes(&out)[i] == whole[i] || buf_bytes(&out)[i] == text[i]);
	mask_stream_fini(&s);
	buf_fini(&out);
	free(whole);
}

/* The text with a spelling of one of the value's patterns in the middle. */
static void run_with_a_spelling(const struct mask *mask, const struct naive *naive,
        size_t value_bytes, unsigned seed, const uint8_t *text, size_t n)
{
	static uint8_t joined[NAIVE_MOST + 12 * NAIVE_PATTERN_BYTES];
	size_t half = n / 2, k, len = 0;

	if (n > NAIVE_MOST)
		return;
	seeded = seed;
	k = (size_t)next_random() % naive->count;
	memcpy(joined, text, half);
	len = half + naive_spell(naive->patterns[k].p, 0, naive->patterns[k].n, 1 + seed % 4,
	                     next_random, (char *)joined + half);
	memcpy(joined + len, text + half, n - half);
	run(mask, naive, value_bytes, seed, joined, len + n - half);
	run_search(mask, seed, joined, len + n - half);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct naive naive;
	struct slice value;
	struct mask *mask;
	size_t n;

	if (size < 1)
		return 0;
	n = data[0] % 64;
	if (size < n + 2)
		return 0;
	value = slice_of(data + 1, n);
	mask = mask_new(&value, 1);
	require((mask != NULL) == (n >= MASK_VALUE_MIN));
	if (mask) {
		naive.count = 0;
		naive_add_value(&naive, value.p, value.n);
		run(mask, &naive, n, data[n + 1], data + n + 2, size - n - 2);
		run_with_a_spelling(mask, &naive, n, data[n + 1], data + n + 2, size - n - 2);
		run_search(mask, data[n + 1], data + n + 2, size - n - 2);
		run_impatient(mask, data[n + 1], data + n + 2, size - n - 2);
	}
	mask_free(mask);
	return 0;
}
