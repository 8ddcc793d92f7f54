/* SPDX-License-Identifier: Apache-2.0 */
/* What logins give, as the keeper's workers and an operator see it: shared by the
 * workers of one sandbox, unknown to all others, gone with the last of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "keeper_fixture.h"
#include "vethguard/credential/jar.h"

/* A worker of that sandbox, with a file's credential and what logins give, whose name it is. */
static int box(struct fixture *f, uint64_t worker_id, uint64_t owner, const char *name)
{
	int worker = fixture_worker(f, worker_id);
	struct message_keeper_sandbox m = {.sandbox_id = worker_id,
	        .owner = owner,
	        .generation = f->generation,
	        .sandbox = SLICE("box"),
	        .credential_count = 2};

	m.credentials[0].name = SLICE("file");
	m.credentials[1].name = slice_from_string(name);
	m.credentials[1].sealed = true;
	fixture_send_sandbox(f, &m, -1);
	fixture_expect_root(f);
	return worker;
}

static void seal(int worker, const char *name, const char *value, const char *end)
{
	struct message_credential_seal m = {.name = slice_from_string(name),
	        .end = slice_from_string(end),
	        .value = slice_from_string(value)};
	uint8_t out[1024];
	size_t n = message_credential_seal_encode(out, sizeof(out), MESSAGE_CREDENTIAL_SEAL, 0, &m);

	assert_true(n > 0);
	assert_int_equal(ipc_send_blocking(worker, out, n, NULL, 0), 0);
}

/* Asks for the jar: how many tokens are in it; value: one that has to be there, if any are. */
static size_t tokens(struct fixture *f, int worker, const char *value)
{
	struct jar_token token;
	struct message_credential got;
	struct ipc_message message;
	uint64_t id = fixture_ask(f, worker, 1);
	size_t n = 0;
	bool found = false;
	struct slice rest;

	fixture_expect(worker, MESSAGE_CREDENTIAL, &message);
	assert_int_equal(message.head.id, id);
	assert_int_equal(message_credential_decode(&message.body, &got), 0);
	assert_true(got.available && got.ttl_ms == 0 && jar_is_sound(got.value));
	for (rest = got.value; jar_next(&rest, &token); n++)
		found |= value && slice_equals(token.value, slice_from_string(value));
	assert_true(!value || found || n == 0);
	return n;
}

static void operate(struct fixture *f, uint64_t worker_id, enum message_credential_what what,
        const char *error, bool held)
{
	struct message_credential_ask ask = {.sandbox_id = worker_id,
	        .generation = f->generation,
	        .what = (uint8_t)what,
	        .credential = 1};
	static struct message_keeper_credentials got;
	struct ipc_message message;
	uint8_t out[128];
	size_t n = message_credential_ask_encode(
	        out, sizeof(out), MESSAGE_KEEPER_CREDENTIAL, ++f->last_id, &ask);

	assert_int_equal(ipc_send_blocking(f->supervisor, out, n, NULL, 0), 0);
	fixture_expect(f->supervisor, MESSAGE_KEEPER_CREDENTIALS, &message);
	assert_int_equal(message_keeper_credentials_decode(&message.body, &got), 0);
	assert_int_equal(got.error.n > 0, error != NULL);
	if (error) {
		assert_non_null(memmem(got.error.p, got.error.n, error, strlen(error)));
		return;
	}
	assert_int_equal(got.credentials[1].held, held);
	assert_int_equal(got.credentials[1].mark.n, 0);
	assert_int_equal(got.credentials[1].fetched_ms != 0, held);
}

static void test_a_login(void **state)
{
	struct fixture *f = *state;
	int worker = box(f, 7, 1, "login");

	assert_int_equal(tokens(f, worker, NULL), 0);
	operate(f, 7, MESSAGE_CREDENTIAL_LOOK, NULL, false);
	seal(worker, "login", "the-first-token", "vethguard-1");
	seal(worker, "login", "the-other-token", "vethguard-2");
	seal(worker, "login", "the-first-token", "vethguard-1");
	assert_int_equal(tokens(f, worker, "the-first-token"), 2);
	operate(f, 7, MESSAGE_CREDENTIAL_LOOK, NULL, true);
	fixture_expect_silence(f->supervisor);
	close(worker);
}

static void test_names_that_are_none(void **state)
{
	struct fixture *f = *state;
	int worker = box(f, 7, 1, "login");

	seal(worker, "file", "the-first-token", "vethguard-1"); /* its value comes from a file */
	seal(worker, "logins", "the-first-token", "vethguard-1");
	seal(worker, "Login", "the-first-token", "vethguard-1");
	assert_int_equal(tokens(f, worker, NULL), 0);
	close(worker);
}

/* The next worker of a sandbox finds what the one before has put there. */
static void test_shared_by_a_sandbox(void **state)
{
	struct fixture *f = *state;
	int one = box(f, 7, 1, "login"), next;

	seal(one, "login", "the-first-token", "vethguard-1");
	assert_int_equal(tokens(f, one, "the-first-token"), 1);
	next = box(f, 8, 1, "login");
	assert_int_equal(tokens(f, next, "the-first-token"), 1);
	seal(next, "login", "the-other-token", "vethguard-2");
	assert_int_equal(tokens(f, next, "the-other-token"), 2);
	assert_int_equal(tokens(f, one, "the-other-token"), 2);
	close(one);
	fixture_expect_silence(f->supervisor);
	assert_int_equal(tokens(f, next, "the-first-token"), 2);
	close(next);
}

static void test_unknown_to_others(void **state)
{
	struct fixture *f = *state;
	int one = box(f, 7, 1, "login"), other = box(f, 8, 2, "login"),
	    renamed = box(f, 9, 1, "login2");

	seal(one, "login", "the-first-token", "vethguard-1");
	assert_int_equal(tokens(f, one, "the-first-token"), 1);
	assert_int_equal(tokens(f, other, NULL), 0);
	assert_int_equal(tokens(f, renamed, NULL), 0);
	close(one);
	close(other);
	close(renamed);
}

static void test_gone_with_the_last(void **state)
{
	struct fixture *f = *state;
	int one = box(f, 7, 1, "login"), again, watch = box(f, 99, 3, "login");

	seal(one, "login", "the-first-token", "vethguard-1");
	assert_int_equal(tokens(f, one, "the-first-token"), 1);
	close(one);
	/* The keeper has seen its end once it answers somebody else twice. */
	for (int i = 0; i < 2; i++)
		tokens(f, watch, NULL);
	again = box(f, 8, 1, "login");
	assert_int_equal(tokens(f, again, NULL), 0);
	close(again);
	close(watch);
}

/* The same worker under another policy: what is still there keeps its jar. */
static void test_another_policy(void **state)
{
	struct fixture *f = *state;
	int worker = box(f, 7, 1, "login");
	struct message_keeper_sandbox m = {
	        .sandbox_id = 7, .owner = 1, .sandbox = SLICE("box"), .credential_count = 2};

	seal(worker, "login", "the-first-token", "vethguard-1");
	assert_int_equal(tokens(f, worker, "the-first-token"), 1);
	m.generation = ++f->generation;
	m.credentials[0].name = SLICE("another");
	m.credentials[1].name = SLICE("login");
	m.credentials[1].sealed = true;
	fixture_send_sandbox(f, &m, -1);
	fixture_expect_root(f);
	assert_int_equal(tokens(f, worker, "the-first-token"), 1);
	m.generation = ++f->generation;
	m.credentials[1].name = SLICE("other-login");
	fixture_send_sandbox(f, &m, -1);
	fixture_expect_root(f);
	assert_int_equal(tokens(f, worker, NULL), 0);
	close(worker);
}

static void test_operators(void **state)
{
	struct fixture *f = *state;
	int worker = box(f, 7, 1, "login");

	seal(worker, "login", "the-first-token", "vethguard-1");
	assert_int_equal(tokens(f, worker, "the-first-token"), 1);
	operate(f, 7, MESSAGE_CREDENTIAL_CHECK, "logins inside the sandbox", false);
	assert_int_equal(tokens(f, worker, "the-first-token"), 1);
	operate(f, 7, MESSAGE_CREDENTIAL_REVOKE, NULL, false);
	fixture_expect_refusal(worker, fixture_ask(f, worker, 1), "has revoked credential");
	seal(worker, "login", "the-other-token", "vethguard-2"); /* too late */
	fixture_expect_refusal(worker, fixture_ask(f, worker, 1), "has revoked credential");
	operate(f, 7, MESSAGE_CREDENTIAL_ROTATE, NULL, false);
	seal(worker, "login", "the-first-token", "vethguard-1"); /* it does not know yet */
	assert_int_equal(tokens(f, worker, NULL), 0);
	seal(worker, "login", "the-other-token", "vethguard-2");
	assert_int_equal(tokens(f, worker, "the-other-token"), 1);
	close(worker);
}

/* A worker that sends something that is not a token has broken the protocol. */
static void test_broken(void **state)
{
	static const char *const values[] = {"short", "with blank", "with\nline"};
	struct fixture *f = *state;
	struct ipc_message message;

	for (uint64_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		int worker = box(f, 20 + i, 1, "login");

		seal(worker, "login", values[i], "vethguard-1");
		fixture_expect_end(worker);
		fixture_expect(f->supervisor, MESSAGE_FAILED, &message);
		assert_int_equal(message.head.id, 20 + i);
		close(worker);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_a_login),
	        TEST(test_names_that_are_none),
	        TEST(test_shared_by_a_sandbox),
	        TEST(test_unknown_to_others),
	        TEST(test_gone_with_the_last),
	        TEST(test_another_policy),
	        TEST(test_operators),
	        TEST(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
