/* SPDX-License-Identifier: Apache-2.0 */
/* The strict JSON reader: what it takes, what it refuses though some reader takes it, its bounds,
 * and the same texts read by jansson. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "policy/json/json_path.h"
#include "vethguard/base/buf.h"
#include "vethguard/policy/json.h"

static int read_text(struct slice text, const char **fault)
{
	struct json_tree tree;
	int rc = json_read(&tree, text);

	*fault = tree.fault;
	json_fini(&tree);
	return rc;
}

static void test_good(void **state)
{
	static const char *const good[] = {"{}", "[]", " [ ] ", "{\"a\":1}", "\t{\"a\" : [ ] }\r\n",
	        "[0,-0,1,-1,1.5,1e2,1E+2,1.0e-2,123456789012345678901234567890]",
	        "[true,false,null]", "[\"\",\"a\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
	        "[\"\\u00e9\\u20ac\\ud83d\\ude00\"]", "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]",
	        "{\"a\":{\"a\":{\"a\":[]}},\"b\":{}}", "[[[[[[]]]]],[],{}]", "[\"\x7f\"]", "\"a\"",
	        " null ", "true", "-0", "\"\\u00e9\""};
	const char *fault;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		json_t *other = json_loads(good[i], JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);

		if (read_text(slice_from_string(good[i]), &fault) != 0)
			fail_msg("%s: %s", good[i], fault);
		if (!other && !strstr(good[i], "12345678901234567890"))
			fail_msg("jansson refuses %s", good[i]);
		json_decref(other);
	}
}

static void test_bad(void **state)
{
	static const char *const bad[] = {"", " ", "{", "[", "01", "-", "1 2", "\"a", "'a'", "nulL",
	        "\"\\\"", "x", "}", "]", "{}}", "[]]", "{}{}", "[],", "[1,]", "[,1]", "[1 2]",
	        "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{'a':1}", "{\"a\":1 \"b\":2}",
	        "{1:1}", "{\"a\"::1}", "[1}", "{\"a\":1]", "[01]", "[-]", "[+1]", "[.5]", "[1.]",
	        "[1e]", "[1e+]", "[0x1]", "[1_0]", "[NaN]", "[Infinity]", "[-Infinity]", "[tru]",
	        "[True]", "[nul]", "[truefalse]", "[true1]", "[undefined]", "[\"]", "[\"a]",
	        "[\"\\\"]", "[\"\\x41\"]", "[\"\\u12\"]", "[\"\\u12g4\"]", "[\"\\a\"]",
	        "[\"a\nb\"]", "[\"a\tb\"]", "[\"\x1f\"]", "//c\n[]", "[]//c", "[/**/]", "#\n[]",
	        "\xef\xbb\xbf[]", "\f[]", "\xc2\xa0[]", "[]\x0b", "[\"\\u0000\"]", "[\"\\ud800\"]",
	        "[\"\\udc00\"]", "[\"\\ud800\\ud800\"]", "[\"\\ud800x\"]", "[\"\\udc00\\ud800\"]",
	        "[\"\\ud83d\\u0041\"]", "[\"\xff\"]", "[\"\xc3\"]", "[\"\xc0\x80\"]",
	        "[\"\xed\xa0\x80\"]", "[\"\xf4\x90\x80\x80\"]", "[\"\xe2\x82\"]",
	        "[\"\xc3\\u00e9\xa9\"]", "{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}",
	        "[{\"b\":{\"c\":1,\"d\":2,\"c\":3}}]", "{\"\":1,\"\":2}", "{\"a\\\":1}"};
	const char *fault;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (read_text(slice_from_string(bad[i]), &fault) != -EBADMSG || !fault)
			fail_msg("taken: %s", bad[i]);
	}
	/* Truncated texts, a NUL, UTF-16. */
	assert_int_equal(read_text(SLICE("[\"a\0b\"]"), &fault), -EBADMSG);
	assert_int_equal(read_text(SLICE("[]\0"), &fault), -EBADMSG);
	assert_int_equal(read_text(SLICE("\xff\xfe[\0]\0"), &fault), -EBADMSG);
	assert_int_equal(read_text(SLICE("[\0]\0"), &fault), -EBADMSG);
	assert_int_equal(read_text(SLICE("\0[\0]"), &fault), -EBADMSG);
}

/* Every beginning of a good text is a bad one. */
static void test_cut(void **state)
{
	static const char whole[] =
	        "{\"a\":[1.5e3,true,\"\\u00e9\\n\xc3\xa9\"],\"b\":{\"c\":null}}";
	const char *fault;

	(void)state;
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		char *copy = malloc(n + 1); /* its end is where a sanitizer looks */

		memcpy(copy, whole, n);
		assert_int_equal(read_text(slice_of(copy, n), &fault), -EBADMSG);
		free(copy);
	}
	assert_int_equal(read_text(slice_of(whole, sizeof(whole) - 1), &fault), 0);
}

static void test_tree(void **state)
{
	static const char text[] = "{\"a\\u0062\":[1,{\"c\":\"x\\ty\"},\"z\"],\"d\":-2.5}";
	struct json_tree tree;

	(void)state;
	assert_int_equal(json_read(&tree, slice_from_string(text)), 0);
	assert_int_equal(tree.count, 10);
	assert_int_equal(json_at(&tree, 0)->kind, JSON_IS_OBJECT);
	assert_int_equal(json_at(&tree, 0)->next, 10);
	assert_int_equal(json_at(&tree, 1)->kind, JSON_IS_KEY);
	assert_true(slice_equals(json_text(&tree, json_at(&tree, 1)), SLICE("ab")));
	assert_int_equal(json_at(&tree, 2)->kind, JSON_IS_ARRAY);
	assert_int_equal(json_at(&tree, 2)->next, 8);
	assert_int_equal(json_at(&tree, 4)->next, 7);
	assert_true(slice_equals(json_text(&tree, json_at(&tree, 6)), SLICE("x\ty")));
	assert_true(slice_equals(json_text(&tree, json_at(&tree, 7)), SLICE("z")));
	assert_true(slice_equals(json_text(&tree, json_at(&tree, 9)), SLICE("-2.5")));
	json_fini(&tree);
}

/* What is written is a part of the text; what it means stands beside it, where the caller says. */
static void test_written(void **state)
{
	static const struct {
		const char *text, *written, *meant;
	} rows[] = {
	        {"\"\"", "", ""},
	        {" \"plain\" ", "plain", "plain"},
	        {"\"\\\"\"", "\\\"", "\""},
	        {"\"a\\\\\"", "a\\\\", "a\\"},
	        {"\"\\ud83d\\ude00!\"", "\\ud83d\\ude00!", "\xf0\x9f\x98\x80!"},
	        {"\"\\u0041\\u00e9\\u20ac\"", "\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac"},
	        {"-2.5e+3", "-2.5e+3", "-2.5e+3"},
	};
	char decoded[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice text = slice_from_string(rows[i].text), meant;
		struct json_tree tree;

		assert_int_equal(json_read_into(&tree, text, decoded), 0);
		assert_true(slice_equals(json_written(&tree, json_at(&tree, 0)),
		        slice_from_string(rows[i].written)));
		meant = json_text(&tree, json_at(&tree, 0));
		assert_true(slice_equals(meant, slice_from_string(rows[i].meant)));
		assert_int_equal(meant.p >= decoded && meant.p < decoded + sizeof(decoded),
		        strchr(rows[i].text, '\\') != NULL);
		json_fini(&tree);
	}
}

static void test_escape(void **state)
{
	char memory[64] = "\"", decoded[64];
	struct buf out = {
	        .mem = (uint8_t *)memory, .len = 1, .cap = sizeof(memory), .max = sizeof(memory)};
	struct slice text = SLICE("a\"b\\c\n\x01/\xc3\xa9");
	struct json_tree tree;

	(void)state;
	assert_int_equal(json_escape(&out, text), 0);
	assert_true(slice_equals(buf_slice(&out), SLICE("\"a\\\"b\\\\c\\u000a\\u0001/\xc3\xa9")));
	assert_int_equal(buf_append(&out, "\"", 1), 0);
	assert_int_equal(json_read_into(&tree, buf_slice(&out), decoded), 0);
	assert_true(slice_equals(json_text(&tree, json_at(&tree, 0)), text));
	json_fini(&tree);
	out.max = out.cap = out.len + 1;
	assert_int_equal(json_escape(&out, SLICE("\"")), -ENOBUFS);
}

static int read_repeated(const char *before, const char *each, size_t count, const char *after)
{
	size_t n = strlen(before) + count * strlen(each) + strlen(after);
	char *text = malloc(n + 1), *p = text + sprintf(text, "%s", before);
	const char *fault;
	int rc;

	for (size_t i = 0; i < count; i++)
		p += sprintf(p, "%s", each);
	sprintf(p, "%s", after);
	rc = read_text(slice_of(text, n), &fault);
	free(text);
	return rc;
}

static int read_keys(size_t count, size_t same_as)
{
	char *text = malloc(count * 24 + 32), *p = text + sprintf(text, "{\"x\":0");
	const char *fault;
	int rc;

	for (size_t i = 0; i < count; i++)
		p += sprintf(p, ",\"key%zu\":1", i == count - 1 ? same_as : i);
	p += sprintf(p, "}");
	rc = read_text(slice_of(text, (size_t)(p - text)), &fault);
	free(text);
	return rc;
}

static void test_bounds(void **state)
{
	char deep[2 * JSON_DEPTH_MAX + 4];
	const char *fault;
	char *large;

	(void)state;
	memset(deep, '[', JSON_DEPTH_MAX);
	memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_int_equal(read_text(slice_of(deep, (size_t)2 * JSON_DEPTH_MAX), &fault), 0);
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	assert_int_equal(
	        read_text(slice_of(deep, (size_t)2 * JSON_DEPTH_MAX + 2), &fault), -EBADMSG);
	assert_int_equal(read_repeated("[0", ",1", JSON_VALUES_MAX - 2, "]"), 0);
	assert_int_equal(read_repeated("[0", ",1", JSON_VALUES_MAX - 1, "]"), -EBADMSG);
	assert_int_equal(read_keys(10, 9), 0);
	assert_int_equal(read_keys(10, 0), -EBADMSG);
	for (size_t n = 14; n < 20; n++) {
		assert_int_equal(read_keys(n, n - 1), 0);
		assert_int_equal(read_keys(n, 0), -EBADMSG);
		assert_int_equal(read_keys(n, n - 2), -EBADMSG);
	}
	assert_int_equal(read_keys(30000, 29999), 0);
	assert_int_equal(read_keys(30000, 15000), -EBADMSG);
	large = malloc(JSON_BYTES_MAX + 1);
	memset(large, ' ', JSON_BYTES_MAX + 1);
	memcpy(large, "[]", 2);
	assert_int_equal(read_text(slice_of(large, JSON_BYTES_MAX), &fault), 0);
	assert_int_equal(read_text(slice_of(large, JSON_BYTES_MAX + 1), &fault), -EBADMSG);
	free(large);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		double number;
	} good[] = {{"0", 0}, {"-0", 0}, {"1", 1}, {"-12.5", -12.5}, {"1e3", 1000},
	        {"123456789012345", 123456789012345}, {"0.000000001", 1e-9}, {"1E-2", 0.01}};
	static const char *const odd[] = {"1234567890123456", "0.1234567890123456", "1e100",
	        "1.0000000000000000001", "100000000000000000000000000000000000000"};
	double number;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(json_number(slice_from_string(good[i].text), &number));
		assert_true(number == good[i].number);
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		assert_false(json_number(slice_from_string(odd[i]), &number));
}

static void test_paths(void **state)
{
	static const char *const good[] = {
	        "/a", "/a/b", "/*", "/a~1b/c~0d", "/ ", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"};
	static const char *const bad[] = {"", "a", "/", "//", "/a/", "/a//b", "/a~", "/a~2", "/~a",
	        "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"};
	static const char *const alike[][2] = {{"model", "Model"}, {"max_tokens", "maxTokens"},
	        {"max-tokens", "max_tokens"},
	        {"to\xe2\x84\xaa"
	         "en",
	                "token"},
	        {"u\xc5\xbf"
	         "er",
	                "user"},
	        {"a/b", "A~1B"}, {"a~b", "a~0b"}, {" model ", "model"}};
	static const char *const other[][2] = {{"model", "models"}, {"models", "model"},
	        {"", "model"}, {"a/b", "a~0b"},
	        {"m\xc3\xb6"
	         "del",
	                "model"}};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(json_path_is_sound(slice_from_string(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(json_path_is_sound(slice_from_string(bad[i])));
	for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
		assert_true(json_path_key_resembles(
		        slice_from_string(alike[i][0]), slice_from_string(alike[i][1])));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(json_path_key_resembles(
		        slice_from_string(other[i][0]), slice_from_string(other[i][1])));
	assert_true(json_path_key_is(SLICE("a/b~"), SLICE("a~1b~0")));
	assert_false(json_path_key_is(SLICE("a~1b"), SLICE("a~1b")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_good),
	        cmocka_unit_test(test_bad),
	        cmocka_unit_test(test_cut),
	        cmocka_unit_test(test_tree),
	        cmocka_unit_test(test_written),
	        cmocka_unit_test(test_escape),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_numbers),
	        cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
