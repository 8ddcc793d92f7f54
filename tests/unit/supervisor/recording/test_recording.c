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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/ipc/ring.h"
#include "recorder/recorder.h"
#include "supervisor/open_files.h"
#include "supervisor/recording/files.h"
#include "supervisor/supervisor.h"

#define ROUNDS 12
#define RING_EVENTS 150 /* in each round */
#define TOLD_EVENTS 5
#define TAKEN_OVER_MS 30
#define SANDBOX 4242
#define FIRST_ID 0xabc0000000000000u
#define POLL_MS 5
#define PATIENCE_MS 60000

static char folder[64], log_path[96];
static int folder_fd;
static _Atomic int *said; /* shared: everything of this round is written */

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/test_recording.XXXXXX");
	assert_non_null(mkdtemp(folder));
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(log_path, sizeof log_path, "%s/audit.jsonl", folder);
	said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(folder_fd >= 0 && said != MAP_FAILED);
	return 0;
}

static unsigned count_files(const char *name)
{
	char path[128];
	unsigned n = 0;
	struct dirent *entry;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	DIR *d = opendir(path);
	assert_non_null(d);
	while ((entry = readdir(d)) != NULL)
		n += entry->d_name[0] != '.';
	closedir(d);
	return n;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(log_path);
	unlinkat(folder_fd, "journal", 0);
	unlinkat(folder_fd, "rings", AT_REMOVEDIR);
	unlinkat(folder_fd, "told", AT_REMOVEDIR);
	close(folder_fd);
	munmap((void *)said, 4096);
	return rmdir(folder);
}

static void run_recorder(int control)
{
	struct recorder *r = calloc(1, sizeof *r);
	uint64_t id;

	r->loop = loop_new();
	if (ring_guard() != 0 || control_receive_start(r, control, &id) != 0 || pump_open(r) != 0 ||
	        control_open(r, control, id) != 0)
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
		must(ring_write(&writer, record, event_encode(&event, record, sizeof record)) == 0,
		        89);
	}
}

static void tell_one(struct supervisor *sv, unsigned round, unsigned i)
{
	char cause[32];

	snprintf(cause, sizeof cause, "round %u event %u.", round, i);
	tell_lifecycle(sv, NULL, EVENT_PAUSED, cause);
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
		must(recording_open_left(&sv, SANDBOX) != NULL, 87);
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
	assert_int_equal(count_files("rings"), 0);
	assert_int_equal(count_files("told"), 0);
}

/* What is logged from here on (an open memfd), until it is read. */
static int begin_log(int *stderr_fd)
{
	int log = memfd_create("log", MFD_CLOEXEC);

	*stderr_fd = dup(STDERR_FILENO);
	assert_true(log >= 0 && *stderr_fd >= 0);
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	return log;
}

static void end_log(int log, int stderr_fd, char *out, size_t size)
{
	ssize_t n = pread(log, out, size - 1, 0);

	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	close(log);
	assert_true(n >= 0);
	out[n] = 0;
}

/* Thousands of lines about a full disk would hide what else goes wrong. */
static void what_cannot_be_kept_is_said_once(void **state)
{
	static struct supervisor sv;
	struct recording *r = &sv.recording;
	uint8_t event[8] = "event";
	int log, stderr_fd, told;
	char text[1024];

	(void)state;
	assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
	told = r->told;
	r->told = -1; /* nothing can be written there */
	log = begin_log(&stderr_fd);
	for (uint64_t id = 1; id <= 5; id++)
		recording_keep_told(r, SANDBOX, id, event, sizeof event);
	end_log(log, stderr_fd, text, sizeof text);
	assert_non_null(strstr(text, "events cannot be kept for a restart"));
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
	r->told = told;
	log = begin_log(&stderr_fd);
	for (uint64_t id = 6; id <= 7; id++)
		recording_keep_told(r, SANDBOX, id, event, sizeof event);
	end_log(log, stderr_fd, text, sizeof text);
	assert_non_null(strstr(text, "again; 5 could not"));
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
	assert_int_equal(count_files("told"), 2);
	for (uint64_t id = 6; id <= 7; id++)
		recording_remove_told(r, SANDBOX, id);
	recording_fini(&sv);
}

static void a_second_daemon_is_kept_out(void **state)
{
	struct supervisor one = {0}, other = {0};

	(void)state;
	assert_int_equal(recording_keep_at(&one, folder_fd), 0);
	assert_int_equal(recording_keep_at(&other, folder_fd), -EWOULDBLOCK);
	recording_fini(&one);
	assert_int_equal(recording_keep_at(&other, folder_fd), 0);
	assert_true(other.last_id > one.last_id);
	assert_int_equal(other.recording.daemon.id, one.recording.daemon.id);
	recording_fini(&other);
}

/* Nothing is thrown away, and nobody has to read of it at each start. */
static void what_cannot_be_read_is_named_once(void **state)
{
	static const char *const folders[] = {"rings", "told"};
	struct supervisor sv = {0};
	char name[64], aside[80], text[2048], said_so[128];
	int log, stderr_fd;

	(void)state;
	assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
	snprintf(name, sizeof name, "%016llx.%016llx", (unsigned long long)SANDBOX,
	        (unsigned long long)supervisor_next_id(&sv));
	snprintf(aside, sizeof aside, "%s.unreadable", name);
	assert_int_equal(symlinkat("nowhere", sv.recording.rings, name), 0);
	assert_int_equal(symlinkat("nowhere", sv.recording.told, name), 0);
	recording_fini(&sv);
	for (unsigned start = 0; start < 2; start++) {
		sv = (struct supervisor){0};
		assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
		log = begin_log(&stderr_fd);
		assert_int_equal(recording_adopt(&sv), 0);
		end_log(log, stderr_fd, text, sizeof text);
		for (size_t i = 0; i < 2; i++) {
			snprintf(said_so, sizeof said_so, "the file is kept as %s/%s", folders[i],
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

/* It stays closed, and says what would open it. */
static void a_journal_that_cannot_be_opened_is_named(void **state)
{
	struct supervisor sv = {0};
	char text[2048], command[256];
	int log, stderr_fd;

	(void)state;
	assert_int_equal(mkdirat(folder_fd, "journal", 0700), 0);
	log = begin_log(&stderr_fd);
	assert_int_equal(recording_keep_at(&sv, folder_fd), -EISDIR);
	end_log(log, stderr_fd, text, sizeof text);
	snprintf(command, sizeof command, "mv -T %s/journal %s/journal.aside", folder, folder);
	assert_non_null(strstr(text, command));
	assert_int_equal(unlinkat(folder_fd, "journal", AT_REMOVEDIR), 0);
}

static void an_outage_becomes_a_finding(void **state)
{
	struct supervisor sv = {.lasting = true, .recording.daemon = {.id = SANDBOX, .open = true}};
	const struct told_call look = {.operation = "sandboxes.list", .looks = true, .status = 200};

	(void)state;
	outage_ends(&sv); /* of none */
	assert_int_equal(sv.recording.told_count, 0);
	outage_begins(&sv, "The disk is full.");
	outage_begins(&sv, "The disk is still full.");
	assert_int_equal(sv.recording.outage.count, 1);
	sv.recording.told_count = RECORDING_LOOKS_MAX;
	tell_api(&sv, NULL, &look);
	assert_int_equal(sv.recording.outage.looks, 1);
	sv.recording.told_count = 0;
	outage_ends(&sv);
	assert_int_equal(sv.recording.told_count, 1);
	assert_int_equal(sv.recording.outage.looks, 0);
	/* One that says it endlessly fills nothing; what it said is told with the next one. */
	for (unsigned i = 0; i < 100; i++) {
		outage_begins(&sv, "The disk is full.");
		outage_ends(&sv);
	}
	assert_int_equal(sv.recording.told_count, 1);
	assert_int_equal(sv.recording.outage.count, 100);
	sv.recording.outage.next_told_ms = 0;
	outage_begins(&sv, "The disk is full.");
	outage_ends(&sv);
	assert_int_equal(sv.recording.told_count, 2);
	assert_int_equal(sv.recording.outage.count, 0);
	recording_taken(&sv, sv.last_id);
	assert_null(sv.recording.daemon.told);
}

static struct loop *stopping;

static void stop(struct loop_timer *timer)
{
	(void)timer;
	loop_stop(stopping);
}

static void run_for(struct supervisor *sv, struct loop_timer *timer, int64_t ms)
{
	stopping = sv->loop;
	loop_timer_set(timer, ms);
	assert_int_equal(loop_run(sv->loop), 0);
}

static size_t count_left(const struct supervisor *sv)
{
	size_t count = 0;

	for (const struct recorded_ring *r = sv->recording.left ? sv->recording.left->rings : NULL;
	        r; r = r->next)
		count++;
	return count;
}

/* Those in store have no name until they are somebody's; without one a ring is made at once. */
static void rings_in_store(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {.supervisor = &sv, .id = SANDBOX};
	char name[64];

	(void)state;
	recording_prepare_ring(&sv.recording);
	assert_int_equal(sv.recording.ready_count, 0); /* a session's are memory */
	assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
	recording_prepare_ring(&sv.recording);
	for (size_t i = 0; i < 3; i++) {
		struct recorded_ring *ring = recording_ring_new(&sv, &s);

		assert_non_null(ring);
		assert_int_equal(sv.recording.ready_count, 0);
		snprintf(name, sizeof name, "%016llx.%016llx", (unsigned long long)SANDBOX,
		        (unsigned long long)ring->id);
		assert_int_equal(faccessat(sv.recording.rings, name, F_OK, 0), 0);
	}
	for (size_t i = 0; i < RECORDING_READY_MAX + 1; i++)
		recording_prepare_ring(&sv.recording);
	assert_int_equal(sv.recording.ready_count, RECORDING_READY_MAX);
	recording_forget(&sv, &s.recorded, true);
	recording_fini(&sv);
	assert_int_equal(sv.recording.ready_count, 0);
}

/* A name that is taken is another ring's: that one stays, and the one in store is given up. */
static void a_ring_in_store_whose_name_is_taken(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {.supervisor = &sv, .id = SANDBOX};
	char name[64];
	int fd;

	(void)state;
	assert_int_equal(recording_keep_at(&sv, folder_fd), 0);
	recording_prepare_ring(&sv.recording);
	snprintf(name, sizeof name, "%016llx.%016llx", (unsigned long long)SANDBOX,
	        (unsigned long long)sv.last_id + 1);
	fd = openat(sv.recording.rings, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_null(recording_ring_new(&sv, &s));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(sv.recording.ready_count, 0);
	assert_null(s.recorded.rings);
	assert_int_equal(unlinkat(sv.recording.rings, name, 0), 0);
	recording_fini(&sv);
}

/* Without descriptors for all, those wait that there are none for, and none is lost. */
#define WAITING 8
static void rings_that_there_are_no_descriptors_for(void **state)
{
	struct supervisor one = {0}, other = {0};
	struct sandbox s = {.supervisor = &one, .id = SANDBOX};
	struct recorded_ring *rings[WAITING];
	struct loop_timer timer = {0};
	struct rlimit before, few;
	char name[64];

	(void)state;
	assert_int_equal(recording_keep_at(&one, folder_fd), 0);
	for (size_t i = 0; i < WAITING; i++) {
		rings[i] = recording_ring_new(&one, &s);
		assert_non_null(rings[i]);
		recording_close_ring(rings[i]);
	}
	close(one.recording.journal);
	other.loop = loop_new();
	assert_int_equal(loop_timer_open(other.loop, &timer, stop), 0);
	assert_int_equal(recording_keep_at(&other, folder_fd), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){OPEN_FILES_KEPT, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(recording_adopt(&other), 0);
	run_for(&other, &timer, 50);
	assert_non_null(other.recording.waiting);
	assert_null(other.recording.left);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned tries = 0; other.recording.waiting && tries < 1000; tries++)
		run_for(&other, &timer, 20);
	assert_null(other.recording.waiting);
	assert_int_equal(count_left(&other), WAITING);
	for (size_t i = 0; i < WAITING; i++) {
		snprintf(name, sizeof name, "%016llx.%016llx", (unsigned long long)SANDBOX,
		        (unsigned long long)rings[i]->id);
		assert_int_equal(unlinkat(other.recording.rings, name, 0), 0);
		free(rings[i]);
	}
	loop_timer_close(&timer);
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
	struct loop_timer timer = {0};
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
	assert_int_equal(loop_timer_open(other.loop, &timer, stop), 0);
	assert_int_equal(recording_keep_at(&other, folder_fd), 0);
	began = clock_monotonic_ms();
	assert_int_equal(recording_adopt(&other), 0);
	assert_true(clock_monotonic_ms() - began < RECORDING_ADOPT_MS);
	assert_non_null(other.recording.waiting);
	assert_null(other.recording.left);
	run_for(&other, &timer, 50);
	assert_non_null(other.recording.waiting);
	for (size_t i = 0; i < LOCKED; i++)
		recording_close_ring(rings[i]);
	for (unsigned tries = 0; other.recording.waiting && tries < 1000; tries++)
		run_for(&other, &timer, 20);
	assert_null(other.recording.waiting);
	assert_non_null(other.recording.left);
	assert_int_equal(other.recording.left->id, SANDBOX);
	size_t count = 0;
	for (const struct recorded_ring *r = other.recording.left->rings; r; r = r->next) {
		char name[64];

		snprintf(name, sizeof name, "%016llx.%016llx", (unsigned long long)SANDBOX,
		        (unsigned long long)r->id);
		assert_int_equal(unlinkat(other.recording.rings, name, 0), 0);
		count++;
	}
	assert_int_equal(count, LOCKED);
	loop_timer_close(&timer);
	recording_fini(&other);
	loop_free(other.loop);
	for (size_t i = 0; i < LOCKED; i++)
		free(rings[i]);
	close(one.recording.rings);
	close(one.recording.told);
}

/* A recorder that confirms nothing costs so much memory and no more. */
static void what_waits_is_bounded(void **state)
{
	struct supervisor sv = {.recording.daemon = {.id = SANDBOX, .open = true}};
	const struct told *t;

	(void)state;
	for (size_t i = 0; i < RECORDING_TOLD_MAX + 10; i++)
		tell_lifecycle(&sv, NULL, EVENT_PAUSED, NULL);
	assert_int_equal(sv.recording.told_count, RECORDING_TOLD_MAX);
	recording_taken(&sv, RECORDING_TOLD_MAX - 1);
	assert_int_equal(sv.recording.told_count, 1);
	tell_lifecycle(&sv, NULL, EVENT_PAUSED, NULL);
	t = sv.recording.daemon.told;
	assert_non_null(t);
	recording_taken(&sv, sv.last_id);
	assert_int_equal(sv.recording.told_count, 0);
	assert_null(sv.recording.daemon.told);
}

/* It says why it takes nothing: that is no reason to start another one, which can do no better. */
static void one_that_cannot_write_is_left_alone(void **state)
{
	(void)state;
	for (int stalled = 0; stalled < 2; stalled++) {
		struct supervisor sv = {.recording = {.daemon = {.id = SANDBOX, .open = true},
		                                .told_count = RECORDING_TOLD_MAX},
		        .recorder = {.pid = getpid(), .pidfd = -1}};

		snprintf(sv.stalled, sizeof sv.stalled, "%s", stalled ? "The disk is full." : "");
		tell_lifecycle(&sv, NULL, EVENT_PAUSED, NULL);
		assert_int_equal(sv.recorder.killed, !stalled);
	}
}

/* Who asks again and again, while nothing is written, takes no room from what is done. */
static void who_looks_leaves_room(void **state)
{
	struct supervisor sv = {.recording.daemon = {.id = SANDBOX, .open = true}};
	const struct told_call look = {.operation = "sandboxes.list", .looks = true, .status = 200};
	const struct told_call change = {.operation = "sandboxes.pause", .status = 200};

	(void)state;
	for (size_t i = 0; i < RECORDING_LOOKS_MAX + 10; i++)
		tell_api(&sv, NULL, &look);
	assert_int_equal(sv.recording.told_count, RECORDING_LOOKS_MAX);
	tell_api(&sv, NULL, &change);
	assert_int_equal(sv.recording.told_count, RECORDING_LOOKS_MAX + 1);
	recording_taken(&sv, sv.last_id);
	assert_int_equal(sv.recording.told_count, 0);
	tell_api(&sv, NULL, &look);
	assert_int_equal(sv.recording.told_count, 1);
	recording_taken(&sv, sv.last_id);
}

/* Else the recorder is told of a sandbox that it has forgotten, and ends. */
static void nothing_follows_the_end_of_a_sandbox(void **state)
{
	struct supervisor sv = {.recording.daemon = {.id = SANDBOX, .open = true}};
	struct sandbox s = {.name = "one",
	        .lasting = true,
	        .state = SANDBOX_SERVING,
	        .recorded = {.id = SANDBOX + 1, .open = true}};
	const struct told_call call = {.operation = "sandboxes.pause", .status = 503};

	(void)state;
	tell_api(&sv, &s, &call);
	assert_non_null(s.recorded.told);
	assert_null(sv.recording.daemon.told);
	told_forget(&sv, &s.recorded, sv.last_id, true);
	s.state = SANDBOX_SUMMING;
	tell_api(&sv, &s, &call);
	assert_null(s.recorded.told);
	assert_non_null(sv.recording.daemon.told);
	recording_taken(&sv, sv.last_id);
}

/* While the log cannot be written: more than the recorder has room for waits here, the end behind
 * it. */
static void the_recorder_is_given_what_it_has_room_for(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {
	        .supervisor = &sv, .id = SANDBOX, .recorded = {.id = SANDBOX, .open = true}};
	struct recorded_ring *rings[RECORDING_RINGS_MAX];
	struct recorded *of = &s.recorded;

	(void)state;
	HASH_ADD(hh, sv.sandboxes, id, sizeof s.id, &s);
	for (size_t i = 0; i < RECORDING_RINGS_MAX; i++) {
		rings[i] = recording_ring_new(&sv, &s);
		assert_non_null(rings[i]);
		assert_int_equal(rings[i]->given, i < MESSAGE_RECORDER_RINGS_MAX);
	}
	assert_null(recording_ring_new(&sv, &s));
	assert_int_equal(errno, ENOBUFS);
	while (of->ahead + EVENT_BYTES_MAX <= MESSAGE_RECORDER_AHEAD_MAX || !of->next_told) {
		tell_lifecycle(&sv, &s, EVENT_PAUSED, "Why it is so.");
		assert_true(of->ahead <= MESSAGE_RECORDER_AHEAD_MAX);
	}
	assert_int_equal(recording_end(&sv, &s), 0);
	assert_true(of->end_waits);
	recording_taken(&sv, sv.last_id);
	assert_null(of->told);
	assert_null(of->next_told);
	assert_int_equal(of->ahead, 0);
	assert_true(of->end_waits); /* there are rings yet */
	for (size_t i = 0; i < RECORDING_RINGS_MAX; i++) {
		const size_t given = i + MESSAGE_RECORDER_RINGS_MAX;

		assert_int_equal(of->end_waits, given < RECORDING_RINGS_MAX);
		recording_ring_end(&sv, &s, rings[i]);
		recording_drained(&sv, rings[i]->end_request);
		if (given < RECORDING_RINGS_MAX)
			assert_true(rings[given]->given);
	}
	assert_null(of->rings);
	assert_int_equal(of->rings_given, 0);
	HASH_DEL(sv.sandboxes, &s);
}

/* One that takes over is given the oldest that is left, once. */
static void the_next_recorder_is_given_it_again(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {
	        .supervisor = &sv, .id = SANDBOX, .recorded = {.id = SANDBOX, .open = true}};
	struct recorded *of = &s.recorded;
	const struct told *first;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		tell_lifecycle(&sv, &s, EVENT_PAUSED, NULL);
	assert_null(of->next_told);
	first = of->told;
	recording_taken(&sv, 1);
	assert_ptr_not_equal(of->told, first);
	const size_t ahead = of->ahead;
	told_say_again(&sv, of);
	assert_int_equal(of->ahead, ahead);
	assert_null(of->next_told);
	recording_leave(&sv, of);
	assert_null(of->told);
	assert_int_equal(of->ahead, 0);
	assert_int_equal(sv.recording.left->ahead, ahead);
	recording_taken(&sv, sv.last_id);
	assert_null(sv.recording.left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(
	                killed_daemons_lose_and_double_nothing, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                what_cannot_be_kept_is_said_once, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_second_daemon_is_kept_out, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                what_cannot_be_read_is_named_once, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                a_journal_that_cannot_be_opened_is_named, set_up, tear_down),
	        cmocka_unit_test(an_outage_becomes_a_finding),
	        cmocka_unit_test_setup_teardown(rings_in_store, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                a_ring_in_store_whose_name_is_taken, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                rings_that_there_are_no_descriptors_for, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_ring_whose_writer_is_there, set_up, tear_down),
	        cmocka_unit_test(what_waits_is_bounded),
	        cmocka_unit_test(one_that_cannot_write_is_left_alone),
	        cmocka_unit_test(who_looks_leaves_room),
	        cmocka_unit_test(nothing_follows_the_end_of_a_sandbox),
	        cmocka_unit_test(the_recorder_is_given_what_it_has_room_for),
	        cmocka_unit_test(the_next_recorder_is_given_it_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
