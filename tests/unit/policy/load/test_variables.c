/* SPDX-License-Identifier: Apache-2.0 */
/* Variables: what a value may become, and above all what it may not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy_test.h"

static struct policy_variable variables[POLICY_VARIABLES_MAX + 1];
static size_t variable_count;

/* "a=b", "c=d", NULL */
static void give(const char *const list[])
{
	for (variable_count = 0; list[variable_count]; variable_count++)
		assert_true(policy_variable_split(
		        slice_from_string(list[variable_count]), &variables[variable_count]));
}
#define GIVE(...) give((const char *const[]){__VA_ARGS__, NULL})
#define GIVE_NOTHING() (variable_count = 0)

static int load(struct test_policy *t, const char *text, struct diag_list *notes)
{
	struct policy_reader reader = {(void *)(uintptr_t)text, test_read, NULL};
	struct policy_load_options options = {
	        .variables = variables, .variable_count = variable_count, .notes = notes};
	int rc;

	memset(t, 0, sizeof(*t));
	rc = policy_load(&reader, "/test.yaml", &options, &t->image, &t->size, &t->diags);
	if (rc == 0)
		assert_int_equal(policy_open(&t->policy, t->image, t->size), 0);
	return rc;
}

static void must_load(struct test_policy *t, const char *text)
{
	if (load(t, text, NULL) != 0) {
		diag_print(&t->diags, stderr);
		fail_msg("does not load");
	}
}

/* The first message, with its place, is exactly this. */
static void must_fail(const char *text, unsigned line, unsigned column, const char *message)
{
	struct test_policy t;

	assert_int_equal(load(&t, text, NULL), -EINVAL);
	assert_null(t.image);
	assert_true(t.diags.count > 0);
	assert_string_equal(t.diags.items[0].message, message);
	assert_int_equal(t.diags.items[0].line, line);
	assert_int_equal(t.diags.items[0].column, column);
}

static enum policy_verdict ask(const struct test_policy *t, const char *url)
{
	return test_ask(&t->policy, "GET", url).verdict;
}

static void test_replaces(void **state)
{
	static const char text[] = "vethguard: 1\n"
	                           "allow:\n"
	                           "  - to: https://${tenant}.example.com:8443\n"
	                           "    paths: [\"/repos/${repo}/**\", \"/v${n}/x\"]\n"
	                           "  - to: https://${host}\n"
	                           "  - to: \"*.${tenant}-${n}.example.org\"\n";
	struct test_policy t;

	(void)state;
	GIVE("tenant=T1", "repo=acme/site", "n=2", "host=a.b.example");
	must_load(&t, text);
	assert_int_equal(ask(&t, "https://t1.example.com:8443/repos/acme/site/x"), POLICY_ALLOW);
	assert_int_equal(ask(&t, "https://t1.example.com:8443/v2/x"), POLICY_ALLOW);
	assert_int_equal(ask(&t, "https://t1.example.com:8443/repos/acme/other"), POLICY_DENY);
	assert_int_equal(ask(&t, "https://t2.example.com:8443/v2/x"), POLICY_DENY);
	assert_int_equal(ask(&t, "https://a.b.example/"), POLICY_ALLOW);
	assert_int_equal(ask(&t, "https://x.t1-2.example.org/"), POLICY_ALLOW);
	test_unload(&t);
}

static void test_defaults_and_groups(void **state)
{
	static const char text[] = "vethguard: 1\n"
	                           "variables:\n"
	                           "  tenant: {default: one}\n"
	                           "groups:\n"
	                           "  g: [\"https://${tenant}.example.com\"]\n"
	                           "allow:\n"
	                           "  - to: group:g\n";
	struct test_policy t;

	(void)state;
	GIVE_NOTHING();
	must_load(&t, text);
	assert_int_equal(ask(&t, "https://one.example.com/"), POLICY_ALLOW);
	test_unload(&t);
	GIVE("tenant=two");
	must_load(&t, text);
	assert_int_equal(ask(&t, "https://two.example.com/"), POLICY_ALLOW);
	assert_int_equal(ask(&t, "https://one.example.com/"), POLICY_DENY);
	test_unload(&t);
}

/* Text that is not a variable stays as it was. */
static void test_dollar(void **state)
{
	struct test_policy t;

	(void)state;
	GIVE_NOTHING();
	must_load(&t, "vethguard: 1\nallow: [{to: a.example, paths: [/$, /$%7Bx%7D, /a$b]}]\n");
	assert_int_equal(ask(&t, "https://a.example/$"), POLICY_ALLOW);
	assert_int_equal(ask(&t, "https://a.example/$%7Bx%7D"), POLICY_ALLOW);
	test_unload(&t);
}

/* No value may have a meaning in the policy language. */
static void test_bad_values(void **state)
{
	static const char *const bad[] = {"", "*", "**", "a*", "a/**", "..", ".", "a/..", "../a",
	        "a/../b", "a/./b", "/a", "a/", "/", "a//b", "a%2fb", "%", "a?b", "a#b", "${x}", "$",
	        "{", "a;b", "..;x", "a b", "a\tb", "a\nb", "\x7f", "\xc3\xa9", "a\\b", "a\"b", "<",
	        "[::1]"};
	static char longest[POLICY_VARIABLE_VALUE_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!policy_variable_objection(SLICE("x"), slice_from_string(bad[i])))
			fail_msg("\"%s\" is taken", bad[i]);
	memset(longest, 'a', POLICY_VARIABLE_VALUE_MAX + 1);
	assert_non_null(policy_variable_objection(SLICE("x"), slice_from_string(longest)));
	longest[POLICY_VARIABLE_VALUE_MAX] = '\0';
	assert_null(policy_variable_objection(SLICE("x"), slice_from_string(longest)));
	assert_non_null(policy_variable_objection(SLICE("x"), slice_of("a\0b", 3)));
}

static void test_bad_names(void **state)
{
	static const char *const bad[] = {"", "1", "_a", "a-b", "a.b", "a b", "a}", "\xc3\xa9"};
	static char longest[POLICY_VARIABLE_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!policy_variable_objection(slice_from_string(bad[i]), SLICE("v")))
			fail_msg("\"%s\" is taken", bad[i]);
	memset(longest, 'a', POLICY_VARIABLE_NAME_MAX + 1);
	assert_non_null(policy_variable_objection(slice_from_string(longest), SLICE("v")));
	longest[POLICY_VARIABLE_NAME_MAX] = '\0';
	assert_null(policy_variable_objection(slice_from_string(longest), SLICE("v")));
	assert_false(policy_variable_split(SLICE("a"), &variables[0]));
}

#define ALLOW(to) "vethguard: 1\nallow: [{to: \"" to "\"}]\n"

/* A valid value in a place where it would mean something else. */
static void test_bad_in_host(void **state)
{
	static const char *const values[] = {"v=a/b", "v=a:443", "v=a@b", "v=a,b", "v=10.0.0.1",
	        "v=127.0.0.1", "v=1.2", "v=0x7f", "v=.a", "v=a.", "v=a..b", "v=-", "v=group:g",
	        "v=tcp:", "v=a~b"};
	struct test_policy t;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		GIVE(values[i]);
		if (load(&t, ALLOW("https://${v}"), NULL) == 0 && strcmp(values[i], "v=a.") != 0 &&
		        strcmp(values[i], "v=-") != 0)
			fail_msg("%s makes a host", values[i]);
		test_unload(&t);
	}
	GIVE("v=a.evil");
	must_fail(ALLOW("https://api${v}.example.com"), 2, 14,
	        "\"https://api${v}.example.com\": \"${v}\" is \"a.evil\", but here it is a part of "
	        "one label and can hold no \".\"");
	must_fail(ALLOW("https://${v}${v}.example.com"), 2, 14,
	        "\"https://${v}${v}.example.com\": \"${v}\" is \"a.evil\", but here it is a part "
	        "of one label and can hold no \".\"");
	GIVE("v=5");
	must_fail(ALLOW("https://10.0.0.${v}"), 2, 14,
	        "destination \"https://10.0.0.5\" is an address, which cannot come from a "
	        "variable: write it out");
	must_fail(ALLOW("https://example.com${v}"), 2, 14,
	        "\"https://example.com${v}\": \"${v}\" is \"5\", but a part of the last label can "
	        "be no variable");
}

/* Scheme, port, bits of a network, brackets and groups are written out. */
static void test_bad_places(void **state)
{
	static const char *const texts[] = {ALLOW("${v}://a.example"),
	        ALLOW("https://a.example:${v}"), ALLOW("https://10.0.0.0/${v}"),
	        ALLOW("https://[fd00::${v}]"), ALLOW("https://a.example/${v}"), ALLOW("group:${v}"),
	        ALLOW("https://${v}:${v}"),
	        "vethguard: 1\nallow: [{to: a.example, methods: \"${v}\"}]\n",
	        "vethguard: 1\nallow: [{to: a.example, ports: \"${v}\"}]\n",
	        "vethguard: 1\nallow: [{to: a.example, credential: \"${v}\"}]\n",
	        "vethguard: 1\nallow: [{to: a.example, name: \"${v}\"}]\n",
	        "vethguard: 1\nallow: [{to: a.example, paths: \"${v}\"}]\n"};
	struct test_policy t;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		GIVE("v=8");
		if (load(&t, texts[i], NULL) == 0)
			fail_msg("loads: %s", texts[i]);
		GIVE("v=https");
		if (load(&t, texts[i], NULL) == 0)
			fail_msg("loads: %s", texts[i]);
	}
}

#define PATHS(path) "vethguard: 1\nallow: [{to: a.example, paths: \"" path "\"}]\n"

static void test_bad_in_path(void **state)
{
	struct test_policy t;

	(void)state;
	GIVE("v=a/b");
	must_fail(PATHS("/x${v}"), 2, 32,
	        "\"/x${v}\": \"${v}\" is \"a/b\", but here it is a part of one segment and can "
	        "hold no \"/\"");
	must_fail(PATHS("/${v}x"), 2, 32,
	        "\"/${v}x\": \"${v}\" is \"a/b\", but here it is a part of one segment and can "
	        "hold no \"/\"");
	/* a dot segment that only comes to be by what stands beside it */
	GIVE("v=x");
	assert_int_equal(load(&t, PATHS("/../${v}"), NULL), -EINVAL);
	GIVE("v=-");
	must_load(&t, PATHS("/.${v}"));
	test_unload(&t);
}

static void test_unknown(void **state)
{
	(void)state;
	GIVE_NOTHING();
	must_fail(ALLOW("https://${tenant}.example"), 2, 14,
	        "\"https://${tenant}.example\": the variable \"tenant\" is not given: --var "
	        "tenant=VALUE, or a default under variables:");
	GIVE("tenat=x");
	must_fail(ALLOW("https://${tenant}.example"), 2, 14,
	        "\"https://${tenant}.example\": the variable \"tenant\" is not given; given is "
	        "\"tenat\"");
	GIVE_NOTHING();
	must_fail("vethguard: 1\nvariables: {tenant: {default: x}}\nallow: [{to: "
	          "\"${tenat}.example\"}]\n",
	        3, 14,
	        "\"${tenat}.example\": there is no variable \"tenat\"; did you mean "
	        "\"${tenant}\"?");
	must_fail("vethguard: 1\nvariables: {tenant: {}}\n", 2, 13,
	        "variable \"tenant\" has no default and is not given: --var tenant=VALUE");
	must_fail(ALLOW("${"), 2, 14,
	        "\"${\": \"${\" begins a variable, which ends in \"}\" and has a name of letters, "
	        "digits and '_'");
	must_fail(ALLOW("${}"), 2, 14,
	        "\"${}\": \"${\" begins a variable, which ends in \"}\" and has a name of letters, "
	        "digits and '_'");
	must_fail(ALLOW("${a b}.example"), 2, 14,
	        "\"${a b}.example\": \"${\" begins a variable, which ends in \"}\" and has a name "
	        "of letters, digits and '_'");
}

static void test_bad_declarations(void **state)
{
	(void)state;
	GIVE_NOTHING();
	must_fail("vethguard: 1\nvariables: {a: x}\n", 2, 16,
	        "a variable ({default: VALUE}, or {}) must be a mapping (\"key: value\" lines), "
	        "not \"x\"");
	must_fail("vethguard: 1\nvariables: {a: {default: \"*\"}}\n", 2, 26,
	        "variable \"a\" has a value with more than letters, digits and "
	        "-._~!&'()+,=:@/");
	must_fail("vethguard: 1\nvariables: {a-b: {default: x}}\n", 2, 13,
	        "\"a-b\" is not a variable's name: a letter, then letters, digits and '_', at most "
	        "64");
	must_fail("vethguard: 1\nvariables: {a: {defalt: x}}\n", 2, 17,
	        "unknown key \"defalt\"; did you mean \"default\"?");
}

static void test_given_wrong(void **state)
{
	static char names[POLICY_VARIABLES_MAX + 1][16];
	struct test_policy t;

	(void)state;
	GIVE("a=x", "a=y");
	must_fail("vethguard: 1\n", 0, 0, "variable \"a\" is given twice");
	GIVE("a=*");
	must_fail("vethguard: 1\n", 0, 0,
	        "variable \"a\" has a value with more than letters, digits and -._~!&'()+,=:@/");
	for (size_t i = 0; i <= POLICY_VARIABLES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "v%zu", i);
		variables[i] = (struct policy_variable){slice_from_string(names[i]), SLICE("x")};
	}
	variable_count = POLICY_VARIABLES_MAX;
	must_load(&t, "vethguard: 1\n");
	test_unload(&t);
	variable_count++;
	must_fail("vethguard: 1\n", 0, 0,
	        "variable \"v64\" is one too many: at most 64 are given at once");
}

static void test_unused(void **state)
{
	struct diag_list notes = {.count = 0};
	struct test_policy t;

	(void)state;
	GIVE("used=x", "unused=y");
	assert_int_equal(load(&t, ALLOW("https://${used}.example"), &notes), 0);
	assert_int_equal(notes.count, 1);
	assert_string_equal(notes.items[0].message,
	        "variable \"unused\" is given, but the policy does not use it; did you mean "
	        "\"used\"?");
	test_unload(&t);
}

/* A path that is within its bound only as it was written. */
static void test_too_long(void **state)
{
	static char text[POLICY_PATH_MAX + 512], value[POLICY_VARIABLE_VALUE_MAX + 4];
	struct test_policy t;
	size_t n;

	(void)state;
	memset(value, 'a', sizeof(value) - 1);
	memcpy(value, "v=", 2);
	value[POLICY_VARIABLE_VALUE_MAX + 2] = '\0';
	give((const char *const[]){value, NULL});
	n = (size_t)sprintf(text, "vethguard: 1\nallow: [{to: a.example, paths: \"/");
	for (int i = 0; i < 40; i++)
		n += (size_t)sprintf(text + n, "${v}/");
	sprintf(text + n, "\"}]\n");
	assert_int_equal(load(&t, text, NULL), -EINVAL);
	assert_non_null(strstr(t.diags.items[0].message, "more than 8192 bytes"));
	for (int i = 0; i < 2; i++)
		GIVE("v=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	assert_int_equal(load(&t, ALLOW("https://${v}.example"), NULL), -EINVAL);
}

struct files {
	size_t count;
	char names[4][64];
};

static int read_two(void *context, const char *path, char **text, size_t *n)
{
	(void)context;
	*text = strdup(strcmp(path, "/main.yaml") == 0
	                       ? "vethguard: 1\ninclude: part.yaml\n"
	                       : "vethguard: 1\nvariables: {t: {default: d}}\n"
	                         "allow: [{to: \"https://${t}.example\"}]\n");
	*n = strlen(*text);
	return 0;
}

static void on_file(void *context, const char *path)
{
	struct files *files = context;

	assert_true(files->count < 4);
	snprintf(files->names[files->count++], sizeof(files->names[0]), "%s", path);
}

static void test_included(void **state)
{
	struct policy_reader reader = {NULL, read_two, NULL};
	struct files files = {0};
	struct policy_load_options options = {.variables = variables,
	        .variable_count = 1,
	        .each_file = on_file,
	        .each_file_context = &files};
	struct test_policy t = {0};

	(void)state;
	GIVE("t=given");
	assert_int_equal(
	        policy_load(&reader, "/main.yaml", &options, &t.image, &t.size, &t.diags), 0);
	assert_int_equal(policy_open(&t.policy, t.image, t.size), 0);
	assert_int_equal(ask(&t, "https://given.example/"), POLICY_ALLOW);
	assert_int_equal(files.count, 2);
	assert_string_equal(files.names[0], "/main.yaml");
	assert_string_equal(files.names[1], "/part.yaml");
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_replaces),
	        cmocka_unit_test(test_defaults_and_groups), cmocka_unit_test(test_dollar),
	        cmocka_unit_test(test_bad_values), cmocka_unit_test(test_bad_names),
	        cmocka_unit_test(test_bad_in_host), cmocka_unit_test(test_bad_places),
	        cmocka_unit_test(test_bad_in_path), cmocka_unit_test(test_unknown),
	        cmocka_unit_test(test_bad_declarations), cmocka_unit_test(test_given_wrong),
	        cmocka_unit_test(test_unused), cmocka_unit_test(test_too_long),
	        cmocka_unit_test(test_included)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
