/* SPDX-License-Identifier: Apache-2.0 */
/* token: one signature at a time, a trial before anything depends on the key, and a token that says
 * nothing, nonsense, or goes away. The test is the token's process. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keeper/token.h"
#include "vethguard/loop/loop.h"

static struct loop *loop;
static struct ipc_peer supervisor;
static struct token token;
static struct ca *root;
static int far = -1, told = -1; /* the token's end, and the supervisor's */
static uint8_t bytes[MESSAGE_BYTES_MAX];

static struct loop_timer turn_end;

static void on_turn_end(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

/* Lets the loop run for a moment. */
static void turn(void)
{
	loop_timer_set(&turn_end, 2);
	assert_int_equal(loop_run(loop), 0);
}

/* The condition may take something: it is looked at until it is true once. */
#define UNTIL(condition)                                 \
	do {                                             \
		bool met = false;                        \
		for (int n = 0; n < 2000 && !met; n++) { \
			met = (condition);               \
			if (!met)                        \
				turn();                  \
		}                                        \
		assert_true(met);                        \
	} while (0)

static struct {
	unsigned count;
	struct ca *made;
	char why[CA_WHY_MAX];
} done;

static void on_done(void *context, struct ca *made, const char *why)
{
	assert_ptr_equal(context, &done);
	done.count++;
	ca_free(done.made);
	done.made = made;
	snprintf(done.why, sizeof(done.why), "%s", why ? why : "");
}

static int ignore_message(struct ipc_peer *peer, struct ipc_message *message)
{
	(void)peer, (void)message;
	return 0;
}

static void ignore_end(struct ipc_peer *peer, int error)
{
	(void)peer, (void)error;
}

static void connect_token(void)
{
	struct ipc_message m = {.body = reader_over(bytes, 0), .fd_count = 1};
	int ends[2];

	if (far >= 0)
		close(far);
	assert_int_equal(ipc_pair(ends), 0);
	far = ends[0];
	m.fds[0] = ends[1];
	assert_int_equal(token_connect(&token, &m), 0);
	assert_int_equal(m.fds[0], -1);
}

static int set_up(void **state)
{
	int ends[2];

	(void)state;
	memset(&done, 0, sizeof(done));
	loop = loop_new();
	memset(&turn_end, 0, sizeof(turn_end));
	assert_int_equal(loop_timer_open(loop, &turn_end, on_turn_end), 0);
	root = ca_new_root(SLICE("root"), 90);
	assert_int_equal(ipc_pair(ends), 0);
	told = ends[0];
	assert_int_equal(
	        ipc_peer_open(loop, &supervisor, ends[1], "supervisor", ignore_message, ignore_end),
	        0);
	token_init(&token, loop, &supervisor);
	return loop && root ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	token_fini(&token);
	ipc_peer_close(&supervisor);
	if (far >= 0)
		close(far);
	close(told);
	far = -1;
	ca_free(done.made);
	ca_free(root);
	loop_timer_close(&turn_end);
	loop_free(loop);
	return 0;
}

/* The next question to the token; 0: there is none. */
static uint64_t question(void)
{
	struct message_token_sign sign;
	struct ipc_message m;

	turn();
	if (ipc_receive_blocking(far, 0, bytes, &m) < 0)
		return 0;
	assert_int_equal(m.head.type, MESSAGE_TOKEN_SIGN);
	assert_int_equal(message_token_sign_decode(&m.body, &sign), 0);
	return m.head.id;
}

static void answer(uint64_t id, struct slice signature, struct slice error)
{
	struct message_token_signature m = {
	        .kind = MESSAGE_TOKEN_EC, .signature = signature, .error = error};
	uint8_t message[2048];

	assert_int_equal(ipc_send_blocking(far, message,
	                         message_token_signature_encode(
	                                 message, sizeof(message), MESSAGE_TOKEN_SIGNATURE, id, &m),
	                         NULL, 0),
	        0);
	turn();
}

static struct token_job *ask(void)
{
	char why[CA_WHY_MAX];

	return token_sign(
	        &token, root, &(struct ca_wanted){SLICE("below"), 10, NULL}, on_done, &done, why);
}

static bool told_of(const char *words)
{
	struct message_text text;
	struct ipc_message m;

	turn();
	if (ipc_receive_blocking(told, 0, bytes, &m) < 0)
		return false;
	assert_int_equal(m.head.type, MESSAGE_KEEPER_TOKEN_SAYS);
	assert_int_equal(message_text_decode(&m.body, &text), 0);
	return words[0] ? memmem(text.text.p, text.text.n, words, strlen(words)) != NULL
	                : text.text.n == 0;
}

static void test_without_a_token(void **state)
{
	char why[CA_WHY_MAX];
	struct ca *below;

	(void)state;
	assert_null(token_sign(
	        &token, root, &(struct ca_wanted){SLICE("x"), 10, NULL}, on_done, &done, why));
	assert_non_null(strstr(why, "not there"));
	assert_true(token_try(&token, ca_certificate_der(root), true, &below));
	assert_null(below);
	assert_non_null(strstr(token.why, "not there"));
	assert_int_equal(done.count, 0);
}

static void test_one_at_a_time(void **state)
{
	uint64_t first, second = 0;

	(void)state;
	connect_token();
	assert_non_null(ask());
	assert_non_null(ask());
	first = question();
	assert_int_not_equal(first, 0);
	assert_int_equal(question(), 0); /* the second waits */
	answer(first, SLICE(""), SLICE("broken\033[31m"));
	UNTIL(done.count == 1);
	assert_non_null(strstr(done.why, "broken"));
	assert_null(strchr(done.why, '\033'));
	UNTIL((second = question()) != 0);
	assert_int_not_equal(second, first);
	answer(second, slice_of((const char *)bytes, 64), SLICE(""));
	UNTIL(done.count == 2);
	assert_null(done.made);
	assert_non_null(strstr(done.why, "not that of the certificate"));
}

static void test_cancelled(void **state)
{
	struct token_job *first, *second;
	uint64_t id;

	(void)state;
	connect_token();
	first = ask();
	second = ask();
	token_cancel(second);
	id = question();
	token_cancel(first);
	token_cancel(NULL);
	assert_non_null(ask());
	answer(id, slice_of((const char *)bytes, 64), SLICE("")); /* nobody waits for it */
	UNTIL((id = question()) != 0);
	assert_int_equal(done.count, 0);
	answer(id, SLICE(""), SLICE("no"));
	UNTIL(done.count == 1);
}

static void test_wrong_answers(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t id;

		connect_token();
		done.count = 0;
		assert_non_null(ask());
		id = question();
		if (i == 0)
			answer(id + 1, SLICE(""), SLICE("another's"));
		else if (i == 1)
			assert_int_equal(write(far, "nonsense", 8), 8);
		else
			close(far);
		far = i == 2 ? -1 : far;
		UNTIL(done.count == 1);
		assert_non_null(strstr(done.why, "ended"));
		assert_false(token.queue.peer.open);
		assert_true(i == 2 || told_of("broke the protocol"));
	}
}

static void test_silence(void **state)
{
	(void)state;
	connect_token();
	assert_non_null(ask());
	assert_non_null(ask());
	question();
	loop_timer_set(&token.queue.timer, 0);
	UNTIL(done.count == 2);
	assert_int_equal(done.count, 2);
	assert_non_null(strstr(done.why, "5 seconds"));
	assert_false(token.queue.peer.open);
	assert_true(told_of("5 seconds"));
}

static void test_trial(void **state)
{
	struct ca *below;
	uint64_t id;

	(void)state;
	connect_token();
	assert_false(token_try(&token, ca_certificate_der(root), true, &below));
	assert_false(token_try(&token, ca_certificate_der(root), true, &below));
	id = question();
	assert_int_not_equal(id, 0);
	answer(id, SLICE(""), SLICE("the token was removed"));
	UNTIL(told_of(""));
	assert_true(token_try(&token, ca_certificate_der(root), true, &below));
	assert_null(below);
	assert_non_null(strstr(token.why, "removed"));
	assert_false(token_try(&token, ca_certificate_der(root), true, &below)); /* again */
	assert_int_not_equal(question(), 0);
	connect_token(); /* another process: all is new */
	assert_true(told_of(""));
	assert_false(token_try(&token, ca_certificate_der(root), true, &below));
	assert_int_not_equal(question(), 0);
	assert_false(token_try(&token, SLICE("no certificate"), true, &below));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_without_a_token), CASE(test_one_at_a_time),
	        CASE(test_cancelled), CASE(test_wrong_answers), CASE(test_silence),
	        CASE(test_trial)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
