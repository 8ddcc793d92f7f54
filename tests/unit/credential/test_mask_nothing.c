/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_nothing: the search that only says whether there is a value. Each text lies in memory of its
 * own size, at every alignment, so that a byte read beside it is an error (ASan); the answer must
 * be that of naive_mask.h, with the vector search and without.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "credential/mask_private.h"
#include "naive_mask.h"

#define TEXT_MOST 400
#define ALIGNMENTS 32

static const char *const values[] = {"ghp_S3cr3t/Tok+en\"x\\y", "hunter22", "s3cr3t",
        "with a space in it", "100%25 sure", "ends with %", "k\xc3\xa9y-of-\xe2\x82\xac-words",
        "\\u0041\\\\\\\\", "aaaaaaaaaaaaaaaa"};
#define VALUES (sizeof(values) / sizeof(values[0]))

struct pair {
	struct mask *mask;
	struct naive naive;
};

static void pair_init(struct pair *p, size_t first, size_t count)
{
	struct slice slices[VALUES];

	memset(&p->naive, 0, sizeof(p->naive));
	for (size_t i = 0; i < count; i++) {
		slices[i] = slice_from_string(values[first + i]);
		naive_add_value(&p->naive, slices[i].p, slices[i].n);
	}
	p->mask = mask_new(slices, count);
	assert_non_null(p->mask);
}

static bool naive_finds(const struct naive *naive, const char *text, size_t n)
{
	static bool covered[TEXT_MOST];

	naive_run(naive, text, n, covered);
	return memchr(covered, true, n) != NULL;
}

/* The answer of both searches about a copy that ends where its memory ends. */
static bool finds(struct mask *mask, const char *text, size_t n, size_t alignment)
{
	char *memory = malloc(alignment + n);
	uint8_t *copy;
	bool found;

	assert_non_null(memory);
	copy = (uint8_t *)memory + alignment;
	memcpy(copy, text, n);
	mask->vectors = false;
	found = !mask_scan_nothing(mask, copy, n);
	mask->vectors = vector_works();
	assert_int_equal(!mask_scan_nothing(mask, copy, n), found);
	free(memory);
	return found;
}

static size_t fill(char *text, size_t n, int kind)
{
	static const char dense[] = "%\\u025/ +n\"x=sS";

	for (size_t i = 0; i < n; i++)
		text[i] = kind == 0   ? (char)rand()
		          : kind == 1 ? dense[(size_t)rand() % (sizeof(dense) - 1)]
		                      : (char)('a' + rand() % 26);
	return n;
}

/* A beginning, an end or all of a pattern, in any spelling. */
static size_t spell(const struct naive *naive, char *out)
{
	static const unsigned escaped[] = {0, 1, 2, 5};
	size_t k = (size_t)rand() % naive->count, n = naive->patterns[k].n;
	size_t from = rand() % 4 ? 0 : (size_t)rand() % n, to = rand() % 4 ? n : n - 1;

	return naive_spell(naive->patterns[k].p, from, to, escaped[(size_t)rand() % 4], rand, out);
}

static void random_texts(void **state)
{
	static char text[TEXT_MOST];
	unsigned found = 0, nothing = 0;

	(void)state;
	srand(7);
	for (size_t first = 0; first < VALUES; first++) {
		struct pair p;

		pair_init(&p, first, first + 2 < VALUES ? 1 + first % 3 : 1);
		for (unsigned i = 0; i < 1500; i++) {
			int kind = rand() % 3;
			size_t n = fill(text, (size_t)rand() % 100, kind);
			bool expect;

			if (rand() % 2)
				n += spell(&p.naive, text + n);
			n += fill(text + n, (size_t)rand() % 60, kind);
			expect = naive_finds(&p.naive, text, n);
			assert_int_equal(finds(p.mask, text, n, i % ALIGNMENTS), expect);
			found += expect;
			nothing += !expect;
		}
		mask_free(p.mask);
	}
	assert_in_range(found, 1000, 9000);
	assert_in_range(nothing, 1000, 12000);
}

/* A value at each place of a text, with each number of bytes behind it; and the same with one wrong
 * byte. */
static void every_place(void **state)
{
	static const char *const spellings[] = {"hunter22", "%68unter22", "hunter2%32",
	        "h\\u0075nter22", "aHVudGVyMj", "h%75%6eter22"};
	static char text[TEXT_MOST];
	struct pair p;

	(void)state;
	pair_init(&p, 1, 1);
	for (size_t k = 0; k < sizeof(spellings) / sizeof(spellings[0]); k++)
		for (size_t before = 0; before < 70; before++)
			for (size_t after = 0; after < 70; after++) {
				size_t n = strlen(spellings[k]), total = before + n + after;

				memset(text, 'x', total);
				memcpy(text + before, spellings[k], n);
				assert_true(finds(p.mask, text, total, before % ALIGNMENTS));
				text[before + n / 2] ^= 0x40;
				assert_false(finds(p.mask, text, total, after % ALIGNMENTS));
			}
	mask_free(p.mask);
}

/* A form writes SP as '+', in the bytes that the search looks at too. */
static void spaces(void **state)
{
	static const char *const found[] = {"with a space in it", "with+a+space+in+it",
	        "with a space in+it", "with+a space in it", "with a space in%2bit"};
	static const char *const not_found[] = {"with a space in-it", "with a space in  t",
	        "withoa space in it", "with a space in%2cit"};
	static char text[TEXT_MOST];
	struct pair p;

	(void)state;
	pair_init(&p, 3, 1);
	for (size_t before = 0; before < 40; before++) {
		memset(text, 'x', sizeof(text));
		for (size_t k = 0; k < sizeof(found) / sizeof(found[0]); k++) {
			memcpy(text + before, found[k], strlen(found[k]));
			assert_true(finds(p.mask, text, 100, 0));
		}
		memset(text, 'x', sizeof(text));
		for (size_t k = 0; k < sizeof(not_found) / sizeof(not_found[0]); k++) {
			memcpy(text + before, not_found[k], strlen(not_found[k]));
			assert_false(finds(p.mask, text, 100, 0));
		}
	}
	mask_free(p.mask);
}

/* Many places that deserve a look, and a value behind all of them. */
static void many_places(void **state)
{
	static const char *const places[] = {"r22 ", "%30", "\\u00", "er22er22"};
	static char text[1 << 16];
	struct pair p;

	(void)state;
	pair_init(&p, 1, 1);
	for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
		size_t n = 0, step = strlen(places[k]);

		for (; n + step + 8 < sizeof(text); n += step)
			memcpy(text + n, places[k], step);
		assert_false(finds(p.mask, text, n, 1));
		memcpy(text + n, "hunter22", 8);
		assert_true(finds(p.mask, text, n + 8, 1));
		assert_false(finds(p.mask, text, n + 7, 1));
	}
	mask_free(p.mask);
}

/* As many values as a mask may have: groups are shared by all of them. */
static void many_values(void **state)
{
	static char names[MASK_VALUES_MAX][24], text[TEXT_MOST];
	struct slice slices[MASK_VALUES_MAX];
	struct mask *mask;

	(void)state;
	srand(11);
	for (size_t i = 0; i < MASK_VALUES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "key-%08x-%04zu", (unsigned)rand(), i);
		slices[i] = slice_from_string(names[i]);
	}
	mask = mask_new(slices, MASK_VALUES_MAX);
	assert_non_null(mask);
	for (size_t i = 0; i < MASK_VALUES_MAX; i++)
		for (size_t before = 0; before < 80; before++) {
			size_t n = fill(text, before, 2);

			memcpy(text + n, slices[i].p, slices[i].n);
			n += slices[i].n;
			n += fill(text + n, 40, 2);
			assert_true(finds(mask, text, n, before % ALIGNMENTS));
			text[before + 5]++;
			assert_false(finds(mask, text, n, before % ALIGNMENTS));
		}
	mask_free(mask);
}

static void is_there(void **state)
{
	(void)state;
	if (!vector_works())
		skip(); /* this processor has no such instructions: the tests above ran without */
#if !defined(__x86_64__) && !defined(__aarch64__)
	fail_msg("no vector search was compiled for this processor");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(random_texts),
	        cmocka_unit_test(every_place),
	        cmocka_unit_test(spaces),
	        cmocka_unit_test(many_places),
	        cmocka_unit_test(many_values),
	        cmocka_unit_test(is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
