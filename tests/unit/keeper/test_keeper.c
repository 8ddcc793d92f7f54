/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's program as its supervisor and its workers see it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/x509.h>
#include <openssl/pem.h>

#include "keeper_fixture.h"
#include "keeper/sources.h"
#include "keeper/value.h"
#include "vethguard/base/clock.h"
#include "vethguard/tls/ca.h"

static int setup(void **state)
{
	struct fixture *f = malloc(sizeof(*f));

	assert_non_null(f);
	fixture_start(f);
	*state = f;
	return 0;
}

/* Every test ends with a keeper that lives, ends well and was not killed by its seccomp filter. */
static int teardown(void **state)
{
	int status = fixture_end(*state);

	free(*state);
	return status;
}

/* --- certificates --- */

static void get_ca(struct fixture *f, int worker, struct message_ca *ca)
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

static X509 *parse(struct slice der)
{
	const unsigned char *p = (const unsigned char *)der.p;
	X509 *x = d2i_X509(NULL, &p, (long)der.n);

	assert_non_null(x);
	assert_ptr_equal(p, der.p + der.n);
	return x;
}

static int verify(X509 *root, X509 *certificate)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *context = X509_STORE_CTX_new();
	int rc;

	X509_STORE_add_cert(store, root);
	X509_STORE_CTX_init(context, store, certificate, NULL);
	rc = X509_verify_cert(context);
	X509_STORE_CTX_free(context);
	X509_STORE_free(store);
	return rc;
}

static void test_ca_chain(void **state)
{
	struct fixture *f = *state;
	int a = fixture_sandbox(f, 1, 0, 0, 0), b = fixture_sandbox(f, 2, 0, 0, 0);
	struct message_ca ca;
	X509 *root, *one, *two;
	struct ca *usable;
	char name[128];

	get_ca(f, a, &ca);
	root = parse(ca.root);
	one = parse(ca.intermediate);
	usable = ca_from_der(ca.intermediate, ca.key);
	assert_non_null(usable);
	ca_free(usable);
	get_ca(f, b, &ca);
	two = parse(ca.intermediate);
	X509 *root_again = parse(ca.root);
	assert_int_equal(X509_cmp(root, root_again), 0);
	assert_int_equal(verify(root, one), 1);
	assert_int_equal(verify(root, two), 1);
	assert_int_not_equal(X509_cmp(one, two), 0);
	assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(one), X509_get0_pubkey(two)), 0);
	X509_NAME_get_text_by_NID(X509_get_subject_name(root), NID_commonName, name, sizeof(name));
	assert_int_equal(strncmp(name, "vethguard sandbox CA ", 21), 0);
	X509_NAME_get_text_by_NID(X509_get_subject_name(one), NID_commonName, name, sizeof(name));
	assert_int_equal(strncmp(name, "vethguard intermediate CA ", 26), 0);
	X509_free(root);
	X509_free(root_again);
	X509_free(one);
	X509_free(two);
	close(a);
	close(b);
}

/* --- before it is known whose a worker is --- */

static void test_worker_in_store(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_worker(f, 3);
	struct message_ca ca;

	get_ca(f, worker, &ca);
	fixture_expect_silence(f->supervisor);
	fixture_describe(f, 3, 1, 0, 0);
	fixture_expect_root(f);
	fixture_fetch(f, worker, 3, 0, "a-value");
	close(worker);
}

/* What a worker has sent comes over another pair than what its supervisor sends next. */
static void is_heard(struct fixture *f, int worker)
{
	struct message_ca ca;

	get_ca(f, worker, &ca);
	fixture_expect_silence(f->supervisor);
}

/* Its questions come over another pair than the word whose it is. */
static void test_early_questions(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_worker(f, 3);
	uint64_t ids[] = {fixture_ask(f, worker, 1), fixture_ask(f, worker, 0)};

	is_heard(f, worker);
	fixture_describe(f, 3, 2, 0, 0);
	fixture_give(f, fixture_expect_open(f, 3, 1), fixture_file("second", 6), NULL);
	fixture_give(f, fixture_expect_open(f, 3, 0), fixture_file("firstly", 7), NULL);
	fixture_expect_root(f);
	fixture_expect_value(worker, ids[0], 1, "second");
	fixture_expect_value(worker, ids[1], 0, "firstly");
	close(worker);
}

static void test_early_questions_have_bounds(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_worker(f, 3);
	struct ipc_message message;
	struct message_ca ca;

	/* A credential that its sandbox turns out not to have. */
	fixture_ask(f, worker, 2);
	get_ca(f, worker, &ca); /* it was heard */
	fixture_describe(f, 3, 2, 0, 0);
	fixture_expect(f->supervisor, MESSAGE_FAILED, &message);
	assert_int_equal(message.head.id, 3);
	fixture_expect_root(f);
	fixture_expect_end(worker);
	close(worker);
	/* More than there are credentials. */
	worker = fixture_worker(f, 4);
	for (int i = 0; i <= POLICY_CREDENTIALS_MAX; i++)
		fixture_ask(f, worker, 0);
	fixture_expect_end(worker);
	fixture_expect(f->supervisor, MESSAGE_FAILED, &message);
	assert_int_equal(message.head.id, 4);
	close(worker);
}

/* The supervisor may not know yet. */
static void test_described_when_it_has_gone(void **state)
{
	struct fixture *f = *state;
	struct message_ca ca;
	int other = fixture_worker(f, 2);

	close(fixture_worker(f, 3));
	get_ca(f, other, &ca);
	fixture_describe(f, 3, 1, 0, 0);
	fixture_expect_root(f);
	fixture_describe(f, 2, 1, 0, 0);
	fixture_expect_root(f);
	fixture_fetch(f, other, 2, 0, "a-value");
	close(other);
}

static void look(struct fixture *f)
{
	struct ipc_message message;
	uint8_t m[64];

	assert_int_equal(ipc_send_blocking(f->supervisor, m,
	                         message_empty(m, sizeof(m), MESSAGE_KEEPER_LOOK, 17), NULL, 0),
	        0);
	fixture_expect(f->supervisor, MESSAGE_KEEPER_HERE, &message);
	assert_int_equal(message.head.id, 17);
	assert_true(reader_done(&message.body));
}

static void test_look(void **state)
{
	look(*state);
}

/* --- values --- */

static void test_file_and_cache(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 3, 0, 0);
	struct message_credential got;
	uint64_t id = fixture_ask(f, worker, 1);

	fixture_give(f, fixture_expect_open(f, 7, 1), fixture_file("token-value\r\n", 13), NULL);
	fixture_expect_credential(worker, id, &got);
	assert_true(got.available);
	assert_int_equal(got.credential, 1);
	assert_int_equal(got.ttl_s, 0);
	assert_true(slice_equals(got.value, SLICE("token-value")));
	for (int i = 0; i < 20; i++)
		fixture_expect_value(worker, fixture_ask(f, worker, 1), 1, "token-value");
	fixture_expect_silence(f->supervisor);
	fixture_fetch(f, worker, 7, 2, "another-value");
	close(worker);
}

/* Described once more, of the same generation or of the next one. */
static void forget(struct fixture *f, uint64_t id, uint32_t count)
{
	fixture_describe(f, id, count, 0, 0);
	fixture_expect_root(f);
}

/* What is held is read again; what is being read is for those who wait for it. */
static void test_forgotten_values(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 2, 0, 0), pipe_fds[2];
	uint64_t waits;

	fixture_fetch(f, worker, 7, 0, "first-value");
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	waits = fixture_ask(f, worker, 1);
	fixture_give(f, fixture_expect_open(f, 7, 1), pipe_fds[0], NULL);
	forget(f, 7, 2);
	forget(f, 8, 2); /* nobody */
	fixture_fetch(f, worker, 7, 0, "second-value");
	fixture_expect_value(worker, fixture_ask(f, worker, 0), 0, "second-value");
	assert_int_equal(write(pipe_fds[1], "third-value", 11), 11);
	close(pipe_fds[1]);
	fixture_expect_value(worker, waits, 1, "third-value");
	fixture_fetch(f, worker, 7, 1, "fourth-value");
	fixture_expect_value(worker, fixture_ask(f, worker, 1), 1, "fourth-value");
	fixture_expect_silence(f->supervisor);
	close(worker);
}

/* A worker gets another policy: its questions and the keeper's news of it cross in any order. */
static void test_another_generation(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 2, 0, 0);
	uint64_t before, early, under_way;

	fixture_fetch(f, worker, 7, 0, "first-value");
	before = fixture_ask(f, worker, 1);
	under_way = fixture_expect_open(f, 7, 1);
	f->generation = 5;
	early = fixture_ask(f, worker, 0); /* before the keeper knows */
	is_heard(f, worker);
	fixture_describe(f, 7, 1, 0, 0);
	fixture_give(f, fixture_expect_open(f, 7, 0), fixture_file("second-value", 12), NULL);
	fixture_expect_root(f);
	fixture_expect_value(worker, early, 0, "second-value");
	fixture_give(f, under_way, fixture_file("of-before", 9), NULL);
	f->generation = 0;
	fixture_ask(f, worker, 1); /* the worker does not know yet: it has another number by now */
	fixture_ask(f, worker, 0);
	fixture_expect_silence(worker); /* neither these nor the one of before are answered */
	fixture_expect_silence(f->supervisor);
	f->generation = 5;
	fixture_expect_value(worker, fixture_ask(f, worker, 0), 0, "second-value");
	(void)before;
	close(worker);
}

static void test_no_earlier_generation(void **state)
{
	struct fixture f;
	int worker;

	(void)state;
	fixture_start(&f);
	f.generation = 5;
	worker = fixture_sandbox(&f, 1, 1, 0, 0);
	f.generation = 4;
	fixture_describe(&f, 1, 1, 0, 0);
	fixture_expect_end(f.supervisor);
	fixture_expect_end(worker);
	close(worker);
	assert_int_not_equal(fixture_wait(&f), 0);
	close(f.supervisor);
}

/* Questions of a generation that is passed over are asked again by the worker. */
static void test_a_generation_that_is_passed_over(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 1, 0, 0);
	uint64_t early;

	f->generation = 1;
	fixture_ask(f, worker, 0);
	f->generation = 2;
	early = fixture_ask(f, worker, 0);
	is_heard(f, worker);
	f->generation = 1;
	fixture_describe(f, 7, 1, 0, 0);
	fixture_expect_root(f);
	fixture_expect_silence(f->supervisor);
	f->generation = 2;
	fixture_describe(f, 7, 1, 0, 0);
	fixture_give(f, fixture_expect_open(f, 7, 0), fixture_file("the-value", 9), NULL);
	fixture_expect_root(f);
	fixture_expect_value(worker, early, 0, "the-value");
	fixture_expect_silence(worker);
	close(worker);
}

static void test_questions_share_one_read(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 1, 0, 0), pipe_fds[2];
	uint64_t ids[SOURCE_WAITING_MAX];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	for (int i = 0; i < SOURCE_WAITING_MAX / 2; i++)
		ids[i] = fixture_ask(f, worker, 0);
	fixture_give(f, fixture_expect_open(f, 7, 0), pipe_fds[0], NULL);
	for (int i = SOURCE_WAITING_MAX / 2; i < SOURCE_WAITING_MAX; i++)
		ids[i] = fixture_ask(f, worker, 0);
	for (const char *p = "value-in-drops\n"; *p; p++) {
		assert_int_equal(write(pipe_fds[1], p, 1), 1);
		usleep(500);
	}
	fixture_expect_silence(worker);
	close(pipe_fds[1]);
	for (int i = 0; i < SOURCE_WAITING_MAX; i++)
		fixture_expect_value(worker, ids[i], 0, "value-in-drops");
	fixture_expect_silence(f->supervisor);
	close(worker);
}

#define SLOW_MAX 60 /* times that this machine may take longer than a second for one question */

/* Whether the supervisor is asked before the worker is answered. */
static bool supervisor_is_asked(struct fixture *f, int worker)
{
	struct pollfd p[] = {
	        {.fd = f->supervisor, .events = POLLIN}, {.fd = worker, .events = POLLIN}};

	assert_true(poll(p, 2, WAIT_MS) > 0);
	return p[0].revents;
}

static void test_ttl(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 1, 1, 0);
	struct message_credential got;
	uint64_t id = fixture_ask(f, worker, 0), question;
	int64_t read_ms = INT64_MIN / 2;
	unsigned asked = 0;

	/* For a second it is not read again. */
	do {
		question = fixture_expect_open(f, 7, 0);
		assert_true(clock_monotonic_ms() - read_ms >= 1000 && asked++ < SLOW_MAX);
		read_ms = clock_monotonic_ms();
		fixture_give(f, question, fixture_file("first-value", 11), NULL);
		fixture_expect_value(worker, id, 0, "first-value");
		id = fixture_ask(f, worker, 0);
	} while (supervisor_is_asked(f, worker));
	fixture_expect_credential(worker, id, &got);
	assert_true(slice_equals(got.value, SLICE("first-value")));
	assert_int_equal(got.ttl_s, 1);
	usleep(1100 * 1000);
	fixture_fetch(f, worker, 7, 0, "second-value");
	close(worker);
}

static void test_refused_values(void **state)
{
	static char big[VALUE_MAX + 2];
	const struct {
		struct slice value;
		const char *words;
	} rows[] = {
	        {SLICE(""), "gives nothing"},
	        {SLICE("\n"), "gives nothing"},
	        {SLICE("short"), "fewer than 6"},
	        {SLICE("qwertz\nqwertz"), "more than one line"},
	        {SLICE("qwertz\n\n"), "more than one line"},
	        {SLICE("qwertz\0"), "NUL"},
	        {slice_of(big, VALUE_MAX + 1), "more than 64512"},
	        {slice_of(big, VALUE_MAX + 2), "more than 64512"},
	};
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, sizeof(rows) / sizeof(rows[0]) + 1, 0, 0);
	struct message_credential got;
	uint32_t i;

	memset(big, 'q', sizeof(big));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t id = fixture_ask(f, worker, i);

		fixture_give(f, fixture_expect_open(f, 7, i),
		        fixture_file(rows[i].value.p, rows[i].value.n), NULL);
		fixture_expect_credential(worker, id, &got);
		assert_false(got.available);
		assert_non_null(
		        memmem(got.error.p, got.error.n, rows[i].words, strlen(rows[i].words)));
		assert_null(memmem(got.error.p, got.error.n, "qwert", 5));
		assert_null(memmem(got.error.p, got.error.n, "qqqqq", 5));
	}
	/* The largest there may be passes. */
	big[VALUE_MAX] = 0;
	fixture_fetch(f, worker, 7, i, big);
	close(worker);
}

#define RETRY_MS 1000

static void test_supervisor_refuses(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 2, 0, 0);
	uint64_t id = fixture_ask(f, worker, 0), question;
	int64_t told_ms = INT64_MIN / 2;
	unsigned asked = 0;

	/* For a second the same sentence comes without a question to the supervisor. */
	do {
		question = fixture_expect_open(f, 7, 0);
		assert_true(clock_monotonic_ms() - told_ms >= RETRY_MS && asked++ < SLOW_MAX);
		told_ms = clock_monotonic_ms();
		fixture_give(f, question, -1, "No file /etc/token\x1b[31m.");
		fixture_expect_refusal(worker, id, "No file /etc/token\\x1b[31m.");
		id = fixture_ask(f, worker, 0);
	} while (supervisor_is_asked(f, worker));
	fixture_expect_refusal(worker, id, "No file");
	fixture_expect_silence(f->supervisor);
	usleep(RETRY_MS * 1000);
	fixture_fetch(f, worker, 7, 0, "now it is there");
	close(worker);
}

static void test_unreadable_descriptors(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 3, 0, 0);
	uint64_t id = fixture_ask(f, worker, 0);

	fixture_give(f, fixture_expect_open(f, 7, 0), open("/dev/null", O_WRONLY), NULL);
	fixture_expect_refusal(worker, id, "cannot be read");
	id = fixture_ask(f, worker, 1);
	fixture_give(f, fixture_expect_open(f, 7, 1), open("/", O_RDONLY | O_DIRECTORY), NULL);
	fixture_expect_refusal(worker, id, "cannot be read");
	id = fixture_ask(f, worker, 2);
	fixture_give(f, fixture_expect_open(f, 7, 2), open("/", O_PATH), NULL);
	fixture_expect_refusal(worker, id, "cannot be read");
	close(worker);
}

static void test_endless_source(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 1, 0, 0);
	uint64_t id = fixture_ask(f, worker, 0);

	fixture_give(f, fixture_expect_open(f, 7, 0), open("/dev/zero", O_RDONLY), NULL);
	fixture_expect_refusal(worker, id, "more than 64512");
	close(worker);
}

/* False: the source was given too late. */
static bool ends_in_no_time(
        struct fixture *f, uint64_t sandbox, uint32_t timeout_ms, int *worker, int pipe_fds[2])
{
	struct message_credential got;
	int64_t begin;
	uint64_t id;

	*worker = fixture_sandbox(f, sandbox, 2, 0, timeout_ms);
	begin = clock_monotonic_ms();
	id = fixture_ask(f, *worker, 0);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(write(pipe_fds[1], "value-", 6), 6);
	fixture_give(f, fixture_expect_open(f, sandbox, 0), pipe_fds[0], NULL);
	fixture_expect_credential(*worker, id, &got);
	assert_true(clock_monotonic_ms() - begin >= timeout_ms - 10);
	assert_false(got.available);
	if (memmem(got.error.p, got.error.n, "does not end in time", 20))
		return true;
	assert_non_null(memmem(got.error.p, got.error.n, "not opened in time", 18));
	return false;
}

static void test_time_limits(void **state)
{
	struct fixture *f = *state;
	uint32_t timeout_ms = 150;
	uint64_t question, id, sandbox = 7;
	int worker, pipe_fds[2];

	/* A program that says something and then nothing. Where the machine is too slow to give it
	 * in time, there is more time. */
	while (!ends_in_no_time(f, sandbox, timeout_ms, &worker, pipe_fds)) {
		close(pipe_fds[1]);
		close(worker);
		timeout_ms *= 4;
		assert_true(timeout_ms < 60000);
		sandbox++;
	}
	/* The keeper's end of the pipe is closed. */
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(write(pipe_fds[1], "late", 4), -1);
	close(pipe_fds[1]);
	/* A supervisor that answers too late: the descriptor is closed, nobody is told twice. */
	id = fixture_ask(f, worker, 1);
	question = fixture_expect_open(f, sandbox, 1);
	fixture_expect_refusal(worker, id, "not opened in time");
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	fixture_give(f, question, pipe_fds[0], NULL);
	look(f);
	fixture_expect_silence(worker);
	assert_int_equal(write(pipe_fds[1], "late", 4), -1);
	close(pipe_fds[1]);
	close(worker);
}

/* --- who breaks the protocol is cut off, alone --- */

static size_t ask_for(uint8_t *m, size_t cap, uint32_t credential)
{
	struct message_credential_get get = {credential};

	return message_credential_get_encode(m, cap, MESSAGE_CREDENTIAL_GET, 1, &get);
}

/* Messages that no worker may send, by number; 0: there are no more. */
static size_t hostile_message(unsigned number, uint8_t *m, size_t cap)
{
	static const enum message_type empty[] = {MESSAGE_KEEPER_START, MESSAGE_STOP,
	        MESSAGE_STOPPED, MESSAGE_KEEPER_SANDBOX, MESSAGE_SOURCE, MESSAGE_CREDENTIAL_GET,
	        MESSAGE_CREDENTIAL, MESSAGE_CA, MESSAGE_KEEPER_ROOT};
	struct message_credential answer = {.error = SLICE("x")};

	memset(m, 0, cap);
	if (number < sizeof(empty) / sizeof(empty[0]))
		return message_empty(m, cap, empty[number], 1);
	switch (number - sizeof(empty) / sizeof(empty[0])) {
	case 0:
		return 1; /* too short for a head */
	case 1:
		return 10; /* type 0 */
	case 2:
		memset(m, 0xff, 10); /* no such type */
		return 10;
	case 3:
		return cap; /* the largest there is */
	case 4:
		return ask_for(m, cap, 2); /* nobody's credential */
	case 5:
		return ask_for(m, cap, 1) + 1; /* a trailing byte */
	case 6:
		return ask_for(m, cap, 1) - 1;
	case 7:
		return message_empty(m, cap, MESSAGE_CA_GET, 1) + 1;
	case 8: /* an answer instead of a question */
		return message_credential_encode(m, cap, MESSAGE_CREDENTIAL, 1, &answer);
	default:
		return 0;
	}
}

/* The supervisor is told, under the sandbox's id. */
static void expect_told(struct fixture *f, uint64_t sandbox_id)
{
	struct ipc_message message;

	fixture_expect(f->supervisor, MESSAGE_FAILED, &message);
	assert_int_equal(message.head.id, sandbox_id);
}

static void test_hostile_workers(void **state)
{
	static uint8_t m[MESSAGE_BYTES_MAX];
	struct fixture *f = *state;
	int good = fixture_sandbox(f, 1, 1, 0, 0);
	unsigned number = 0;
	size_t n;

	while ((n = hostile_message(number++, m, sizeof(m))) > 0) {
		int bad = fixture_sandbox(f, 2, 2, 0, 0);

		assert_int_equal(send(bad, m, n, MSG_NOSIGNAL), (ssize_t)n);
		fixture_expect_end(bad);
		expect_told(f, 2);
		close(bad);
	}
	assert_int_equal(number, 19);
	fixture_fetch(f, good, 1, 0, "still-served");
	close(good);
}

/* A descriptor where none belongs. */
static void test_descriptor_from_a_worker(void **state)
{
	struct fixture *f = *state;
	int bad = fixture_sandbox(f, 2, 1, 0, 0), null = open("/dev/null", O_RDONLY);
	uint8_t m[64];

	assert_int_equal(
	        ipc_send_blocking(bad, m, message_empty(m, sizeof(m), MESSAGE_CA_GET, 1), &null, 1),
	        0);
	fixture_expect_end(bad);
	expect_told(f, 2);
	close(null);
	close(bad);
}

static void test_too_many_questions(void **state)
{
	struct fixture *f = *state;
	int good = fixture_sandbox(f, 1, 1, 0, 0), bad = fixture_sandbox(f, 2, 1, 0, 0);

	for (int i = 0; i <= SOURCE_WAITING_MAX; i++)
		fixture_ask(f, bad, 0);
	fixture_expect_open(f, 2, 0);
	fixture_expect_end(bad);
	expect_told(f, 2);
	close(bad);
	fixture_fetch(f, good, 1, 0, "still-served");
	close(good);
}

/* One that asks and never reads fills its own queue, not the keeper. */
static void test_worker_that_does_not_read(void **state)
{
	struct fixture *f = *state;
	int good = fixture_sandbox(f, 1, 1, 0, 0), bad = fixture_sandbox(f, 2, 0, 0, 0);
	uint8_t m[64];
	size_t n = message_empty(m, sizeof(m), MESSAGE_CA_GET, 1);
	int sent = 0;

	while (sent < 100000 && send(bad, m, n, MSG_NOSIGNAL) == (ssize_t)n)
		sent++;
	assert_true(sent < 100000);
	expect_told(f, 2);
	fixture_fetch(f, good, 1, 0, "still-served");
	close(good);
	close(bad);
}

/* A worker that goes while its source is read, and the answer that comes for nobody. */
static void test_worker_goes_meanwhile(void **state)
{
	struct fixture *f = *state;
	int good = fixture_sandbox(f, 1, 1, 0, 0), gone = fixture_sandbox(f, 2, 2, 0, 0),
	    pipe_fds[2];
	uint64_t first, second;

	fixture_ask(f, gone, 0);
	fixture_ask(f, gone, 1);
	first = fixture_expect_open(f, 2, 0);
	second = fixture_expect_open(f, 2, 1);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	fixture_give(f, first, pipe_fds[0], NULL);
	close(gone);
	fixture_fetch(f, good, 1, 0, "still-served");
	fixture_give(f, second, fixture_file("for nobody", 10), NULL);
	fixture_expect_value(good, fixture_ask(f, good, 0), 0, "still-served");
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(write(pipe_fds[1], "x", 1), -1);
	close(pipe_fds[1]);
	close(good);
}

/* Workers with the same question get each their own answer. */
static void test_workers_are_apart(void **state)
{
	struct fixture *f = *state;
	int a = fixture_sandbox(f, 1, 1, 0, 0), b = fixture_sandbox(f, 2, 1, 0, 0);
	uint64_t a_id = fixture_ask(f, a, 0), a_question = fixture_expect_open(f, 1, 0);
	uint64_t b_id = fixture_ask(f, b, 0), b_question = fixture_expect_open(f, 2, 0);

	fixture_give(f, b_question, fixture_file("value-of-b", 10), NULL);
	fixture_give(f, a_question, fixture_file("value-of-a", 10), NULL);
	fixture_expect_value(a, a_id, 0, "value-of-a");
	fixture_expect_value(b, b_id, 0, "value-of-b");
	fixture_expect_silence(a);
	fixture_expect_silence(b);
	close(a);
	close(b);
}

/* --- the supervisor --- */

static void test_stop(void **state)
{
	struct ipc_message message;
	struct fixture f;
	uint8_t m[64];
	int worker;

	(void)state;
	fixture_start(&f);
	worker = fixture_sandbox(&f, 1, 1, 0, 0);
	assert_int_equal(ipc_send_blocking(f.supervisor, m,
	                         message_empty(m, sizeof(m), MESSAGE_STOP, 9), NULL, 0),
	        0);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, &message);
	assert_int_equal(message.head.id, 9);
	fixture_expect_end(worker);
	close(worker);
	assert_int_equal(fixture_wait(&f), 0);
	close(f.supervisor);
}

static void test_broken_supervisor(void **state)
{
	static const enum message_type types[] = {MESSAGE_KEEPER_START, MESSAGE_CA_GET,
	        MESSAGE_CREDENTIAL_GET, MESSAGE_KEEPER_SANDBOX, MESSAGE_SOURCE,
	        MESSAGE_WORKER_START};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct fixture f;
		uint8_t m[64];
		int worker;

		fixture_start(&f);
		worker = fixture_sandbox(&f, 1, 1, 0, 0);
		ipc_send_blocking(
		        f.supervisor, m, message_empty(m, sizeof(m), types[i], 9), NULL, 0);
		fixture_expect_end(f.supervisor);
		fixture_expect_end(worker);
		assert_int_equal(fixture_wait(&f), 125);
		close(worker);
		close(f.supervisor);
	}
}

/* A worker comes with one descriptor, its sandbox with none; a look has no body. */
static void test_worker_told_wrongly(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct message_keeper_sandbox box = {.sandbox_id = 1, .sandbox = SLICE("box")};
		struct fixture f;
		uint8_t m[64];
		int worker, fds[2];

		fixture_start(&f);
		worker = fixture_sandbox(&f, 1, 1, 0, 0);
		fds[0] = fds[1] = worker;
		if (i < 2)
			ipc_send_blocking(f.supervisor, m,
			        message_empty(m, sizeof(m), MESSAGE_KEEPER_WORKER, 9), fds,
			        i == 0 ? 0 : 2);
		else if (i == 3)
			ipc_send_blocking(f.supervisor, m,
			        message_empty(m, sizeof(m), MESSAGE_KEEPER_LOOK, 9) + 1, NULL, 0);
		else
			fixture_send_sandbox(&f, &box, worker);
		fixture_expect_end(f.supervisor);
		assert_int_equal(fixture_wait(&f), 125);
		close(worker);
		close(f.supervisor);
	}
}

static void test_wrong_first_message(void **state)
{
	struct fixture f;
	uint8_t m[64];

	(void)state;
	fixture_spawn(&f);
	ipc_send_blocking(f.supervisor, m, message_empty(m, sizeof(m), MESSAGE_STOP, 1), NULL, 0);
	assert_int_equal(fixture_wait(&f), 125);
	close(f.supervisor);
	fixture_spawn(&f);
	assert_int_equal(fixture_end(&f), 125);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_ca_chain),
	        TEST(test_worker_in_store),
	        TEST(test_early_questions),
	        TEST(test_early_questions_have_bounds),
	        TEST(test_described_when_it_has_gone),
	        TEST(test_look),
	        TEST(test_file_and_cache),
	        TEST(test_forgotten_values),
	        TEST(test_another_generation),
	        TEST(test_a_generation_that_is_passed_over),
	        cmocka_unit_test(test_no_earlier_generation),
	        TEST(test_questions_share_one_read),
	        TEST(test_ttl),
	        TEST(test_refused_values),
	        TEST(test_supervisor_refuses),
	        TEST(test_unreadable_descriptors),
	        TEST(test_endless_source),
	        TEST(test_time_limits),
	        TEST(test_hostile_workers),
	        TEST(test_descriptor_from_a_worker),
	        TEST(test_too_many_questions),
	        TEST(test_worker_that_does_not_read),
	        TEST(test_worker_goes_meanwhile),
	        TEST(test_workers_are_apart),
	        cmocka_unit_test(test_stop),
	        cmocka_unit_test(test_broken_supervisor),
	        cmocka_unit_test(test_worker_told_wrongly),
	        cmocka_unit_test(test_wrong_first_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
