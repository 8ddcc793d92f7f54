/* SPDX-License-Identifier: Apache-2.0 */
/* service: what a service manager gets, word for word; and that without a manager nothing is sent.
 */
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
#include <sys/un.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/ipc/service.h"

static int manager = -1;
static char name[64];

/* A manager's socket of this name ('@' begins an abstract one). */
static void listen_as(const char *as)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strlen(as);

	memcpy(to.sun_path, as, n);
	if (as[0] == '@')
		to.sun_path[0] = 0;
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_true(manager >= 0);
	assert_return_code(bind(manager, (struct sockaddr *)&to,
	                           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
	        errno);
	setenv("NOTIFY_SOCKET", as, 1);
}

static int prepare(void **state)
{
	(void)state;
	snprintf(name, sizeof(name), "/tmp/vethguard-service-process%d", (int)getpid());
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return 0;
}

static int clean(void **state)
{
	(void)state;
	service_close();
	if (manager >= 0)
		close(manager);
	manager = -1;
	unlink(name);
	return 0;
}

static const char *heard(void)
{
	static char text[4096];
	ssize_t n = recv(manager, text, sizeof(text) - 1, 0);

	if (n < 0)
		return NULL;
	text[n] = 0;
	return text;
}

static void says_each_state(void **state)
{
	long long us;
	char rest;

	(void)state;
	listen_as(name);
	assert_int_equal(service_open(), 0);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_int_equal(service_ready("%d sandboxes", 3), 0);
	assert_string_equal(heard(), "READY=1\nSTATUS=3 sandboxes\n");
	assert_int_equal(service_ready("a\nSTOPPING=1\x7f"), 0);
	assert_string_equal(heard(), "READY=1\nSTATUS=a?STOPPING=1?\n");
	int64_t before_ms = clock_monotonic_ms();
	assert_int_equal(service_reloading(), 0);
	assert_int_equal(sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%lld%c", &us, &rest), 2);
	assert_true(us / 1000 >= before_ms && us / 1000 <= clock_monotonic_ms());
	assert_int_equal(service_main_pid(1234), 0);
	assert_string_equal(heard(), "MAINPID=1234\n");
	assert_int_equal(service_watchdog(), 0);
	assert_string_equal(heard(), "WATCHDOG=1\n");
	assert_int_equal(service_stopping(), 0);
	assert_string_equal(heard(), "STOPPING=1\n");
	assert_null(heard());
}

static void an_abstract_name(void **state)
{
	char abstract[64];

	(void)state;
	snprintf(abstract, sizeof(abstract), "@vethguard-service-%d", (int)getpid());
	listen_as(abstract);
	assert_int_equal(service_open(), 0);
	assert_int_equal(service_stopping(), 0);
	assert_string_equal(heard(), "STOPPING=1\n");
}

static void a_long_status_is_cut(void **state)
{
	static char huge[5000];

	(void)state;
	memset(huge, 'x', sizeof(huge) - 1);
	listen_as(name);
	assert_int_equal(service_open(), 0);
	assert_int_equal(service_ready("%s", huge), 0);
	assert_int_equal(strlen(heard()), strlen("READY=1\nSTATUS=\n") + SERVICE_STATUS_MAX - 1);
}

static void nobody_to_tell(void **state)
{
	char far[200];

	(void)state;
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(service_open(), -ENOTCONN);
	assert_int_equal(service_ready("x"), -ENOTCONN);
	assert_int_equal(service_watchdog_ms(), 0);
	memset(far, 'a', sizeof(far) - 1);
	far[0] = '/';
	far[sizeof(far) - 1] = 0;
	const char *const wrong[] = {"", "/", "@", "relative", "vsock:2:1234", far};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("NOTIFY_SOCKET", wrong[i], 1);
		assert_int_equal(service_open(), -EINVAL);
		assert_int_equal(service_stopping(), -ENOTCONN);
	}
	setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
	assert_int_equal(service_open(), 0);
	assert_int_equal(service_stopping(), -ENOENT);
}

static void a_manager_that_does_not_listen_is_not_waited_for(void **state)
{
	int64_t begin_ms = clock_monotonic_ms();
	int error = 0;

	(void)state;
	listen_as(name);
	assert_int_equal(service_open(), 0);
	for (int i = 0; i < 10000 && !error; i++)
		error = service_stopping();
	assert_int_equal(error, -EAGAIN);
	assert_true(clock_monotonic_ms() - begin_ms >= SERVICE_PATIENCE_MS / 2);
	assert_non_null(heard());
	assert_int_equal(service_stopping(), 0); /* it listens again */
}

static void watchdogs(void **state)
{
	static const struct {
		const char *us;
		int64_t ms;
	} cases[] = {{"30000000", 15000}, {"1000", 1}, {"0", 0}, {"-5", 0}, {"abc", 0}, {"10s", 0},
	        {"99999999999999999999999", 0}, {"9999999999999999", 0}, {"", 0}};
	char pid[32];

	(void)state;
	listen_as(name);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("NOTIFY_SOCKET", name, 1);
		setenv("WATCHDOG_USEC", cases[i].us, 1);
		assert_int_equal(service_open(), 0);
		assert_int_equal(service_watchdog_ms(), cases[i].ms);
		assert_null(getenv("WATCHDOG_USEC"));
	}
	for (int mine = 0; mine < 2; mine++) { /* meant for this process or for another one */
		setenv("NOTIFY_SOCKET", name, 1);
		setenv("WATCHDOG_USEC", "2000000", 1);
		snprintf(pid, sizeof(pid), "%d", mine ? (int)getpid() : 1);
		setenv("WATCHDOG_PID", pid, 1);
		assert_int_equal(service_open(), 0);
		assert_int_equal(service_watchdog_ms(), mine ? 1000 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(says_each_state, prepare, clean),
	        cmocka_unit_test_setup_teardown(an_abstract_name, prepare, clean),
	        cmocka_unit_test_setup_teardown(a_long_status_is_cut, prepare, clean),
	        cmocka_unit_test_setup_teardown(nobody_to_tell, prepare, clean),
	        cmocka_unit_test_setup_teardown(
	                a_manager_that_does_not_listen_is_not_waited_for, prepare, clean),
	        cmocka_unit_test_setup_teardown(watchdogs, prepare, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
