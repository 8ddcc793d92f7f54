/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_fixture: a test plays supervisor and keeper of the real vethguard-worker program of this
 * build. Without root the worker is started in a user namespace of its own, as a rootless
 * supervisor does. Included after cmocka.h and policy_test.h.
 */
#ifndef VETHGUARD_TESTS_UNIT_WORKER_WORKER_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_WORKER_WORKER_FIXTURE_H

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
#include "vethguard/ipc/ring.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/tls/ca.h"

#define WAIT_MS 60000
#define SILENCE_MS 50
#define START_FDS MESSAGE_WORKER_FDS_BEFORE_LISTENERS
#define START_ID 41
#define CA_QUESTION 1
#define WORDS_MAX 8192

struct fixture {
	pid_t pid;
	int supervisor, keeper; /* this test's ends, or -1 */
	int words;              /* what it writes to stderr */
	int keepers_end; /* the worker's, of its pair to the keeper, until it has it; or -1 */
	int fds[START_FDS + 1]; /* for WORKER_START, and one too many */
	uint8_t start[MESSAGE_BYTES_MAX];
	size_t start_n;
};

/* Made once: a policy, a CA for trust and for the sandbox. */
static struct {
	struct test_policy policy;
	struct ca *root, *issuer;
	struct secret key;
	struct buf pem;
} parts;

static uint8_t fixture_in[MESSAGE_BYTES_MAX];

static int fixture_make_parts(void **state)
{
	(void)state;
	test_load(&parts.policy,
	        "vethguard: 1\nname: test\nallow:\n  - {name: a, to: \"https://a.test\"}\n", false);
	parts.root = ca_new_root(SLICE("root"), 30);
	parts.issuer = ca_new_intermediate(parts.root, SLICE("box"), 10);
	assert_int_equal(ca_key_der(parts.issuer, &parts.key), 0);
	buf_init(&parts.pem, 65536);
	ca_pem_append(ca_certificate_der(parts.root), &parts.pem);
	return 0;
}

static int fixture_free_parts(void **state)
{
	(void)state;
	test_unload(&parts.policy);
	secret_free(&parts.key);
	ca_free(parts.issuer);
	ca_free(parts.root);
	buf_fini(&parts.pem);
	return 0;
}

static inline int fixture_memory(const void *p, size_t n)
{
	int fd = memfd_create("part", MFD_CLOEXEC);

	assert_int_equal(write(fd, p, n), n);
	return fd;
}

static inline void fixture_encode_start(struct fixture *f)
{
	static struct message_worker_start m;
	static struct config config;

	config_init(&config);
	m = (struct message_worker_start){.sandbox = SLICE("box"),
	        .sandbox_id = 1,
	        .gate4 = {4, {10, 0, 0, 1}},
	        .gate6 = {6, {0xfd}},
	        .pool4 = config.pool4,
	        .pool6 = config.pool6,
	        .limits = config.limits,
	        .timeouts = config.timeouts,
	        .log_level = 1};
	f->start_n = message_worker_start_encode(
	        f->start, sizeof(f->start), MESSAGE_WORKER_START, START_ID, &m);
	assert_true(f->start_n > 0);
}

static inline void fixture_open(struct fixture *f)
{
	/* In its empty root there is no /proc that LeakSanitizer could read. */
	static char no_leaks[] = "ASAN_OPTIONS=detect_leaks=0";
	int control[2], keeper[2];

	memset(f, 0, sizeof(*f));
	fixture_encode_start(f);
	assert_int_equal(ipc_pair(control), 0);
	assert_int_equal(ipc_pair(keeper), 0);
	f->fds[0] = fixture_memory(parts.policy.image, parts.policy.size);
	f->fds[1] = fixture_memory(buf_bytes(&parts.pem), parts.pem.len);
	assert_int_equal(ring_create(&f->fds[2]), 0);
	f->keepers_end = keeper[1];
	f->fds[5] = shared_names_create(64);
	f->fds[6] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	f->supervisor = control[0];
	f->keeper = keeper[0];
	f->words = memfd_create("words", MFD_CLOEXEC);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		dup2(f->words, STDERR_FILENO);
		role_program_exec("vethguard-worker", control[1], no_leaks);
	}
	close(control[1]);
}

static inline void fixture_hang_up(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void fixture_close(struct fixture *f)
{
	fixture_hang_up(&f->supervisor);
	fixture_hang_up(&f->keeper);
	fixture_hang_up(&f->keepers_end);
	for (size_t i = 0; i < sizeof(f->fds) / sizeof(f->fds[0]); i++)
		fixture_hang_up(&f->fds[i]);
	if (f->pid > 0) {
		kill(f->pid, SIGKILL);
		waitpid(f->pid, NULL, 0);
	}
	fixture_hang_up(&f->words);
}

/* --- talking --- */

static inline void fixture_send_n(int fd, const uint8_t *message, size_t n)
{
	assert_int_equal(send(fd, message, n, 0), n);
}

static inline void fixture_send(int fd, enum message_type type, uint64_t id)
{
	uint8_t message[64];

	fixture_send_n(fd, message, message_empty(message, sizeof(message), type, id));
}

/* The first n bytes, with so many of the descriptors. */
static inline void fixture_send_start(
        struct fixture *f, const uint8_t *message, size_t n, size_t fd_count)
{
	assert_int_equal(ipc_send_blocking(f->supervisor, message, n, f->fds, fd_count), 0);
}

/* The pair to the keeper; afterwards the worker's end is its own alone. */
static inline void fixture_send_keeper(struct fixture *f)
{
	uint8_t message[64];
	size_t n = message_empty(message, sizeof(message), MESSAGE_WORKER_KEEPER, 2);

	assert_int_equal(ipc_send_blocking(f->supervisor, message, n, &f->keepers_end, 1), 0);
	fixture_hang_up(&f->keepers_end);
}

/* As above: another one, whether the one before is still there or not. */
static inline void fixture_send_another_keeper(struct fixture *f)
{
	int pair[2];

	assert_int_equal(ipc_pair(pair), 0);
	f->keepers_end = pair[1];
	fixture_send_keeper(f);
	fixture_hang_up(&f->keeper);
	f->keeper = pair[0];
}

static inline void fixture_expect(int fd, enum message_type type, uint64_t id)
{
	struct ipc_message m;

	assert_int_equal(ipc_receive_blocking(fd, WAIT_MS, fixture_in, &m), 0);
	assert_int_equal(m.head.type, type);
	assert_int_equal(m.head.id, id);
	assert_int_equal(m.fd_count, 0);
}

static inline void fixture_expect_silence(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, SILENCE_MS), 0);
}

static inline void fixture_expect_question(struct fixture *f)
{
	fixture_expect(f->keeper, MESSAGE_CA_GET, CA_QUESTION);
}

static inline void fixture_give(struct fixture *f, uint64_t id, struct slice key)
{
	const struct message_ca ca = {.root = ca_certificate_der(parts.root),
	        .intermediate = ca_certificate_der(parts.issuer),
	        .key = key};
	static uint8_t message[MESSAGE_BYTES_MAX];

	fixture_send_n(f->keeper, message,
	        message_ca_encode(message, sizeof(message), MESSAGE_CA, id, &ca));
}

static inline void fixture_give_ca(struct fixture *f, uint64_t id)
{
	fixture_give(f, id, secret_slice(&parts.key));
}

/* Gives an invalid key. */
static inline void fixture_give_bad_ca(struct fixture *f)
{
	fixture_give(f, CA_QUESTION, SLICE("0123456789"));
}

static inline void fixture_give_credential(struct fixture *f, uint32_t credential)
{
	const struct message_credential c = {
	        .credential = credential, .available = true, .value = SLICE("value-value")};
	uint8_t message[128];

	fixture_send_n(f->keeper, message,
	        message_credential_encode(message, sizeof(message), MESSAGE_CREDENTIAL,
	                (uint64_t)2 << 32 | credential, &c));
}

/* It ends by itself, with this status (-1: whichever), and words among what it said: "" for nothing
 * at all, NULL for whatever. Never by a signal. */
static inline void fixture_expect_exit(struct fixture *f, int status, const char *words)
{
	char said[WORDS_MAX];
	int how = 0, waited = 0;
	ssize_t n;

	while (waitpid(f->pid, &how, WNOHANG) == 0 && waited++ < WAIT_MS / 5)
		usleep(5000);
	assert_true(waited <= WAIT_MS / 5);
	f->pid = 0;
	n = pread(f->words, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = 0;
	if (!WIFEXITED(how) || (status >= 0 && WEXITSTATUS(how) != status) ||
	        (words && (!strstr(said, words) || (!*words && *said))))
		fail_msg("ended with %x, saying \"%s\"", how, said);
}

#endif
