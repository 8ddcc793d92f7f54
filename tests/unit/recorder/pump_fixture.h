/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder as a process, without its jail: the test is supervisor and worker. What it wrote is
 * checked line by line through the chain.
 */
#ifndef VETHGUARD_TESTS_UNIT_RECORDER_PUMP_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_RECORDER_PUMP_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder/recorder.h"

#include "samples.h"

#define PATIENCE_MS 60000
#define SANDBOX 77
#define RING 1

static uint8_t buffer[MESSAGE_BYTES_MAX];

struct fixture {
	char path[64];
	int log;
	int reader, journal;
	int control; /* the supervisor's end */
	pid_t pid;
	struct ring ring; /* the worker's end */
	int packets;
	int handed[4]; /* what the recorder was given of the sandbox; the supervisor's copies */
	uint64_t event_id;
	uint64_t dropped_before; /* of sandboxes told from now on */
};

static void run_recorder(int control)
{
	struct recorder *r = calloc(1, sizeof(*r));
	uint64_t id;

	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	r->loop = loop_new();
	if (!r->loop || ring_guard() != 0 || control_receive_start(r, control, &id) != 0 ||
	        batch_writer_open(r) != 0 || control_open(r, control, id) != 0)
		_exit(99);
	loop_run(r->loop);
	_exit(r->status);
}

static void expect_message(int fd, enum message_type type, uint64_t id, struct ipc_message *message)
{
	do /* they come when they come */
		assert_int_equal(ipc_receive_blocking(fd, PATIENCE_MS, buffer, message), 0);
	while (message->head.type == MESSAGE_RECORDER_TAKEN && type != MESSAGE_RECORDER_TAKEN);
	assert_int_equal(message->head.type, type);
	assert_int_equal(message->head.id, id);
}

static void launch(struct fixture *f, const char *path, rlim_t file_size)
{
	struct message_recorder_start m = {.path = slice_from_string(path), .log_level = 0};
	struct rlimit limit = {file_size, RLIM_INFINITY};
	const int fds[] = {f->log, f->reader, f->journal};
	struct ipc_message answer;
	int pair[2];
	size_t n;

	assert_int_equal(ipc_pair(pair), 0);
	f->pid = fork();
	if (f->pid == 0) {
		close(pair[0]);
		if (file_size != RLIM_INFINITY)
			setrlimit(RLIMIT_FSIZE, &limit);
		if (!freopen("/dev/null", "w", stderr))
			_exit(97);
		run_recorder(pair[1]);
	}
	close(pair[1]);
	f->control = pair[0];
	n = message_recorder_start_encode(buffer, sizeof(buffer), MESSAGE_RECORDER_START, 5, &m);
	assert_int_equal(ipc_send_blocking(f->control, buffer, n, fds, 3), 0);
	expect_message(f->control, MESSAGE_RECORDER_READY, 5, &answer);
}

static void start(struct fixture *f, const char *path, rlim_t file_size)
{
	f->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	f->reader = open(path, O_RDONLY | O_CLOEXEC);
	f->journal = journal_create();
	assert_true(f->log >= 0 && f->reader >= 0 && f->journal >= 0);
	launch(f, path, file_size);
}

static void say_ring(struct fixture *f, uint64_t sandbox, uint64_t ring, const int fds[3])
{
	struct message_recorder_ring m = {sandbox, ring};
	size_t n =
	        message_recorder_ring_encode(buffer, sizeof(buffer), MESSAGE_RECORDER_RING, 7, &m);

	assert_int_equal(ipc_send_blocking(f->control, buffer, n, fds, 3), 0);
}

/* A sandbox with its ring and, as NFLOG socket, one end of a socket pair. */
static void say_sandbox(struct fixture *f, uint64_t id, const int fds[4])
{
	struct message_recorder_sandbox m = {
	        .sandbox_id = id,
	        .sandbox = SLICE("agent-7"),
	        .policy = SLICE("coding-agent"),
	        .fingerprint = SLICE("0123456789abcdef"),
	        .has_packets = true,
	        .dropped = f->dropped_before,
	};
	size_t n = message_recorder_sandbox_encode(
	        buffer, sizeof(buffer), MESSAGE_RECORDER_SANDBOX, 6, &m);
	assert_int_equal(ipc_send_blocking(f->control, buffer, n, &fds[3], 1), 0);
	say_ring(f, id, RING, fds);
}

static void add_sandbox(struct fixture *f, uint64_t id, struct ring *ring, int *packets)
{
	int fds[4], pair[2];

	assert_int_equal(ring_create(fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
	fds[3] = pair[1];
	say_sandbox(f, id, fds);
	for (size_t i = 0; ring == &f->ring && i < 4; i++)
		f->handed[i] = dup(fds[i]);
	close(pair[1]);
	*packets = pair[0];
	assert_int_equal(ring_open_writer(ring, fds[0], fds[1], fds[2]), 0);
}

static void open_fixture(struct fixture *f, rlim_t file_size)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "/tmp/test_pump.%d.jsonl", getpid());
	unlink(f->path);
	start(f, f->path, file_size);
	add_sandbox(f, SANDBOX, &f->ring, &f->packets);
}

static void close_fixture(struct fixture *f)
{
	int status;

	if (f->pid > 0) {
		kill(f->pid, SIGKILL);
		waitpid(f->pid, &status, 0);
	}
	ring_close(&f->ring);
	close(f->packets);
	close(f->control);
	for (size_t i = 0; i < 4; i++)
		close(f->handed[i]);
	close(f->log);
	close(f->reader);
	close(f->journal);
	unlink(f->path);
}

static void write_event(struct ring *ring, struct event event)
{
	uint8_t record[EVENT_BYTES_MAX];
	size_t n = event_encode(&event, record, sizeof(record));
	int rc, tries = 0;

	while ((rc = ring_write(ring, record, n)) == -EAGAIN && tries++ < PATIENCE_MS)
		poll(NULL, 0, 1);
	assert_int_equal(rc, 0);
}

static void send_event(struct fixture *f, uint64_t sandbox, struct event event)
{
	uint8_t record[EVENT_BYTES_MAX];
	struct message_recorder_event m = {
	        sandbox, slice_of(record, event_encode(&event, record, sizeof(record)))};
	size_t n = message_recorder_event_encode(
	        buffer, sizeof(buffer), MESSAGE_RECORDER_EVENT, ++f->event_id, &m);

	assert_int_equal(ipc_send_blocking(f->control, buffer, n, NULL, 0), 0);
}

static void send_end_counted(struct fixture *f, uint64_t sandbox, uint64_t id, uint64_t dropped)
{
	struct message_sandbox m = {sandbox, dropped};
	size_t n = message_sandbox_encode(buffer, sizeof(buffer), MESSAGE_RECORDER_END, id, &m);

	assert_int_equal(ipc_send_blocking(f->control, buffer, n, NULL, 0), 0);
}

static void send_end(struct fixture *f, uint64_t sandbox, uint64_t id)
{
	send_end_counted(f, sandbox, id, 0);
}

static struct message_summary expect_summary(struct fixture *f, uint64_t id)
{
	struct ipc_message answer;
	struct message_summary m;

	expect_message(f->control, MESSAGE_RECORDER_SUMMARY, id, &answer);
	assert_int_equal(message_summary_decode(&answer.body, &m), 0);
	return m;
}

static void stop(struct fixture *f)
{
	struct ipc_message answer;
	int status;

	assert_int_equal(ipc_send_blocking(f->control, buffer,
	                         message_empty(buffer, sizeof(buffer), MESSAGE_STOP, 9), NULL, 0),
	        0);
	expect_message(f->control, MESSAGE_STOPPED, 9, &answer);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	f->pid = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The whole file; the caller frees. */
static char *read_file(const char *path, size_t *n)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	text = malloc((size_t)st.st_size + 1);
	assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
	text[st.st_size] = '\0';
	close(fd);
	*n = (size_t)st.st_size;
	return text;
}

/* Checks that each line follows the one before, the first one *last, and leaves the last one there.
 * The number of lines. */
static unsigned verify_after(const char *path, struct seal_link *last)
{
	struct digest digest;
	unsigned lines = 0;
	size_t n;
	char *text = read_file(path, &n), *line = text;

	assert_int_equal(digest_init(&digest), 0);
	while (line < text + n) {
		char *end = strchr(line, '\n'), hash[DIGEST_SHA256_HEX + 1];
		struct seal seal;

		assert_non_null(end);
		assert_int_equal(seal_parse(slice_of(line, (size_t)(end - line)), &seal), 0);
		digest_sha256_hex(
		        &digest, (const struct slice[]){seal.covered, SLICE(SEAL_CLOSE)}, 2, hash);
		assert_string_equal(hash, seal.own.hash);
		assert_int_equal(seal.previous.has_previous, last->has_previous);
		if (last->has_previous) {
			assert_string_equal(seal.previous.hash, last->hash);
			assert_string_equal(seal.previous.uid, last->uid);
			assert_string_equal(seal.previous.chain_uid, last->chain_uid);
		}
		*last = seal.own;
		lines++;
		line = end + 1;
	}
	digest_fini(&digest);
	free(text);
	return lines;
}

/* Checks the chain from the first line on. The number of lines. */
static unsigned verify(const char *path)
{
	struct seal_link last = {0};

	return verify_after(path, &last);
}

static inline bool file_has(const char *path, const char *needle)
{
	size_t n;
	char *text = read_file(path, &n);
	bool found = strstr(text, needle) != NULL;

	free(text);
	return found;
}

#endif
