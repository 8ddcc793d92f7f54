/* SPDX-License-Identifier: Apache-2.0 */
/* What an include says of the credentials of the file that it includes. What is refused is under
 * bad/. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/policy/diff.h"
#include "../policy_test.h"

struct file {
	const char *path, *text;
};

#define PRESET                                                                                   \
	"vethguard: 1\n"                                                                         \
	"credentials:\n"                                                                         \
	"  key: {source: \"exec:[gh, auth]\", timeout: 3s, inject: header, header: x-key, env: " \
	"K}\n"                                                                                   \
	"  other: {source: \"env:O\", inject: bearer}\n"                                         \
	"allow:\n"                                                                               \
	"  - {to: https://a.example, credential: key}\n"                                         \
	"  - {to: https://b.example, credential: other}\n"

static int read_table(void *context, const char *path, char **text, size_t *n)
{
	for (const struct file *f = context; f->path; f++)
		if (strcmp(f->path, path) == 0) {
			*text = strdup(f->text);
			*n = strlen(f->text);
			return *text ? 0 : -ENOMEM;
		}
	return -ENOENT;
}

struct seen {
	size_t count;
	char file[4][64];
	unsigned line[4], column[4];
};

static void see(void *context, const struct policy_credential *credential, const char *file,
        unsigned line, unsigned column)
{
	struct seen *seen = context;

	(void)credential;
	snprintf(seen->file[seen->count], sizeof(seen->file[0]), "%s", file);
	seen->line[seen->count] = line;
	seen->column[seen->count++] = column;
}

static int load(struct test_policy *t, const struct file *files, struct seen *seen)
{
	struct policy_reader reader = {
	        .context = (void *)(uintptr_t)files, .read = read_table, .preset_dir = "/presets"};
	struct policy_load_options options = {
	        .each_source = seen ? see : NULL, .each_source_context = seen};
	int rc;

	memset(t, 0, sizeof(*t));
	rc = policy_load(&reader, "/main.yaml", &options, &t->image, &t->size, &t->diags);
	if (rc == 0)
		assert_int_equal(policy_open(&t->policy, t->image, t->size), 0);
	return rc;
}

static void must_load(struct test_policy *t, const struct file *files, struct seen *seen)
{
	if (load(t, files, seen) == 0)
		return;
	diag_print(&t->diags, stderr);
	fail_msg("does not load");
}

static struct policy_credential credential(const struct test_policy *t, const char *name)
{
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(&t->policy); i++) {
		policy_credential(&t->policy, i, &c);
		if (slice_equals(c.name, slice_from_string(name)))
			return c;
	}
	fail_msg("no credential %s", name);
	return c;
}

static void must_be(struct slice s, const char *text)
{
	assert_true(slice_equals(s, slice_from_string(text)));
}

/* The source and its times are others; how the value is sent, and the other credential, are not. */
static void test_source(void **state)
{
	static const struct file files[] = {
	        {"/main.yaml", "vethguard: 1\ninclude:\n"
	                       "  - preset: p\n"
	                       "    credentials:\n"
	                       "      key: {source: \"file:secrets/key\", ttl: 5s}\n"},
	        {"/presets/p.yaml", PRESET}, {NULL, NULL}};
	struct policy_credential c;
	struct test_policy t;
	struct seen seen = {0};

	(void)state;
	must_load(&t, files, &seen);
	c = credential(&t, "key");
	assert_int_equal(c.source, POLICY_SOURCE_FILE);
	must_be(c.location, "/secrets/key"); /* beside the file that says so */
	assert_int_equal(c.argc, 0);
	assert_int_equal(c.ttl_s, 5);
	assert_int_equal(c.inject, POLICY_INJECT_HEADER);
	must_be(c.field, "x-key");
	must_be(c.env, "K");
	c = credential(&t, "other");
	assert_int_equal(c.source, POLICY_SOURCE_ENV);
	must_be(c.location, "O");
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.file[0], "/main.yaml");
	assert_int_equal(seen.line[0], 5);
	assert_int_equal(seen.column[0], 21);
	assert_string_equal(seen.file[1], "/presets/p.yaml");
	test_unload(&t);
}

/* The times of the definition belong to its source and go with it. */
static void test_times(void **state)
{
	static struct file files[] = {
	        {"/main.yaml", NULL}, {"/presets/p.yaml", PRESET}, {NULL, NULL}};
	struct policy_credential c;
	struct test_policy t;

	(void)state;
	files[0].text = "vethguard: 1\ninclude: {preset: p, credentials: {key: {source: "
	                "\"env:X\"}}}\n";
	must_load(&t, files, NULL);
	c = credential(&t, "key");
	assert_int_equal(c.source, POLICY_SOURCE_ENV);
	assert_int_equal(c.argc, 0);
	assert_int_equal(c.ttl_s, 0);
	test_unload(&t);
	files[0].text = "vethguard: 1\ninclude: {preset: p, credentials: {other: {source: "
	                "\"exec:[a, b]\", timeout: 1s}}}\n";
	must_load(&t, files, NULL);
	c = credential(&t, "other");
	assert_int_equal(c.source, POLICY_SOURCE_EXEC);
	assert_int_equal(c.argc, 2);
	assert_int_equal(c.timeout_ms, 1000);
	assert_int_equal(c.ttl_s, 300);
	assert_int_equal(credential(&t, "key").timeout_ms, 3000);
	test_unload(&t);
}

/* A file that another one includes gets an override by being included by name as well; it is read
 * once all the same. */
static void test_nested(void **state)
{
	static const struct file files[] = {
	        {"/main.yaml", "vethguard: 1\ninclude:\n  - dir/team.yaml\n  - {preset: p, "
	                       "credentials: {key: {source: \"env:MINE\"}}}\n"},
	        {"/dir/team.yaml", "vethguard: 1\ninclude: [{preset: p, credentials: {other: "
	                           "{source: \"file:o\"}}}]\n"},
	        {"/presets/p.yaml", PRESET}, {NULL, NULL}};
	struct test_policy t;

	(void)state;
	must_load(&t, files, NULL);
	assert_int_equal(policy_rule_count(&t.policy), 2);
	must_be(credential(&t, "key").location, "MINE");
	must_be(credential(&t, "other").location, "/dir/o");
	test_unload(&t);
}

/* Two includes that override one source: the order of files must not decide whose secret is sent.
 */
static void test_twice(void **state)
{
	static const struct file files[] = {
	        {"/main.yaml", "vethguard: 1\ninclude:\n  - team.yaml\n  - {preset: p, "
	                       "credentials: {key: {source: \"env:MINE\"}}}\n"},
	        {"/team.yaml", "vethguard: 1\ninclude: [{preset: p, credentials: {key: "
	                       "{source: \"env:THEIRS\"}}}]\n"},
	        {"/presets/p.yaml", PRESET}, {NULL, NULL}};
	struct test_policy t;

	(void)state;
	assert_int_equal(load(&t, files, NULL), -EINVAL);
	assert_int_equal(t.diags.count, 1);
	assert_string_equal(t.diags.items[0].message,
	        "the source of credential \"key\" is already overridden at /team.yaml:2");
	assert_int_equal(t.diags.items[0].line, 4);
}

/* Of the file that includes, and of a file below the included one. */
static void test_elsewhere(void **state)
{
	static const struct file files[] = {
	        {"/main.yaml", "vethguard: 1\ncredentials: {mine: {source: \"env:A\", inject: "
	                       "bearer}}\ninclude:\n"
	                       "  - {file: team.yaml, credentials: {mine: {source: \"env:B\"}}}\n"
	                       "  - {file: team.yaml, credentials: {key: {source: \"env:B\"}}}\n"},
	        {"/team.yaml", "vethguard: 1\ninclude: [preset:p]\n"}, {"/presets/p.yaml", PRESET},
	        {NULL, NULL}};
	struct test_policy t;

	(void)state;
	assert_int_equal(load(&t, files, NULL), -EINVAL);
	assert_int_equal(t.diags.count, 2);
	assert_non_null(strstr(t.diags.items[0].message,
	        "credential \"mine\" is defined at /main.yaml:2, not in team.yaml"));
	assert_non_null(strstr(t.diags.items[1].message,
	        "credential \"key\" is defined at /presets/p.yaml:3, not in team.yaml"));
}

/* More than a policy may have credentials; the message does not repeat what may be a secret. */
static void test_bounds(void **state)
{
	static char text[16384];
	static const struct file files[] = {
	        {"/main.yaml", text}, {"/presets/p.yaml", PRESET}, {NULL, NULL}};
	struct test_policy t;
	size_t n = (size_t)sprintf(text, "vethguard: 1\ninclude: [{preset: p, credentials: {");

	(void)state;
	for (unsigned i = 0; i <= POLICY_CREDENTIALS_MAX; i++)
		n += (size_t)sprintf(text + n, "c%u: {source: \"env:X\"}, ", i);
	sprintf(text + n, "}}]\n");
	assert_int_equal(load(&t, files, NULL), -EINVAL);
	assert_non_null(
	        strstr(t.diags.items[0].message, "more than 64 credentials get another source"));
	sprintf(text, "vethguard: 1\ninclude: [{preset: p, credentials: {key: {source: "
	              "hunter2hunter2hunter2}}}]\n");
	assert_int_equal(load(&t, files, NULL), -EINVAL);
	assert_null(strstr(t.diags.items[0].message, "hunter2"));
	sprintf(text, "vethguard: 1\ninclude: [{preset: p, credentials: "
	              "hunter2hunter2hunter2}]\n");
	assert_int_equal(load(&t, files, NULL), -EINVAL);
	assert_null(strstr(t.diags.items[0].message, "hunter2"));
}

/* A changed source is what a diff tells, and widens nothing. */
static void test_diff(void **state)
{
	static const struct file from[] = {{"/main.yaml", "vethguard: 1\nname: n\ninclude: "
	                                                  "preset:p\n"},
	        {"/presets/p.yaml", PRESET}, {NULL, NULL}};
	static const struct file to[] = {
	        {"/main.yaml", "vethguard: 1\nname: n\ninclude: {preset: p, credentials: {key: "
	                       "{source: \"file:/etc/key\"}, other: {source: \"env:N\"}}}\n"},
	        {"/presets/p.yaml", PRESET}, {NULL, NULL}};
	struct test_policy x, y;
	struct policy_diff d;

	(void)state;
	must_load(&x, from, NULL);
	must_load(&y, to, NULL);
	assert_int_equal(policy_diff(&x.policy, &y.policy, &d), 0);
	assert_int_equal(d.count, 2);
	assert_string_equal(d.lines[0].text,
	        "~ credential key is taken from file:/etc/key (so far from exec:[gh, ...])");
	assert_string_equal(
	        d.lines[1].text, "~ credential other is taken from env:N (so far from env:O)");
	assert_true(d.differs);
	assert_false(d.widens || d.narrows);
	policy_diff_fini(&d);
	test_unload(&x);
	test_unload(&y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_source),
	        cmocka_unit_test(test_times), cmocka_unit_test(test_nested),
	        cmocka_unit_test(test_twice), cmocka_unit_test(test_elsewhere),
	        cmocka_unit_test(test_bounds), cmocka_unit_test(test_diff)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
