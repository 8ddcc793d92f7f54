/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use the control socket, and that a flood of refused callers is not a flood of log lines.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "supervisor/control/admission.h"

#define GROUP 4711
#define FLOOD 5000

static struct loop *loop;
static struct admission admission;
static struct loop_timer timer;
static unsigned told;
static struct control_record last;
static char detail[CONTROL_DETAIL_MAX];

static void on_called(struct control_owner *owner, const struct control_record *record)
{
	(void)owner;
	told++;
	last = *record;
	snprintf(detail, sizeof(detail), "%s", record->detail);
	assert_string_equal(record->operation, "connect");
	assert_int_equal(record->status, 403);
	assert_true(record->looks);
}

static struct control_owner owner = {.called = on_called};

static struct http_peer self(uid_t uid)
{
	return (struct http_peer){
	        .pid = getpid(), .pidfd = HTTP_PEER_UNTOLD, .uid = uid, .gid = uid};
}

static void on_time(struct loop_timer *t)
{
	loop_stop(t->loop);
}

static void pass(int64_t ms)
{
	loop_timer_set(&timer, ms);
	loop_run(loop);
}

static int set_up(void **state)
{
	(void)state;
	told = 0;
	loop = loop_new();
	return !loop || loop_timer_open(loop, &timer, on_time) != 0 ||
	       admission_open(&admission, loop, &owner, GROUP) != 0;
}

static int tear_down(void **state)
{
	(void)state;
	admission_close(&admission);
	loop_timer_close(&timer);
	loop_free(loop);
	return 0;
}

static void root_and_members_may(void **state)
{
	static const gid_t groups[] = {1, GROUP};
	struct http_peer peer = self(0);

	(void)state;
	assert_null(admission_objection(&admission, &peer));
	peer = self(12345);
	assert_non_null(strstr(admission_objection(&admission, &peer), "members of the group"));
	assert_string_equal(detail, "only root and members of the group vethguard may use the "
	                            "control socket");
	peer.groups = groups;
	peer.group_count = 2;
	assert_null(admission_objection(&admission, &peer));
	peer.group_count = 1;
	assert_non_null(admission_objection(&admission, &peer));
	peer.gid = GROUP;
	assert_null(admission_objection(&admission, &peer));
	peer.pidfd = HTTP_PEER_ENDED;
	assert_non_null(strstr(admission_objection(&admission, &peer), "has ended"));
	assert_int_equal(told, 3);
}

/* A caller that was killed is not said to come from a sandbox; it is refused all the same. */
static void whoever_has_ended_is_refused(void **state)
{
	struct http_peer peer = self(0);
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	peer.pid = pid;
	peer.pidfd = pidfd_open(pid, 0);
	assert_true(peer.pidfd >= 0);
	assert_null(admission_objection(&admission, &peer));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_non_null(strstr(admission_objection(&admission, &peer), "has ended"));
	close(peer.pidfd);
	assert_int_equal(told, 1);
}

static void where_there_is_no_group_root_alone_may(void **state)
{
	struct http_peer peer = self(12345);

	(void)state;
	admission.group = peer.gid = (gid_t)-1;
	assert_non_null(admission_objection(&admission, &peer));
}

static void a_flood_is_told_of_together(void **state)
{
	struct http_peer peer = self(12345);
	unsigned at_once;

	(void)state;
	for (int i = 0; i < FLOOD; i++) {
		peer.pid = i;
		assert_non_null(admission_objection(&admission, &peer));
	}
	at_once = told;
	assert_in_range(at_once, 1, ADMISSION_PER_S * ADMISSION_BURST_S);
	pass(ADMISSION_TELL_MS + 200);
	assert_int_equal(told, at_once + 1);
	assert_int_equal(last.peer.pid, FLOOD - 1);
	assert_int_equal(last.peer.uid, 12345);
	snprintf(detail + 100, sizeof(detail) - 100, "%u connections; the last of them: only root",
	        FLOOD - at_once);
	assert_memory_equal(detail, detail + 100, strlen(detail + 100));
	pass(ADMISSION_TELL_MS + 200);
	assert_int_equal(told, at_once + 1); /* nothing else has come */
	assert_non_null(admission_objection(&admission, &peer));
	assert_int_equal(told, at_once + 2);
}

static void the_rest_is_told_at_the_end(void **state)
{
	struct http_peer peer = self(12345);
	unsigned at_once;

	(void)state;
	for (int i = 0; i < ADMISSION_PER_S * ADMISSION_BURST_S + 3; i++)
		assert_non_null(admission_objection(&admission, &peer));
	at_once = told;
	admission_close(&admission);
	assert_int_equal(told, at_once + 1);
	assert_non_null(strstr(detail, "3 connections;"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        CASE(root_and_members_may),
	        CASE(whoever_has_ended_is_refused),
	        CASE(where_there_is_no_group_root_alone_may),
	        CASE(a_flood_is_told_of_together),
	        CASE(the_rest_is_told_at_the_end),
	};

	log_open("test", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
