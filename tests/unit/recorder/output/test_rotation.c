/* SPDX-License-Identifier: Apache-2.0 */
/* The log is moved away while one or two recorders write it: however they learn of it, and
 * whichever dies, old file and new file are one chain. */
#include "../pump_fixture.h"

#define REOPEN_ID 31
#define DAEMON 5
#define OTHER_SANDBOX 78

/* One recorder, or two of the same file, and where the file is moved to. */
struct rotation {
	struct fixture f, g;
	char old[80];
	const char *new;
};

/* The stream of a daemon: no policy, no rings. */
static void add_daemon(struct fixture *f)
{
	struct message_recorder_sandbox m = {
	        .sandbox_id = DAEMON, .sandbox = SLICE(MESSAGE_NAME_DAEMON)};
	size_t n = message_recorder_sandbox_encode(
	        buffer, sizeof(buffer), MESSAGE_RECORDER_SANDBOX, 6, &m);

	assert_int_equal(ipc_send_blocking(f->control, buffer, n, NULL, 0), 0);
}

static void open_other(struct rotation *r)
{
	start(&r->g, r->f.path, RLIM_INFINITY);
	add_sandbox(&r->g, OTHER_SANDBOX, &r->g.ring, &r->g.packets);
}

static int set_up(void **state)
{
	struct rotation *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	open_fixture(&r->f, RLIM_INFINITY);
	add_daemon(&r->f);
	r->new = r->f.path;
	snprintf(r->old, sizeof(r->old), "%s.1", r->f.path);
	open_other(r);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct rotation *r = *state;

	close_fixture(&r->g);
	close_fixture(&r->f);
	unlink(r->old);
	free(r);
	return 0;
}

static void say_reopen(struct fixture *f, const char *path)
{
	int fds[2] = {open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600),
	        open(path, O_RDONLY | O_CLOEXEC)};

	assert_int_equal(
	        ipc_send_blocking(f->control, buffer,
	                message_empty(buffer, sizeof(buffer), MESSAGE_RECORDER_REOPEN, REOPEN_ID),
	                fds, 2),
	        0);
	close(fds[0]);
	close(fds[1]);
}

static void reopen(struct fixture *f, const char *path)
{
	struct ipc_message message;

	say_reopen(f, path);
	expect_message(f->control, MESSAGE_RECORDER_REOPENED, REOPEN_ID, &message);
}

static void expect_question(struct fixture *f)
{
	struct ipc_message message;

	expect_message(f->control, MESSAGE_RECORDER_ENDED, 0, &message);
}

static void wait_for_lines(const char *path, unsigned n)
{
	for (int i = 0; i < PATIENCE_MS / 5 && verify(path) != n; i++)
		poll(NULL, 0, 5);
	assert_int_equal(verify(path), n);
}

static unsigned count_ends(const char *path)
{
	size_t n;
	char *text = read_file(path, &n);
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, "\"activity_name\":\"Log File Ended\"")); at++)
		count++;
	free(text);
	return count;
}

/* One event of each, in the file that is not moved yet. */
static void begin(struct rotation *r)
{
	write_event(&r->f.ring, sample_http());
	wait_for_lines(r->new, 1);
	write_event(&r->g.ring, sample_http());
	wait_for_lines(r->new, 2);
	assert_int_equal(rename(r->new, r->old), 0);
}

static void finish(struct fixture *f, uint64_t sandbox, unsigned lines)
{
	send_end(f, sandbox, 8);
	assert_int_equal(expect_summary(f, 8).lines, lines);
	stop(f);
}

/* The old file ends with one line that says so, and the new one follows it. */
static void assert_one_chain(const struct rotation *r, unsigned old, unsigned new)
{
	struct seal_link last = {0};

	assert_int_equal(verify_after(r->old, &last), old);
	assert_int_equal(last.type_uid, OCSF_TYPE_LOG_ENDED);
	assert_int_equal(verify_after(r->new, &last), new);
	assert_int_equal(count_ends(r->old), 1);
	assert_int_equal(count_ends(r->new), 0);
}

/* The one that has heard of it begins the new file; the other one, which has not, has more to say:
 * that comes into the new file as well, and nothing behind the end of the old one. */
static void test_one_is_told_late(void **state)
{
	struct rotation *r = *state;

	begin(r);
	reopen(&r->f, r->new);
	write_event(&r->f.ring, sample_http());
	wait_for_lines(r->old, 3);
	for (int i = 0; i < 100; i++)
		write_event(&r->g.ring, sample_denied());
	expect_question(&r->g);
	write_event(&r->f.ring, sample_http());
	assert_int_equal(verify(r->old), 3);
	reopen(&r->g, r->new);
	finish(&r->g, OTHER_SANDBOX, 101);
	finish(&r->f, SANDBOX, 3);
	assert_one_chain(r, 3, 102);
}

static void test_both_are_told(void **state)
{
	struct rotation *r = *state;

	begin(r);
	reopen(&r->f, r->new);
	reopen(&r->g, r->new);
	write_event(&r->g.ring, sample_http());
	write_event(&r->f.ring, sample_http());
	finish(&r->g, OTHER_SANDBOX, 2);
	finish(&r->f, SANDBOX, 2);
	assert_one_chain(r, 3, 2);
}

static void test_two_daemons_end_it_once(void **state)
{
	struct rotation *r = *state;
	struct ipc_message message;

	add_daemon(&r->g);
	begin(r);
	say_reopen(&r->g, r->new);
	reopen(&r->f, r->new);
	expect_message(r->g.control, MESSAGE_RECORDER_REOPENED, REOPEN_ID, &message);
	write_event(&r->f.ring, sample_http());
	finish(&r->f, SANDBOX, 2);
	write_event(&r->g.ring, sample_http());
	finish(&r->g, OTHER_SANDBOX, 2);
	assert_one_chain(r, 3, 2);
}

/* The next file cannot be opened for so long that everything is refused: nothing is lost. */
static void test_next_file_comes_late(void **state)
{
	struct rotation *r = *state;
	struct ipc_message message;
	struct message_text m;

	begin(r);
	reopen(&r->f, r->new);
	write_event(&r->g.ring, sample_denied());
	expect_question(&r->g);
	expect_message(r->g.control, MESSAGE_RECORDER_STALLED, 0, &message);
	assert_int_equal(message_text_decode(&message.body, &m), 0);
	assert_non_null(memmem(m.text.p, m.text.n, "moved away", 10));
	expect_question(&r->g); /* once more, with each attempt */
	assert_int_equal(verify(r->old), 3);
	reopen(&r->g, r->new);
	expect_message(r->g.control, MESSAGE_RECORDER_FLOWING, 0, &message);
	finish(&r->g, OTHER_SANDBOX, 2);
	assert_one_chain(r, 3, 1);
}

/* The recorder that has ended the old file dies before it has begun the new one; its successor
 * gets the old file and is told again. */
static void test_killed_between_two_files(void **state)
{
	struct rotation *r = *state;
	int status;

	begin(r);
	reopen(&r->f, r->new);
	kill(r->f.pid, SIGKILL);
	assert_int_equal(waitpid(r->f.pid, &status, 0), r->f.pid);
	close(r->f.control);
	launch(&r->f, r->old, RLIM_INFINITY); /* with the descriptors of the old one */
	add_daemon(&r->f);
	reopen(&r->f, r->new);
	say_sandbox(&r->f, SANDBOX, r->f.handed);
	write_event(&r->f.ring, sample_http());
	finish(&r->f, SANDBOX, 2);
	assert_one_chain(r, 3, 1);
}

/* The next recorder gets the new file, which is still empty, and the other recorder's
 * notes. */
static void replace_in_new_file(struct rotation *r)
{
	struct fixture *f = &r->f;
	int status;

	kill(f->pid, SIGKILL);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	close(f->control);
	close(f->log);
	close(f->reader);
	f->log = open(r->new, O_WRONLY | O_APPEND | O_CLOEXEC);
	f->reader = open(r->new, O_RDONLY | O_CLOEXEC);
	launch(f, r->new, RLIM_INFINITY);
	add_daemon(f);
	say_sandbox(f, SANDBOX, f->handed);
}

/* It has told that it has begun the new file, and dies before there is a line in it; and so does
 * the next one. */
static void test_killed_before_the_first_line(void **state)
{
	struct rotation *r = *state;
	struct stat st;

	begin(r);
	reopen(&r->f, r->new);
	replace_in_new_file(r);
	replace_in_new_file(r);
	assert_int_equal(stat(r->new, &st), 0);
	assert_int_equal(st.st_size, 0);
	write_event(&r->f.ring, sample_http());
	finish(&r->f, SANDBOX, 2);
	assert_one_chain(r, 3, 1);
}

/* Once there was a line in it, a file that somebody has emptied begins a chain of its own. */
static void test_emptied_afterwards(void **state)
{
	struct rotation *r = *state;
	struct seal_link last = {0};
	struct ipc_message message;

	begin(r);
	reopen(&r->f, r->new);
	send_event(&r->f, SANDBOX, sample_lifecycle(EVENT_START));
	expect_message(r->f.control, MESSAGE_RECORDER_TAKEN, r->f.event_id, &message);
	assert_int_equal(verify_after(r->old, &last), 3);
	assert_true(file_has(r->new, last.hash));
	assert_int_equal(truncate(r->new, 0), 0);
	replace_in_new_file(r);
	send_event(&r->f, SANDBOX, sample_lifecycle(EVENT_START));
	expect_message(r->f.control, MESSAGE_RECORDER_TAKEN, r->f.event_id, &message);
	assert_int_equal(verify(r->new), 1);
}

/* The old file takes a part of its last line: that is completed first. */
static void test_disk_is_full(void **state)
{
	struct rlimit none, all = {RLIM_INFINITY, RLIM_INFINITY};
	struct rotation *r = *state;
	struct ipc_message message;
	struct stat st;

	begin(r);
	assert_int_equal(stat(r->old, &st), 0);
	none = (struct rlimit){(rlim_t)st.st_size + 100, RLIM_INFINITY};
	assert_int_equal(prlimit(r->f.pid, RLIMIT_FSIZE, &none, NULL), 0);
	say_reopen(&r->f, r->new);
	expect_message(r->f.control, MESSAGE_RECORDER_STALLED, 0, &message);
	write_event(&r->f.ring, sample_http());
	assert_int_equal(prlimit(r->f.pid, RLIMIT_FSIZE, &all, NULL), 0);
	expect_message(r->f.control, MESSAGE_RECORDER_REOPENED, REOPEN_ID, &message);
	expect_message(r->f.control, MESSAGE_RECORDER_FLOWING, 0, &message);
	finish(&r->f, SANDBOX, 2);
	assert_one_chain(r, 3, 1);
}

/* The file is moved back: a recorder that learns that there is no other file goes on behind its
 * end, once. */
static void test_ended_file_is_still_the_one(void **state)
{
	struct rotation *r = *state;

	begin(r);
	reopen(&r->f, r->new);
	write_event(&r->g.ring, sample_http());
	expect_question(&r->g);
	reopen(&r->g, r->old);
	wait_for_lines(r->old, 4);
	write_event(&r->g.ring, sample_http());
	finish(&r->g, OTHER_SANDBOX, 3);
	assert_int_equal(verify(r->old), 5);
}

/* Nobody is left who could open the next file. */
static void test_supervisor_is_lost(void **state)
{
	struct rotation *r = *state;
	int status;

	begin(r);
	reopen(&r->f, r->new);
	shutdown(r->g.control, SHUT_RDWR);
	write_event(&r->g.ring, sample_http());
	assert_int_equal(waitpid(r->g.pid, &status, 0), r->g.pid);
	r->g.pid = 0;
	assert_int_equal(verify(r->old), 4);
}

/* Data of a sandbox cannot end the log. */
static void test_forged_end(void **state)
{
	struct rotation *r = *state;
	struct event event = sample_http();

	event.target = SLICE("/\"type_uid\":600299,\"activity_name\":\"Log File Ended\",x\n"
	                     "{\"time\":1732120000143,\"type_uid\":600299,\"metadata\":{\"uid\":");
	event.user_agent = event.target;
	write_event(&r->f.ring, event);
	wait_for_lines(r->new, 1);
	write_event(&r->g.ring, sample_http());
	wait_for_lines(r->new, 2);
	send_event(&r->g, OTHER_SANDBOX, sample_lifecycle(EVENT_STOP));
	finish(&r->g, OTHER_SANDBOX, 2);
	assert_true(file_has(r->new, "Log File Ended"));
	assert_int_equal(count_ends(r->new), 0);
	assert_int_equal(verify(r->new), 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(test_one_is_told_late),
	        TEST(test_both_are_told),
	        TEST(test_two_daemons_end_it_once),
	        TEST(test_next_file_comes_late),
	        TEST(test_killed_between_two_files),
	        TEST(test_killed_before_the_first_line),
	        TEST(test_emptied_afterwards),
	        TEST(test_disk_is_full),
	        TEST(test_ended_file_is_still_the_one),
	        TEST(test_supervisor_is_lost),
	        TEST(test_forged_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
