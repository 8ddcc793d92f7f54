/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole runs: this program is the supervisor and, through links to itself, keeper, recorder and
 * worker, each of which can be told to misbehave. The other end of the socket is a child with a
 * network namespace to guard. Every one of them has to end with the right last message, the
 * right exit status, and nothing left running.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fake_role.h"
#include "supervisor/run.h"
#include "vethguard/jail/capabilities.h"
#include "vethguard/netlink/netns.h"

#define CAP_SYS_ADMIN_BIT 21
#define PEM "-----BEGIN CERTIFICATE-----\n"

/* The roles. */

static void say_root(uint64_t id)
{
	static const char print[] = "0123456789abcdef0123456789abcdef";
	struct message_keeper_root m = {SLICE(PEM), SLICE(print), SLICE(print)};

	ipc_send_blocking(IPC_SUPERVISOR_FD, fake_out,
	        message_keeper_root_encode(fake_out, sizeof(fake_out), MESSAGE_KEEPER_ROOT, id, &m),
	        NULL, 0);
}

static void ask_source(uint64_t sandbox, uint32_t credential)
{
	struct message_source_open m = {sandbox, credential, 1};

	ipc_send_blocking(IPC_SUPERVISOR_FD, fake_out,
	        message_source_open_encode(fake_out, sizeof(fake_out), MESSAGE_SOURCE_OPEN, 77, &m),
	        NULL, 0);
}

/* As if the priority had been lent to it. It reports a failure that belongs to nobody, and then
 * whether that took the priority back. */
static void answer_lent(uint64_t id)
{
	const struct sched_param lowest = {.sched_priority = 1};
	bool back = false;

	if (sched_setscheduler(0, SCHED_RR, &lowest) < 0)
		_exit(95);
	fake_say_text(MESSAGE_FAILED, id + 1000, "nobody's");
	for (int i = 0; i < 300 && !back; i++) {
		usleep(10000);
		back = sched_getscheduler(0) == SCHED_OTHER;
	}
	fake_say_text(MESSAGE_FAILED, id, back ? "given back" : "kept");
}

static void keeper_hears_sandbox(struct ipc_message *m)
{
	struct message_keeper_sandbox s;

	if (message_keeper_sandbox_decode(&m->body, &s) != 0 || m->fd_count != 0)
		_exit(98);
	if (fake_is("keeper=refuse"))
		fake_say_text(MESSAGE_FAILED, m->head.id, "full");
	else if (fake_is("keeper=lent"))
		answer_lent(m->head.id);
	else if (fake_is("keeper=forge")) /* an id that was never given out */
		say_root(m->head.id + 1000);
	else if (!fake_is("keeper=mute"))
		say_root(m->head.id);
	if (fake_is("keeper=about")) { /* about a worker that is gone, before an end of its own */
		fake_say_text(MESSAGE_FAILED, m->head.id + 1000, "another's");
		fake_die(SIGSEGV);
	}
	if (fake_is("keeper=range"))
		ask_source(s.sandbox_id, 63);
	if (fake_is("keeper=stranger"))
		ask_source(s.sandbox_id + 1, 0);
	if (fake_is("keeper=variable"))
		ask_source(s.sandbox_id, 0);
}

/* The answer to SOURCE_OPEN decides how this keeper ends: the test reads it from the exit
 * status. */
static void keeper_hears_source(struct ipc_message *m)
{
	struct message_source answer;
	char value[64] = "";

	if (m->head.id != 77 || message_source_decode(&m->body, &answer) != 0)
		_exit(97);
	if (!answer.opened)
		_exit(40);
	_exit(read(m->fds[0], value, sizeof(value)) == 5 && strcmp(value, "value") == 0 ? 41 : 96);
}

static int play_keeper(void)
{
	struct ipc_message m;

	while (ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, fake_in, &m) == 0) {
		if (m.head.type == MESSAGE_KEEPER_START)
			fake_say(MESSAGE_KEEPER_READY, m.head.id);
		else if (m.head.type == MESSAGE_KEEPER_SANDBOX)
			keeper_hears_sandbox(&m);
		else if (m.head.type == MESSAGE_SOURCE)
			keeper_hears_source(&m);
		else if (m.head.type == MESSAGE_KEEPER_WORKER && m.fd_count == 1)
			continue; /* and keeps its end */
		else
			return 0;
	}
	return 0;
}

static void say_summary(uint64_t id)
{
	struct message_summary m = {.allowed = 5};

	ipc_send_blocking(IPC_SUPERVISOR_FD, fake_out,
	        message_summary_encode(
	                fake_out, sizeof(fake_out), MESSAGE_RECORDER_SUMMARY, id, &m),
	        NULL, 0);
}

static void recorder_hears(struct ipc_message *m)
{
	struct message_recorder_sandbox s;
	struct message_recorder_ring ring;

	switch (m->head.type) {
	case MESSAGE_RECORDER_START:
		if (m->fd_count != 3)
			_exit(98);
		fake_say(MESSAGE_RECORDER_READY, m->head.id);
		return;
	case MESSAGE_RECORDER_SANDBOX:
		if (message_recorder_sandbox_decode(&m->body, &s) != 0 || m->fd_count != 1)
			_exit(98);
		if (fake_is("recorder=broken"))
			fake_say_text(MESSAGE_FAILED, s.sandbox_id, "Its worker broke its stream.");
		return;
	case MESSAGE_RECORDER_RING:
		if (message_recorder_ring_decode(&m->body, &ring) != 0 || m->fd_count != 3)
			_exit(98);
		return;
	case MESSAGE_RECORDER_RING_END:
		if (message_recorder_ring_decode(&m->body, &ring) != 0)
			_exit(98);
		fake_say(MESSAGE_RECORDER_RING_DRAINED, m->head.id);
		return;
	case MESSAGE_RECORDER_EVENT:
		if (fake_is("recorder=crash"))
			fake_die(SIGBUS);
		return;
	case MESSAGE_RECORDER_END:
		if (fake_is("recorder=forge"))
			say_summary(m->head.id + 1000);
		else
			say_summary(m->head.id);
		return;
	default:
		_exit(0);
	}
}

static int play_recorder(void)
{
	struct ipc_message m;

	while (ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, fake_in, &m) == 0) {
		recorder_hears(&m);
		for (size_t i = 0; i < m.fd_count; i++)
			close(m.fds[i]);
	}
	return 0;
}

static void worker_starts(struct ipc_message *m)
{
	struct message_worker_start s;

	if (message_worker_start_decode(&m->body, &s) != 0 ||
	        m->fd_count != MESSAGE_WORKER_FDS_BEFORE_LISTENERS + s.listener_count)
		_exit(98);
	message_worker_start_fini(&s);
	fake_say(MESSAGE_WORKER_READY, fake_is("worker=forge") ? m->head.id + 1 : m->head.id);
	if (fake_is("worker=twice"))
		fake_say(MESSAGE_WORKER_READY, m->head.id);
	if (fake_is("worker=crash"))
		fake_die(SIGSEGV);
}

static int play_worker(void)
{
	struct ipc_message m;

	if (fake_is("worker=stillborn"))
		return 9;
	while (ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, fake_in, &m) == 0) {
		if (m.head.type == MESSAGE_WORKER_START)
			worker_starts(&m);
		else if (m.head.type == MESSAGE_STOP && !fake_is("worker=deaf"))
			return 0;
	}
	return 0;
}

/* The supervisor's process: what main() does without giving up capabilities. */
static int play_supervisor(int socket)
{
	static struct supervisor supervisor;
	static struct run run;
	struct loop *loop = loop_new();
	const char *step;

	alarm(900);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (supervisor_start(&supervisor, loop, &step) != 0 ||
	        run_open(&run, &supervisor, socket) != 0)
		return 99;
	loop_run(loop);
	run_close(&run);
	supervisor_fini(&supervisor);
	loop_free(loop);
	return supervisor.status;
}

/* The other end of the socket: `vethguard run`. */

static char directory[64], policy_path[128];
static pid_t supervisor_pid;
static int run_fd;
static struct ipc_message heard;
static char failed[MESSAGE_TEXT_MAX];

static void say(const void *unused, size_t n, const int *fds, size_t fd_count)
{
	(void)unused;
	assert_int_equal(ipc_send_blocking(run_fd, fake_out, n, fds, fd_count), 0);
}

static void open_run(const char *modes)
{
	int ends[2];

	setenv("TERM", modes, 1);
	assert_int_equal(ipc_pair(ends), 0);
	supervisor_pid = fork();
	if (supervisor_pid == 0) {
		close(ends[0]);
		_exit(play_supervisor(ends[1]));
	}
	close(ends[1]);
	run_fd = ends[0];
}

static void say_start(const char *policy, const char *name)
{
	struct message_run_start m = {.name = slice_from_string(name),
	        .policy_path = slice_from_string(policy),
	        .directory = SLICE("/"),
	        .user_id = getuid(),
	        .group_id = getgid()};
	int netns = netns_new();

	assert_true(netns >= 0);
	say(NULL, message_run_start_encode(fake_out, sizeof(fake_out), MESSAGE_RUN_START, 1, &m),
	        &netns, 1);
	close(netns);
}

static void say_end(void)
{
	struct message_status m = {0};

	say(NULL, message_status_encode(fake_out, sizeof(fake_out), MESSAGE_RUN_END, 2, &m), NULL,
	        0);
}

static void take_failure(void)
{
	struct message_text m;

	if (heard.head.type != MESSAGE_FAILED)
		return;
	assert_int_equal(message_text_decode(&heard.body, &m), 0);
	snprintf(failed, sizeof(failed), "%.*s", SLICE_ARG(m.text));
}

static void hear(enum message_type type)
{
	assert_int_equal(ipc_receive_blocking(run_fd, 15000, fake_in, &heard), 0);
	take_failure();
	if (heard.head.type == MESSAGE_FAILED)
		print_error("%s\n", failed);
	assert_int_equal(heard.head.type, type);
}

static void expect_end(int status)
{
	int got;

	while (ipc_receive_blocking(run_fd, 15000, fake_in, &heard) == 0)
		assert_true(heard.head.type == MESSAGE_RUN_SUMMARY);
	assert_int_equal(waitpid(supervisor_pid, &got, 0), supervisor_pid);
	assert_true(WIFEXITED(got));
	assert_int_equal(WEXITSTATUS(got), status);
	close(run_fd);
}

static void expect_failure(const char *text)
{
	/* One that says it is ready and dies at once may have been believed. */
	do
		assert_int_equal(ipc_receive_blocking(run_fd, 15000, fake_in, &heard), 0);
	while (heard.head.type == MESSAGE_RUN_READY);
	take_failure();
	assert_int_equal(heard.head.type, MESSAGE_FAILED);
	if (!strstr(failed, text))
		print_error("said: %s\n", failed);
	assert_non_null(strstr(failed, text));
	expect_end(125);
}

static void answer_variables(size_t count)
{
	struct message_names asked, answer = {0};
	int fds[MESSAGE_ENV_MAX];

	hear(MESSAGE_RUN_ENV_GET);
	assert_int_equal(message_names_decode(&heard.body, &asked), 0);
	assert_int_equal(asked.count, 1);
	for (size_t i = 0; i < count; i++) {
		int ends[2];
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		assert_int_equal(write(ends[1], "value", 5), 5);
		close(ends[1]);
		answer.names[answer.count] = asked.names[0];
		fds[answer.count++] = ends[0];
	}
	say(NULL,
	        message_names_encode(
	                fake_out, sizeof(fake_out), MESSAGE_RUN_ENV, heard.head.id, &answer),
	        fds, count);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

static void begin(const char *modes)
{
	open_run(modes);
	say_start(policy_path, "box");
	answer_variables(1);
}

static void a_run(void **state)
{
	struct message_run_ready ready;
	struct message_summary summary;

	(void)state;
	begin("");
	hear(MESSAGE_RUN_READY);
	assert_int_equal(message_run_ready_decode(&heard.body, &ready), 0);
	assert_true(slice_equals(ready.sandbox, SLICE("box")));
	assert_true(slice_equals(ready.root_pem, SLICE(PEM)));
	assert_int_equal(ready.env_count, 1);
	assert_true(slice_equals(ready.env[0].name, SLICE("SHOWN")));
	say_end();
	hear(MESSAGE_RUN_SUMMARY);
	assert_int_equal(message_summary_decode(&heard.body, &summary), 0);
	assert_int_equal(summary.allowed, 5);
	expect_end(0);
}

static void run_is_killed(void **state)
{
	int got;

	(void)state;
	begin("");
	hear(MESSAGE_RUN_READY);
	close(run_fd);
	assert_int_equal(waitpid(supervisor_pid, &got, 0), supervisor_pid);
	assert_int_equal(got, 0);
}

static void run_is_killed_while_starting(void **state)
{
	int got;

	(void)state;
	open_run("");
	say_start(policy_path, "");
	close(run_fd);
	assert_int_equal(waitpid(supervisor_pid, &got, 0), supervisor_pid);
	assert_int_equal(got, 0);
}

static void workers_that_misbehave(void **state)
{
	(void)state;
	open_run("worker=stillborn");
	expect_failure("the worker exited (status 9)");
	begin("worker=crash");
	expect_failure("the worker died (signal 11); the sandbox is cut off");
	begin("worker=forge");
	expect_failure("the worker was killed: it broke the protocol");
	begin("worker=twice");
	expect_failure("the worker was killed: it broke the protocol");
}

static void a_deaf_worker_is_killed_at_the_end(void **state)
{
	(void)state;
	begin("worker=deaf");
	hear(MESSAGE_RUN_READY);
	say_end();
	hear(MESSAGE_RUN_SUMMARY);
	expect_end(0);
}

static void keepers_that_misbehave(void **state)
{
	(void)state;
	begin("keeper=refuse");
	expect_failure("the keeper refuses: full");
	begin("keeper=forge");
	expect_failure("the keeper was killed: it broke the protocol");
	begin("keeper=mute keeper=about");
	expect_failure("the keeper died (signal 11); the sandbox is cut off");
}

static void a_failure_of_the_keeper_gives_the_priority_back(void **state)
{
	const struct sched_param lowest = {.sched_priority = 1}, none = {0};

	(void)state;
	if (sched_setscheduler(0, SCHED_RR, &lowest) < 0)
		skip(); /* this machine lets nobody have it */
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	begin("keeper=lent");
	expect_failure("the keeper refuses: given back");
}

/* The keeper ends with a status that says what it was answered. */
static void sources_for_the_keeper(void **state)
{
	(void)state;
	begin("keeper=mute keeper=range");
	expect_failure("the keeper exited (status 40)");
	begin("keeper=mute keeper=stranger");
	expect_failure("the keeper exited (status 40)");
	begin("keeper=mute keeper=variable");
	expect_failure("the keeper exited (status 41)");
	open_run("keeper=mute keeper=variable");
	say_start(policy_path, "box");
	answer_variables(0);
	expect_failure("the keeper exited (status 40)");
}

static void recorders_that_misbehave(void **state)
{
	(void)state;
	begin("recorder=broken");
	expect_failure("Its worker broke its stream.");
	begin("recorder=crash");
	expect_failure("the recorder died (signal 7)");
	begin("recorder=forge");
	hear(MESSAGE_RUN_READY);
	say_end();
	expect_end(0); /* without a summary, but in order */
}

static void runs_that_cannot_start(void **state)
{
	char bad[128];

	(void)state;
	open_run("");
	say_start("/nowhere/vethguard-policy.yaml", "box");
	expect_failure("/nowhere/vethguard-policy.yaml");
	open_run("");
	say_start("relative.yaml", "box");
	expect_failure("must be absolute");
	open_run("");
	say_start("", "box");
	expect_failure("no policy");
	open_run("");
	say_start(policy_path, "-box");
	expect_failure("a sandbox name is up to");
	open_run("");
	say_start(policy_path, "bo\nx");
	expect_failure("a sandbox name is up to");
	snprintf(bad, sizeof(bad), "%s/bad.yaml", directory);
	FILE *out = fopen(bad, "w");
	fputs("vethguard: 1\nname: x\nalow: []\nalllow: []\n", out);
	fclose(out);
	open_run("");
	say_start(bad, "box");
	expect_failure("bad.yaml:3:1: error: ");
	assert_non_null(strstr(failed, "bad.yaml:4:1: error: ")); /* all of them */
	unlink(bad);
}

static void runs_that_break_the_protocol(void **state)
{
	struct message_names names = {1, {SLICE("UNASKED")}};
	int fd = 0;

	(void)state;
	open_run("");
	say(NULL, message_empty(fake_out, sizeof(fake_out), MESSAGE_WORKER_READY, 1), NULL, 0);
	expect_end(0);
	open_run("");
	say_start(policy_path, "box");
	say_start(policy_path, "box");
	hear(MESSAGE_RUN_ENV_GET);
	expect_end(0);
	open_run("");
	say(NULL, message_names_encode(fake_out, sizeof(fake_out), MESSAGE_RUN_ENV, 1, &names), &fd,
	        1);
	expect_end(0);
	open_run("");
	say_start(policy_path, "box");
	hear(MESSAGE_RUN_ENV_GET);
	say(NULL,
	        message_names_encode(
	                fake_out, sizeof(fake_out), MESSAGE_RUN_ENV, heard.head.id, &names),
	        &fd, 1);
	expect_end(0);
	open_run("");
	say_start(policy_path, "box");
	answer_variables(2); /* one more than was asked for */
	expect_end(0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/vethguard-test-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(policy_path, sizeof(policy_path), "%s/policy.yaml", directory);
	FILE *out = fopen(policy_path, "w");
	fputs("vethguard: 1\nname: test\ncredentials:\n  a:\n    source: env:GIVEN\n    inject: "
	      "bearer\n    env: SHOWN\n"
	      "allow:\n  - to: https://api.example\n    credential: a\n  - to: "
	      "udp://time.example:123\n",
	        out);
	fclose(out);
	fake_link("vethguard-keeper", true);
	fake_link("vethguard-recorder", true);
	fake_link("vethguard-fetch", true);
	fake_link("vethguard-worker", true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(policy_path);
	rmdir(directory);
	fake_link("vethguard-keeper", false);
	fake_link("vethguard-recorder", false);
	fake_link("vethguard-fetch", false);
	fake_link("vethguard-worker", false);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_run),
	        cmocka_unit_test(run_is_killed),
	        cmocka_unit_test(run_is_killed_while_starting),
	        cmocka_unit_test(workers_that_misbehave),
	        cmocka_unit_test(a_deaf_worker_is_killed_at_the_end),
	        cmocka_unit_test(keepers_that_misbehave),
	        cmocka_unit_test(a_failure_of_the_keeper_gives_the_priority_back),
	        cmocka_unit_test(sources_for_the_keeper),
	        cmocka_unit_test(recorders_that_misbehave),
	        cmocka_unit_test(runs_that_cannot_start),
	        cmocka_unit_test(runs_that_break_the_protocol),
	};

	if (argc > 0 && strcmp(argv[0], "vethguard-keeper") == 0)
		return play_keeper();
	if (argc > 0 && strcmp(argv[0], "vethguard-recorder") == 0)
		return play_recorder();
	if (argc > 0 && strcmp(argv[0], "vethguard-worker") == 0)
		return play_worker();
	if (!capabilities_have(CAP_SYS_ADMIN_BIT)) {
		print_message("skipped: it makes network namespaces, which needs root\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
