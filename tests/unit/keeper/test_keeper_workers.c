/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's program and its workers: early questions, hostile ones, workers that come and go. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "keeper_fixture.h"
#include "keeper/sources.h"

/* --- before the keeper knows a worker's sandbox --- */

/* Its questions come over another pair of sockets than the message that names its sandbox. */
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

/* It has no CA before its sandbox is known, and then one that may sign for the sandbox's names. */
static void test_a_worker_that_waits(void **state)
{
	struct fixture *f = *state;
	const struct message_keeper_worker waits = {.root = SLICE(""), .waits = true};
	struct message_keeper_sandbox box = {.sandbox_id = 3,
	        .generation = f->generation,
	        .sandbox = SLICE("box"),
	        .names = SLICE("permitted;DNS:a.test")};
	struct ipc_message message;
	uint8_t out[256];
	int pair[2];

	assert_int_equal(ipc_pair(pair), 0);
	assert_int_equal(ipc_send_blocking(f->supervisor, out,
	                         message_keeper_worker_encode(
	                                 out, sizeof(out), MESSAGE_KEEPER_WORKER, 3, &waits),
	                         &pair[1], 1),
	        0);
	close(pair[1]);
	assert_int_equal(ipc_send_blocking(pair[0], out,
	                         message_empty(out, sizeof(out), MESSAGE_CA_GET, 9), NULL, 0),
	        0);
	assert_int_equal(ipc_receive_blocking(pair[0], 200, fixture_buf, &message), -ETIMEDOUT);
	fixture_send_sandbox(f, &box, -1);
	fixture_expect(pair[0], MESSAGE_CA, &message);
	assert_int_equal(message.head.id, 9);
	fixture_expect_root(f);
	close(pair[0]);
}

static void test_early_questions_have_bounds(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_worker(f, 3);
	struct ipc_message message;
	struct message_ca ca;

	/* A credential that its sandbox does not have after all. */
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

/* --- a worker that breaks the protocol is cut off, and no other --- */

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

/* A worker that asks and never reads fills its own queue, not the keeper's memory. */
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

/* --- a worker that ends while the keeper speaks to it causes no warning --- */

/* The keeper's stderr; both ends. */
static int said[2];

static int setup_heard(void **state)
{
	int rc;

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	fixture_stderr = said[1];
	rc = setup(state);
	close(said[1]);
	return rc;
}

/* The keeper ends well and has said nothing. */
static int teardown_silent(void **state)
{
	char text[512];
	int status = teardown(state);
	ssize_t n = read(said[0], text, sizeof(text));

	close(said[0]);
	if (n > 0)
		print_error("the keeper said: %.*s", (int)n, text);
	return status || n != 0;
}

/* Messages sent before the keeper goes on are handled in this order, if the first goes to the peer
 * that the keeper has answered last: it may still be reading there. */
static void stop(const struct fixture *f)
{
	int status;

	assert_int_equal(kill(f->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(f->pid, &status, WUNTRACED), f->pid);
	assert_true(WIFSTOPPED(status));
}

static void go_on(const struct fixture *f)
{
	assert_int_equal(kill(f->pid, SIGCONT), 0);
}

static void test_a_worker_ends_when_it_is_answered(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 1, 1, 0, 0);
	uint64_t question;

	fixture_ask(f, worker, 0);
	question = fixture_expect_open(f, 1, 0);
	look(f);
	stop(f);
	fixture_give(f, question, fixture_file("for nobody", 10), NULL);
	close(worker);
	go_on(f);
	look(f);
}

static void send_rotation(struct fixture *f)
{
	const struct message_keeper_ca_ask ask = {.what = MESSAGE_CA_ROTATE,
	        .problem = SLICE(""),
	        .name = SLICE("node"),
	        .certificate = SLICE(""),
	        .root = SLICE("")};
	int file = memfd_create("cas", MFD_CLOEXEC);
	uint8_t out[256];
	size_t n = message_keeper_ca_ask_encode(
	        out, sizeof(out), MESSAGE_KEEPER_CA_ASK, ++f->last_id, &ask);

	assert_true(file >= 0 && n > 0);
	assert_int_equal(ipc_send_blocking(f->supervisor, out, n, &file, 1), 0);
	close(file);
	n = message_empty(out, sizeof(out), MESSAGE_KEEPER_CA_KEPT, f->last_id);
	assert_int_equal(ipc_send_blocking(f->supervisor, out, n, NULL, 0), 0);
}

/* One in store is given another CA without being asked. */
static void test_a_worker_ends_when_it_is_given_another_ca(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_worker(f, 1);
	struct ipc_message message;
	struct message_ca ca;

	get_ca(f, worker, &ca);
	look(f);
	stop(f);
	send_rotation(f);
	close(worker);
	go_on(f);
	fixture_expect(f->supervisor, MESSAGE_KEEPER_CA, &message);
	look(f);
}

/* Its own end tells about itself. */
static void test_the_supervisor_ends_when_it_is_asked(void **state)
{
	struct fixture *f = *state;
	int worker = fixture_sandbox(f, 1, 1, 0, 0);
	struct message_ca ca;

	get_ca(f, worker, &ca);
	stop(f);
	fixture_ask(f, worker, 0);
	close(f->supervisor);
	f->supervisor = -1;
	go_on(f);
	fixture_expect_end(worker);
	close(worker);
}

#define HEARD(name) cmocka_unit_test_setup_teardown(name, setup_heard, teardown_silent)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        HEARD(test_a_worker_ends_when_it_is_answered),
	        HEARD(test_a_worker_ends_when_it_is_given_another_ca),
	        HEARD(test_the_supervisor_ends_when_it_is_asked),
	        TEST(test_early_questions),
	        TEST(test_early_questions_have_bounds),
	        TEST(test_a_worker_that_waits),
	        TEST(test_hostile_workers),
	        TEST(test_descriptor_from_a_worker),
	        TEST(test_too_many_questions),
	        TEST(test_worker_that_does_not_read),
	        TEST(test_worker_goes_meanwhile),
	        TEST(test_workers_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
