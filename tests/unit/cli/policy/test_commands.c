/* SPDX-License-Identifier: Apache-2.0 */
/* `vethguard policy check`, `upgrade` and `import`: exit statuses, what is printed, and JSON that
 * parses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <jansson.h>
#include <sys/stat.h>

#include "commands_test.h"

static void test_check(void **state)
{
	(void)state;
	RUN(&r, "check", "policies/presets/debian.yaml", "policies/presets/crates.yaml");
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out,
	        "debian.yaml: good: policy \"debian\", 1 rule, 0 credentials, mode enforce"));
	assert_non_null(strstr(r.out, "crates.yaml: good"));
	assert_string_equal(r.err, "");
}

static void test_check_bad(void **state)
{
	(void)state;
	RUN(&r, "check", "policies/presets/debian.yaml", "tests/unit/policy/bad/mode.yaml");
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.out, "debian.yaml: good"));
	assert_non_null(strstr(r.err, "bad/mode.yaml:2:7: error: mode must be"));
	RUN(&r, "check", "no/such/file");
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.err, "no/such/file: error: cannot read"));
}

static void test_check_json(void **state)
{
	json_t *root, *bad, *error;

	(void)state;
	RUN(&r, "check", "--json", "policies/presets/debian.yaml",
	        "tests/unit/policy/bad/mode.yaml");
	assert_int_equal(r.status, 2);
	root = json_loads(r.out, 0, NULL);
	assert_int_equal(json_array_size(root), 2);
	assert_true(json_is_true(json_object_get(json_array_get(root, 0), "good")));
	bad = json_array_get(root, 1);
	assert_true(json_is_false(json_object_get(bad, "good")));
	error = json_array_get(json_object_get(bad, "errors"), 0);
	assert_int_equal(json_integer_value(json_object_get(error, "line")), 2);
	assert_int_equal(json_integer_value(json_object_get(error, "column")), 7);
	json_decref(root);
}

static const char with_file[] = "vethguard: 1\n"
                                "credentials:\n"
                                "  key: {source: file:secret, inject: bearer}\n"
                                "allow: [{to: https://a.example, credential: key}]\n";
static const char with_variable[] = "vethguard: 1\n"
                                    "credentials:\n"
                                    "  key: {source: env:VETHGUARD_TEST_KEY, inject: bearer}\n"
                                    "  ran: {source: 'exec:[/no/such]', inject: bearer}\n"
                                    "allow: [{to: https://a.example, credential: key}]\n";

/* No note is made of a source that exists, and other commands do not look for sources. */
static void test_check_sources_there(void **state)
{
	(void)state;
	remember(with_file);
	RUN(&r, "explain", policy_path, "GET", "https://a.example/");
	assert_string_equal(r.err, "");
	RUN(&r, "diff", policy_path, policy_path);
	assert_string_equal(r.err, "");
	write_file(secret_path, "sesame-open\n");
	assert_int_equal(chmod(secret_path, 0640), 0);
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	assert_null(strstr(r.out, "sesame"));
	forget();
	remember(with_variable);
	setenv("VETHGUARD_TEST_KEY", "sesame-open", 1);
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	unsetenv("VETHGUARD_TEST_KEY");
	forget();
}

/* A credential's file that others may write is refused; one that others may read gets a note. */
static void test_check_file_rights(void **state)
{
	static const struct {
		mode_t mode;
		const char *told;
	} rows[] = {{0644, "can be read by everybody: 'chmod o-r' fixes that"},
	        {0620, "can be written by its group or by others, and is refused so: 'chmod go-w'"},
	        {0606, "can be written by its group or by others, and is refused so: 'chmod "
	               "go-w'"}};

	(void)state;
	remember(with_file);
	write_file(secret_path, "sesame-open\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(chmod(secret_path, rows[i].mode), 0);
		RUN(&r, "check", policy_path);
		assert_int_equal(r.status, 0);
		assert_non_null(strstr(r.err, ":3:17: note: credential \"key\": file \""));
		assert_non_null(strstr(r.err, rows[i].told));
	}
	forget();
}

static void test_check_file_missing(void **state)
{
	(void)state;
	remember(with_file);
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, ": good: "));
	assert_non_null(strstr(r.err, "/policy.yaml:3:17: note: credential \"key\": file \""));
	assert_non_null(strstr(r.err, "/secret\" does not exist on this machine now"));
	assert_int_equal(mkdir(secret_path, 0700), 0);
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, "/secret\" is not a regular file"));
	forget();
}

/* Root, who may read everything, checks as another user. */
static void test_check_file_unreadable(void **state)
{
	bool root = geteuid() == 0;

	(void)state;
	remember(with_file);
	write_file(secret_path, "sesame-open\n");
	assert_int_equal(chmod(secret_path, 0), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(policy_path, 0644), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	RUN(&r, "check", policy_path);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, ":3:17: note: credential \"key\": file \""));
	assert_non_null(
	        strstr(r.err, "who runs this check: Permission denied; started through sudo"));
	forget();
}

/* A fault that no right would cure is reported without advice about rights. */
static void test_check_file_below_file(void **state)
{
	(void)state;
	remember("vethguard: 1\n"
	         "credentials: {key: {source: file:policy.yaml/x, inject: bearer}}\n"
	         "allow: [{to: https://a.example, credential: key}]\n");
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, "who runs this check: Not a directory"));
	assert_null(strstr(r.err, "sudo"));
	forget();
}

static void test_check_variable_missing(void **state)
{
	(void)state;
	remember(with_variable);
	unsetenv("VETHGUARD_TEST_KEY");
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.err, "/policy.yaml:3:17: note: credential \"key\": variable "
	                              "\"VETHGUARD_TEST_KEY\" is not set in this environment now"));
	assert_null(strstr(r.err, "\"ran\""));
	setenv("VETHGUARD_TEST_KEY", "", 1);
	RUN(&r, "check", policy_path);
	assert_non_null(strstr(r.err, "is empty in this environment now"));
	unsetenv("VETHGUARD_TEST_KEY");
	forget();
}

/* An included rule that this policy makes idle is meant for other policies, too. */
static void test_check_unused_included(void **state)
{
	(void)state;
	remember("vethguard: 1\ninclude: [secret]\ndeny: [{to: a.example}]\n");
	write_file(secret_path, "vethguard: 1\nallow: [{to: a.example}, {to: a.example}]\n");
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	forget();
}

static void test_check_unused(void **state)
{
	json_t *root, *note;

	(void)state;
	remember("vethguard: 1\nallow:\n  - to: a.example\ndeny: [{to: a.example}]\n");
	RUN(&r, "explain", policy_path, "GET", "https://a.example/");
	assert_string_equal(r.err, "");
	RUN(&r, "check", policy_path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(r.out, ": good: "));
	assert_non_null(strstr(r.err, "/policy.yaml:3:5: note: rule \"allow[0]\" decides no"));
	RUN(&r, "check", "--json", policy_path);
	assert_int_equal(r.status, 0);
	root = json_loads(r.out, 0, NULL);
	note = json_array_get(json_object_get(json_array_get(root, 0), "notes"), 0);
	assert_int_equal(json_integer_value(json_object_get(note, "line")), 3);
	json_decref(root);
	forget();
}

static void test_check_notes_json(void **state)
{
	json_t *root, *file, *note;

	(void)state;
	remember(with_file);
	RUN(&r, "check", "--json", policy_path);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err, "");
	root = json_loads(r.out, 0, NULL);
	file = json_array_get(root, 0);
	assert_true(json_is_true(json_object_get(file, "good")));
	assert_int_equal(json_array_size(json_object_get(file, "errors")), 0);
	assert_int_equal(json_array_size(json_object_get(file, "notes")), 1);
	assert_int_equal(json_integer_value(json_object_get(file, "notes_not_shown")), 0);
	note = json_array_get(json_object_get(file, "notes"), 0);
	assert_int_equal(json_integer_value(json_object_get(note, "line")), 3);
	assert_int_equal(json_integer_value(json_object_get(note, "column")), 17);
	json_decref(root);
	forget();
}

/* The explanation of a rule that allows an upgrade. */
static void test_upgrade(void **state)
{
	static const char text[] =
	        "vethguard: 1\n"
	        "credentials:\n"
	        "  k: {source: \"env:K\", inject: bearer}\n"
	        "allow:\n"
	        "  - {name: x, to: a.example, credential: k, upgrade: [SPDY/3.1, "
	        "tcp]}\n"
	        "  - {name: y, to: b.example, upgrade: tcp}\n";
	char path[] = "/tmp/vethguard-upgrade-XXXXXX";
	int fd = mkstemp(path);
	json_t *root;

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	RUN(&r, "check", path);
	assert_int_equal(r.status, 0);
	assert_non_null(strstr(
	        r.err, "rule \"x\": after an upgrade to spdy/3.1, tcp vethguard reads nothing"));
	assert_null(strstr(r.err, "rule \"y\""));
	RUN(&r, "explain", path, "POST", "https://a.example/exec");
	assert_non_null(strstr(r.out, "upgrade: spdy/3.1, tcp (relayed unread)\n"));
	RUN(&r, "explain", "--json", path, "POST", "https://b.example/");
	root = json_loads(r.out, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(root, "upgrade")), "tcp");
	json_decref(root);
	RUN(&r, "explain", path, "POST", "https://c.example/");
	assert_null(strstr(r.out, "upgrade:"));
	unlink(path);
}

static void test_usage(void **state)
{
	static const struct {
		const char *args[5], *says;
	} bad[] = {
	        {{NULL}, "Usage: vethguard policy check"},
	        {{"chek"}, "unknown command chek; did you mean check?\nThe commands are check, "
	                   "explain, diff, new and import. See 'vethguard policy --help'."},
	        {{"nonsense"}, "unknown command nonsense\nThe commands are check"},
	        {{"check"}, "which FILE? See 'vethguard policy check --help'."},
	        {{"check", "--jsn", "policies/observe.yaml"},
	                "unknown option --jsn; did you mean --json?\nThe options are --var, "
	                "--floor, "
	                "--resolve, --config, --json and --help. See 'vethguard policy check "
	                "--help'."},
	        {{"check", "policies/observe.yaml", "--var"},
	                "--var needs a value: --var NAME=VALUE"},
	        {{"check", "policies/observe.yaml", "--", "--json"}, "--json: error: cannot read"},
	        {{"explain"}, "which FILE?"},
	        {{"explain", "policies/observe.yaml"}, "which METHOD?"},
	        {{"explain", "policies/observe.yaml", "GET"}, "which URL?"},
	        {{"explain", "policies/observe.yaml", "GET", "https://a.example/", "x\x1b"},
	                "x\\x1b is an unexpected word."},
	        {{"explain", "policies/observe.yaml", "GET", "a.example"},
	                "the scheme is missing (https://host/path), not a URL: \"a.example\""},
	        {{"explain", "policies/observe.yaml", "https://a.example/", "GET"},
	                "this is not a URL; METHOD stands before the URL: \"GET\""},
	        {{"explain", "policies/observe.yaml", "GET", "https://u:p@a.example/"},
	                "without a user"},
	        {{"explain", "policies/observe.yaml", "GET", "wss://a.example/"},
	                "a WebSocket is judged as the GET that asks for it"},
	        {{"explain", "policies/observe.yaml", "CONNECT", "tcp://a.example"},
	                "need a port, as in tcp://host:5432: \"tcp://a.example\""},
	        {{"explain", "policies/observe.yaml", "GET", "https://a.example:x/"}, "not a URL"},
	        {{"explain", "policies/observe.yaml", "GET", "tcp://a.example:1"}, "CONNECT"},
	        {{"explain", "policies/observe.yaml", "", "https://a.example"}, "not a method"},
	        {{"explain", "policies/observe.yaml", "GET", "https://a.example/#x"},
	                "what follows \"#\" is never sent"},
	        {{"explain", "tests/unit/policy/bad/mode.yaml", "GET", "https://a.example/"},
	                "mode must be"},
	        {{"diff", "policies/observe.yaml"}, "which NEW?"},
	        {{"diff", "a", "b", "c"}, "c is an unexpected word."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		run(&r, bad[i].args);
		assert_int_equal(r.status, 2);
		if (!strstr(r.err, bad[i].says))
			fail_msg("row %zu says \"%s\"", i, r.err);
	}
}

static void test_help(void **state)
{
	static const char *const commands[] = {"check", "explain", "diff"};

	(void)state;
	RUN(&r, "--help");
	assert_int_equal(r.status, 0);
	for (size_t i = 0; i < 3; i++) {
		assert_non_null(strstr(r.out, commands[i]));
		RUN(&r, commands[i], "--help");
		assert_int_equal(r.status, 0);
		assert_string_equal(r.err, "");
		assert_non_null(strstr(r.out, "Usage: vethguard policy "));
		assert_non_null(strstr(r.out, commands[i]));
		RUN(&r, "-h");
	}
}

/* Bytes that a terminal would obey are never printed unchanged. */
static void test_escapes(void **state)
{
	(void)state;
	RUN(&r, "explain", "policies/observe.yaml", "GET\x1b[31m", "https://a.example/");
	assert_null(strchr(r.out, '\x1b'));
	assert_null(strchr(r.err, '\x1b'));
	RUN(&r, "explain", "policies/observe.yaml", "GET", "https://a.example/\x1b[31m");
	assert_null(strchr(r.out, '\x1b'));
	assert_null(strchr(r.err, '\x1b'));
}

/* One fault, one line, with the reason. */
static void test_import_unreadable(void **state)
{
	static char large[(1u << 20) + 65536 + 2];

	(void)state;
	RUN(&r, "import", "--from", "squid", "no/such/file");
	assert_int_equal(r.status, 2);
	assert_string_equal(r.out, "");
	assert_string_equal(
	        r.err, "vethguard: error: cannot read no/such/file: No such file or directory\n");
	RUN(&r, "import", "--from", "squid", "tests");
	assert_int_equal(r.status, 2);
	assert_string_equal(r.err, "vethguard: error: cannot read tests: Is a directory\n");
	memset(large, '\n', sizeof(large) - 1);
	remember(large);
	RUN(&r, "import", "--from", "squid", policy_path);
	forget();
	assert_int_equal(r.status, 2);
	assert_non_null(strstr(r.err, "policy.yaml: more than 1 MiB\n"));
	assert_ptr_equal(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_check),
	        cmocka_unit_test(test_check_bad),
	        cmocka_unit_test(test_check_json),
	        cmocka_unit_test(test_check_sources_there),
	        cmocka_unit_test(test_check_file_rights),
	        cmocka_unit_test(test_check_file_missing),
	        cmocka_unit_test(test_check_file_unreadable),
	        cmocka_unit_test(test_check_file_below_file),
	        cmocka_unit_test(test_check_variable_missing),
	        cmocka_unit_test(test_check_unused_included),
	        cmocka_unit_test(test_check_unused),
	        cmocka_unit_test(test_check_notes_json),
	        cmocka_unit_test(test_upgrade),
	        cmocka_unit_test(test_usage),
	        cmocka_unit_test(test_help),
	        cmocka_unit_test(test_escapes),
	        cmocka_unit_test(test_import_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
