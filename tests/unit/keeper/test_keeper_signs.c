/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures by keys in tokens, asked of the real keeper: whose key signs for whom, and what breaks
 * the protocol. The test is supervisor, workers and token. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "keeper_fixture.h"

#define URI "pkcs11:token=clients;object=agent"
#define DIGEST SLICE("0123456789abcdef0123456789abcdef")
#define OPEN_MAX 16

static struct fixture f;
static int token = -1;

static void say_token(const char *why, int fd)
{
	uint8_t out[1024];
	struct ipc_message message;
	const struct message_key_token m = {SLICE("clients"), slice_from_string(why)};
	size_t n = message_key_token_encode(
	        out, sizeof(out), MESSAGE_KEEPER_KEY_TOKEN, ++f.last_id, &m);

	assert_int_equal(ipc_send_blocking(f.supervisor, out, n, &fd, fd >= 0), 0);
	/* Once this is answered, the keeper has read it: workers have other sockets. */
	n = message_empty(out, sizeof(out), MESSAGE_KEEPER_CHECK, ++f.last_id);
	assert_int_equal(ipc_send_blocking(f.supervisor, out, n, NULL, 0), 0);
	fixture_expect(f.supervisor, MESSAGE_KEEPER_HERE, &message);
}

static void connect_token(void)
{
	int ends[2];

	if (token >= 0)
		close(token);
	assert_int_equal(ipc_pair(ends), 0);
	say_token("", ends[1]);
	close(ends[1]);
	token = ends[0];
}

/* A worker with two credentials: the first has a key in the token. */
static int sandbox(uint64_t id, bool revoked)
{
	struct message_keeper_sandbox m = {.sandbox_id = id,
	        .generation = f.generation,
	        .sandbox = SLICE("box"),
	        .credential_count = 2};
	int worker = fixture_worker(&f, id);

	m.credentials[0].name = SLICE("bank");
	m.credentials[0].key = SLICE(URI);
	m.credentials[0].revoked = revoked;
	m.credentials[1].name = SLICE("other");
	m.credentials[0].timeout_ms = m.credentials[1].timeout_ms = 10000;
	fixture_send_sandbox(&f, &m, -1);
	fixture_expect_root(&f);
	return worker;
}

static uint64_t ask(int worker, uint32_t credential, uint64_t generation)
{
	const struct message_credential_sign m = {.credential = credential,
	        .generation = generation,
	        .scheme = MESSAGE_SCHEME_ECDSA_SHA256,
	        .digest = DIGEST};
	uint8_t out[256];
	size_t n = message_credential_sign_encode(
	        out, sizeof(out), MESSAGE_CREDENTIAL_SIGN, ++f.last_id, &m);

	assert_int_equal(ipc_send_blocking(worker, out, n, NULL, 0), 0);
	return f.last_id;
}

static uint64_t question(uint16_t scheme)
{
	struct message_token_key_sign m;
	struct ipc_message message;

	fixture_expect(token, MESSAGE_TOKEN_KEY_SIGN, &message);
	assert_int_equal(message_token_key_sign_decode(&message.body, &m), 0);
	assert_true(slice_equals(m.uri, SLICE(URI)));
	assert_int_equal(m.scheme, scheme);
	assert_true(scheme == MESSAGE_SCHEME_ANY || slice_equals(m.digest, DIGEST));
	return message.head.id;
}

static void answer(uint64_t id, const char *signature, const char *error)
{
	const struct message_token_signature m = {.kind = MESSAGE_TOKEN_EC,
	        .signature = slice_from_string(signature),
	        .error = slice_from_string(error)};
	uint8_t out[1024];
	size_t n =
	        message_token_signature_encode(out, sizeof(out), MESSAGE_TOKEN_SIGNATURE, id, &m);

	assert_int_equal(ipc_send_blocking(token, out, n, NULL, 0), 0);
}

/* error "": a signature is expected. */
static void expect(int worker, uint64_t id, const char *signature, const char *error)
{
	struct message_token_signature m;
	struct ipc_message message;

	fixture_expect(worker, MESSAGE_CREDENTIAL_SIGNED, &message);
	assert_int_equal(message.head.id, id);
	assert_int_equal(message_token_signature_decode(&message.body, &m), 0);
	assert_true(slice_equals(m.signature, slice_from_string(signature)));
	if (!memmem(m.error.p, m.error.n, error, strlen(error)))
		fail_msg("%.*s", SLICE_ARG(m.error));
}

static int set_up(void **state)
{
	(void)state;
	fixture_start(&f);
	f.generation = 1;
	token = -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (token >= 0)
		close(token);
	assert_int_equal(fixture_end(&f), 0);
	return 0;
}

static void test_signs(void **state)
{
	int one = sandbox(1, false), two = sandbox(2, false);
	uint64_t first, second;

	(void)state;
	connect_token();
	first = ask(one, 0, 1);
	second = question(MESSAGE_SCHEME_ECDSA_SHA256);
	answer(second, "r-and-s", "");
	expect(one, first, "r-and-s", "");
	first = ask(one, 0, 1);
	second = ask(two, 0, 1);
	answer(question(MESSAGE_SCHEME_ECDSA_SHA256), "", "it does not fit");
	answer(question(MESSAGE_SCHEME_ECDSA_SHA256), "twos", "");
	expect(one, first, "", "it does not fit");
	expect(two, second, "twos", "");
	close(one);
	close(two);
}

static void test_refused(void **state)
{
	int one = sandbox(1, false), revoked = sandbox(2, true);

	(void)state;
	expect(one, ask(one, 0, 1), "", "names no token \"clients\"");
	say_token("the token refuses the PIN: it is wrong", -1);
	expect(one, ask(one, 0, 1), "", "refuses the PIN");
	connect_token();
	expect(one, ask(one, 1, 1), "", "no key in a token");
	expect(one, ask(one, 0, 0), "", "policy is changing");
	expect(one, ask(one, 0, 2), "", "policy is changing");
	expect(revoked, ask(revoked, 0, 1), "", "has revoked");
	fixture_expect_silence(token);
	close(one);
	close(revoked);
}

static void test_who_goes(void **state)
{
	int one = sandbox(1, false), two = sandbox(2, false);
	uint64_t id;

	(void)state;
	connect_token();
	ask(one, 0, 1);
	id = question(MESSAGE_SCHEME_ECDSA_SHA256);
	ask(one, 0, 1); /* waits behind */
	close(one);     /* nobody wants either */
	fixture_ask(&f, two, 1);
	fixture_give(
	        &f, fixture_expect_open(&f, 2, 1), -1, "no"); /* the keeper has noticed by now */
	answer(id, "for nobody", "");
	id = ask(two, 0, 1);
	answer(question(MESSAGE_SCHEME_ECDSA_SHA256), "twos", "");
	{
		struct ipc_message message; /* the refusal of credential 1 comes first */

		fixture_expect(two, MESSAGE_CREDENTIAL, &message);
	}
	expect(two, id, "twos", "");
	id = ask(two, 0, 1);
	question(MESSAGE_SCHEME_ECDSA_SHA256);
	close(token);
	token = -1;
	expect(two, id, "", "has ended");
	close(two);
}

static void expect_cut(int worker, uint64_t id)
{
	struct ipc_message message;

	fixture_expect_end(worker);
	fixture_expect(f.supervisor, MESSAGE_FAILED, &message);
	assert_int_equal(message.head.id, id);
	close(worker);
}

static void test_broken_protocol(void **state)
{
	uint8_t out[256];
	int worker = sandbox(1, false);
	struct message_credential_sign m = {
	        .generation = 1, .scheme = MESSAGE_SCHEME_RSA_SHA256, .digest = DIGEST};
	size_t n;

	(void)state;
	connect_token();
	ask(worker, 2, 1); /* it has two */
	expect_cut(worker, 1);
	worker = sandbox(2, false);
	for (int i = 0; i <= OPEN_MAX; i++)
		ask(worker, 0, 1);
	expect_cut(worker, 2);
	answer(question(MESSAGE_SCHEME_ECDSA_SHA256), "nobody's", "");
	worker = sandbox(3, false);
	n = message_credential_sign_encode(out, sizeof(out), MESSAGE_CREDENTIAL_SIGN, 7, &m);
	assert_int_equal(ipc_send_blocking(worker, out, n - 1, NULL, 0), 0);
	expect_cut(worker, 3);
	worker = sandbox(4, false);
	n = message_credential_sign_encode(out, sizeof(out), MESSAGE_TOKEN_KEY_SIGN, 7, &m);
	assert_int_equal(ipc_send_blocking(worker, out, n, NULL, 0), 0);
	expect_cut(worker, 4);
	worker = sandbox(5, false);
	answer(0, "unasked", ""); /* a token that breaks the protocol ends alone */
	fixture_expect_end(token);
	expect(worker, ask(worker, 0, 1), "", "broke the protocol");
	close(worker);
}

static void operate(uint8_t what)
{
	const struct message_credential_ask m = {
	        .sandbox_id = 1, .generation = 1, .what = what, .credential = 0};
	uint8_t out[256];
	size_t n = message_credential_ask_encode(
	        out, sizeof(out), MESSAGE_KEEPER_CREDENTIAL, ++f.last_id, &m);

	assert_int_equal(ipc_send_blocking(f.supervisor, out, n, NULL, 0), 0);
}

static void expect_operated(const char *error)
{
	static struct message_keeper_credentials m;
	struct ipc_message message;

	do
		assert_int_equal(
		        ipc_receive_blocking(f.supervisor, WAIT_MS, fixture_buf, &message), 0);
	while (message.head.type != MESSAGE_KEEPER_CREDENTIALS);
	assert_int_equal(message_keeper_credentials_decode(&message.body, &m), 0);
	if (!memmem(m.error.p, m.error.n, error, strlen(error)))
		fail_msg("%.*s", SLICE_ARG(m.error));
}

static void give_text(const char *text)
{
	fixture_give(&f, fixture_expect_open(&f, 1, 0), fixture_file(text, strlen(text)), NULL);
}

static void test_check(void **state)
{
	static const char none[] = "-----BEGIN NOTHING-----\n";
	int worker = sandbox(1, false);

	(void)state;
	connect_token();
	operate(MESSAGE_CREDENTIAL_CHECK);
	give_text(none);
	expect_operated("cannot sign: the certificate's file does not begin with a certificate");
	fixture_expect_silence(token);
	operate(MESSAGE_CREDENTIAL_REVOKE);
	expect_operated("");
	expect(worker, ask(worker, 0, 1), "", "has revoked");
	close(worker);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_signs), CASE(test_refused),
	        CASE(test_who_goes), CASE(test_broken_protocol), CASE(test_check)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
