/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_fixture: a test plays supervisor and workers of the real vethguard-keeper program of this
 * build. Without root the keeper is started in a user namespace of its own, as a rootless
 * supervisor does. Included after cmocka.h.
 */
#ifndef VETHGUARD_TESTS_UNIT_KEEPER_KEEPER_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_KEEPER_KEEPER_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "role_program.h"

#define WAIT_MS 60000
#define SILENCE_MS 50

struct fixture {
	pid_t pid;
	int supervisor; /* this end of the pair, or -1 */
	uint64_t last_id;
	uint64_t generation; /* of what is said */
};

/* Received messages point into it; the next receive overwrites it. */
static uint8_t fixture_buf[MESSAGE_BYTES_MAX];

static inline void fixture_expect(int fd, enum message_type type, struct ipc_message *message)
{
	assert_int_equal(ipc_receive_blocking(fd, WAIT_MS, fixture_buf, message), 0);
	assert_int_equal(message->head.type, type);
}

static inline void fixture_expect_silence(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, SILENCE_MS), 0);
}

static inline void fixture_expect_end(int fd)
{
	struct ipc_message message;
	int rc;

	do
		rc = ipc_receive_blocking(fd, WAIT_MS, fixture_buf, &message);
	while (rc == 0);
	assert_int_equal(rc, -EPIPE);
}

/* The stderr of the next keeper alone; -1: this program's. */
static int fixture_stderr = -1;

static inline void fixture_spawn(struct fixture *f)
{
	static char environment[] = "VETHGUARD_TEST=environment-marker";
	int pair[2], its_stderr = fixture_stderr;

	fixture_stderr = -1;
	*f = (struct fixture){.last_id = 100};
	assert_int_equal(ipc_pair(pair), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		if (its_stderr >= 0)
			dup2(its_stderr, STDERR_FILENO);
		role_program_exec("vethguard-keeper", pair[1], environment);
	}
	close(pair[1]);
	f->supervisor = pair[0];
}

/* root: the root CA's file, or -1. */
static inline void fixture_start_with(struct fixture *f, int root)
{
	struct ipc_message message;
	uint8_t start[64];

	fixture_spawn(f);
	assert_int_equal(
	        ipc_send_blocking(f->supervisor, start,
	                message_empty(start, sizeof(start), MESSAGE_KEEPER_START, ++f->last_id),
	                &root, root >= 0),
	        0);
	fixture_expect(f->supervisor, MESSAGE_KEEPER_READY, &message);
	assert_int_equal(message.head.id, f->last_id);
	assert_true(reader_done(&message.body));
}

static inline void fixture_start(struct fixture *f)
{
	fixture_start_with(f, -1);
}

/* Waits for the keeper's end: its exit status, or 1000 + signal. */
static inline int fixture_wait(struct fixture *f)
{
	int status;

	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static inline int fixture_end(struct fixture *f)
{
	close(f->supervisor);
	return fixture_wait(f);
}

/* A worker in store; returns its end of its pair. */
static inline int fixture_worker(struct fixture *f, uint64_t id)
{
	uint8_t out[64];
	int pair[2];

	assert_int_equal(ipc_pair(pair), 0);
	assert_int_equal(
	        ipc_send_blocking(f->supervisor, out,
	                message_empty(out, sizeof(out), MESSAGE_KEEPER_WORKER, id), &pair[1], 1),
	        0);
	close(pair[1]);
	return pair[0];
}

static inline void fixture_send_sandbox(
        struct fixture *f, const struct message_keeper_sandbox *m, int fd)
{
	static uint8_t out[16384];
	size_t n = message_keeper_sandbox_encode(
	        out, sizeof(out), MESSAGE_KEEPER_SANDBOX, ++f->last_id, m);

	assert_true(n > 0);
	assert_int_equal(ipc_send_blocking(f->supervisor, out, n, &fd, fd >= 0 ? 1 : 0), 0);
}

/* That worker's sandbox, with count credentials "c0", "c1", ... */
static inline void fixture_describe(
        struct fixture *f, uint64_t sandbox_id, uint32_t count, uint32_t ttl_s, uint32_t timeout_ms)
{
	static char names[POLICY_CREDENTIALS_MAX][16];
	struct message_keeper_sandbox m = {.sandbox_id = sandbox_id,
	        .generation = f->generation,
	        .sandbox = SLICE("box"),
	        .credential_count = count};

	for (uint32_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "c%u", i);
		m.credentials[i].name = slice_from_string(names[i]);
		m.credentials[i].ttl_s = ttl_s;
		m.credentials[i].timeout_ms = timeout_ms;
	}
	fixture_send_sandbox(f, &m, -1);
}

static inline void fixture_expect_root(struct fixture *f)
{
	struct ipc_message message;

	fixture_expect(f->supervisor, MESSAGE_KEEPER_ROOT, &message);
	assert_int_equal(message.head.id, f->last_id);
}

/* Both. */
static inline int fixture_sandbox(
        struct fixture *f, uint64_t sandbox_id, uint32_t count, uint32_t ttl_s, uint32_t timeout_ms)
{
	int worker = fixture_worker(f, sandbox_id);

	fixture_describe(f, sandbox_id, count, ttl_s, timeout_ms);
	fixture_expect_root(f);
	return worker;
}

static inline uint64_t fixture_ask(struct fixture *f, int worker, uint32_t credential)
{
	struct message_credential_get get = {credential, f->generation};
	uint8_t out[64];
	size_t n = message_credential_get_encode(
	        out, sizeof(out), MESSAGE_CREDENTIAL_GET, ++f->last_id, &get);

	assert_int_equal(ipc_send_blocking(worker, out, n, NULL, 0), 0);
	return f->last_id;
}

/* Expects SOURCE_OPEN; its id. */
static inline uint64_t fixture_expect_open(
        struct fixture *f, uint64_t sandbox_id, uint32_t credential)
{
	struct message_source_open open_message;
	struct ipc_message message;

	fixture_expect(f->supervisor, MESSAGE_SOURCE_OPEN, &message);
	assert_int_equal(message_source_open_decode(&message.body, &open_message), 0);
	assert_int_equal(open_message.sandbox_id, sandbox_id);
	assert_int_equal(open_message.credential, credential);
	assert_int_equal(open_message.generation, f->generation);
	return message.head.id;
}

/* Answers it with fd (closed) or, where fd < 0, with the error. */
static inline void fixture_give(struct fixture *f, uint64_t question, int fd, const char *error)
{
	struct message_source answer = {
	        .opened = fd >= 0, .error = slice_from_string(fd >= 0 ? "" : error)};
	uint8_t out[1024];
	size_t n = message_source_encode(out, sizeof(out), MESSAGE_SOURCE, question, &answer);

	assert_int_equal(ipc_send_blocking(f->supervisor, out, n, &fd, fd >= 0 ? 1 : 0), 0);
	if (fd >= 0)
		close(fd);
}

/* A file without a name that holds the bytes, open for reading at its begin. */
static inline int fixture_file(const void *p, size_t n)
{
	char path[64];
	int file = memfd_create("value", MFD_CLOEXEC), fd;

	assert_true(file >= 0);
	assert_int_equal(write(file, p, n), (ssize_t)n);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(file);
	return fd;
}

static inline void fixture_expect_credential(
        int worker, uint64_t id, struct message_credential *out)
{
	struct ipc_message message;

	fixture_expect(worker, MESSAGE_CREDENTIAL, &message);
	assert_int_equal(message.head.id, id);
	assert_int_equal(message_credential_decode(&message.body, out), 0);
}

static inline void fixture_expect_value(
        int worker, uint64_t id, uint32_t credential, const char *value)
{
	struct message_credential got;

	fixture_expect_credential(worker, id, &got);
	assert_int_equal(got.credential, credential);
	assert_true(got.available);
	assert_true(slice_equals(got.value, slice_from_string(value)));
}

/* Expects a refusal whose sentence holds the words. */
static inline void fixture_expect_refusal(int worker, uint64_t id, const char *words)
{
	struct message_credential got;

	fixture_expect_credential(worker, id, &got);
	assert_false(got.available);
	assert_int_equal(got.value.n, 0);
	if (!memmem(got.error.p, got.error.n, words, strlen(words)))
		fail_msg("\"%.*s\" does not say \"%s\"", SLICE_ARG(got.error), words);
}

/* Asks, gives a file with the value, expects the value. */
static inline void fixture_fetch(
        struct fixture *f, int worker, uint64_t sandbox_id, uint32_t credential, const char *value)
{
	uint64_t id = fixture_ask(f, worker, credential);

	fixture_give(f, fixture_expect_open(f, sandbox_id, credential),
	        fixture_file(value, strlen(value)), NULL);
	fixture_expect_value(worker, id, credential, value);
}

static inline int setup(void **state)
{
	struct fixture *f = malloc(sizeof(*f));

	assert_non_null(f);
	fixture_start(f);
	*state = f;
	return 0;
}

/* Every test ends with a keeper that lives, ends well and was not killed by its seccomp filter. */
static inline int teardown(void **state)
{
	int status = fixture_end(*state);

	free(*state);
	return status;
}

/* --- certificates --- */

static inline void get_ca(struct fixture *f, int worker, struct message_ca *ca)
{
	struct ipc_message message;
	uint8_t out[64];

	assert_int_equal(
	        ipc_send_blocking(worker, out,
	                message_empty(out, sizeof(out), MESSAGE_CA_GET, ++f->last_id), NULL, 0),
	        0);
	fixture_expect(worker, MESSAGE_CA, &message);
	assert_int_equal(message.head.id, f->last_id);
	assert_int_equal(message_ca_decode(&message.body, ca), 0);
}

/* --- before the keeper knows a worker's sandbox --- */

/* The worker's messages come over another pair of sockets than the supervisor's next one. */
static inline void is_heard(struct fixture *f, int worker)
{
	struct message_ca ca;

	get_ca(f, worker, &ca);
	fixture_expect_silence(f->supervisor);
}

static inline void look(struct fixture *f)
{
	struct ipc_message message;
	uint8_t m[64];

	assert_int_equal(ipc_send_blocking(f->supervisor, m,
	                         message_empty(m, sizeof(m), MESSAGE_KEEPER_CHECK, 17), NULL, 0),
	        0);
	fixture_expect(f->supervisor, MESSAGE_KEEPER_HERE, &message);
	assert_int_equal(message.head.id, 17);
	assert_true(reader_done(&message.body));
}

/* --- the supervisor --- */

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
