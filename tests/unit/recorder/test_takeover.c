/* SPDX-License-Identifier: Apache-2.0 */
/* A recorder that is killed at any point of its work, and the next one that takes over. */
#include "pump_fixture.h"

/* Until the recorder has written so many lines. They are counted by their ends: who reads beside a
 * write that crosses a page may see the first half of a line. */
static void wait_for_lines(const char *path, unsigned count)
{
	unsigned lines;

	do {
		size_t n;
		char *text = read_file(path, &n);

		lines = 0;
		for (size_t i = 0; i < n; i++)
			lines += text[i] == '\n';
		free(text);
	} while (lines < count && poll(NULL, 0, 2) == 0);
}

/* The recorder dies at once, and another one takes over what the supervisor has kept. */
static void replace_with(struct fixture *f, rlim_t file_size)
{
	int status;

	kill(f->pid, SIGKILL);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	close(f->control);
	launch(f, f->path, file_size);
	say_sandbox(f, SANDBOX, f->handed);
}

static void replace(struct fixture *f)
{
	replace_with(f, RLIM_INFINITY);
}

/* One worker with a recorder that is killed again and again, at any point of its work. Each event
 * has its own id; the log has each of them once, in order. */
static void test_killed_recorder_loses_and_doubles_nothing(void **state)
{
	enum { KILLS = 60, EVENTS = 6000, WINDOW = 2 * OCSF_LINE_MAX };
	struct event event = sample_http();
	struct message_summary m;
	struct fixture f;
	char *text, *at;
	size_t n;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	srand((unsigned)getpid());
	for (int i = 0; i < EVENTS; i++) {
		event.id = 0xabc0000000000000u + (unsigned)i;
		write_event(&f.ring, event);
		if (i % (EVENTS / KILLS) == 0) {
			poll(NULL, 0, rand() % 15);
			replace(&f);
		}
	}
	send_end(&f, SANDBOX, 8);
	m = expect_summary(&f, 8);
	assert_int_equal(m.lines, EVENTS);
	assert_int_equal(m.allowed, EVENTS);
	assert_int_equal(verify(f.path), EVENTS);
	text = at = read_file(f.path, &n);
	for (unsigned i = 0; i < EVENTS; i++) {
		char want[80];

		snprintf(want, sizeof(want), "\"metadata\":{\"uid\":\"%016llx\",\"sequence\":%u,",
		        0xabc0000000000000ull + i, i + 1);
		/* Within the next lines: an instrumented search looks at the whole rest of its
		 * text. */
		at = memmem(at, n - (size_t)(at - text) < WINDOW ? n - (size_t)(at - text) : WINDOW,
		        want, strlen(want));
		assert_non_null(at);
	}
	free(text);
	stop(&f);
	close_fixture(&f);
}

/* Killed after the file took a part of a batch: the torn line is completed, byte by byte. */
static void test_torn_batch_is_completed(void **state)
{
	struct ipc_message message;
	struct fixture f;
	struct stat st;

	(void)state;
	open_fixture(&f, 10000);
	for (int i = 0; i < 20; i++)
		write_event(&f.ring, sample_http());
	expect_message(f.control, MESSAGE_RECORDER_STALLED, 0, &message);
	assert_int_equal(fstat(f.log, &st), 0);
	assert_int_equal(st.st_size, 10000);
	/* The next one cannot write either, at first a little more. */
	replace_with(&f, 11000);
	expect_message(f.control, MESSAGE_RECORDER_STALLED, 0, &message);
	assert_int_equal(fstat(f.log, &st), 0);
	assert_int_equal(st.st_size, 11000);
	replace(&f);
	for (int i = 0; i < 5; i++)
		write_event(&f.ring, sample_denied());
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 25);
	assert_int_equal(verify(f.path), 25);
	stop(&f);
	close_fixture(&f);
}

/* The lock stays with the open file that the supervisor holds: nobody writes behind a torn line. */
static void test_nobody_writes_behind_a_torn_batch(void **state)
{
	struct ipc_message message;
	struct fixture f;
	int other;

	(void)state;
	open_fixture(&f, 10000);
	for (int i = 0; i < 20; i++)
		write_event(&f.ring, sample_http());
	expect_message(f.control, MESSAGE_RECORDER_STALLED, 0, &message);
	kill(f.pid, SIGKILL);
	waitpid(f.pid, NULL, 0);
	other = open(f.path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	close(f.control);
	launch(&f, f.path, RLIM_INFINITY);
	say_sandbox(&f, SANDBOX, f.handed);
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 20);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(verify(f.path), 20);
	close(other);
	close_fixture(&f);
}

/* Somebody emptied the file between two recorders: the events are still in the ring. */
static void test_batch_of_a_changed_file_is_made_anew(void **state)
{
	struct ipc_message message;
	struct fixture f;

	(void)state;
	open_fixture(&f, 10000);
	for (int i = 0; i < 20; i++)
		write_event(&f.ring, sample_http());
	expect_message(f.control, MESSAGE_RECORDER_STALLED, 0, &message);
	assert_int_equal(truncate(f.path, 0), 0);
	replace(&f);
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 20);
	assert_int_equal(verify(f.path), 20);
	close_fixture(&f);
}

/* The supervisor tells its events again where it has not heard that they are in the log. */
static void test_own_events_are_recorded_once(void **state)
{
	struct ipc_message message;
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_START));
	expect_message(f.control, MESSAGE_RECORDER_TAKEN, 1, &message);
	replace(&f);
	f.event_id = 0;
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_START));
	send_event(&f, SANDBOX, sample_lifecycle(EVENT_STOP));
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 2);
	assert_int_equal(verify(f.path), 2);
	close_fixture(&f);
}

/* A writer that waits for room when the reader dies is woken by the next one. */
static void test_waiting_writer_is_woken_by_the_next_reader(void **state)
{
	uint8_t record[EVENT_BYTES_MAX];
	struct event event = sample_http();
	size_t n = event_encode(&event, record, sizeof(record));
	struct pollfd space;
	struct fixture f;
	unsigned count = 0;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	write_event(&f.ring, event);
	count++;
	wait_for_lines(f.path, 1);
	kill(f.pid, SIGSTOP);
	while (ring_write(&f.ring, record, n) == 0)
		count++;
	replace(&f);
	space = (struct pollfd){.fd = f.ring.space_fd, .events = POLLIN};
	assert_int_equal(poll(&space, 1, PATIENCE_MS), 1);
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, count);
	close_fixture(&f);
}

/* The broken stream of a worker stays broken, and is told once. */
static void test_broken_stream_is_inherited(void **state)
{
	struct ipc_message message;
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	assert_int_equal(ring_write(&f.ring, "nonsense", 8), 0);
	expect_message(f.control, MESSAGE_FAILED, SANDBOX, &message);
	wait_for_lines(f.path, 1);
	poll(NULL, 0, 20);
	replace(&f);
	write_event(&f.ring, sample_http());
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 1);
	close_fixture(&f);
}

/* A file that is not a journal, or a journal of nonsense, ends the program or is ignored; it never
 * crashes it.
 */
static void test_garbled_journal(void **state)
{
	struct fixture f;
	struct stat st;
	uint8_t *memory;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	write_event(&f.ring, sample_http());
	wait_for_lines(f.path, 1);
	kill(f.pid, SIGKILL);
	waitpid(f.pid, NULL, 0);
	close(f.control);
	assert_int_equal(fstat(f.journal, &st), 0);
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, f.journal, 0);
	assert_true(memory != MAP_FAILED);
	memset(memory, 0xff, (size_t)st.st_size);
	launch(&f, f.path, RLIM_INFINITY);
	say_sandbox(&f, SANDBOX, f.handed);
	send_end(&f, SANDBOX, 8);
	expect_summary(&f, 8);
	verify(f.path);
	munmap(memory, (size_t)st.st_size);
	close_fixture(&f);
}

static void send_ring_end(struct fixture *f, uint64_t ring, uint64_t id)
{
	struct message_recorder_ring m = {SANDBOX, ring};
	size_t n = message_recorder_ring_encode(
	        buffer, sizeof(buffer), MESSAGE_RECORDER_RING_END, id, &m);

	assert_int_equal(ipc_send_blocking(f->control, buffer, n, NULL, 0), 0);
}

/* A worker and its successor write at the same time; the first ends, a recorder dies, the sandbox
 * goes on under one sequence. */
static void test_workers_come_and_go(void **state)
{
	struct ipc_message message;
	struct fixture f;
	struct ring second;
	int fds[3], kept[3];
	size_t n;
	char *text;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	assert_int_equal(ring_create(fds), 0);
	for (size_t i = 0; i < 3; i++)
		kept[i] = dup(fds[i]);
	say_ring(&f, SANDBOX, 2, fds);
	assert_int_equal(ring_open_writer(&second, fds[0], fds[1], fds[2]), 0);
	for (int i = 0; i < 100; i++) {
		write_event(&f.ring, sample_http());
		write_event(&second, sample_denied());
	}
	send_ring_end(&f, RING, 11);
	expect_message(f.control, MESSAGE_RECORDER_RING_DRAINED, 11, &message);
	assert_true(verify(f.path) >= 100);
	/* As far as the next recorder can tell, the supervisor has not heard of it. */
	replace(&f);
	say_ring(&f, SANDBOX, 2, kept);
	send_ring_end(&f, RING, 12);
	for (int i = 0; i < 100; i++)
		write_event(&second, sample_http());
	expect_message(f.control, MESSAGE_RECORDER_RING_DRAINED, 12, &message);
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 300);
	assert_int_equal(verify(f.path), 300);
	text = read_file(f.path, &n);
	assert_non_null(strstr(text, "\"sequence\":300,"));
	assert_null(strstr(text, "\"sequence\":301,"));
	free(text);
	ring_close(&second);
	for (size_t i = 0; i < 3; i++)
		close(kept[i]);
	close_fixture(&f);
}

/* The most refused destination is still the most refused one. */
static void test_summary_is_inherited(void **state)
{
	struct message_summary m;
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	for (int i = 0; i < 7; i++)
		write_event(&f.ring, sample_denied());
	wait_for_lines(f.path, 7);
	poll(NULL, 0, 20);
	replace(&f);
	write_event(&f.ring, sample_denied());
	send_end(&f, SANDBOX, 8);
	m = expect_summary(&f, 8);
	assert_int_equal(m.unusual_count, 1);
	assert_int_equal(m.unusual[0].count, 8);
	close_fixture(&f);
}

enum { CROWD = 5, CROWD_FIRST = 100 };

struct crowd {
	struct ring rings[CROWD];
	int packets[CROWD], handed[CROWD][4];
	unsigned lines[CROWD], kinds[CROWD], all; /* lines: of each, and of all of them */
};

static void join_crowd(struct fixture *f, struct crowd *c, size_t i)
{
	int fds[4], pair[2];

	assert_int_equal(ring_create(fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
	fds[3] = pair[1];
	c->packets[i] = pair[0];
	say_sandbox(f, CROWD_FIRST + i, fds);
	for (size_t k = 0; k < 4; k++)
		c->handed[i][k] = dup(fds[k]);
	close(pair[1]);
	assert_int_equal(ring_open_writer(&c->rings[i], fds[0], fds[1], fds[2]), 0);
}

static void leave_crowd(struct fixture *f, struct crowd *c, size_t i)
{
	struct message_summary m;

	send_end(f, CROWD_FIRST + i, 20 + i);
	m = expect_summary(f, 20 + i);
	assert_int_equal(m.lines, c->lines[i]);
	assert_int_equal(m.denied, c->lines[i]);
	assert_int_equal(m.unusual_count,
	        c->kinds[i] < MESSAGE_UNUSUAL_MAX ? c->kinds[i] : MESSAGE_UNUSUAL_MAX);
	ring_close(&c->rings[i]);
	close(c->packets[i]);
	for (size_t k = 0; k < 4; k++)
		close(c->handed[i][k]);
}

/* A destination that was not refused before, so that more is noted of this sandbox. */
static void refuse_another(struct fixture *f, struct crowd *c, size_t i)
{
	struct event event = sample_denied();
	char host[32];

	snprintf(host, sizeof(host), "s%zu-%u.example", i, c->kinds[i]++);
	event.host = event.sni = slice_from_string(host);
	write_event(&c->rings[i], event);
	c->lines[i]++;
	wait_for_lines(f->path, ++c->all); /* in the log, in a batch of its own */
}

/* Notes lie one behind the other: they appear, grow and disappear in any order, and none
 * overwrites another. */
static void test_notes_of_many_keep_their_places(void **state)
{
	struct crowd c = {0};
	struct fixture f;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	for (size_t i = 0; i < CROWD - 1; i++)
		join_crowd(&f, &c, i);
	for (size_t round = 0; round < 3; round++)
		for (size_t i = 0; i < CROWD - 1; i += 1 + round % 2)
			refuse_another(&f, &c, i);
	leave_crowd(&f, &c, 1); /* neither the first nor the last */
	refuse_another(&f, &c, 2);
	join_crowd(&f, &c, CROWD - 1);
	refuse_another(&f, &c, CROWD - 1);
	refuse_another(&f, &c, 0);
	poll(NULL, 0, 20);
	replace(&f);
	for (size_t i = CROWD; i-- > 0;)
		if (i != 1)
			say_sandbox(&f, CROWD_FIRST + i, c.handed[i]);
	refuse_another(&f, &c, 3);
	refuse_another(&f, &c, 0);
	for (size_t i = 0; i < CROWD; i++)
		if (i != 1)
			leave_crowd(&f, &c, i);
	stop(&f);
	assert_int_equal(verify(f.path), c.all);
	close_fixture(&f);
}

/* The file is cut under the recorder: that sandbox's stream ends, the recorder and others live. */
static void test_cut_ring_ends_its_stream_only(void **state)
{
	struct ipc_message message;
	char folder[] = "/tmp/test_takeover.XXXXXX";
	struct fixture f;
	struct ring cut;
	int fds[3], directory, memory;

	(void)state;
	open_fixture(&f, RLIM_INFINITY);
	assert_non_null(mkdtemp(folder));
	directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(ring_create_at(directory, "ring", fds), 0);
	memory = dup(fds[0]);
	say_ring(&f, SANDBOX, 2, fds);
	assert_int_equal(ring_open_writer(&cut, fds[0], fds[1], fds[2]), 0);
	write_event(&cut, sample_http());
	wait_for_lines(f.path, 1);
	assert_int_equal(ftruncate(memory, 0), 0);
	eventfd_write(cut.data_fd, 1);
	expect_message(f.control, MESSAGE_FAILED, SANDBOX, &message);
	write_event(&f.ring, sample_http());
	send_end(&f, SANDBOX, 8);
	assert_int_equal(expect_summary(&f, 8).lines, 3); /* and the finding */
	assert_int_equal(verify(f.path), 3);
	stop(&f);
	ring_close(&cut);
	close(memory);
	unlinkat(directory, "ring", 0);
	close(directory);
	rmdir(folder);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_killed_recorder_loses_and_doubles_nothing),
	        cmocka_unit_test(test_torn_batch_is_completed),
	        cmocka_unit_test(test_nobody_writes_behind_a_torn_batch),
	        cmocka_unit_test(test_batch_of_a_changed_file_is_made_anew),
	        cmocka_unit_test(test_own_events_are_recorded_once),
	        cmocka_unit_test(test_waiting_writer_is_woken_by_the_next_reader),
	        cmocka_unit_test(test_broken_stream_is_inherited),
	        cmocka_unit_test(test_garbled_journal),
	        cmocka_unit_test(test_workers_come_and_go),
	        cmocka_unit_test(test_summary_is_inherited),
	        cmocka_unit_test(test_notes_of_many_keep_their_places),
	        cmocka_unit_test(test_cut_ring_ends_its_stream_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
