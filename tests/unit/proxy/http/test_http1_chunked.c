/* SPDX-License-Identifier: Apache-2.0 */
/* The chunked coding: what is accepted, in every segmentation, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "proxy/http/http1.h"

struct got {
	char body[256];
	size_t body_n, used;
	char trailers[256];
	const char *error;
	struct chunked chunked;
};

static void on_body(void *context, const uint8_t *p, size_t n)
{
	struct got *g = context;

	assert_true(n > 0 && g->body_n + n < sizeof(g->body));
	memcpy(g->body + g->body_n, p, n);
	g->body_n += n;
}

static void read_in_steps(const char *text, size_t n, size_t step, struct got *g)
{
	struct buf trailers;
	struct chunked_sink sink = {on_body, g, &trailers};

	memset(g, 0, sizeof(*g));
	buf_init(&trailers, HTTP_TRAILER_BYTES_MAX);
	while (g->used < n && !g->error && g->chunked.state != CHUNKED_DONE) {
		size_t k = n - g->used < step ? n - g->used : step, used;

		g->error =
		        chunked_read(&g->chunked, (const uint8_t *)text + g->used, k, &used, &sink);
		g->used += used;
	}
	snprintf(g->trailers, sizeof(g->trailers), "%.*s", (int)trailers.len,
	        trailers.len ? (const char *)buf_bytes(&trailers) : "");
	buf_fini(&trailers);
}

static const size_t steps[] = {1, 2, 3, 5, 1000000};
#define STEPS (sizeof(steps) / sizeof(*steps))

static void test_taken(void **state)
{
	static const struct {
		const char *text, *body, *trailers;
	} rows[] = {
	        {"0\r\n\r\n", "", ""},
	        {"4\r\nabcd\r\n0\r\n\r\n", "abcd", ""},
	        {"2\r\nab\r\n2\r\ncd\r\n000\r\n\r\n", "abcd", ""},
	        {"0000000000000004\r\nabcd\r\n0\r\n\r\n", "abcd", ""},
	        {"A\r\n0123456789\r\n0\r\n\r\n", "0123456789", ""},
	        {"4;a;b=c;d=\"e;\\\"f\"\r\nabcd\r\n0;z\r\n\r\n", "abcd", ""},
	        {"1;a=\"\"\r\nx\r\n0\r\n\r\n", "x", ""},
	        /* Blanks around ";" and "=" (RFC 9112 section 7.1.1). */
	        {"4 ; a=b\r\nabcd\r\n0\t;\tz\r\n\r\n", "abcd", ""},
	        {"4;a = b ; c = \"d\" ;e\r\nabcd\r\n0\r\n\r\n", "abcd", ""},
	        {"4;a ;b\r\nabcd\r\n0\r\n\r\n", "abcd", ""},
	        {"0\r\nA: b\r\n\r\n", "", "A: b\r\n"},
	        {"0\r\nA:b \t \r\nC:\r\nD: \t\r\n\r\n", "", "A: b\r\nC: \r\nD: \r\n"},
	        {"0\r\nA: b: \xc3\xa9 c\r\n\r\n", "", "A: b: \xc3\xa9 c\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (size_t k = 0; k < STEPS; k++) {
			size_t n = strlen(rows[i].text);
			char text[128];
			struct got g;

			snprintf(text, sizeof(text), "%sGET", rows[i].text);
			read_in_steps(text, n + 3, steps[k], &g);
			assert_null(g.error);
			assert_int_equal(g.chunked.state, CHUNKED_DONE);
			assert_int_equal(g.used, n);
			assert_string_equal(g.body, rows[i].body);
			assert_string_equal(g.trailers, rows[i].trailers);
		}
}

static void test_refused(void **state)
{
	static const char *const texts[] = {"\r", "g", "0x", "+", "-", " ", "4.", "4\n", "4\rx",
	        "4\r\r", "4,", ";", "4;\r", "4;;", "4; \r", "4;a \r", "4;a b", "4 4", "4 \r",
	        "4\t\r", "4;a=\r", "4;a=;", "4;a= \r", "4;a=b \r", "4;a=b c",
	        "4;a=b =", "4;a=\"b\" \r", "4;a\n", "4;a\rb", "4;a=b\n", "4;a=\"b\n", "4;a=\"b\r",
	        "4;a=\"b\"c", "4;a=\"\\\n", "4;a=\x01", "4;a=\x7f", "4;a\x80", "1\r\nxx",
	        "1\r\nx\n", "1\r\nx\rx", "1\r\nx\r\r", "00000000000000001", "10000000000000000",
	        "ffffffffffffffff", "8000000000000000", "0\n", "0\r\n\n", "0\r\n\r\r", "0\r\n\rx",
	        "0\r\n ", "0\r\n:", "0\r\nA\r", "0\r\nA ", "0\r\nA\t", "0\r\nA: b\n",
	        "0\r\nA: b\rc", "0\r\nA: \x01", "0\r\nA: \x7f", "0\r\nA: b\r\n ", "0\r\nA(",
	        "0\r\n\x80"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		for (size_t k = 0; k < STEPS; k++) {
			struct got g;
			struct chunked ahead = {0};
			size_t used, n = strlen(texts[i]);

			read_in_steps(texts[i], n, steps[k], &g);
			if (!g.error)
				fail_msg("taken: %s", texts[i]);
			/* The last byte is the wrong one, and none before it. */
			assert_int_equal(g.used, n);
			assert_non_null(
			        chunked_read(&ahead, (const uint8_t *)texts[i], n, &used, NULL));
			assert_int_equal(used, n);
		}
}

static void test_nul_is_refused(void **state)
{
	static const struct slice texts[] = {{"\0", 1}, {"4\0", 2}, {"4;a\0", 4}, {"4;a=\0", 5},
	        {"4;a=\"\0", 6}, {"0\r\n\0", 4}, {"0\r\nA\0", 5}, {"0\r\nA: \0", 7},
	        {"0\r\nA: b\0", 8}};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct got g;

		read_in_steps(texts[i].p, texts[i].n, 100, &g);
		assert_non_null(g.error);
	}
}

/* A response's trailers may have blanks before the colon, which go (RFC 9112 section 5.1). */
static void test_blanks_before_a_colon(void **state)
{
	static const char good[] = "0\r\nA \t : b\r\nC\t:d\r\n\r\n";
	static const char *const bad[] = {"0\r\nA b", "0\r\nA \r", "0\r\n ", "0\r\nA \x01"};
	struct buf trailers;
	struct chunked_sink sink = {on_body, NULL, &trailers};

	(void)state;
	for (size_t k = 1; k < sizeof(good); k++) {
		struct chunked c = {.response = true};
		size_t used;

		buf_init(&trailers, HTTP_TRAILER_BYTES_MAX);
		for (size_t at = 0; at < sizeof(good) - 1; at += used) {
			size_t n = sizeof(good) - 1 - at < k ? sizeof(good) - 1 - at : k;

			assert_null(chunked_read(&c, (const uint8_t *)good + at, n, &used, &sink));
		}
		assert_int_equal(c.state, CHUNKED_DONE);
		assert_true(slice_equals(buf_slice(&trailers), SLICE("A: b\r\nC: d\r\n")));
		buf_fini(&trailers);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct chunked c = {.response = true};
		size_t used;

		assert_non_null(
		        chunked_read(&c, (const uint8_t *)bad[i], strlen(bad[i]), &used, NULL));
		assert_int_equal(used, strlen(bad[i]));
	}
}

/* The largest accepted size: its data would never end. */
static void test_the_largest_size(void **state)
{
	struct got g;

	(void)state;
	read_in_steps("7fffffffffffffff\r\nab", 20, 100, &g);
	assert_null(g.error);
	assert_string_equal(g.body, "ab");
	assert_true(g.chunked.left == (uint64_t)INT64_MAX - 2);
}

/* pieces times the same text behind a beginning. */
static const char *repeated(const char *first, const char *piece, size_t count)
{
	size_t n = strlen(first), k = strlen(piece);
	char *text = malloc(n + count * k + 1);
	struct got g;

	assert_non_null(text);
	memcpy(text, first, n);
	for (size_t i = 0; i < count; i++)
		memcpy(text + n + i * k, piece, k);
	read_in_steps(text, n + count * k, 1000, &g);
	free(text);
	return g.error;
}

static void test_bounds(void **state)
{
	(void)state;
	assert_null(repeated("4;a", "b", HTTP1_EXTENSIONS_MAX - 1));
	assert_non_null(repeated("4;a", "b", HTTP1_EXTENSIONS_MAX));
	assert_null(repeated("0\r\nA:", "b", HTTP_TRAILER_BYTES_MAX - 2 - 1));
	assert_non_null(repeated("0\r\nA:", "b", HTTP_TRAILER_BYTES_MAX));
	assert_null(repeated("0\r\n", "A: b\r\n", HTTP_TRAILERS_MAX));
	assert_string_equal(
	        repeated("0\r\n", "A: b\r\n", HTTP_TRAILERS_MAX + 1), "too many trailers");
	assert_non_null(repeated("0\r\nA: ", " ", HTTP_TRAILER_BYTES_MAX));
}

/* Extensions count as far as they outweigh the data. */
static void test_extensions_beside_data(void **state)
{
	struct chunked c = {0};
	static const char chunk[] = "8;name=value1234\r\n01234567\r\n",
	                  idle[] = "1;abcdefgh\r\nx\r\n";
	size_t used;

	(void)state;
	for (size_t i = 0; i < 10000; i++)
		assert_null(
		        chunked_read(&c, (const uint8_t *)chunk, sizeof(chunk) - 1, &used, NULL));
	for (size_t i = 0; i < HTTP1_EXTENSIONS_MAX / 7 + 1; i++)
		if (chunked_read(&c, (const uint8_t *)idle, sizeof(idle) - 1, &used, NULL))
			return;
	fail_msg("extensions without bound");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_taken),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_nul_is_refused),
	        cmocka_unit_test(test_blanks_before_a_colon),
	        cmocka_unit_test(test_the_largest_size),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_extensions_beside_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
