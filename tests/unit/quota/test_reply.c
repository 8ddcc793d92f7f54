/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the quota server: each kind, in one piece and byte by byte; and everything that no
 * answer may be. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "quota/reply.h"

static struct reply_reader r;

static enum reply_status feed(const char *text)
{
	enum reply_status whole, pieces = REPLY_MORE;
	struct reply first;

	assert_true(reply_open(&r));
	whole = reply_feed(&r, text, strlen(text));
	first = r.reply;
	reply_close(&r);
	assert_true(reply_open(&r));
	for (const char *p = text; *p && pieces == REPLY_MORE; p++)
		pieces = reply_feed(&r, p, 1);
	reply_close(&r);
	assert_int_equal(whole, pieces);
	if (whole == REPLY_WHOLE)
		assert_memory_equal(&first, &r.reply, sizeof(first));
	return whole;
}

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(feed("+OK\r\n"), REPLY_WHOLE);
	assert_int_equal(r.reply.kind, REPLY_STATUS);
	assert_string_equal(r.reply.text, "OK");
	assert_int_equal(feed("-LOADING data \x01\xff\r\n"), REPLY_WHOLE);
	assert_int_equal(r.reply.kind, REPLY_ERROR);
	assert_string_equal(r.reply.text, "LOADING data ??");
	assert_int_equal(feed(":-5\r\n"), REPLY_WHOLE);
	assert_int_equal(r.reply.kind, REPLY_NUMBER);
	assert_int_equal(r.reply.number, -5);
	assert_int_equal(feed("$3\r\nabc\r\n"), REPLY_WHOLE);
	assert_int_equal(r.reply.kind, REPLY_TEXT);
	assert_int_equal(feed("$-1\r\n"), REPLY_WHOLE);
	assert_int_equal(r.reply.kind, REPLY_NOTHING);
	assert_int_equal(feed("*2\r\n:1\r\n:-2\r\n"), REPLY_WHOLE);
	assert_int_equal(r.reply.kind, REPLY_LIST);
	assert_int_equal(r.reply.count, 2);
	assert_int_equal(r.reply.numbers[1], -2);
	assert_int_equal(feed("*0\r\n"), REPLY_WHOLE);
	assert_int_equal(r.reply.count, 0);
	assert_int_equal(feed("*-1\r\n"), REPLY_WHOLE);
	assert_int_equal(r.reply.kind, REPLY_NOTHING);
}

static void test_one_after_another(void **state)
{
	(void)state;
	assert_true(reply_open(&r));
	for (int i = 0; i < 3000; i++) { /* more bytes together than one answer may have */
		assert_int_equal(reply_feed(&r, "*1\r\n:7\r\n", 8), REPLY_WHOLE);
		assert_int_equal(r.reply.numbers[0], 7);
		assert_int_equal(reply_feed(&r, "+O", 2), REPLY_MORE);
		assert_int_equal(reply_feed(&r, "K\r\n", 3), REPLY_WHOLE);
		assert_int_equal(r.reply.kind, REPLY_STATUS);
		assert_int_equal(r.reply.count, 0);
	}
	reply_close(&r);
}

static void test_what_is_refused(void **state)
{
	static const char *const wrong[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n",
	        "*2\r\n+a\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n", "*1\r\n$-1\r\n", "*9\r\n",
	        "*1000000000\r\n", "*2147483648\r\n", "*-2\r\n", "$-2\r\n", ":abc\r\n",
	        ":99999999999999999999\r\n", "*1\r\n$1\r\na\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(feed(wrong[i]), REPLY_WRONG);
}

static void test_two_answers(void **state)
{
	(void)state;
	assert_true(reply_open(&r));
	assert_int_equal(reply_feed(&r, "+OK\r\n+OK\r\n", 10), REPLY_WRONG);
	reply_close(&r);
	assert_true(reply_open(&r));
	assert_int_equal(reply_feed(&r, "+OK\r\nx", 6), REPLY_WRONG);
	reply_close(&r);
}

/* What never ends is cut at the bound. */
static void test_lengths(void **state)
{
	static char text[REPLY_BYTES_MAX + 1];
	size_t n = 0;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = '+';
	assert_true(reply_open(&r));
	assert_int_equal(reply_feed(&r, text, REPLY_BYTES_MAX), REPLY_MORE);
	assert_int_equal(reply_feed(&r, "\r\n", 2), REPLY_WRONG);
	reply_close(&r);
	assert_true(reply_open(&r));
	assert_int_equal(reply_feed(&r, text, sizeof(text)), REPLY_WRONG);
	reply_close(&r);
	assert_true(reply_open(&r));
	assert_int_equal(reply_feed(&r, "$536870912\r\n", 12), REPLY_MORE);
	while (reply_feed(&r, "xxxxxxxx", 8) == REPLY_MORE)
		n += 8;
	assert_true(n <= REPLY_BYTES_MAX);
	reply_close(&r);
	memcpy(text + REPLY_BYTES_MAX - 2, "\r\n", 2);
	assert_true(reply_open(&r));
	assert_int_equal(reply_feed(&r, text, REPLY_BYTES_MAX), REPLY_WHOLE);
	assert_int_equal(strlen(r.reply.text), REPLY_TEXT_MAX);
	reply_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds),
	        cmocka_unit_test(test_one_after_another), cmocka_unit_test(test_what_is_refused),
	        cmocka_unit_test(test_two_answers), cmocka_unit_test(test_lengths)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
