/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real vethguard-worker of this build, with a test in the places of supervisor and keeper: what
 * it needs to begin, and that it ends, saying why, on everything else. A worker that obeyed a
 * message out of order could be made to serve without a CA, or twice.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy/policy_test.h"
#include "worker_fixture.h"

static struct fixture f;

static int set_up(void **state)
{
	(void)state;
	fixture_open(&f);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_close(&f);
	return 0;
}

/* --- the first message --- */

static void the_right_first_message_is_enough(void **state)
{
	(void)state;
	fixture_send_keeper(&f);
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	fixture_expect_question(&f);
	fixture_give_ca(&f, CA_QUESTION);
	fixture_expect(f.supervisor, MESSAGE_WORKER_READY, START_ID);
	fixture_send(f.supervisor, MESSAGE_STOP, 77);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, 77);
	fixture_expect_exit(&f, 0, "");
}

static void receive(struct ipc_message *m, enum message_type type, uint64_t id)
{
	assert_int_equal(ipc_receive_blocking(f.supervisor, WAIT_MS, fixture_in, m), 0);
	assert_int_equal(m->head.type, type);
	assert_int_equal(m->head.id, id);
}

/* It serves, and takes orders. */
static void expect_service(void)
{
	fixture_expect(f.supervisor, MESSAGE_WORKER_READY, START_ID);
	fixture_send(f.supervisor, MESSAGE_STOP, 77);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, 77);
	fixture_expect_exit(&f, 0, "");
}

/* --- in store --- */

static void its_ca_may_come_before_its_sandbox(void **state)
{
	(void)state;
	fixture_send_keeper(&f);
	fixture_expect_question(&f);
	fixture_give_ca(&f, CA_QUESTION);
	fixture_expect_silence(f.supervisor);
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	expect_service();
}

/* With the CA, without, and without having met any before its sandbox. */
static void keepers_may_change_while_it_waits(void **state)
{
	for (int i = 0; i < 3; i++) {
		if (i < 2) {
			fixture_send_keeper(&f);
			fixture_expect_question(&f);
		}
		if (i == 1)
			fixture_give_ca(&f, CA_QUESTION);
		if (i < 2) {
			fixture_hang_up(&f.keeper);
			fixture_send_another_keeper(&f);
			fixture_send_another_keeper(&f);
		}
		if (i < 2) /* also with a CA: this keeper does not know when that ends */
			fixture_expect_question(&f);
		fixture_send_start(&f, f.start, f.start_n, START_FDS);
		if (i == 2) {
			fixture_expect_silence(f.supervisor);
			fixture_send_keeper(&f);
			fixture_expect_question(&f);
		}
		if (i != 1)
			fixture_give_ca(&f, CA_QUESTION);
		else
			fixture_expect_silence(f.keeper);
		expect_service();
		tear_down(state);
		set_up(state);
	}
}

/* The keeper's answer to the question for the CA, in one of five ways that break the protocol. */
static void answer_wrongly(int way)
{
	switch (way) {
	case 0:
		fixture_give_ca(&f, CA_QUESTION + 1);
		break;
	case 1:
		fixture_give_bad_ca(&f);
		break;
	case 2:
		fixture_send(f.keeper, MESSAGE_CA, CA_QUESTION);
		break;
	case 3:
		fixture_send(f.keeper, MESSAGE_STOP, CA_QUESTION);
		break;
	default:
		assert_int_equal(send(f.keeper, "nonsense", 8, 0), 8);
	}
}

static void a_keeper_that_breaks_the_protocol_in_store_ends_it(void **state)
{
	for (int i = 0; i < 5; i++) {
		fixture_send_keeper(&f);
		fixture_expect_question(&f);
		answer_wrongly(i);
		fixture_expect_exit(&f, 125, "a message of the keeper cannot be decoded");
		tear_down(state);
		set_up(state);
	}
}

/* The worker's CA is replaced when the keeper says so, in store and while it serves. */
static void a_ca_may_come_again(void **state)
{
	(void)state;
	fixture_send_keeper(&f);
	fixture_expect_question(&f);
	fixture_give_ca(&f, CA_QUESTION);
	fixture_give_ca(&f, CA_QUESTION);
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	fixture_expect(f.supervisor, MESSAGE_WORKER_READY, START_ID);
	fixture_give_ca(&f, CA_QUESTION);
	fixture_expect_silence(f.keeper);
	fixture_expect_silence(f.supervisor);
	fixture_send(f.supervisor, MESSAGE_STOP, 9);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, 9);
	fixture_expect_exit(&f, 0, "");
}

static void a_keeper_comes_with_one_descriptor(void **state)
{
	uint8_t message[64];
	size_t n = message_empty(message, sizeof(message), MESSAGE_WORKER_KEEPER, 2);

	for (size_t i = 0; i < 3; i += 2) {
		assert_int_equal(ipc_send_blocking(f.supervisor, message, n, f.fds, i), 0);
		fixture_expect_exit(&f, 125, "first message is not the one expected");
		tear_down(state);
		set_up(state);
	}
}

static void another_message_first_ends_it(void **state)
{
	static const enum message_type types[] = {MESSAGE_STOP, MESSAGE_WORKER_PAUSE,
	        MESSAGE_WORKER_RESUME, MESSAGE_CA, MESSAGE_KEEPER_START, MESSAGE_WORKER_READY};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		fixture_send(f.supervisor, types[i], 1);
		fixture_expect_exit(&f, 125, "first message is not the one expected");
		tear_down(state);
		set_up(state);
	}
}

static void noise_first_ends_it(void **state)
{
	(void)state;
	assert_int_equal(send(f.supervisor, "nonsense", 8, 0), 8);
	fixture_expect_exit(&f, 125, "no message from the supervisor");
}

static void nobody_there_ends_it(void **state)
{
	(void)state;
	fixture_hang_up(&f.supervisor); /* before its first look or after it */
	fixture_expect_exit(&f, 125, NULL);
}

/* Cut at places all over the message, and one byte too long. */
static void a_cut_first_message_ends_it(void **state)
{
	const size_t cuts[] = {f.start_n - 1, f.start_n / 2, f.start_n / 3, 40, 20, f.start_n + 1};

	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		fixture_send_start(&f, f.start, cuts[i], START_FDS);
		fixture_expect_exit(&f, 125, "the supervisor");
		tear_down(state);
		set_up(state);
	}
}

static void each_descriptor_has_to_be_there(void **state)
{
	for (size_t n = 0; n < START_FDS; n++) {
		fixture_send_start(&f, f.start, f.start_n, n);
		fixture_expect_exit(&f, 125, "first message came with");
		tear_down(state);
		set_up(state);
	}
	fixture_send_start(&f, f.start, f.start_n, START_FDS + 1);
	fixture_expect_exit(&f, 125, "first message came with");
}

static void a_policy_that_is_none_ends_it(void **state)
{
	(void)state;
	assert_int_equal(ftruncate(f.fds[0], 0), 0);
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	fixture_expect_exit(&f, 125, "the policy cannot be used");
}

static void a_spoilt_policy_ends_it(void **state)
{
	(void)state;
	assert_int_equal(pwrite(f.fds[0], "spoilt", 6, 0), 6);
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	fixture_expect_exit(&f, 125, "the policy cannot be used");
}

static void a_ring_of_another_size_ends_it(void **state)
{
	(void)state;
	close(f.fds[2]);
	f.fds[2] = memfd_create("ring", MFD_CLOEXEC);
	assert_int_equal(ftruncate(f.fds[2], 4096), 0);
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	fixture_expect_exit(&f, 125, "cannot begin");
}

/* --- later ones --- */

static void begin(void)
{
	fixture_send_keeper(&f);
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	fixture_expect_question(&f);
}

static void serve(void)
{
	begin();
	fixture_give_ca(&f, CA_QUESTION);
	fixture_expect(f.supervisor, MESSAGE_WORKER_READY, START_ID);
}

/* None of this makes it report that it serves, and none keeps it from serving. */
static void orders_before_the_ca_are_obeyed_in_order(void **state)
{
	uint8_t message[64];
	const struct message_worker_pause why = {
	        MESSAGE_PAUSE_RECORDER, SLICE("the disk is full\x1b[2J")};
	const struct message_worker_resume resume = {MESSAGE_PAUSE_RECORDER};

	(void)state;
	begin();
	fixture_send_n(f.supervisor, message,
	        message_worker_pause_encode(
	                message, sizeof(message), MESSAGE_WORKER_PAUSE, 3, &why));
	fixture_send(f.supervisor, MESSAGE_WORKER_HOLD, 4);
	fixture_send_n(f.supervisor, message,
	        message_worker_resume_encode(
	                message, sizeof(message), MESSAGE_WORKER_RESUME, 5, &resume));
	fixture_expect_silence(f.supervisor);
	fixture_give_ca(&f, CA_QUESTION);
	fixture_expect(f.supervisor, MESSAGE_WORKER_READY, START_ID);
}

static void it_stops_also_before_it_serves(void **state)
{
	(void)state;
	begin();
	fixture_send(f.supervisor, MESSAGE_STOP, 9);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, 9);
	fixture_expect_exit(&f, 0, "");
}

static void it_may_be_told_to_pause_before_it_begins(void **state)
{
	const struct message_worker_pause why = {MESSAGE_PAUSE_OPERATOR, SLICE("a test")};
	uint8_t message[128];
	size_t n = message_worker_pause_encode(
	        message, sizeof(message), MESSAGE_WORKER_PAUSE, 3, &why);

	(void)state;
	fixture_send_n(f.supervisor, message, n);
	fixture_send(f.supervisor, MESSAGE_WORKER_HOLD, 4);
	serve();
	fixture_send(f.supervisor, MESSAGE_STOP, 9);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, 9);
	fixture_expect_exit(&f, 0, "");
	tear_down(state);
	set_up(state);
	fixture_send_n(f.supervisor, message, n - 1); /* its text is cut */
	fixture_expect_exit(&f, 125, NULL);
}

static void a_message_that_is_not_for_it_ends_it(void **state)
{
	static const enum message_type types[] = {MESSAGE_WORKER_START, MESSAGE_WORKER_READY,
	        MESSAGE_CA, MESSAGE_CREDENTIAL, MESSAGE_RUN_START, MESSAGE_STOPPED};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		serve();
		fixture_send(f.supervisor, types[i], 1);
		fixture_expect_exit(&f, 125, NULL);
		tear_down(state);
		set_up(state);
	}
}

static void a_second_start_ends_it(void **state)
{
	(void)state;
	serve();
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	fixture_expect_exit(&f, 125, NULL);
}

static void noise_later_ends_it(void **state)
{
	(void)state;
	serve();
	assert_int_equal(send(f.supervisor, "x", 1, 0), 1);
	fixture_expect_exit(&f, 125, NULL);
}

/* A text's length is its own: longer than the message, or longer than a text may be. */
static void a_text_that_lies_about_its_length_ends_it(void **state)
{
	static uint8_t message[MESSAGE_BYTES_MAX];
	const struct message_worker_pause why = {MESSAGE_PAUSE_RECORDER, SLICE("full")};
	size_t n;

	(void)state;
	serve();
	n = message_worker_pause_encode(message, sizeof(message), MESSAGE_WORKER_PAUSE, 3, &why);
	fixture_send_n(f.supervisor, message, n - 1);
	fixture_expect_exit(&f, 125, NULL);
	tear_down(state);
	set_up(state);
	serve();
	memset(message + n, 'a', sizeof(message) - n);
	fixture_send_n(f.supervisor, message, sizeof(message));
	fixture_expect_exit(&f, 125, NULL);
}

/* Unexpected descriptors are closed, not kept: a thousand do not use up its table. */
static void unasked_descriptors_are_closed(void **state)
{
	const struct message_worker_resume resume = {MESSAGE_PAUSE_RECORDER};
	uint8_t message[64];
	int fds[20];

	(void)state;
	serve();
	for (size_t i = 0; i < 20; i++)
		fds[i] = f.fds[0];
	for (int i = 0; i < 50; i++)
		assert_int_equal(ipc_send_blocking(f.supervisor, message,
		                         message_worker_resume_encode(message, sizeof(message),
		                                 MESSAGE_WORKER_RESUME, (uint64_t)i + 10, &resume),
		                         fds, 20),
		        0);
	fixture_send(f.supervisor, MESSAGE_STOP, 9);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, 9);
	fixture_expect_exit(&f, 0, "");
}

static void it_ends_with_its_supervisor(void **state)
{
	(void)state;
	serve();
	fixture_hang_up(&f.supervisor);
	fixture_expect_exit(&f, -1, "");
}

/* --- the keeper --- */

static void a_keeper_that_breaks_the_protocol_gives_no_ca(void **state)
{
	struct ipc_message in;

	for (int i = 0; i < 4; i++) {
		begin();
		fixture_send(f.supervisor, MESSAGE_WORKER_STATS_GET, 60);
		receive(&in, MESSAGE_WORKER_STATS, 60); /* it has its sandbox */
		answer_wrongly(i);
		fixture_expect(f.supervisor, MESSAGE_FAILED, 0);
		fixture_expect_exit(&f, 125, "before it gave the sandbox's CA");
		tear_down(state);
		set_up(state);
	}
}

/* It serves on without credentials, and with the CA that it has. */
static void a_keeper_that_breaks_the_protocol_later_is_cut_off(void **state)
{
	struct pollfd end;

	for (int i = 0; i < 4; i++) {
		serve();
		if (i == 0)
			fixture_give_bad_ca(&f);
		else if (i == 3)
			fixture_give_ca(&f, CA_QUESTION + 1);
		else if (i == 1)
			fixture_give_credential(&f, 5); /* the policy has none */
		else
			fixture_send(f.keeper, MESSAGE_CREDENTIAL, (uint64_t)2 << 32);
		end = (struct pollfd){.fd = f.keeper, .events = POLLIN};
		assert_int_equal(poll(&end, 1, WAIT_MS), 1);
		assert_true(end.revents & POLLHUP);
		fixture_expect_silence(f.supervisor);
		fixture_send(f.supervisor, MESSAGE_STOP, 9);
		fixture_expect(f.supervisor, MESSAGE_STOPPED, 9);
		fixture_expect_exit(&f, 0, NULL);
		tear_down(state);
		set_up(state);
	}
}

/* --- later orders --- */

static void send_retire(uint64_t id, uint64_t generation, const int *fds, size_t n)
{
	const struct message_worker_retire m = {generation};
	uint8_t message[64];

	assert_int_equal(ipc_send_blocking(f.supervisor, message,
	                         message_worker_retire_encode(
	                                 message, sizeof(message), MESSAGE_WORKER_RETIRE, id, &m),
	                         fds, n),
	        0);
}

static void retire_with(uint64_t id, uint64_t generation)
{
	int image = fixture_memory(parts.policy.image, parts.policy.size);

	send_retire(id, generation, &image, 1);
	close(image);
}

/* With nothing under way the worker does it at once. */
static void it_retires(void **state)
{
	struct message_worker_retired m;
	struct ipc_message in;

	for (int serving = 0; serving < 2; serving++) {
		begin();
		if (serving) {
			fixture_give_ca(&f, CA_QUESTION);
			fixture_expect(f.supervisor, MESSAGE_WORKER_READY, START_ID);
		}
		retire_with(50, 7);
		receive(&in, MESSAGE_WORKER_RETIRED, 50);
		assert_int_equal(message_worker_retired_decode(&in.body, &m), 0);
		assert_int_equal(m.generation, 7);
		assert_int_equal(m.closed + m.left, 0);
		fixture_expect(f.supervisor, MESSAGE_STOPPED, 50);
		fixture_expect_exit(&f, 0, "");
		tear_down(state);
		set_up(state);
	}
}

static void a_policy_that_cannot_be_retired_under_ends_it(void **state)
{
	int image;

	for (int i = 0; i < 4; i++) {
		serve();
		image = fixture_memory("spoilt", i == 0 ? 6 : 0);
		send_retire(50, 7, (int[]){image, image}, i == 2 ? 0 : i == 3 ? 2 : 1);
		close(image);
		fixture_expect_exit(&f, 125, NULL);
		tear_down(state);
		set_up(state);
	}
}

static void it_tells_figures(void **state)
{
	struct message_worker_stats m;
	struct ipc_message in;

	(void)state;
	begin();
	fixture_send(f.supervisor, MESSAGE_WORKER_STATS_GET, 60);
	receive(&in, MESSAGE_WORKER_STATS, 60);
	fixture_give_ca(&f, CA_QUESTION);
	fixture_expect(f.supervisor, MESSAGE_WORKER_READY, START_ID);
	fixture_send(f.supervisor, MESSAGE_WORKER_STATS_GET, 61);
	receive(&in, MESSAGE_WORKER_STATS, 61);
	assert_int_equal(message_worker_stats_decode(&in.body, &m), 0);
	assert_int_equal(m.connections + m.kinds[0].allowed + m.names_kept, 0);
#ifndef __SANITIZE_ADDRESS__ /* whose allocator tells nothing */
	assert_true(m.heap_bytes > 0);
#endif
}

/* The first one goes before it gave the CA. */
static void another_keeper_gives_the_ca(void **state)
{
	(void)state;
	begin();
	fixture_hang_up(&f.keeper);
	fixture_expect_silence(f.supervisor);
	fixture_send_another_keeper(&f);
	fixture_expect_question(&f);
	fixture_give_ca(&f, CA_QUESTION);
	expect_service();
}

static void another_keeper_takes_over(void **state)
{
	uint8_t message[64];
	size_t n = message_empty(message, sizeof(message), MESSAGE_WORKER_KEEPER, 70);
	struct pollfd quiet;

	(void)state;
	serve();
	fixture_hang_up(&f.keeper);
	for (int i = 0; i < 2; i++) /* also where the former one is still there */
		fixture_send_another_keeper(&f);
	fixture_send(f.supervisor, MESSAGE_WORKER_STATS_GET, 71);
	fixture_expect(f.supervisor, MESSAGE_WORKER_STATS, 71);
	fixture_expect_question(&f); /* it knows the end of what it has given itself only */
	quiet = (struct pollfd){.fd = f.keeper, .events = POLLIN};
	assert_int_equal(poll(&quiet, 1, SILENCE_MS), 0); /* held open */
	fixture_give_ca(&f, CA_QUESTION);
	assert_int_equal(poll(&quiet, 1, SILENCE_MS), 0);
	assert_int_equal(ipc_send_blocking(f.supervisor, message, n, NULL, 0), 0);
	fixture_expect_exit(&f, 125, NULL);
}

#define WORKER(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WORKER(the_right_first_message_is_enough),
	        WORKER(its_ca_may_come_before_its_sandbox),
	        WORKER(keepers_may_change_while_it_waits),
	        WORKER(a_keeper_that_breaks_the_protocol_in_store_ends_it),
	        WORKER(a_ca_may_come_again),
	        WORKER(a_keeper_comes_with_one_descriptor),
	        WORKER(another_message_first_ends_it),
	        WORKER(noise_first_ends_it),
	        WORKER(nobody_there_ends_it),
	        WORKER(a_cut_first_message_ends_it),
	        WORKER(each_descriptor_has_to_be_there),
	        WORKER(a_policy_that_is_none_ends_it),
	        WORKER(a_spoilt_policy_ends_it),
	        WORKER(a_ring_of_another_size_ends_it),
	        WORKER(orders_before_the_ca_are_obeyed_in_order),
	        WORKER(it_stops_also_before_it_serves),
	        WORKER(it_may_be_told_to_pause_before_it_begins),
	        WORKER(a_message_that_is_not_for_it_ends_it),
	        WORKER(a_second_start_ends_it),
	        WORKER(noise_later_ends_it),
	        WORKER(a_text_that_lies_about_its_length_ends_it),
	        WORKER(unasked_descriptors_are_closed),
	        WORKER(it_ends_with_its_supervisor),
	        WORKER(a_keeper_that_breaks_the_protocol_gives_no_ca),
	        WORKER(a_keeper_that_breaks_the_protocol_later_is_cut_off),
	        WORKER(it_retires),
	        WORKER(a_policy_that_cannot_be_retired_under_ends_it),
	        WORKER(it_tells_figures),
	        WORKER(another_keeper_gives_the_ca),
	        WORKER(another_keeper_takes_over),
	};

	alarm(900);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, fixture_make_parts, fixture_free_parts);
}
