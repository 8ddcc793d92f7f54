/* SPDX-License-Identifier: Apache-2.0 */
/* journald: the form of an entry on the wire, and where a message goes that the journal does not
 * take. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/journald.h"

static int native = -1, stream[2], real_stderr;
static char path[64];

static void listen_native(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	memcpy(to.sun_path, path, strlen(path));
	native = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_true(native >= 0);
	assert_return_code(bind(native, (struct sockaddr *)&to, sizeof(to)), errno);
}

static void name_stream(int fd)
{
	struct stat st;
	char text[64];

	assert_return_code(fstat(fd, &st), errno);
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st.st_dev,
	        (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", text, 1);
}

/* stderr is a stream socket as the journal's is. */
static int prepare(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/vethguard-journald-process%d", (int)getpid());
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, stream) < 0)
		return -1;
	real_stderr = dup(STDERR_FILENO);
	dup2(stream[1], STDERR_FILENO);
	name_stream(STDERR_FILENO);
	log_open("vethguardd", LOG_LEVEL_DEBUG);
	listen_native();
	return 0;
}

static int clean(void **state)
{
	(void)state;
	journald_close();
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	close(stream[0]);
	close(stream[1]);
	close(native);
	unlink(path);
	return 0;
}

static const char *heard(int fd)
{
	static char text[65536];
	ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < 0)
		return NULL;
	text[n] = 0;
	return text;
}

static void an_entry_has_its_fields(void **state)
{
	const struct log_subject both = {"build\n-7", "vethguard-worker"};

	(void)state;
	assert_true(journald_open(path));
	log_error("cannot %s", "x\ny");
	assert_string_equal(
	        heard(native), "PRIORITY=3\nSYSLOG_IDENTIFIER=vethguardd\nMESSAGE=cannot x?y\n");
	log_relay("vethguard-worker", &both, "info: ready", 11);
	assert_string_equal(heard(native),
	        "PRIORITY=6\nSYSLOG_IDENTIFIER=vethguard-worker\nSANDBOX=build?-7\n"
	        "ROLE=vethguard-worker\nMESSAGE=ready\n");
	log_sandbox(LOG_LEVEL_WARN, "box", "%d", 7);
	assert_string_equal(heard(native),
	        "PRIORITY=4\nSYSLOG_IDENTIFIER=vethguardd\nSANDBOX=box\nMESSAGE=7\n");
	log_warn("w");
	assert_non_null(strstr(heard(native), "PRIORITY=4\n"));
	log_debug("d");
	assert_non_null(strstr(heard(native), "PRIORITY=7\n"));
	log_open("vethguardd", LOG_LEVEL_WARN);
	log_sandbox(LOG_LEVEL_INFO, "box", "nor this");
	assert_null(heard(native));
	assert_null(heard(stream[0]));
}

static void what_roles_write_keeps_its_level(void **state)
{
	static const struct {
		const char *line, *entry;
	} cases[] = {
	        {"vethguard-worker: error: bad",
	                "PRIORITY=3\nSYSLOG_IDENTIFIER=vethguard-worker\nMESSAGE=bad\n"},
	        {"vethguard-worker: info: fine: error: x",
	                "PRIORITY=6\nSYSLOG_IDENTIFIER=vethguard-worker\nMESSAGE=fine: error: "
	                "x\n"},
	        {"==1==ERROR: something",
	                "PRIORITY=4\nSYSLOG_IDENTIFIER=vethguard-worker\nMESSAGE===1==ERROR: "
	                "something\n"},
	        {"error: ", "PRIORITY=3\nSYSLOG_IDENTIFIER=vethguard-worker\nMESSAGE=\n"},
	        {"", "PRIORITY=4\nSYSLOG_IDENTIFIER=vethguard-worker\nMESSAGE=\n"},
	};
	const struct log_subject none = {NULL, NULL};

	(void)state;
	assert_true(journald_open(path));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		log_relay("vethguard-worker", &none, cases[i].line, strlen(cases[i].line));
		assert_string_equal(heard(native), cases[i].entry);
	}
}

static void a_huge_message_is_one_entry(void **state)
{
	static char huge[70000];

	(void)state;
	memset(huge, 'x', sizeof(huge) - 1);
	assert_true(journald_open(path));
	log_sandbox(LOG_LEVEL_ERROR, huge, "%s", huge);
	const char *entry = heard(native);
	assert_non_null(entry);
	assert_true(strlen(entry) > 2200 && strlen(entry) < 2500);
	assert_non_null(strstr(entry, "x\nMESSAGE=xxx"));
	assert_int_equal(entry[strlen(entry) - 1], '\n');
	assert_null(heard(native));
}

static void only_where_stderr_is_the_journal(void **state)
{
	static const char *const wrong[] = {"", "1", "1:2", "x:y", ":"};
	int pipes[2];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("JOURNAL_STREAM", wrong[i], 1);
		assert_false(journald_open(path));
	}
	unsetenv("JOURNAL_STREAM");
	assert_false(journald_open(path));
	assert_return_code(pipe(pipes), errno);
	name_stream(pipes[1]); /* somebody else's */
	assert_false(journald_open(path));
	log_error("a");
	assert_string_equal(heard(stream[0]), "vethguardd: error: a\n");
	log_sandbox(LOG_LEVEL_WARN, "box", "b");
	assert_string_equal(heard(stream[0]), "vethguardd: warning: box: b\n");
	assert_null(heard(native));
	close(pipes[0]);
	close(pipes[1]);
}

static void a_journal_that_is_gone_has_the_stream(void **state)
{
	(void)state;
	assert_true(journald_open(path));
	close(native);
	unlink(path);
	log_error("one");
	assert_string_equal(heard(stream[0]), "<3>one\n");
	log_sandbox(LOG_LEVEL_INFO, "box", "two");
	assert_string_equal(heard(stream[0]), "<6>box: two\n");
	listen_native(); /* started again, under the same path */
	log_error("three");
	assert_non_null(strstr(heard(native), "MESSAGE=three\n"));
	assert_null(heard(stream[0]));
}

/* Neither the journal nor stderr takes anything: no call blocks, and the number of missing messages
 * is reported.
 */
static void what_nobody_takes_is_counted(void **state)
{
	unsigned taken = 0, missing = 0;
	const char *entry;

	(void)state;
	assert_true(journald_open(path));
	for (int i = 0; i < 5000; i++)
		log_error("%04d %0400d", i, 0);
	while (heard(native))
		taken++;
	log_error("again");
	assert_non_null(strstr(heard(native), "MESSAGE=again\n"));
	entry = heard(native);
	assert_non_null(entry);
	assert_int_equal(sscanf(strstr(entry, "MESSAGE="), "MESSAGE=%u messages", &missing), 1);
	while ((entry = heard(stream[0])))
		for (; (entry = strchr(entry, '\n')); entry++)
			taken++;
	assert_int_equal(taken + missing, 5000);
	assert_true(missing > 0);
	log_error("told once");
	assert_non_null(heard(native));
	assert_null(heard(native));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(an_entry_has_its_fields, prepare, clean),
	        cmocka_unit_test_setup_teardown(what_roles_write_keeps_its_level, prepare, clean),
	        cmocka_unit_test_setup_teardown(a_huge_message_is_one_entry, prepare, clean),
	        cmocka_unit_test_setup_teardown(only_where_stderr_is_the_journal, prepare, clean),
	        cmocka_unit_test_setup_teardown(
	                a_journal_that_is_gone_has_the_stream, prepare, clean),
	        cmocka_unit_test_setup_teardown(what_nobody_takes_is_counted, prepare, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
