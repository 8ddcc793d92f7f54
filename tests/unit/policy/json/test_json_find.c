/* SPDX-License-Identifier: Apache-2.0 */
/* Single values of a JSON text: by a name, by a path, and what they are not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/policy/json_find.h"

static struct json_tree tree;

static int begin(void **state)
{
	static const char text[] =
	        "{\"a\":\"x\",\"kubernetes.io\":{\"pod\":{\"uid\":\"u\",\"n/"
	        "m\":\"s\",\"~\":\"t\"}},"
	        "\"list\":[\"p\",\"qr\"],\"mixed\":[\"p\",7],\"n\":42,\"f\":4.5,\"minus\":-1,"
	        "\"large\":1234567890123456,\"e\":\"\",\"esc\":\"\\u0061b\",\"t\":true,\"/"
	        "a\":\"z\"}";

	(void)state;
	return json_read(&tree, SLICE(text));
}

static int end(void **state)
{
	(void)state;
	json_fini(&tree);
	return 0;
}

static bool is(const char *name, const char *text)
{
	struct slice out;

	return json_tree_string(&tree, slice_from_string(name), &out) &&
	       slice_equals(out, slice_from_string(text));
}

static void test_names(void **state)
{
	struct slice out;

	(void)state;
	assert_true(is("a", "x"));
	assert_true(is("esc", "ab"));
	assert_true(is("e", ""));
	assert_true(is("/kubernetes.io/pod/uid", "u"));
	assert_true(is("/kubernetes.io/pod/n~1m", "s"));
	assert_true(is("/kubernetes.io/pod/~0", "t"));
	assert_true(is("/~1a", "z"));
	assert_false(is("/a", "z"));
	assert_true(is("/a", "x"));
	static const char *const none[] = {"b", "", "A", "a ", "uid", "/", "/b", "/a/x", "/list/0",
	        "/kubernetes.io", "/kubernetes.io/pod/uid/x", "/kubernetes.io/pod/n/m", "n", "list",
	        "t"};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(json_tree_string(&tree, slice_from_string(none[i]), &out));
}

static void test_whole(void **state)
{
	static const char *const none[] = {"f", "minus", "large", "a", "t", "list", "none"};
	int64_t n;

	(void)state;
	assert_true(json_tree_whole(&tree, json_tree_find(&tree, SLICE("n")), &n));
	assert_int_equal(n, 42);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(json_tree_whole(
		        &tree, json_tree_find(&tree, slice_from_string(none[i])), &n));
}

static bool has(const char *name, const char *text, bool with_star)
{
	return json_tree_has(&tree, json_tree_find(&tree, slice_from_string(name)),
	        slice_from_string(text), with_star);
}

static void test_has(void **state)
{
	(void)state;
	assert_true(has("a", "x", false) && has("list", "p", false) && has("list", "qr", false));
	assert_true(has("list", "q*", true) && has("a", "*", true) && has("e", "*", true));
	assert_false(has("list", "q*", false));
	assert_false(has("list", "q", true));
	assert_false(has("a", "", true));
	assert_false(has("mixed", "p", false));
	assert_false(has("none", "*", true));
	assert_false(has("n", "42", true));
	assert_false(has("t", "*", true));
	assert_false(has("kubernetes.io", "*", true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_whole),
	        cmocka_unit_test(test_has),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
