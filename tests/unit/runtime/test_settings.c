/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.yaml, and which real runtime is chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/settings.h"

static struct settings s;

static bool parse(const char *text, struct fault *fault)
{
	char copy[1024];

	snprintf(copy, sizeof(copy), "%s", text);
	fault->text[0] = '\0';
	return runtime_settings_parse(&s, "f", copy, fault);
}

static void test_defaults(void **state)
{
	struct fault fault;

	(void)state;
	assert_true(parse("", &fault));
	assert_string_equal(s.runtime, "runc");
	assert_string_equal(s.policies, "/etc/vethguard/policies");
	assert_int_equal(s.without_policy, WITHOUT_REFUSE);
	assert_true(s.environment);
}

static void test_every_key(void **state)
{
	struct fault fault;

	(void)state;
	assert_true(parse("---\n# a comment\nruntime: crun  # the other\npolicies: \"/p "
	                  "q\"\nwithout_policy: 'agent'\n"
	                  "environment: false\n\nsocket: /s\ndirectory: /d",
	        &fault));
	assert_string_equal(s.runtime, "crun");
	assert_string_equal(s.policies, "/p q");
	assert_int_equal(s.without_policy, WITHOUT_NAME);
	assert_string_equal(s.policy, "agent");
	assert_false(s.environment);
	assert_string_equal(s.socket, "/s");
	assert_string_equal(s.directory, "/d");
	assert_true(parse("without_policy: pass\r\n", &fault));
	assert_int_equal(s.without_policy, WITHOUT_PASS);
}

static void test_faults(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {{"runtim: runc", "did you mean"}, {"runtime", "key: value"},
	        {"runtime:", "key: value"}, {"runtime:runc", "key: value"},
	        {"runtime: [runc]", "key: value"}, {"runtime: \"runc", "key: value"},
	        {"runtime: \"a\" b", "key: value"}, {"runtime: ../runc", "a name like runc"},
	        {"policies: here", "absolute path"}, {"without_policy: ../x", "refuse, pass, or"},
	        {"environment: perhaps", "true or false"}, {" runtime: runc", "no such key"},
	        {"\n\nsocket: x", "f:3"}};
	struct fault fault;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_false(parse(cases[i].text, &fault));
		assert_non_null(strstr(fault.text, cases[i].words));
	}
}

static void test_long_path(void **state)
{
	static char text[PATH_MAX + 64];
	struct fault fault = {""};

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "policies: /", 11);
	assert_false(runtime_settings_parse(&s, "f", text, &fault));
	assert_non_null(strstr(fault.text, "too long"));
}

static void test_files(void **state)
{
	char path[] = "/tmp/vethguard-settings-XXXXXX";
	int fd = mkstemp(path);
	struct fault fault = {""};

	(void)state;
	assert_int_equal(write(fd, "runtime: crun\n", 14), 14);
	assert_true(runtime_settings_read(&s, path, &fault));
	assert_string_equal(s.runtime, "crun");
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_false(runtime_settings_read(&s, path, &fault));
	assert_non_null(strstr(fault.text, "written by others"));
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(ftruncate(fd, SETTINGS_FILE_MAX + 1), 0);
	fault.text[0] = '\0';
	assert_false(runtime_settings_read(&s, path, &fault));
	assert_non_null(strstr(fault.text, "at most"));
	close(fd);
	unlink(path);
	fault.text[0] = '\0';
	assert_false(runtime_settings_read(&s, path, &fault)); /* named, so it has to be there */
}

/* A name counts before the configuration; it is looked for in fixed places. */
static void test_real_runtime(void **state)
{
	struct fault fault = {""};

	(void)state;
	assert_true(parse("runtime: /bin/sh", &fault));
	assert_true(runtime_settings_find(&s, "/usr/bin/vethguard-runtime", &fault));
	assert_string_equal(s.runtime, "/bin/sh");
	assert_true(parse("runtime: sh", &fault));
	assert_true(runtime_settings_find(&s, "vethguard-runtime", &fault));
	assert_non_null(strstr(s.runtime, "/bin/sh"));
	assert_true(parse("runtime: no-such-runtime", &fault));
	assert_false(runtime_settings_find(&s, "vethguard-runtime", &fault));
	assert_non_null(strstr(fault.text, "no-such-runtime is not installed"));
	fault.text[0] = '\0';
	assert_true(parse("runtime: /no/such", &fault));
	assert_false(runtime_settings_find(&s, "vethguard-other", &fault));
	fault.text[0] = '\0';
	assert_true(parse("runtime: /no/such", &fault));
	if (runtime_settings_find(&s, "/x/vethguard-crun", &fault))
		assert_non_null(strstr(s.runtime, "bin/crun"));
	else
		assert_non_null(strstr(fault.text, "crun is not installed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_defaults),
	        cmocka_unit_test(test_every_key),
	        cmocka_unit_test(test_faults),
	        cmocka_unit_test(test_long_path),
	        cmocka_unit_test(test_files),
	        cmocka_unit_test(test_real_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
