/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox that is to end with another process: from then on it does, and no longer with the
 * former one. If that fails nothing has changed: not the record, not its file, and the former
 * process still ends it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/process.h"
#include "attach_fixture.h"

/* The linker wraps: loop_io_open_level state_save */
int __real_loop_io_open_level(struct loop *loop, struct loop_io *io, int fd, unsigned events,
        void (*on_ready)(struct loop_io *io, unsigned events));
int __wrap_loop_io_open_level(struct loop *loop, struct loop_io *io, int fd, unsigned events,
        void (*on_ready)(struct loop_io *io, unsigned events));
int __real_state_save(int dir, const struct attach_record *record, const struct gate *gate);
int __wrap_state_save(int dir, const struct attach_record *record, const struct gate *gate);

static int watch_fails, save_fails; /* -errno; 0: it is done */

int __wrap_loop_io_open_level(struct loop *loop, struct loop_io *io, int fd, unsigned events,
        void (*on_ready)(struct loop_io *io, unsigned events))
{
	return watch_fails ? watch_fails
	                   : __real_loop_io_open_level(loop, io, fd, events, on_ready);
}

int __wrap_state_save(int dir, const struct attach_record *record, const struct gate *gate)
{
	return save_fails ? save_fails : __real_state_save(dir, record, gate);
}

static char folder[64];
static pid_t first, second;

/* It lives until it is killed, or this process ends. */
static pid_t start_process(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	alarm(900);
	for (;;)
		pause();
}

static void end_process(pid_t *pid)
{
	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	waitpid(*pid, NULL, 0);
	*pid = 0;
}

static void attach(void)
{
	struct attachment *a = attachment_new(&all);

	assert_non_null(a);
	strcpy(a->record.name, "box");
	a->record.kind = ATTACH_NETNS;
	a->record.policy = strdup("/nowhere/policy.yaml");
	a->record.netns = strdup("/nowhere/at-all");
	a->record.generation = 1;
	a->record.pid = first;
	assert_int_equal(process_start_time(first, &a->record.pid_start_time), 0);
	assert_int_equal(attachment_enter(a), 0);
	a->sandbox = sandbox_new(&supervisor, &a->owner, true);
	assert_true(a->record.policy && a->record.netns && a->sandbox);
	a->record.id = a->sandbox->id;
	a->sandbox->state = SANDBOX_SERVING;
	a->sandbox->gate.tcp_port = 3128;
	assert_int_equal(attachment_save(a), 0);
	assert_int_equal(attachment_watch(a), 0);
}

static int set_up(void **state)
{
	(void)state;
	watch_fails = save_fails = 0;
	strcpy(folder, "/tmp/test_follow.XXXXXX");
	if (set_up_daemon() < 0 || !mkdtemp(folder))
		return -1;
	all.state = supervisor.names = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	first = start_process();
	second = start_process();
	attach();
	return 0;
}

static int tear_down(void **state)
{
	struct attachment *a = attachments_find(&all, "box");

	(void)state;
	if (a)
		attachment_free(a);
	loop_free(supervisor.loop);
	end_process(&first);
	end_process(&second);
	unlinkat(all.state, "box.json", 0);
	close(all.state);
	return rmdir(folder);
}

static struct loop_timer look;
static unsigned looks;

static void on_look(struct loop_timer *timer)
{
	if (!all.by_name || --looks == 0)
		loop_stop(supervisor.loop);
	else
		loop_timer_set(timer, 1);
}

/* So many turns, or until it has ended. */
static bool ends_within(unsigned turns)
{
	looks = turns;
	assert_int_equal(loop_timer_open(supervisor.loop, &look, on_look), 0);
	loop_timer_set(&look, 0);
	assert_int_equal(loop_run(supervisor.loop), 0);
	loop_timer_close(&look);
	return !all.by_name;
}

#define LONG 100000 /* turns: two minutes */
#define SHORT 20

static pid_t saved_pid(void)
{
	char error[STATE_ERROR_MAX];
	struct attach_record record;
	struct gate gate;
	pid_t pid;

	gate_init(&gate);
	if (state_load(all.state, "box.json", &record, &gate, error) != 0)
		fail_msg("box.json: %s", error);
	pid = record.pid;
	attach_record_fini(&record);
	return pid;
}

static void follow(pid_t pid)
{
	attachments_follow(&all, "box", pid, 0, on_done, NULL);
	assert_int_equal(answered.count, 1);
}

static void it_ends_with_the_other_process(void **state)
{
	(void)state;
	follow(second);
	assert_int_equal(answered.status, ATTACH_OK);
	assert_int_equal(attachments_find(&all, "box")->record.pid, second);
	assert_int_equal(saved_pid(), second);
	end_process(&first);
	assert_false(ends_within(SHORT));
	end_process(&second);
	assert_true(ends_within(LONG));
}

static void nothing_has_changed(const char *why)
{
	const struct attachment *a = attachments_find(&all, "box");
	uint64_t start_time;

	assert_int_equal(answered.status, ATTACH_FAILED);
	if (!strstr(answered.text, why))
		fail_msg("not %s: %s", why, answered.text);
	assert_int_equal(process_start_time(first, &start_time), 0);
	assert_int_equal(a->record.pid, first);
	assert_int_equal(a->record.pid_start_time, start_time);
	assert_int_equal(saved_pid(), first);
	watch_fails = save_fails = 0;
	end_process(&second);
	assert_false(ends_within(SHORT));
	end_process(&first);
	assert_true(ends_within(LONG));
}

/* The limit of epoll_ctl(2), or no memory. */
static void the_other_cannot_be_watched(void **state)
{
	(void)state;
	watch_fails = -ENOSPC;
	follow(second);
	nothing_has_changed("No space left");
}

static void the_other_cannot_be_written_down(void **state)
{
	(void)state;
	save_fails = -EROFS;
	follow(second);
	nothing_has_changed("Read-only");
}

static void a_process_that_has_ended(void **state)
{
	const pid_t gone = second;

	(void)state;
	end_process(&second);
	follow(gone);
	assert_int_equal(answered.status, ATTACH_INVALID);
	assert_non_null(strstr(answered.text, "there is no process"));
	assert_int_equal(saved_pid(), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(it_ends_with_the_other_process, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(the_other_cannot_be_watched, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                the_other_cannot_be_written_down, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_process_that_has_ended, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
