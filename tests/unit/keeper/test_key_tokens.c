/* SPDX-License-Identifier: Apache-2.0 */
/* key_tokens: which token a key's URI asks, tokens that are away, late or wrong, and more of them
 * than there are places. The test is supervisor and tokens. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "keeper/key_tokens.h"
#include "vethguard/loop/loop.h"

static struct loop *loop;
static struct loop_timer turn_end;
static struct ipc_peer supervisor;
static struct key_tokens tokens;
static int told = -1, far = -1;
static uint8_t bytes[MESSAGE_BYTES_MAX];
static char why[KEY_TOKENS_WHY_MAX];

static struct question {
	struct token_question question;
	int told;
	size_t signature_n;
	char error[512];
} one, two;

static void on_answer(
        struct token_question *question, const struct message_token_signature *m, const char *lost)
{
	struct question *q = container_of(question, struct question, question);

	q->told++;
	q->signature_n = m ? m->signature.n : 0;
	snprintf(q->error, sizeof(q->error), "%.*s", m ? (int)m->error.n : 500,
	        m ? m->error.p : lost);
}

static void on_turn_end(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void turn(void)
{
	loop_timer_set(&turn_end, 2);
	assert_int_equal(loop_run(loop), 0);
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

static int set_up(void **state)
{
	int ends[2];

	(void)state;
	loop = loop_new();
	memset(&turn_end, 0, sizeof(turn_end));
	assert_int_equal(loop_timer_open(loop, &turn_end, on_turn_end), 0);
	assert_int_equal(ipc_pair(ends), 0);
	told = ends[0];
	assert_int_equal(
	        ipc_peer_open(loop, &supervisor, ends[1], "supervisor", ignore_message, ignore_end),
	        0);
	key_tokens_init(&tokens, loop, &supervisor);
	one = two = (struct question){.question.on_answer = on_answer};
	far = -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	key_tokens_fini(&tokens);
	ipc_peer_close(&supervisor);
	if (far >= 0)
		close(far);
	close(told);
	loop_timer_close(&turn_end);
	loop_free(loop);
	return 0;
}

/* Says what the supervisor says: why "": with a descriptor, whose other end is returned. */
static int say(const char *label, const char *text, int *rc)
{
	uint8_t message[1024];
	const struct message_key_token m = {slice_from_string(label), slice_from_string(text)};
	size_t n =
	        message_key_token_encode(message, sizeof(message), MESSAGE_KEEPER_KEY_TOKEN, 1, &m);
	struct ipc_message in = {.fd_count = !text[0]};
	int ends[2] = {-1, -1};

	assert_int_equal(message_open(message, n, &in.head, &in.body), 0);
	if (!text[0])
		assert_int_equal(ipc_pair(ends), 0);
	in.fds[0] = ends[1];
	*rc = key_tokens_told(&tokens, &in);
	if (in.fds[0] >= 0)
		close(in.fds[0]);
	return ends[0];
}

static bool sign(struct question *q, const char *uri)
{
	return key_tokens_sign(&tokens,
	        &(struct message_token_key_sign){.uri = slice_from_string(uri),
	                .scheme = MESSAGE_SCHEME_ECDSA_SHA256,
	                .digest = SLICE("0123456789abcdef0123456789abcdef")},
	        &q->question, why);
}

/* The next question at this end; 0: none. */
static uint64_t question(int fd, const char *uri)
{
	struct message_token_key_sign m;
	struct ipc_message in;

	turn();
	if (ipc_receive_blocking(fd, 0, bytes, &in) < 0)
		return 0;
	assert_int_equal(in.head.type, MESSAGE_TOKEN_KEY_SIGN);
	assert_int_equal(message_token_key_sign_decode(&in.body, &m), 0);
	assert_true(slice_equals(m.uri, slice_from_string(uri)));
	return in.head.id;
}

static void answer(int fd, uint64_t id, struct slice signature, struct slice error)
{
	struct message_token_signature m = {
	        .kind = MESSAGE_TOKEN_EC, .signature = signature, .error = error};
	uint8_t message[2048];

	assert_int_equal(ipc_send_blocking(fd, message,
	                         message_token_signature_encode(
	                                 message, sizeof(message), MESSAGE_TOKEN_SIGNATURE, id, &m),
	                         NULL, 0),
	        0);
	turn();
}

static void test_no_token(void **state)
{
	int rc;

	(void)state;
	assert_false(sign(&one, "pkcs11:token=a;object=k"));
	assert_non_null(strstr(why, "names no token \"a\""));
	assert_false(sign(&one, "pkcs11:serial=1;object=k"));
	assert_non_null(strstr(why, "names no token"));
	assert_false(sign(&one, "pkcs11:token=a"));
	assert_int_equal(say("a", "the token refuses the PIN: it is wrong", &rc), -1);
	assert_int_equal(rc, 0);
	assert_false(sign(&one, "pkcs11:token=a;object=k"));
	assert_non_null(strstr(why, "refuses the PIN"));
	assert_false(sign(&one, "pkcs11:token=A;object=k"));
	assert_int_equal(one.told, 0);
}

static void test_two_tokens(void **state)
{
	int rc, b;
	uint64_t id;

	(void)state;
	far = say("a", "", &rc);
	b = say("b c", "", &rc);
	assert_int_equal(rc, 0);
	assert_true(sign(&one, "pkcs11:token=a;object=k"));
	assert_true(sign(&two, "pkcs11:token=b%20c;id=%01"));
	id = question(b, "pkcs11:token=b%20c;id=%01");
	answer(b, id, SLICE("0123456789abcdef"), SLICE(""));
	assert_int_equal(two.told, 1);
	assert_int_equal(two.signature_n, 16);
	assert_int_equal(one.told, 0);
	id = question(far, "pkcs11:token=a;object=k");
	answer(far, id, SLICE(""), SLICE("no such private key"));
	assert_string_equal(one.error, "no such private key");
	close(b);
	turn();
	assert_false(sign(&two, "pkcs11:token=b%20c;id=%01"));
	assert_non_null(strstr(why, "has ended"));
}

static void test_it_goes(void **state)
{
	int rc;

	(void)state;
	far = say("a", "", &rc);
	assert_true(sign(&one, "pkcs11:token=a;object=k"));
	assert_true(sign(&two, "pkcs11:token=a;object=k"));
	say("a", "the token was removed", &rc);
	assert_int_equal(one.told, 1);
	assert_int_equal(two.told, 1);
	assert_string_equal(two.error, "the token was removed");
	close(far);
	far = say("a", "", &rc);
	assert_true(sign(&one, "pkcs11:token=a;object=k"));
	assert_false(token_question_cancel(&one.question)); /* the token has it */
	assert_true(sign(&two, "pkcs11:token=a;object=k"));
	assert_true(token_question_cancel(&two.question));
	assert_true(token_question_cancel(&two.question));
	answer(far, question(far, "pkcs11:token=a;object=k"), SLICE("s"), SLICE(""));
	assert_int_equal(one.told, 2);
	assert_int_equal(two.told, 1);
	assert_int_equal(question(far, ""), 0);
}

static void expect_late(const char *words)
{
	struct message_key_token m;
	struct ipc_message in;

	turn();
	assert_int_equal(ipc_receive_blocking(told, 0, bytes, &in), 0);
	assert_int_equal(in.head.type, MESSAGE_KEEPER_KEY_TOKEN_LATE);
	assert_int_equal(message_key_token_decode(&in.body, &m), 0);
	assert_true(slice_equals(m.label, SLICE("a")));
	assert_non_null(memmem(m.why.p, m.why.n, words, strlen(words)));
}

static void test_late_or_wrong(void **state)
{
	int rc;

	(void)state;
	far = say("a", "", &rc);
	assert_true(sign(&one, "pkcs11:token=a;object=k"));
	loop_timer_set(&tokens.list[0].queue.timer, 0);
	turn();
	assert_non_null(strstr(one.error, "5 seconds"));
	expect_late("5 seconds");
	assert_false(sign(&one, "pkcs11:token=a;object=k"));
	close(far);
	far = say("a", "", &rc);
	assert_true(sign(&one, "pkcs11:token=a;object=k"));
	answer(far, question(far, "pkcs11:token=a;object=k") + 1, SLICE("s"), SLICE(""));
	assert_int_equal(one.told, 2);
	expect_late("broke the protocol");
	close(far);
	far = say("a", "", &rc);
	assert_true(sign(&one, "pkcs11:token=a;object=k"));
	assert_int_equal(write(far, "nonsense", 8), 8);
	turn();
	expect_late("broke the protocol");
	assert_int_equal(one.told, 3);
}

static void test_messages(void **state)
{
	uint8_t message[1024];
	const struct message_key_token both = {SLICE("a"), SLICE("why")};
	struct ipc_message in = {.fd_count = 1, .fds = {-1}};
	char label[2] = "a";
	int rc, fds[CONFIG_TOKENS_MAX];
	size_t n = message_key_token_encode(
	        message, sizeof(message), MESSAGE_KEEPER_KEY_TOKEN, 1, &both);

	(void)state;
	assert_int_equal(message_open(message, n, &in.head, &in.body), 0);
	assert_int_equal(key_tokens_told(&tokens, &in), -EBADMSG); /* a descriptor too many */
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++, label[0]++)
		fds[i] = say(label, "", &rc);
	assert_int_equal(rc, 0);
	close(say("more", "", &rc));
	assert_int_equal(rc, -EBADMSG);
	close(fds[1]); /* its place is for another one */
	turn();
	fds[1] = say("more", "", &rc);
	assert_int_equal(rc, 0);
	assert_true(sign(&one, "pkcs11:token=more;object=k"));
	assert_false(sign(&two, "pkcs11:token=b;object=k"));
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++)
		close(fds[i]);
	turn();
	assert_non_null(strstr(one.error, "has ended"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_no_token), CASE(test_two_tokens),
	        CASE(test_it_goes), CASE(test_late_or_wrong), CASE(test_messages)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
