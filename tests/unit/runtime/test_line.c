/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of runc, crun and runsc, as engines write them, and what is not understood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/line.h"

#define WORDS 32

struct test {
	char text[1024];
	char *argv[WORDS];
	int argc;
	struct line line;
	struct fault fault;
};

/* Splits at spaces. */
static bool read_line(struct test *t, const char *text)
{
	char *save = NULL;

	memset(t, 0, sizeof(*t));
	snprintf(t->text, sizeof(t->text), "vethguard-runtime %s", text);
	for (char *word = strtok_r(t->text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		t->argv[t->argc++] = word;
	return line_read(&t->line, t->argc, t->argv, &t->fault);
}

static void test_dockers_create(void **state)
{
	struct test t;

	(void)state;
	assert_true(read_line(&t,
	        "--root /run/docker/runtime-runc/moby --log /b/log.json --log-format json "
	        "create --bundle /b --pid-file /b/init.pid abc"));
	assert_int_equal(t.line.verb, VERB_CREATE);
	assert_string_equal(t.line.root, "/run/docker/runtime-runc/moby");
	assert_string_equal(t.line.log, "/b/log.json");
	assert_string_equal(t.line.log_format, "json");
	assert_string_equal(t.line.bundle, "/b");
	assert_string_equal(t.line.pid_file, "/b/init.pid");
	assert_string_equal(t.line.id, "abc");
	assert_int_equal(t.line.count, (size_t)t.argc);
	for (int i = 0; i < t.argc; i++)
		assert_ptr_equal(t.line.words[i], t.argv[i]); /* unchanged */
	assert_null(t.line.words[t.argc]);
	assert_string_equal(t.line.words[t.line.globals], "create");
}

static void test_forms_of_options(void **state)
{
	static const char *const lines[] = {"create -b /b abc", "create -b=/b abc",
	        "create --bundle=/b abc", "create -bundle /b abc", "create abc --bundle /b",
	        "create --bundle /a --bundle /b abc",
	        "--systemd-cgroup create --no-pivot --bundle /b -- abc",
	        "--platform=ptrace --network sandbox -debug create -bundle=/b abc"};
	struct test t;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_true(read_line(&t, lines[i]));
		assert_int_equal(t.line.verb, VERB_CREATE);
		assert_string_equal(t.line.bundle, "/b");
		assert_string_equal(t.line.id, "abc");
	}
}

static void test_own_option_goes_nowhere(void **state)
{
	static const char *const lines[] = {"--vethguard-config /c.yaml --debug state abc",
	        "--vethguard-config=/c.yaml --debug state abc"};
	struct test t;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_true(read_line(&t, lines[i]));
		assert_int_equal(t.line.verb, VERB_PASS);
		assert_string_equal(t.line.config, "/c.yaml");
		assert_int_equal(t.line.count, 4);
		assert_string_equal(t.line.words[1], "--debug");
		assert_string_equal(t.line.words[2], "state");
	}
}

static void test_verbs(void **state)
{
	static const struct {
		const char *line;
		enum verb verb;
	} cases[] = {{"start a", VERB_START}, {"delete --force a", VERB_DELETE},
	        {"run a", VERB_RUN}, {"restore a", VERB_RESTORE}, {"kill a 9", VERB_PASS},
	        {"state a", VERB_PASS}, {"exec --process /p a", VERB_EXEC}, {"hook", VERB_HOOK},
	        {"--version", VERB_PASS}, {"--help", VERB_HELP}, {"", VERB_HELP},
	        {"features", VERB_PASS}, {"create --help", VERB_PASS}};
	struct test t;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool good = read_line(&t, cases[i].line);

		assert_int_equal(t.line.verb, cases[i].verb);
		assert_true(good || strstr(cases[i].line, "create --help"));
	}
}

static void test_delete_and_exec(void **state)
{
	struct test t;

	(void)state;
	assert_true(read_line(&t, "delete --force abc"));
	assert_true(t.line.force);
	assert_string_equal(t.line.id, "abc");
	assert_true(read_line(&t, "delete abc"));
	assert_false(t.line.force);
	assert_true(read_line(&t, "delete --regex ab.*"));
	assert_true(t.line.by_pattern);
	assert_true(read_line(&t, "exec --process /p.json --detach --pid-file /x abc"));
	assert_string_equal(t.line.words[t.line.process_at], "/p.json");
	assert_string_equal(t.line.id, "abc");
	assert_true(read_line(&t, "exec --process=/p.json abc sh -c --process"));
	assert_string_equal(t.line.words[t.line.process_at], "--process=/p.json");
	assert_true(read_line(&t, "exec -e A=B abc sh -p x"));
	assert_int_equal(t.line.process_at, 0);
	assert_string_equal(t.line.id, "abc");
}

/* Words that are not understood must not decide what is guarded. */
static void test_refused(void **state)
{
	static const struct {
		const char *line, *words;
	} cases[] = {{"--unknown value create --bundle /b abc", "\"value\" is not a command"},
	        {"creat abc", "\"creat\" is not a command"}, {"create --bundle", "has no value"},
	        {"--root", "has no value"}, {"create --unknown abc", "--unknown is not known"},
	        {"start --unknown other abc", "--unknown is not known"},
	        {"create --bundle /b", "no id"}, {"create a b", "one container"},
	        {"start", "no id"}, {"create ../a", "no slash"}, {"delete /a", "no slash"}};
	struct test t;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_false(read_line(&t, cases[i].line));
		assert_non_null(strstr(t.fault.text, cases[i].words));
	}
}

static void test_bounds(void **state)
{
	static char *argv[LINE_WORDS_MAX + 2], word[] = "--debug", name[] = "vethguard-runtime";
	static char id[LINE_ID_MAX + 2], verb[] = "start";
	struct fault fault = {""};
	static struct line line;
	char *few[] = {name, verb, id, NULL};

	(void)state;
	argv[0] = name;
	for (size_t i = 1; i <= LINE_WORDS_MAX; i++)
		argv[i] = word;
	assert_false(line_read(&line, LINE_WORDS_MAX + 1, argv, &fault));
	assert_non_null(strstr(fault.text, "more than"));
	memset(id, 'a', LINE_ID_MAX);
	fault.text[0] = '\0';
	assert_true(line_read(&line, 3, few, &fault));
	id[LINE_ID_MAX] = 'a';
	assert_false(line_read(&line, 3, few, &fault));
}

static void test_runsc_flags(void **state)
{
	struct test t;

	(void)state;
	assert_true(read_line(&t, "--network=host --allow-flag-override create --bundle /b a"));
	assert_string_equal(t.line.network, "host");
	assert_true(t.line.flag_override);
	assert_true(read_line(&t, "-network none -allow-flag-override=false create --config=x a"));
	assert_string_equal(t.line.network, "none");
	assert_false(t.line.flag_override);
	assert_string_equal(t.line.other_config, "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_dockers_create),
	        cmocka_unit_test(test_forms_of_options),
	        cmocka_unit_test(test_own_option_goes_nowhere),
	        cmocka_unit_test(test_verbs),
	        cmocka_unit_test(test_delete_and_exec),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_runsc_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
