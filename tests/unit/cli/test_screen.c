/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on a terminal: no line is wider than its columns, and nothing is lost but what is marked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/screen.h"

#define ROW(cells, lines_max) row_of(cells, sizeof(cells) / sizeof((cells)[0]), lines_max)

/* Of the last row; freed with the next one. */
static const char *row_of(const struct screen_cell *cells, size_t count, size_t lines_max)
{
	static char *text;
	size_t n;
	FILE *out;

	free(text);
	out = open_memstream(&text, &n);
	assert_non_null(out);
	screen_row(out, cells, count, lines_max);
	fclose(out);
	return text;
}

static void test_what_fits_is_one_line(void **state)
{
	const struct screen_cell cells[] = {
	        {"a", 4, NULL, NULL}, {"", 3, NULL, NULL}, {"bcd", 3, NULL, NULL}};
	const struct screen_cell empty[] = {{"", 4, NULL, NULL}, {"", 0, NULL, NULL}};

	(void)state;
	assert_string_equal(ROW(cells, 0), "a          bcd\n");
	assert_string_equal(ROW(empty, 0), "\n");
}

static void test_lines_end_where_a_word_does(void **state)
{
	const struct screen_cell words[] = {{"ab cdef gh", 7, NULL, NULL}, {"x", 1, NULL, NULL}};
	const struct screen_cell address[] = {{"https://a.example/path", 12, NULL, NULL}};
	const struct screen_cell none[] = {{"abcdefghij", 4, NULL, NULL}};
	const struct screen_cell blanks[] = {{"a        b", 4, NULL, NULL}};

	(void)state;
	assert_string_equal(ROW(words, 0), "ab cdef  x\ngh\n");
	assert_string_equal(ROW(address, 0), "https://a.\nexample/path\n");
	assert_string_equal(ROW(none, 0), "abcd\nefgh\nij\n");
	assert_string_equal(ROW(blanks, 0), "a\nb\n");
}

static void test_what_stands_below(void **state)
{
	const struct screen_cell cells[] = {
	        {"one", 3, NULL, NULL}, {"ab cd", 5, NULL, "ef ghi jk"}};
	const struct screen_cell nothing[] = {{"a", 3, NULL, ""}};
	const struct screen_cell narrow[] = {{"ab", 1, NULL, "cd"}};

	(void)state;
	assert_string_equal(ROW(cells, 0), "one  ab cd\n       ef\n       ghi\n       jk\n");
	assert_string_equal(ROW(nothing, 0), "a\n");
	assert_string_equal(ROW(narrow, 0), "a\nb\nc\nd\n");
}

static void test_a_bound_is_told(void **state)
{
	const struct screen_cell cells[] = {{"abcdefghijklmnopqrstuvwxyz", 5, NULL, "0123456789"}};
	const struct screen_cell just[] = {{"abcdefghij", 5, NULL, NULL}};

	(void)state;
	assert_string_equal(ROW(cells, 2), "abcde\nfg...\n  012\n  ...\n");
	assert_string_equal(ROW(just, 2), "abcde\nfghij\n");
	assert_string_equal(ROW(just, 1), "ab...\n");
}

static void test_color_is_of_the_first_line(void **state)
{
	const struct screen_cell cells[] = {{"abcd", 2, "\033[31m", "e"}};
	const struct screen_cell none[] = {{"", 2, "\033[31m", NULL}};

	(void)state;
	assert_string_equal(ROW(cells, 0), "\033[31mab\033[0m\ncd\ne\n");
	assert_null(strchr(ROW(none, 0), '\033'));
}

static size_t letters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text != ' ' && *text != '\n';
	return n;
}

static void test_no_line_is_too_long(void **state)
{
	char texts[3][200];

	(void)state;
	srand(7);
	for (unsigned turn = 0; turn < 20000; turn++) {
		struct screen_cell cells[3];
		size_t all = 0, width = 0, at = 0;
		const char *text;

		for (size_t i = 0; i < 3; i++) {
			size_t n = (size_t)rand() % sizeof(texts[i]);

			for (size_t k = 0; k < n; k++)
				texts[i][k] = "aZ/?-. "[rand() % 7];
			texts[i][n] = '\0';
			cells[i] = (struct screen_cell){
			        texts[i], 1 + rand() % 40, NULL, i == 2 ? texts[0] : NULL};
			all += letters(texts[i]) + (i == 2 ? letters(texts[0]) : 0);
			width += (size_t)cells[i].width + (i ? SCREEN_GAP : 0);
		}
		text = ROW(cells, 0);
		assert_int_equal(letters(text), all);
		for (const char *p = text; *p; p++) {
			at = *p == '\n' ? 0 : at + 1;
			assert_true(at <= width);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_what_fits_is_one_line),
	        cmocka_unit_test(test_lines_end_where_a_word_does),
	        cmocka_unit_test(test_what_stands_below),
	        cmocka_unit_test(test_a_bound_is_told),
	        cmocka_unit_test(test_color_is_of_the_first_line),
	        cmocka_unit_test(test_no_line_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
