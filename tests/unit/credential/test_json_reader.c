/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as it is, and what other readers would take for JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "vethguard/credential/json_reader.h"

/* The walk in words: name=text for strings, name=null, name=word, name{ for what opens. */
static const char *walk(struct slice text, const char **fault)
{
	static const char *const marks[] = {"", "null", "word", "{"};
	static char out[512];
	struct json_reader r;
	struct json_value v;
	size_t n = 0;

	out[0] = 0;
	json_reader_init(&r, text);
	while (json_reader_next(&r, &v)) {
		assert_true(v.text.n == 0 ||
		            (v.text.p >= text.p && v.text.p + v.text.n <= text.p + text.n));
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%.*s%s%s%.*s;", SLICE_ARG(v.name),
		        v.named ? "=" : "", marks[v.kind], SLICE_ARG(v.text));
		assert_true(n < sizeof(out));
	}
	assert_false(json_reader_next(&r, &v));
	*fault = r.fault;
	return out;
}

static void test_walk(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
	        {"\"a\"", "a;"},
	        {" null ", "null;"},
	        {"{}", "{;"},
	        {"[ ]", "{;"},
	        {"[[],{},[{}]]", "{;{;{;{;{;"},
	        {"{\"a\":\"b\",\"c\":null,\"d\":[1,-2.5e+3,true,false,\"e\"],\"f\":{\"g\":\"\"}}",
	                "{;a=b;c=null;d={;word;word;word;word;e;f={;g=;"},
	        {"\t{ \"a\\u0041\\\"\" : \"\\\\\\n\\/\" }\r\n", "{;a\\u0041\\\"=\\\\\\n\\/;"},
	        {"[0, -0, 10, 1.0, 1e5, 1E-5]", "{;word;word;word;word;word;word;"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *fault;

		assert_string_equal(walk(slice_from_string(rows[i].text), &fault), rows[i].words);
		assert_null(fault);
	}
}

static void test_no_json(void **state)
{
	static const char *const texts[] = {"", " ", "{", "[", "}", "]", "{]", "[}", "\"", "\"a",
	        "'a'", "{a:1}", "{'a':1}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "[1,]", "[,1]",
	        "[1 2]", "{\"a\":1 \"b\":2}", "{\"a\" 1}", "{,}", "{\"a\":1}}", "[]]", "[] []",
	        "1 2", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x1", "NaN", "Infinity", "tru",
	        "nulL", "True", "\"\\x41\"", "\"\\u12\"", "\"\\u123g\"", "\"\\\"", "\"a\nb\"",
	        "\"\x01\"", "/**/1", "//\n1", "\xef\xbb\xbf{}", "[1]//", "{\"a\":[}", "[{\"a\":1]}",
	        "undefined", "{1:2}", "[\"a\":1]", "{\"a\":1,\"b\"}", "\x00{}", "{}x"};
	const char *fault;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		walk(slice_from_string(texts[i]), &fault);
		assert_non_null(fault);
	}
	walk(slice_of("[\0]", 3), &fault);
	assert_non_null(fault);
	walk(slice_of("{}\0", 3), &fault);
	assert_non_null(fault);
	walk(slice_of("\"\\\0\"", 4), &fault);
	assert_non_null(fault);
}

static void test_depth(void **state)
{
	char text[2 * (JSON_DEPTH_MAX + 1)];
	struct json_reader r;
	struct json_value v;

	(void)state;
	for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		json_reader_init(&r, slice_of(text, 2 * depth));
		while (json_reader_next(&r, &v))
			;
		assert_int_equal(r.fault == NULL, depth == JSON_DEPTH_MAX);
	}
}

static void test_decode(void **state)
{
	static const struct {
		const char *text, *meant; /* NULL: none */
	} rows[] = {{"", ""}, {"plain", "plain"}, {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
	        {"\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac"},
	        {"\\ud83d\\ude00!", "\xf0\x9f\x98\x80!"}, {"\\uD83D", NULL}, {"\\ude00", NULL},
	        {"\\ud83d\\u0041", NULL}, {"\\ud83dx", NULL}, {"\\ud83d\\n12345", NULL},
	        {"\\", NULL}, {"\\x", NULL}, {"\\u12", NULL}, {"a\\", NULL}};
	char memory[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf out = {
		        .mem = (uint8_t *)memory, .cap = sizeof(memory), .max = sizeof(memory)};
		int rc = json_decode(&out, slice_from_string(rows[i].text));

		assert_int_equal(rc, rows[i].meant ? 0 : -EBADMSG);
		if (rows[i].meant)
			assert_true(
			        slice_equals(buf_slice(&out), slice_from_string(rows[i].meant)));
	}
}

static void test_encode(void **state)
{
	char memory[64], back[64];
	struct buf out = {.mem = (uint8_t *)memory, .cap = sizeof(memory), .max = sizeof(memory)};
	struct buf again = {.mem = (uint8_t *)back, .cap = sizeof(back), .max = sizeof(back)};
	struct slice text = SLICE("a\"b\\c\n\x01/\xc3\xa9");

	(void)state;
	assert_int_equal(json_encode(&out, text), 0);
	assert_true(slice_equals(buf_slice(&out), SLICE("a\\\"b\\\\c\\u000a\\u0001/\xc3\xa9")));
	assert_int_equal(json_decode(&again, buf_slice(&out)), 0);
	assert_true(slice_equals(buf_slice(&again), text));
	out.max = out.cap = out.len + 1;
	assert_int_equal(json_encode(&out, SLICE("\"")), -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_walk),
	        cmocka_unit_test(test_no_json),
	        cmocka_unit_test(test_depth),
	        cmocka_unit_test(test_decode),
	        cmocka_unit_test(test_encode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
