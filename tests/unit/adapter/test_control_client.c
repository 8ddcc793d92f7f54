/* SPDX-License-Identifier: Apache-2.0 */
/* One call of the control API against a socket that answers well, badly, or not at all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/adapter/control_client.h"

static char path[108];
static char heard[4096]; /* shared with the child by a pipe */

/* A child reads the request on one connection and answers with these bytes. */
static pid_t serve(const char *answer, int report[2])
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;
	char request[4096];
	ssize_t n;
	pid_t pid;

	unlink(path);
	memcpy(name.sun_path, path, sizeof(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(pipe(report), 0);
	pid = fork();
	if (pid != 0) {
		close(fd);
		close(report[1]);
		return pid;
	}
	peer = accept(fd, NULL, NULL);
	n = recv(peer, request, sizeof(request), 0);
	(void)!write(report[1], request, n > 0 ? (size_t)n : 0);
	(void)!write(peer, answer, strlen(answer));
	_exit(0);
}

static int call_with(const char *answer, const json_t *body, struct control_answer *out)
{
	int report[2], rc;
	pid_t pid = serve(answer, report);
	ssize_t n;

	rc = control_client_call(path, body ? "POST" : "GET", "/sandboxes", body, out);
	n = read(report[0], heard, sizeof(heard) - 1);
	heard[n > 0 ? n : 0] = '\0';
	close(report[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return rc;
}

static void test_a_good_answer(void **state)
{
	json_t *body = json_pack("{s:s}", "name", "one");
	struct control_answer answer;

	(void)state;
	assert_int_equal(call_with("HTTP/1.1 201 Created\r\nContent-Length: 14\r\n\r\n"
	                           "{\"name\":\"one\"}",
	                         body, &answer),
	        0);
	json_decref(body);
	assert_true(control_answer_is_good(&answer));
	assert_string_equal(control_text(answer.json, "name"), "one");
	assert_string_equal(control_text(answer.json, "nome"), "");
	assert_non_null(strstr(heard, "POST /v1/sandboxes HTTP/1.1\r\n"));
	assert_non_null(strstr(heard, "\r\n\r\n{\"name\":\"one\"}"));
	control_answer_free(&answer);
}

static void test_a_refusal_is_one_sentence(void **state)
{
	char text[CONTROL_CLIENT_TEXT_MAX];
	struct control_answer answer;

	(void)state;
	assert_int_equal(
	        call_with(
	                "HTTP/1.1 422 X\r\nContent-Length: 64\r\n\r\n"
	                "{\"detail\":\"the policy has\\na fault\",\"diagnostics\":[\"p:1:2: no\"]}",
	                NULL, &answer),
	        0);
	assert_false(control_answer_is_good(&answer));
	assert_string_equal(control_answer_fault(&answer, 0, path, text),
	        "the policy has\\x0aa fault: p:1:2: no");
	control_answer_free(&answer);
	assert_int_equal(
	        call_with("HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\n{}", NULL, &answer), 0);
	assert_string_equal(control_answer_fault(&answer, 0, path, text), "Service Unavailable");
	control_answer_free(&answer);
}

static void test_what_is_no_answer(void **state)
{
	static const char *const answers[] = {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{",
	        "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"a\":1,\"a\":2}",
	        "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}", "SSH-2.0-x\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", ""};
	char text[CONTROL_CLIENT_TEXT_MAX];
	struct control_answer answer;
	int rc;

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		rc = call_with(answers[i], NULL, &answer);
		assert_true(rc < 0);
		assert_null(answer.json);
		assert_non_null(strstr(control_answer_fault(&answer, rc, path, text), path));
	}
}

static void test_nobody_listens(void **state)
{
	char text[CONTROL_CLIENT_TEXT_MAX], longer[200];
	struct control_answer answer;

	(void)state;
	unlink(path);
	assert_int_equal(control_client_call(path, "GET", "/status", NULL, &answer), -ENOENT);
	assert_non_null(strstr(
	        control_answer_fault(&answer, -ENOENT, path, text), "vethguardd does not run"));
	assert_non_null(
	        strstr(control_answer_fault(&answer, -EACCES, path, text), "group vethguard"));
	assert_non_null(
	        strstr(control_answer_fault(&answer, -EAGAIN, path, text), "does not answer"));
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(
	        control_client_call(longer, "GET", "/status", NULL, &answer), -ENAMETOOLONG);
}

static int make(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/control-client-%d.sock", (int)getpid());
	return 0;
}

static int clean(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_a_good_answer),
	        cmocka_unit_test(test_a_refusal_is_one_sentence),
	        cmocka_unit_test(test_what_is_no_answer),
	        cmocka_unit_test(test_nobody_listens),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
