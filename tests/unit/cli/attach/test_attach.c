/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon's commands read: options, times, what an engine says of a container, and answers
 * of a program that is not the daemon. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/attach/options.h"
#include "cli/commands.h"
#include "vethguard/base/process.h"

static void test_ttl(void **state)
{
	static const struct {
		const char *text;
		uint64_t seconds; /* 0: refused */
	} cases[] = {{"90", 90}, {"90s", 90}, {"30m", 1800}, {"2h", 7200}, {"7d", 604800},
	        {"366d", 31622400}, {"367d", 0}, {"31622401", 0}, {"", 0}, {"m", 0}, {"0", 0},
	        {"0h", 0}, {"-1", 0}, {"1.5h", 0}, {"1 h", 0}, {"1w", 0}, {"1hh", 0},
	        {"99999999999999999999d", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t seconds = 0;
		bool read = attach_ttl_read(cases[i].text, &seconds);

		if (read != (cases[i].seconds > 0) || (read && seconds != cases[i].seconds))
			fail_msg("%s", cases[i].text);
	}
}

/* Words as main() would give them. */
static int options(struct attach_options *o, const char *line)
{
	static char text[1024];
	static char *argv[64];
	size_t n = 0;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[n++] = word;
	argv[n] = NULL;
	return attach_options_read(argv, o);
}

static void test_attach_options(void **state)
{
	static const char *const wrong[] = {"", "--pid 1", "--policy p", "--policy p --pid 0",
	        "--policy p --pid x", "--policy p --pid 1 --netns /n", "--policy p --pid 1 word",
	        "--policy p --netns /n --files", "--policy p --pid 1 --engine docker",
	        "--policy p --container c --engine lxc", "--policy p --pid 1 --label a",
	        "--policy p --pid 1 --label =a", "--policy p --pid 1 --ttl soon",
	        "--policy p --pid 1 --var", "--policy p --pid 1 --nmae x",
	        "--policy p --pid 4294967296", "--policy p --pid 1 --address 10.0.0.2",
	        "--policy p --pid 1 --var a=1 --var b=2 --var a=3",
	        "--policy p --pid 1 --label a= --label a=", "--policy p --policy q --pid 1",
	        "--policy p --pid 1 --pid 2", "--policy p --container a --container b",
	        "--policy p --interface tap0 --address 10.0.0.300",
	        "--policy p --interface tap0 --address 10.0.0.2/24"};
	struct attach_options o;

	(void)state;
	assert_int_equal(options(&o, "-p p --pid 7 --label a=b=c --label d= --var v=1 --ttl 1h "
	                             "--observe --files --json --socket /s"),
	        -1);
	assert_int_equal(o.pid, 7);
	assert_int_equal(o.labels.count, 2);
	assert_string_equal(o.labels.items[0], "a=b=c");
	assert_int_equal(o.ttl_s, 3600);
	assert_true(o.observe && o.files && o.line.json);
	assert_string_equal(o.line.socket, "/s");
	assert_int_equal(options(&o, "-p p -c web"), -1);
	assert_true(o.files);
	assert_int_equal(options(&o, "-p p -i tap0 --address 10.0.0.2 --address fd00::2"), -1);
	assert_int_equal(o.addresses.count, 2);
	assert_int_equal(options(&o, "-p p --pid 1 --var a=1 --var ab=1 --label a=1"), -1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (options(&o, wrong[i]) != CLI_USAGE)
			fail_msg("%s", wrong[i]);
}

static bool container(const char *text, struct control_container *out, char *fault)
{
	json_t *json = json_loads(text, 0, NULL);
	bool read;

	assert_non_null(json);
	read = control_container_read(json, out, fault, 1024);
	json_decref(json);
	return read;
}

#define CONTAINER(id, pid, mode)                                        \
	"[{\"Id\":\"" id "\",\"Name\":\"/web\",\"State\":{\"Pid\":" pid \
	"},\"HostConfig\":{\"NetworkMode\":\"" mode "\"}}]"

static void test_container(void **state)
{
	struct control_container c;
	char fault[1024], id[1024];

	(void)state;
	assert_true(container(CONTAINER("abc", "12", "none"), &c, fault));
	assert_int_equal(c.pid, 12);
	assert_string_equal(c.id, "abc");
	assert_string_equal(c.name, "web");
	assert_false(container(CONTAINER("abc", "12", "bridge"), &c, fault));
	assert_non_null(strstr(fault, "(bridge)"));
	assert_non_null(strstr(fault, "--network none"));
	assert_false(container(CONTAINER("abc", "12", "x\\u001b[2J"), &c, fault));
	assert_null(strchr(fault, '\033'));
	assert_false(container(CONTAINER("abc", "0", "none"), &c, fault));
	assert_non_null(strstr(fault, "does not run"));
	assert_false(container(CONTAINER("abc", "\"12\"", "none"), &c, fault));
	assert_false(container(CONTAINER("abc", "99999999999", "none"), &c, fault));
	assert_false(container(CONTAINER("", "12", "none"), &c, fault));
	assert_false(container("[]", &c, fault));
	assert_false(container("{}", &c, fault));
	snprintf(id, sizeof(id),
	        "[{\"Id\":\"%0300d\",\"State\":{\"Pid\":1},\"HostConfig\":{\"NetworkMode\":"
	        "\"none\"}}]",
	        1);
	assert_false(container(id, &c, fault));
}

/* An engine of the test's own in PATH: which arguments it gets, and that no shell reads them. */
static void test_engine(void **state)
{
	char directory[] = "/tmp/vethguard-engine-XXXXXX", path[128], *before = getenv("PATH");
	struct control_container c;
	uint64_t began;
	FILE *script;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/podman", directory);
	script = fopen(path, "w");
	fputs("#!/bin/sh\n"
	      "[ \"$*\" = 'inspect --type container -- $(id)' ] || exit 1\n"
	      "echo '" CONTAINER("abc", "1", "none") "'\n",
	        script);
	fclose(script);
	chmod(path, 0755);
	before = strdup(before);
	setenv("PATH", directory, 1);
	assert_int_equal(control_container_find(NULL, "$(id)", &c), 0);
	assert_string_equal(c.engine, "podman");
	assert_int_equal(process_start_time(1, &began), 0);
	assert_int_equal(c.start_time, began);
	assert_int_equal(control_container_find("podman", "other", &c), CLI_USAGE);
	assert_int_equal(control_container_find("docker", "$(id)", &c), CLI_USAGE);
	setenv("PATH", before, 1);
	free(before);
	unlink(path);
	rmdir(directory);
}

/* The engine prints this, and the next time that. */
static int find_changing(const char *then)
{
	char directory[] = "/tmp/vethguard-engine-XXXXXX", path[128], second[128];
	char *before = strdup(getenv("PATH"));
	struct control_container c;
	FILE *script;
	int rc;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/docker", directory);
	snprintf(second, sizeof(second), "%s/second", directory);
	script = fopen(path, "w");
	fprintf(script, "#!/bin/sh\n[ -e %s ] && { %s; exit; }\n: >%s\necho '%s'\n", second, then,
	        second, CONTAINER("abc", "1", "none"));
	fclose(script);
	chmod(path, 0755);
	setenv("PATH", directory, 1);
	rc = control_container_find("docker", "web", &c);
	setenv("PATH", before, 1);
	free(before);
	assert_int_equal(unlink(second), 0);
	unlink(path);
	rmdir(directory);
	return rc;
}

/* The number that it had may be another process's already when that is looked at. */
static void test_restarted_meanwhile(void **state)
{
	(void)state;
	assert_int_equal(find_changing("echo '" CONTAINER("abc", "1", "none") "'"), 0);
	assert_int_equal(find_changing("echo '" CONTAINER("abc", "2", "none") "'"), CLI_USAGE);
	assert_int_equal(find_changing("echo '" CONTAINER("abd", "1", "none") "'"), CLI_USAGE);
	assert_int_equal(find_changing("echo '" CONTAINER("abc", "0", "none") "'"), CLI_USAGE);
	assert_int_equal(find_changing("echo '{'"), CLI_USAGE);
	assert_int_equal(find_changing("exit 1"), CLI_USAGE);
}

/* A daemon that answers this and hangs up. */
static int call(const char *said, struct control_answer *answer)
{
	char directory[] = "/tmp/vethguard-client-XXXXXX";
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), rc, status;
	pid_t pid;

	assert_non_null(mkdtemp(directory));
	snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", directory);
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid = fork();
	if (pid == 0) {
		char asked[1024];
		int fd = accept(listener, NULL, NULL);
		ssize_t n = read(fd, asked, sizeof(asked) - 1);

		asked[n > 0 ? n : 0] = '\0';
		(void)!write(fd, said, strlen(said));
		_exit(strncmp(asked, "GET /v1/x HTTP/1.1\r\n", 20) != 0);
	}
	rc = control_call(name.sun_path, "GET", "/x", NULL, answer);
	close(listener);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	unlink(name.sun_path);
	rmdir(directory);
	return rc;
}

static void test_answers(void **state)
{
	static const char *const broken[] = {"", "nonsense\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}",
	        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]",
	        "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"};
	struct control_answer answer;

	(void)state;
	assert_int_equal(call("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}", &answer), 0);
	assert_int_equal(json_integer_value(json_object_get(answer.json, "a")), 1);
	control_answer_free(&answer);
	assert_int_equal(call("HTTP/1.1 404 Not Found\r\nContent-Length: 14\r\n\r\n"
	                      "{\"detail\":\"x\"}",
	                         &answer),
	        CONTROL_REFUSED);
	assert_int_equal(call("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}", &answer),
	        CONTROL_UNREACHABLE);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		assert_int_equal(call(broken[i], &answer), CONTROL_UNREACHABLE);
	assert_int_equal(
	        control_call("/nowhere/s", "GET", "/x", NULL, &answer), CONTROL_UNREACHABLE);
}

static void test_paths(void **state)
{
	char path[CONTROL_PATH_MAX];

	(void)state;
	assert_true(control_path(path, "a-1", "/env"));
	assert_string_equal(path, "/sandboxes/a-1/env");
	assert_false(control_path(path, "../status", ""));
	assert_false(control_path(path, "a b", ""));
	assert_false(control_path(path, "", ""));
}

/* What the command prints, read back. */
static const char *printed(void (*print)(const json_t *json), const json_t *json)
{
	static char text[8192];
	FILE *file = tmpfile();
	int own = dup(STDOUT_FILENO);
	size_t n;

	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	print(json);
	fflush(stdout);
	dup2(own, STDOUT_FILENO);
	close(own);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}

/* Users who attach sandboxes choose these words; a terminal must not obey them. */
static void test_no_word_moves_a_terminal(void **state)
{
	json_t *s = json_pack("{s:s, s:{s:s, s:{s:s, s:s, s:s}}, s:s, s:{s:s}, s:{s:s}}", "name",
	        "one", "attachment", "kind", "pid", "container", "engine", "\x1b[2Jx", "id", "1",
	        "name", "\x1b[3Jy", "reason", "\x1b[4J\nz", "labels", "a", "\x1b[5J", "vars", "b",
	        "\x1b[6J");
	json_t *list = json_pack("[O]", s);

	(void)state;
	assert_non_null(list);
	assert_null(strchr(printed(control_print_sandbox, s), '\x1b'));
	assert_null(strchr(printed(control_print_list, list), '\x1b'));
	assert_non_null(strstr(printed(control_print_list, list), "\\x1b[2Jx"));
	json_decref(list);
	json_decref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_ttl),
	        cmocka_unit_test(test_attach_options),
	        cmocka_unit_test(test_container),
	        cmocka_unit_test(test_engine),
	        cmocka_unit_test(test_restarted_meanwhile),
	        cmocka_unit_test(test_answers),
	        cmocka_unit_test(test_paths),
	        cmocka_unit_test(test_no_word_moves_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
