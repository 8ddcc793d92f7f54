/* SPDX-License-Identifier: Apache-2.0 */
/* store: values that are asked for, held and given; placeholders. test_store_renewal.c has the
 * rest. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sleeping_host.h"
#include "store_fixture.h"

static void test_fetch_and_hold(void **state)
{
	struct world *w = *state;
	struct credential_value *v;
	struct caller c, d;
	uint8_t text[] = "x token-value-1 y";

	assert_null(get(w, 0, &c));
	assert_int_equal(w->asked[0], 1);
	turn(w, 0);
	assert_int_equal(c.told, 0);
	answer(w, 0, "token-value-1", 0);
	assert_int_equal(c.told, 0);
	turn(w, 0);
	assert_int_equal(c.told, 1);
	assert_non_null(c.value);
	assert_true(slice_equals(secret_slice(&c.value->rendered), SLICE("Bearer token-value-1")));
	assert_int_equal(mask_in_place(c.value->mask, text, sizeof(text) - 1), 1);
	assert_string_equal((char *)text, "x ************* y");
	v = get(w, 0, &d);
	assert_ptr_equal(v, c.value);
	turn(w, 0);
	assert_int_equal(d.told, 0);
	assert_int_equal(w->asked[0], 1);
	assert_int_equal(v->references, 2);
	credential_value_release(c.value);
	assert_int_equal(w->asked[1] + w->asked[2], 0);
}

static void test_callers_share_one_question(void **state)
{
	struct world *w = *state;
	struct caller c[5];

	for (int i = 0; i < 5; i++)
		assert_null(get(w, 0, &c[i]));
	c[0].cancels = &c[1].wait;
	credential_wait_cancel(&c[3].wait);
	credential_wait_cancel(&c[3].wait);
	assert_int_equal(w->asked[0], 1);
	answer(w, 0, "token-value-1", 0);
	turn(w, 0);
	assert_int_equal(c[0].told, 1);
	assert_int_equal(c[1].told, 0);
	assert_int_equal(c[2].told, 1);
	assert_int_equal(c[3].told, 0);
	assert_int_equal(c[4].told, 1);
	assert_ptr_equal(c[0].value, c[4].value);
	credential_value_release(c[0].value);
	credential_value_release(c[2].value);
	credential_value_release(c[4].value);
}

static void test_ttl_and_references(void **state)
{
	struct world *w = *state;
	struct caller c, d;
	struct secret *rendered;

	assert_null(get(w, 0, &c));
	answer(w, 0, "token-value-1", 1);
	turn(w, 0);
	assert_int_equal(c.value->references, 2);
	turn(w, 1100);
	/* The store has forgotten the value; a response under way keeps it to its end. */
	assert_int_equal(c.value->references, 1);
	rendered = &c.value->rendered;
	assert_true(slice_equals(secret_slice(rendered), SLICE("Bearer token-value-1")));
	assert_null(get(w, 0, &d));
	assert_int_equal(w->asked[0], 2);
	answer(w, 0, "token-value-2", 0);
	turn(w, 0);
	assert_ptr_not_equal(d.value, c.value);
	credential_value_release(c.value);
	credential_value_release(d.value);
}

/* A token of an hour is over after a night, awake or not; one without an end is not. */
static void test_ttl_goes_on_while_the_machine_sleeps(void **state)
{
	struct world *w = *state;
	struct caller c, d, again, late;

	assert_null(get(w, 0, &c));
	assert_null(get(w, 1, &d));
	answer(w, 0, "token-value-1", 3600);
	answer(w, 1, "token-value-2", 0);
	turn(w, 1);
	host_sleeps(3590);
	assert_non_null(get(w, 0, &again));
	host_sleeps(20);
	assert_null(get(w, 0, &again));
	assert_int_equal(w->asked[0], 2);
	assert_null(get(
	        w, 0, &late)); /* the old value is not given either while the new one is awaited */
	assert_int_equal(w->asked[0], 2);
	answer(w, 0, "token-value-3", 3600);
	turn(w, 1);
	assert_true(
	        slice_equals(secret_slice(&again.value->rendered), SLICE("Bearer token-value-3")));
	assert_ptr_equal(late.value, again.value);
	credential_value_release(late.value);
	credential_value_release(again.value);
	assert_non_null(get(w, 0, &again));
	assert_non_null(get(w, 1, &again));
	assert_int_equal(w->asked[1], 1);
	credential_value_release(c.value);
	credential_value_release(d.value);
}

/* A guessed credential: nobody gets it any more, whatever the keeper says; others are given. */
static void test_a_guessed_one_is_given_to_nobody(void **state)
{
	struct world *w = *state;
	struct caller a, b;

	assert_null(get(w, 0, &a));
	answer(w, 0, "a-value-of-some-length", 0);
	turn(w, 1);
	assert_non_null(a.value);
	assert_false(credential_store_waited(w->store, 0, 0));
	assert_false(credential_store_is_guessed(w->store, 0));
	assert_non_null(get(w, 0, &b));
	assert_true(credential_store_waited(w->store, 0, 1));
	assert_false(credential_store_waited(w->store, 0, 1));    /* said once */
	assert_false(credential_store_waited(w->store, 0, -100)); /* there is no way back */
	assert_true(credential_store_is_guessed(w->store, 0));
	assert_false(credential_store_is_guessed(w->store, 1));
	for (int i = 0; i < 2; i++) {
		assert_null(get(w, 0, &b));
		answer(w, 0, "another-value-of-length", 0);
		turn(w, 1);
		assert_null(b.value);
		assert_non_null(strstr(b.error, "guessing"));
	}
	assert_int_equal(w->asked[0], 1);
	assert_false(credential_store_waited(w->store, 99, 100));
	credential_value_release(a.value);
}

static void test_unavailable_is_not_hammered(void **state)
{
	struct world *w = *state;
	struct caller c;

	assert_null(get(w, 0, &c));
	credential_store_answer(w->store, 0, (struct slice){"", 0}, 0, 0, "There is no such file.");
	turn(w, 0);
	assert_int_equal(c.told, 1);
	assert_string_equal(c.error, "There is no such file.");
	for (int i = 0; i < 10; i++) {
		assert_null(get(w, 0, &c));
		assert_int_equal(c.told, 0);
		turn(w, 0);
		assert_int_equal(c.told, 1);
		assert_string_equal(c.error, "There is no such file.");
	}
	assert_int_equal(w->asked[0], 1);
	turn(w, 1050);
	assert_null(get(w, 0, &c));
	assert_int_equal(w->asked[0], 2);
	answer(w, 0, "token-value-1", 0);
	turn(w, 0);
	assert_non_null(c.value);
	credential_value_release(c.value);
}

/* A caller that asks again from its own callback waits for the next turn, and the loop goes on. */
static void test_asking_again_from_the_callback(void **state)
{
	struct world *w = *state;
	struct caller c;

	assert_null(get(w, 0, &c));
	c.asks_again = w;
	credential_store_answer(w->store, 0, (struct slice){"", 0}, 0, 0, "No.");
	for (int i = 0; i < 5; i++)
		turn(w, 0);
	assert_int_equal(c.told, 5);
	assert_int_equal(w->asked[0], 1);
}

static void test_unasked_answers_are_ignored(void **state)
{
	struct world *w = *state;
	struct caller c;

	answer(w, 0, "token-value-1", 0);
	answer(w, 3, "token-value-1", 0);
	answer(w, UINT32_MAX, "token-value-1", 0);
	turn(w, 0);
	assert_null(get(w, 0, &c));
	answer(w, 1, "token-value-1", 0);
	turn(w, 0);
	assert_int_equal(c.told, 0);
	answer(w, 0, "token-value-2", 0);
	answer(w, 0, "token-value-3", 0);
	turn(w, 0);
	assert_true(slice_equals(secret_slice(&c.value->rendered), SLICE("Bearer token-value-2")));
	credential_value_release(c.value);
	assert_null(credential_store_get(w->store, 3, &c.wait));
}

static void test_values_that_cannot_be_sent(void **state)
{
	static const struct slice values[] = {SLICE("short"), SLICE(""), SLICE("with\nline"),
	        SLICE("with\0nul"), SLICE(" blank")};
	struct caller c;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct world *w = *state;

		assert_null(get(w, 0, &c));
		credential_store_answer(w->store, 0, values[i], 0, 0, NULL);
		turn(w, 0);
		assert_int_equal(c.told, 1);
		assert_null(c.value);
		assert_non_null(strstr(c.error, "cannot be sent"));
		teardown(state);
		setup(state);
	}
}

static void test_keeper_dies(void **state)
{
	struct world *w = *state;
	struct caller held, c[3];

	assert_null(get(w, 0, &held));
	answer(w, 0, "token-value-1", 0);
	turn(w, 0);
	assert_null(get(w, 1, &c[0]));
	assert_null(get(w, 1, &c[1]));
	assert_null(get(w, 2, &c[2]));
	credential_store_fail_all(w->store, "The keeper is gone.");
	credential_store_fail_all(w->store, "Once more.");
	turn(w, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(c[i].told, 1);
		assert_string_equal(c[i].error, "The keeper is gone.");
	}
	assert_ptr_equal(get(w, 0, &c[0]), held.value);
	credential_value_release(held.value);
	/* The late answer changes nothing. */
	answer(w, 1, "token-value-1", 0);
	assert_null(get(w, 1, &c[0]));
	turn(w, 0);
	assert_string_equal(c[0].error, "The keeper is gone.");
}

/* A new keeper is asked the open questions again, and at once for what the last one had not. */
static void test_another_keeper(void **state)
{
	struct world *w = *state;
	struct caller c[2];

	assert_null(get(w, 0, &c[0]));
	assert_int_equal(w->asked[0], 1);
	credential_store_ask_again(w->store);
	assert_int_equal(w->asked[0], 2);
	answer(w, 0, "token-value-0", 0);
	turn(w, 0);
	assert_int_equal(c[0].told, 1);
	credential_value_release(c[0].value);
	w->ask_result = -EPIPE;
	assert_null(get(w, 1, &c[1]));
	turn(w, 0);
	assert_true(c[1].error[0]);
	w->ask_result = 0;
	credential_store_ask_again(w->store);
	assert_int_equal(w->asked[1], 1);
	assert_null(get(w, 1, &c[1]));
	assert_int_equal(w->asked[1], 2);
	w->ask_result = -EPIPE; /* that one is gone as well */
	credential_store_ask_again(w->store);
	turn(w, 0);
	assert_int_equal(c[1].told, 1);
	assert_true(c[1].error[0]);
}

/* In the new policy credential 1 has number 0, and 1 is another one. Requests that wait for the
 * former 0 get no answer. */
static void test_other_numbers(void **state)
{
	const uint32_t before[] = {1, POLICY_NONE};
	struct world *w = *state;
	struct caller held, gone, waits;

	assert_null(get(w, 0, &gone));
	answer(w, 0, "token-value-0", 0);
	turn(w, 0);
	held = gone;
	assert_non_null(get(w, 0, &gone));
	assert_null(get(w, 2, &gone));
	assert_null(get(w, 1, &waits));
	assert_int_equal(credential_store_renumber(w->store, before, 2), 0);
	turn(w, 0);
	assert_int_equal(gone.told, 0);
	assert_null(credential_store_held(w->store, 0));
	assert_null(credential_store_held(w->store, 1));
	assert_null(credential_store_held(w->store, 2));
	answer(w, 0, "token-value-1", 0); /* what was asked as 1 */
	turn(w, 0);
	assert_int_equal(waits.told, 1);
	assert_non_null(waits.value);
	assert_int_equal(waits.value->credential, 0);
	credential_value_release(waits.value);
	credential_value_release(held.value); /* an old response may still need it */
}

/* With the policy a value may have changed, too: no request that comes later gets what was held, or
 * was on its way. */
static void test_values_are_asked_for_anew(void **state)
{
	const uint32_t before[] = {0, 1, 2};
	struct world *w = *state;
	struct caller held, waits, late[2];

	assert_null(get(w, 0, &held));
	answer(w, 0, "token-value-0", 0);
	turn(w, 0);
	assert_null(get(w, 1, &waits));
	assert_int_equal(credential_store_renumber(w->store, before, 3), 0);
	assert_null(get(w, 0, &late[0]));
	assert_int_equal(w->asked[0], 2);
	answer(w, 0, "other-value-0", 0);
	answer(w, 1, "token-value-1", 0);
	turn(w, 0);
	assert_true(slice_equals(
	        secret_slice(&late[0].value->rendered), SLICE("Bearer other-value-0")));
	assert_true(
	        slice_equals(secret_slice(&waits.value->rendered), SLICE("Bearer token-value-1")));
	assert_ptr_equal(credential_store_held(w->store, 0), late[0].value);
	assert_null(get(w, 1, &late[1]));
	assert_int_equal(w->asked[1], 2);
	answer(w, 1, "other-value-1", 0);
	turn(w, 0);
	assert_true(slice_equals(
	        secret_slice(&late[1].value->rendered), SLICE("Bearer other-value-1")));
	assert_ptr_equal(credential_store_held(w->store, 1), late[1].value);
	credential_value_release(held.value);
	credential_value_release(waits.value);
	credential_value_release(late[0].value);
	credential_value_release(late[1].value);
}

static void test_asking_fails(void **state)
{
	struct world *w = *state;
	struct caller c;

	w->ask_result = -EPIPE;
	assert_null(get(w, 0, &c));
	assert_int_equal(c.told, 0);
	turn(w, 0);
	assert_int_equal(c.told, 1);
	assert_true(c.error[0]);
}

static void test_free_lets_waiters_go(void **state)
{
	struct world *w = *state;
	struct caller c;

	assert_null(get(w, 0, &c));
	credential_store_free(w->store);
	w->store = NULL;
	turn(w, 0);
	assert_int_equal(c.told, 0);
	credential_wait_cancel(&c.wait);
}

/* basic: the pair, the password alone, and the pair's base64 are all covered. */
static void test_basic_masks_the_pair(void **state)
{
	struct world *w = *state;
	struct caller c;
	uint8_t text[] = "user:passw0rd passw0rd dXNlcjpwYXNzdzByZA== user";

	assert_null(get(w, 2, &c));
	answer(w, 2, "passw0rd", 0);
	turn(w, 0);
	assert_int_equal(mask_in_place(c.value->mask, text, sizeof(text) - 1), 3);
	assert_string_equal((char *)text, "************* ******** *****************A== user");
	credential_value_release(c.value);
}

static void test_placeholders(void **state)
{
	static const struct {
		const char *text;
		uint32_t credential;
		size_t at, n;
	} rows[] = {
	        {"", POLICY_NONE, 0, 0},
	        {"vethguard", POLICY_NONE, 0, 0},
	        {"Bearer vethguard-a-0123", 0, 7, 16},
	        {"vethguard-a-0123", 0, 0, 16},
	        {"vethguard-a-01234", 1, 0, 17},
	        {"xx vethguard-a-012", POLICY_NONE, 0, 0},
	        {"vethguard-vethguard-a-0123", 0, 10, 16},
	        {"vethguardvethguard vethguard sk-ant-vethguard-b-77!", 2, 29, 21},
	        {"k-ant-vethguard-b-77", POLICY_NONE, 0, 0},
	        {"sk-ant-vethguard-b-7", POLICY_NONE, 0, 0},
	        {"VETHGUARD-a-0123", POLICY_NONE, 0, 0},
	        {"sk-ant-vethguard-b-77vethguard-a-0123", 2, 0, 21},
	};
	struct world *w = *state;
	char big[200];

	assert_int_equal(credential_store_find_placeholder(
	                         w->store, SLICE("vethguard-a-0123"), &(size_t){0}, &(size_t){0}),
	        POLICY_NONE);
	assert_false(credential_store_mentions_placeholder(w->store, SLICE("vethguard-a-0123"), 0));
	assert_int_equal(
	        credential_store_placeholder_begins(w->store, SLICE("vethguard-a-012")), 15);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 0, SLICE("vethguard-a-0123")), 0);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 1, SLICE("vethguard-a-01234")), 0);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 2, SLICE("sk-ant-vethguard-b-77")), 0);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 3, SLICE("vethguard-c-0123")), -EINVAL);
	assert_int_equal(credential_store_set_placeholder(w->store, 0, SLICE("")), -EINVAL);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 0, SLICE("vethguar-c-0123")), -EINVAL);
	memset(big, 'x', sizeof(big));
	memcpy(big, "vethguard", 9);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 0, slice_of(big, 121)), -EINVAL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t at = 0, n = 0;

		assert_int_equal(credential_store_find_placeholder(
		                         w->store, slice_from_string(rows[i].text), &at, &n),
		        rows[i].credential);
		assert_int_equal(at, rows[i].at);
		assert_int_equal(n, rows[i].n);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice text = slice_from_string(rows[i].text);
		uint64_t held = 0; /* whose placeholders */

		if (rows[i].credential != POLICY_NONE)
			held = 1u << rows[i].credential;
		if (strstr(rows[i].text, "vethguard-a-0123")) /* beside another, or in one */
			held |= 1;
		for (uint64_t except = 0; except < 8; except++)
			assert_int_equal(
			        credential_store_mentions_placeholder(w->store, text, except),
			        (held & ~except) != 0);
		assert_int_equal(
		        credential_store_mentions_placeholder(w->store, text, ~7ull), held != 0);
	}
	assert_true(credential_store_mentions_placeholder(
	        w->store, SLICE("x vethguard-%61-0123 sk-\\u0061nt-vethguard-b-77"), 1));
	assert_false(credential_store_mentions_placeholder(
	        w->store, SLICE("x vethguard-%61-0123 sk-\\u0061nt-vethguard-b-78"), 1));
	assert_true(
	        credential_store_mentions_placeholder(w->store, SLICE("x vethguard-%61-0123"), 0));
	assert_int_equal(
	        credential_store_placeholder_begins(w->store, SLICE("vethguard-a-x vethg%75ar")),
	        14);
	assert_int_equal(credential_store_placeholder_begins(w->store, SLICE("vethguard-!")), 11);
	for (int i = 3; i < POLICY_CREDENTIALS_MAX; i++)
		assert_int_equal(
		        credential_store_set_placeholder(w->store, 0, SLICE("vethguard-x")), 0);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 0, SLICE("vethguard-x")), -ENOSPC);
}

/* Placeholders found in the base64 of a text, which may have other characters around it. */
static uint32_t found_encoded(struct world *w, const char *text)
{
	char encoded[BASE64_SIZE(200) + 16];
	size_t n = base64_encode(text, strlen(text), base64_standard, encoded + 6);
	uint32_t plain, padded;

	memcpy(encoded, "Basic ", 6);
	plain = credential_store_find_encoded_placeholder(w->store, slice_of(encoded + 6, n));
	memcpy(encoded + 6 + n, ", more", 6);
	padded = credential_store_find_encoded_placeholder(w->store, slice_of(encoded, n + 12));
	assert_int_equal(plain, padded);
	return plain;
}

static void test_placeholders_in_base64(void **state)
{
	static const struct {
		const char *text;
		uint32_t credential;
	} rows[] = {
	        {"", POLICY_NONE},
	        {"vethguard", POLICY_NONE},
	        {"vethguard-a-0124", POLICY_NONE},
	        {"vethguard-a-012", POLICY_NONE},
	        {"vethguard-a-0123", 0},
	        {"user:vethguard-a-0123", 0},
	        {"vethguard:vethguard-a-0123", 0},
	        {"me@a.test:vethguard-a-0123:", 0},
	        {"sk-ant-vethguard-b-77", 1},
	        {"k-ant-vethguard-b-77", POLICY_NONE},
	        {"u:sk-ant-vethguard-b-77vethguard-a-0123", 1},
	};
	struct world *w = *state;
	char text[64];

	assert_int_equal(found_encoded(w, "vethguard-a-0123"), POLICY_NONE);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 0, SLICE("vethguard-a-0123")), 0);
	assert_int_equal(
	        credential_store_set_placeholder(w->store, 1, SLICE("sk-ant-vethguard-b-77")), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(found_encoded(w, rows[i].text), rows[i].credential);
	/* every alignment at either end */
	for (int before = 0; before < 6; before++)
		for (int after = 0; after < 3; after++) {
			snprintf(text, sizeof(text), "%.*svethguard-a-0123%.*s", before,
			        "::::::", after, "::");
			assert_int_equal(found_encoded(w, text), 0);
		}
	/* cut off at the end of what can be read: the mark is there, the rest is not */
	assert_int_equal(credential_store_find_encoded_placeholder(w->store, SLICE("dmV0aGd1YXJk")),
	        POLICY_NONE);
	assert_int_equal(
	        credential_store_find_encoded_placeholder(w->store, SLICE("dmV0aGd1YXJkLWEtMDEy")),
	        POLICY_NONE);
	assert_int_equal(
	        credential_store_find_encoded_placeholder(w->store, SLICE("")), POLICY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_fetch_and_hold),
	        TEST(test_callers_share_one_question),
	        TEST(test_ttl_and_references),
	        TEST(test_ttl_goes_on_while_the_machine_sleeps),
	        TEST(test_a_guessed_one_is_given_to_nobody),
	        TEST(test_unavailable_is_not_hammered),
	        TEST(test_asking_again_from_the_callback),
	        TEST(test_unasked_answers_are_ignored),
	        TEST(test_values_that_cannot_be_sent),
	        TEST(test_keeper_dies),
	        TEST(test_another_keeper),
	        TEST(test_other_numbers),
	        TEST(test_values_are_asked_for_anew),
	        TEST(test_asking_fails),
	        TEST(test_free_lets_waiters_go),
	        TEST(test_basic_masks_the_pair),
	        TEST(test_placeholders),
	        TEST(test_placeholders_in_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
