/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's program as seen by workers that ask for values: sources, caches, generations, limits
 * of time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "keeper_fixture.h"
#include "keeper/sources.h"
#include "keeper/value.h"
#include "vethguard/base/clock.h"

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
	assert_int_equal(got.ttl_ms, 0);
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

/* A held value is read again; a value that is being read goes to those who wait for it. */
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
	assert_in_range(got.ttl_ms, 1, 1000);
	usleep(1100 * 1000);
	fixture_fetch(f, worker, 7, 0, "second-value");
	close(worker);
}

/* Of certificates and keys the lines are a part. */
static void test_pem_keeps_its_lines(void **state)
{
	static const char pem[] = "-----BEGIN CERTIFICATE-----\nAA==\n"
	                          "-----END CERTIFICATE-----";
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 7, 1, 0, 0);
	struct message_credential got;
	uint64_t id = fixture_ask(f, worker, 0);
	char text[sizeof(pem) + 1];

	snprintf(text, sizeof(text), "%s\n", pem);
	fixture_give(f, fixture_expect_open(f, 7, 0), fixture_file(text, strlen(text)), NULL);
	fixture_expect_credential(worker, id, &got);
	assert_true(got.available);
	assert_true(slice_equals(got.value, SLICE(pem)));
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
	        {SLICE("qwertz\n-----BEGIN CERTIFICATE-----\n"), "more than one line"},
	        {SLICE("-----BEGIN\nqwertz"), "more than one line"},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_file_and_cache),
	        TEST(test_forgotten_values),
	        TEST(test_another_generation),
	        TEST(test_a_generation_that_is_passed_over),
	        cmocka_unit_test(test_no_earlier_generation),
	        TEST(test_questions_share_one_read),
	        TEST(test_ttl),
	        TEST(test_pem_keeps_its_lines),
	        TEST(test_refused_values),
	        TEST(test_supervisor_refuses),
	        TEST(test_unreadable_descriptors),
	        TEST(test_endless_source),
	        TEST(test_time_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
