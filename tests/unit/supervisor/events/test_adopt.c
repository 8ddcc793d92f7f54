/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that is killed with its recorder in one moment, again and again, and what its successors
 * make of the files it left: every event once, under one sequence, in one unbroken chain.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "loop_for.h"
#include "vethguard/base/clock.h"
#include "vethguard/ipc/ring.h"
#include "recorder/recorder.h"
#include "supervisor/os/fd_limit.h"
#include "supervisor/events/private.h"
#include "recording_folder.h"

#define ROUNDS 12
#define RING_EVENTS 150 /* in each round */
#define TOLD_EVENTS 5
#define TAKEN_OVER_MS 30
#define FIRST_ID 0xabc0000000000000u
#define POLL_MS 5
#define PATIENCE_MS 60000

static _Atomic int *said; /* shared: everything of this round is written */

static void run_recorder(int control)
{
	struct recorder *r = calloc(1, sizeof(*r));
	uint64_t id;

	r->loop = loop_new();
	if (ring_guard() != 0 || control_receive_start(r, control, &id) != 0 ||
	        batch_writer_open(r) != 0 || control_open(r, control, id) != 0)
		_exit(99);
	loop_run(r->loop);
	_exit(r->status);
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct supervisor *sv = container_of(peer, struct supervisor, recorder.peer);

	if (message->head.type == MESSAGE_RECORDER_TAKEN)
		recording_taken(sv, message->head.id);
	else if (message->head.type == MESSAGE_RECORDER_RING_DRAINED)
		recording_drained(sv, message->head.id);
	else if (message->head.type == MESSAGE_FAILED)
		_exit(98);
	return 0;
}

static void on_end(struct ipc_peer *peer, int error)
{
	(void)peer;
	(void)error;
	_exit(97);
}

static void must(bool ok, int status)
{
	if (!ok)
		_exit(status);
}

static void start(struct supervisor *sv)
{
	int pair[2];

	sv->loop = loop_new();
	must(recording_keep_at(sv, folder_fd) == 0, 90);
	must(ipc_pair(pair) == 0, 91);
	sv->recorder.pid = fork();
	if (sv->recorder.pid == 0) {
		/* It must not hold what locks journal and rings for the supervisor alone. */
		close(pair[0]);
		close(sv->recording.journal);
		run_recorder(pair[1]);
	}
	close(pair[1]);
	must(ipc_peer_open(sv->loop, &sv->recorder.peer, pair[0], "recorder", on_message, on_end) ==
	                0,
	        92);
	must(recording_start(sv, log_path,
	             open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600), NULL) == 0,
	        93);
	must(recording_open_daemon(sv) == 0, 94);
}

/* A worker of a sandbox that its successors know nothing of. */
static void write_ring(struct supervisor *sv, struct sandbox *s, unsigned round)
{
	struct recorded_ring *ring = recording_ring_new(sv, s);
	struct event event = {.kind = EVENT_CONNECTION, .time_ms = 1732120000000};
	uint8_t record[EVENT_BYTES_MAX];
	struct ring writer;

	must(ring && ring_open_writer(
	                     &writer, dup(ring->fds[0]), dup(ring->fds[1]), dup(ring->fds[2])) == 0,
	        95);
	must(recording_open_ring(sv, SANDBOX, ring) == 0, 96);
	for (unsigned i = 0; i < RING_EVENTS; i++) {
		event.id = FIRST_ID + round * RING_EVENTS + i;
		must(ring_write(&writer, record, event_encode(&event, record, sizeof(record))) == 0,
		        89);
	}
}

static void tell_one(struct supervisor *sv, unsigned round, unsigned i)
{
	char cause[32];

	snprintf(cause, sizeof(cause), "round %u event %u.", round, i);
	outbox_lifecycle(sv, NULL, EVENT_PAUSED, cause);
}

static void live(unsigned round)
{
	struct supervisor sv = {0};
	struct sandbox s = {.supervisor = &sv, .id = SANDBOX};

	start(&sv);
	/* As a call that is answered, and is in the log, while the sandboxes are taken over. */
	tell_one(&sv, round, 0);
	poll(NULL, 0, TAKEN_OVER_MS);
	must(recording_adopt(&sv) == 0, 88);
	if (!sv.recording.left)
		must(recording_open_orphans(&sv, SANDBOX) != NULL, 87);
	write_ring(&sv, &s, round);
	for (unsigned i = 1; i < TOLD_EVENTS; i++)
		tell_one(&sv, round, i);
	*said = (int)round + 1;
	loop_run(sv.loop);
	_exit(86);
}

static struct supervisor *watched;

static void look(struct loop_timer *timer)
{
	if (!watched->recording.left && !watched->recording.waiting &&
	        !watched->recording.daemon.told)
		loop_stop(watched->loop);
	else
		loop_timer_set(timer, POLL_MS);
}

static void take_the_rest(void)
{
	struct supervisor sv = {0};
	struct loop_timer timer = {0};

	start(&sv);
	must(recording_adopt(&sv) == 0, 88);
	watched = &sv;
	must(loop_timer_open(sv.loop, &timer, look) == 0, 85);
	loop_timer_set(&timer, POLL_MS);
	loop_run(sv.loop);
	kill(sv.recorder.pid, SIGKILL);
	waitpid(sv.recorder.pid, NULL, 0);
	_exit(0);
}

static pid_t spawn(void (*what)(unsigned), unsigned round)
{
	pid_t pid = fork();

	if (pid == 0) {
		setpgid(0, 0);
		what(round);
	}
	setpgid(pid, pid);
	return pid;
}

static void rest(unsigned round)
{
	(void)round;
	take_the_rest();
}

static char *read_log(size_t *n)
{
	struct stat st;
	int fd = open(log_path, O_RDONLY | O_CLOEXEC);
	char *text;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
	close(fd);
	*n = (size_t)st.st_size;
	return text;
}

/* How often the log has each event: those of the rings and those that were told. */
struct tally {
	unsigned ring[ROUNDS * RING_EVENTS], told[ROUNDS * TOLD_EVENTS], lines;
};

static void tally_line(struct tally *t, struct slice line)
{
	static const char uid[] = "\"metadata\":{\"uid\":\"", told[] = "\"status_detail\":\"round ";
	const char *at = memmem(line.p, line.n, uid, strlen(uid));
	unsigned long long id;
	unsigned round, event;

	assert_non_null(at);
	id = strtoull(at + strlen(uid), NULL, 16);
	if (id >= FIRST_ID && id - FIRST_ID < ROUNDS * RING_EVENTS)
		t->ring[id - FIRST_ID]++;
	at = memmem(line.p, line.n, told, strlen(told));
	if (at && sscanf(at + strlen(told), "%u event %u.\"", &round, &event) == 2) {
		assert_true(round < ROUNDS && event < TOLD_EVENTS);
		t->told[round * TOLD_EVENTS + event]++;
	}
	t->lines++;
}

/* Each line follows the one before, and is counted. */
static void check_chain(const char *text, size_t n, struct tally *tally)
{
	struct seal_link last = {0};

	for (const char *line = text; line < text + n;) {
		const char *end = strchr(line, '\n');
		struct seal seal;

		assert_non_null(end);
		assert_int_equal(seal_parse(slice_of(line, (size_t)(end - line)), &seal), 0);
		assert_string_equal(seal.previous.hash, last.hash);
		last = seal.own;
		tally_line(tally, slice_of(line, (size_t)(end - line)));
		line = end + 1;
	}
}

static void killed_daemons_lose_and_double_nothing(void **state)
{
	static struct tally tally;
	char *text;
	int status;
	size_t n;
	pid_t pid;

	(void)state;
	said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(said != MAP_FAILED);
	srand((unsigned)getpid());
	for (unsigned round = 0; round < ROUNDS; round++) {
		pid = spawn(live, round);
		for (int ms = 0; *said <= (int)round && ms < PATIENCE_MS; ms++) {
			assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
			poll(NULL, 0, 1);
		}
		poll(NULL, 0, rand() % 25);
		kill(-pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	pid = spawn(rest, 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	text = read_log(&n);
	check_chain(text, n, &tally);
	for (unsigned i = 0; i < ROUNDS * RING_EVENTS; i++)
		assert_int_equal(tally.ring[i], 1);
	for (unsigned i = 0; i < ROUNDS * TOLD_EVENTS; i++)
		assert_int_equal(tally.told[i], 1);
	assert_int_equal(tally.lines, ROUNDS * (RING_EVENTS + TOLD_EVENTS));
	free(text);
	munmap((void *)said, 4096);
	assert_int_equal(count_files("rings"), 0);
	assert_int_equal(count_files("told"), 0);
}

/* Nothing is thrown away, and not every start logs it. */
static void what_cannot_be_read_is_named_once(void **state)
{
	static const char *const folders[] = {"rings", "told"};
	struct supervisor sv = {0};
	char name[RECORDING_NAME_BYTES], aside[80], text[2048], said_so[128];
	int log, stderr_fd;

	(void)state;
	assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
	recording_file_name(SANDBOX, supervisor_next_id(&sv), name);
	snprintf(aside, sizeof(aside), "%s.unreadable", name);
	assert_int_equal(symlinkat("nowhere", sv.recording.rings, name), 0);
	assert_int_equal(symlinkat("nowhere", sv.recording.told, name), 0);
	recording_fini(&sv);
	for (unsigned start = 0; start < 2; start++) {
		sv = (struct supervisor){0};
		assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
		log = begin_log(&stderr_fd);
		assert_int_equal(recording_adopt(&sv), 0);
		end_log(log, stderr_fd, text, sizeof(text));
		for (size_t i = 0; i < 2; i++) {
			snprintf(said_so, sizeof(said_so), "the file is kept as %s/%s", folders[i],
			        aside);
			assert_int_equal(strstr(text, said_so) != NULL, start == 0);
			assert_int_equal(count_files(folders[i]), 1);
		}
		assert_true(start == 0 || text[0] == 0);
		if (start == 1) {
			assert_int_equal(unlinkat(sv.recording.rings, aside, 0), 0);
			assert_int_equal(unlinkat(sv.recording.told, aside, 0), 0);
		}
		recording_fini(&sv);
	}
}

static size_t count_left(const struct supervisor *sv)
{
	size_t count = 0;

	for (const struct recorded_ring *r = sv->recording.left ? sv->recording.left->rings : NULL;
	        r; r = r->next)
		count++;
	return count;
}

/* Without descriptors for all, those wait that there are none for, and none is lost. */
#define WAITING 8
static void rings_that_there_are_no_descriptors_for(void **state)
{
	struct supervisor one = {0}, other = {0};
	struct sandbox s = {.supervisor = &one, .id = SANDBOX};
	struct recorded_ring *rings[WAITING];
	struct rlimit before, few;
	char name[RECORDING_NAME_BYTES];

	(void)state;
	assert_int_equal(recording_keep_at(&one, folder_fd), 0);
	for (size_t i = 0; i < WAITING; i++) {
		rings[i] = recording_ring_new(&one, &s);
		assert_non_null(rings[i]);
		recording_close_ring(rings[i]);
	}
	close(one.recording.journal);
	other.loop = loop_new();
	assert_int_equal(recording_keep_at(&other, folder_fd), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){FD_LIMIT_KEPT, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(recording_adopt(&other), 0);
	loop_for(other.loop, 50);
	assert_non_null(other.recording.waiting);
	assert_null(other.recording.left);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned tries = 0; other.recording.waiting && tries < 1000; tries++)
		loop_for(other.loop, 20);
	assert_null(other.recording.waiting);
	assert_int_equal(count_left(&other), WAITING);
	for (size_t i = 0; i < WAITING; i++) {
		recording_file_name(SANDBOX, rings[i]->id, name);
		assert_int_equal(unlinkat(other.recording.rings, name, 0), 0);
		free(rings[i]);
	}
	recording_fini(&other);
	loop_free(other.loop);
	close(one.recording.rings);
	close(one.recording.told);
}

/* Rings that are still locked hold nobody up, and are taken up when they are free: more of them
 * than are tried in a turn. */
#define LOCKED 100
static void a_ring_whose_writer_is_there(void **state)
{
	struct supervisor one = {0}, other = {0};
	struct sandbox s = {.supervisor = &one, .id = SANDBOX};
	struct recorded_ring *rings[LOCKED];
	int64_t began;

	(void)state;
	assert_int_equal(recording_keep_at(&one, folder_fd), 0);
	for (size_t i = 0; i < LOCKED; i++) {
		if (i % RECORDING_RINGS_MAX == 0) /* of another life, as it were */
			s.recorded.rings = NULL;
		rings[i] = recording_ring_new(&one, &s);
		assert_non_null(rings[i]);
	}
	close(one.recording.journal); /* its supervisor is gone, its workers are not */
	other.loop = loop_new();
	assert_int_equal(recording_keep_at(&other, folder_fd), 0);
	began = clock_monotonic_ms();
	assert_int_equal(recording_adopt(&other), 0);
	assert_true(clock_monotonic_ms() - began < RECORDING_ADOPT_MS);
	assert_non_null(other.recording.waiting);
	assert_null(other.recording.left);
	loop_for(other.loop, 50);
	assert_non_null(other.recording.waiting);
	for (size_t i = 0; i < LOCKED; i++)
		recording_close_ring(rings[i]);
	for (unsigned tries = 0; other.recording.waiting && tries < 1000; tries++)
		loop_for(other.loop, 20);
	assert_null(other.recording.waiting);
	assert_non_null(other.recording.left);
	assert_int_equal(other.recording.left->id, SANDBOX);
	size_t count = 0;
	for (const struct recorded_ring *r = other.recording.left->rings; r; r = r->next) {
		char name[RECORDING_NAME_BYTES];

		recording_file_name(SANDBOX, r->id, name);
		assert_int_equal(unlinkat(other.recording.rings, name, 0), 0);
		count++;
	}
	assert_int_equal(count, LOCKED);
	recording_fini(&other);
	loop_free(other.loop);
	for (size_t i = 0; i < LOCKED; i++)
		free(rings[i]);
	close(one.recording.rings);
	close(one.recording.told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(
	                killed_daemons_lose_and_double_nothing, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                what_cannot_be_read_is_named_once, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                rings_that_there_are_no_descriptors_for, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_ring_whose_writer_is_there, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
