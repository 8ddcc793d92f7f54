/* SPDX-License-Identifier: Apache-2.0 */
/* Event streams: pieces of any size give the same events. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "proxy/http/event_stream.h"

/* Takes the text in pieces; writes each event's length and a comma to out, then what is left. */
static void lengths(const char *text, size_t piece, char out[256])
{
	struct event_stream s = {0};
	size_t n = strlen(text), at = 0, made = 0, start = 0;

	out[0] = '\0';
	while (at < n) {
		size_t length;

		at = n - at < piece ? n : at + piece;
		while ((length = event_stream_find(&s, slice_of(text + start, at - start)))) {
			start += length;
			made += (size_t)snprintf(out + made, 256 - made, "%zu,", length);
		}
	}
	snprintf(out + made, 256 - made, "%zu", n - start);
}

static void test_ends(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	        {"data: x\n\n", "9,0"},
	        {"data: x\n\ndata: y\n\nid", "9,9,2"},
	        {"a\r\rb\r\r", "3,3,0"},
	        {"a\r\n\r\nb\r\n\r\n", "4,5,1"}, /* a CRLF's LF may come later */
	        {"a\n\r\nb", "3,2"},
	        {"a\r\n\nb", "4,1"},
	        {"\n\n", "1,1,0"},
	        {": c\n: d\n\n", "9,0"},
	        {"data: x\ndata: y\n", "16"},
	        {"", "0"},
	};
	char out[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (size_t piece = 1; piece < 12; piece++) {
			lengths(rows[i].text, piece, out);
			assert_string_equal(out, rows[i].want);
		}
}

static void test_split(void **state)
{
	static const struct {
		const char *event, *data, *others;
	} rows[] = {
	        {"data: x\n\n", "x", ""},
	        {"data:x\n\n", "x", ""},
	        {"data:  x \r\n\r\n", " x ", ""},
	        {"event: m\nid: 7\ndata: x\nretry: 1\n\n", "x", "event: m\nid: 7\nretry: 1\n"},
	        {"data: a\rdata\rdata: b\r\r", "a\n\nb", ""},
	        {"data\n\n", "", ""},
	        {"data\ndata\n\n", "\n", ""},
	        {"Data: x\ndatax: y\n data: z\n\n", "", "Data: x\ndatax: y\n data: z\n"},
	        {": data: x\n\n", "", ": data: x\n"},
	        {"\xef\xbb\xbf"
	         "data: x\n\n",
	                "x", ""},
	        {"\ndata: x\n\n", "x", ""},
	        {"data: x", "x", ""},
	        {"", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf data, others;

		buf_init(&data, 256);
		buf_init(&others, 256);
		assert_int_equal(
		        event_stream_split(slice_from_string(rows[i].event), &data, &others), 0);
		assert_true(slice_equals(buf_slice(&data), slice_from_string(rows[i].data)));
		assert_true(slice_equals(buf_slice(&others), slice_from_string(rows[i].others)));
		buf_fini(&data);
		buf_fini(&others);
	}
}

static void test_no_room(void **state)
{
	struct buf data, others;

	(void)state;
	buf_init(&data, 4);
	buf_init(&others, 4);
	assert_true(event_stream_split(SLICE("data: 12345\n\n"), &data, &others) < 0);
	assert_true(event_stream_split(SLICE("id: 5\n\n"), &data, &others) < 0);
	buf_fini(&data);
	buf_fini(&others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_ends),
	        cmocka_unit_test(test_split),
	        cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
