/* SPDX-License-Identifier: Apache-2.0 */
/* store: the next value of a credential, and what an operator does to one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sleeping_host.h"
#include "store_fixture.h"

/* It is valid for 100 seconds; after 90 the next one is asked for. */
static void hold_a_value(struct world *w)
{
	struct caller c;

	assert_null(get(w, 0, &c));
	credential_store_answer(w->store, 0, SLICE("token-value-1"), 100000, 90000, NULL);
	turn(w, 0);
	credential_value_release(c.value);
}

/* The next value is asked for while the one before is still used. */
static void test_the_next_value_is_asked_for_early(void **state)
{
	struct world *w = *state;
	struct caller c;

	hold_a_value(w);
	assert_non_null(get(w, 0, &c));
	assert_int_equal(w->asked[0], 1);
	host_sleeps(91);
	for (int i = 0; i < 3; i++)
		assert_true(slice_equals(
		        secret_slice(&get(w, 0, &c)->rendered), SLICE("Bearer token-value-1")));
	assert_int_equal(w->asked[0], 2); /* once */
	assert_int_equal(w->renews, 1);
	credential_store_answer(w->store, 0, SLICE("token-value-2"), 100000, 90000, NULL);
	turn(w, 0);
	assert_true(slice_equals(
	        secret_slice(&get(w, 0, &c)->rendered), SLICE("Bearer token-value-2")));
	assert_int_equal(w->asked[0], 2);
}

/* The keeper dies, or cannot be asked: what is valid is used to its end, and not longer. */
static void test_a_renewal_that_fails(void **state)
{
	struct world *w = *state;
	struct caller c;

	hold_a_value(w);
	host_sleeps(91);
	assert_non_null(get(w, 0, &c));
	credential_store_fail_all(w->store, "The keeper is gone.");
	turn(w, 0);
	assert_non_null(get(w, 0, &c));
	assert_int_equal(w->asked[0], 2); /* not at once */
	host_sleeps(6);
	w->ask_result = -EPIPE;
	assert_non_null(get(w, 0, &c));
	assert_int_equal(w->asked[0], 3);
	host_sleeps(4);
	assert_null(get(w, 0, &c));
	turn(w, 0);
	assert_int_equal(c.told, 1);
	assert_null(c.value);
}

/* Requests that wait while the next value is on its way get it, or learn that there is none. */
static void test_a_renewal_that_comes_too_late(void **state)
{
	struct world *w = *state;
	struct caller c;

	hold_a_value(w);
	host_sleeps(91);
	assert_non_null(get(w, 0, &c));
	host_sleeps(10);
	assert_null(get(w, 0, &c));
	assert_int_equal(w->asked[0], 2);
	credential_store_answer(w->store, 0, (struct slice){"", 0}, 0, 0, "No.");
	turn(w, 0);
	assert_int_equal(c.told, 1);
	assert_string_equal(c.error, "No.");
}

static void test_rotated(void **state)
{
	struct world *w = *state;
	struct credential_value *before;
	struct caller c;

	credential_store_rotate(w->store, 0); /* nothing is held, and nothing is asked */
	credential_store_rotate(w->store, 3);
	assert_int_equal(w->asked[0], 0);
	assert_null(get(w, 0, &c));
	answer(w, 0, "token-value-1", 0);
	turn(w, 0);
	before = c.value;
	credential_store_rotate(w->store, 0);
	assert_int_equal(w->asked[0], 2); /* the new one is here before it is needed */
	assert_null(get(w, 0, &c));
	answer(w, 0, "token-value-2", 0);
	turn(w, 0);
	assert_true(slice_equals(secret_slice(&c.value->rendered), SLICE("Bearer token-value-2")));
	/* A stream under way keeps the mask of the former value. */
	assert_true(slice_equals(secret_slice(&before->rendered), SLICE("Bearer token-value-1")));
	credential_value_release(before);
	credential_value_release(c.value);
}

/* A question that was under way is answered with the former value: nobody gets it. */
static void test_rotated_while_asked(void **state)
{
	struct world *w = *state;
	struct caller c, d;

	assert_null(get(w, 0, &c));
	credential_store_rotate(w->store, 0);
	answer(w, 0, "token-value-1", 0);
	turn(w, 0);
	assert_non_null(c.value); /* it had waited before */
	credential_value_release(c.value);
	assert_null(get(w, 0, &d));
	assert_int_equal(w->asked[0], 2);
	answer(w, 0, "token-value-2", 0);
	turn(w, 0);
	credential_value_release(d.value);
}

static void test_revoked(void **state)
{
	struct world *w = *state;
	struct caller c, d;

	credential_store_revoke(w->store, 3);
	assert_null(get(w, 0, &c));
	answer(w, 0, "token-value-1", 0);
	turn(w, 0);
	credential_value_release(c.value);
	credential_store_revoke(w->store, 0);
	assert_null(credential_store_held(w->store, 0));
	assert_null(get(w, 0, &c));
	turn(w, 0);
	assert_string_equal(c.error, CREDENTIAL_REVOKED);
	turn(w, 1050);
	assert_null(get(w, 0, &d)); /* the keeper says the same from now on */
	assert_int_equal(w->asked[0], 2);
	credential_store_rotate(w->store, 0);
	credential_store_answer(w->store, 0, (struct slice){"", 0}, 0, 0, "Revoked.");
	turn(w, 0);
	assert_string_equal(d.error, "Revoked.");
}

/* An answer that the keeper sent before it heard of the revocation arrives after it. */
static void test_revoked_while_asked(void **state)
{
	struct world *w = *state;
	struct caller c, d;

	assert_null(get(w, 0, &c));
	credential_store_revoke(w->store, 0);
	turn(w, 0);
	assert_int_equal(c.told, 1);
	assert_string_equal(c.error, CREDENTIAL_REVOKED);
	credential_store_rotate(w->store, 0); /* it is back at once */
	assert_null(get(w, 0, &d));
	assert_int_equal(w->asked[0], 2);
	answer(w, 0, "token-value-1", 0); /* to the first question */
	turn(w, 0);
	assert_int_equal(d.told, 0);
	assert_null(credential_store_held(w->store, 0));
	answer(w, 0, "token-value-2", 0);
	turn(w, 0);
	assert_true(slice_equals(secret_slice(&d.value->rendered), SLICE("Bearer token-value-2")));
	credential_value_release(d.value);
}

/* A new keeper owes no answers. */
static void test_revoked_and_another_keeper(void **state)
{
	struct world *w = *state;
	struct caller c;

	assert_null(get(w, 0, &c));
	credential_store_revoke(w->store, 0);
	turn(w, 0);
	credential_store_ask_again(w->store);
	assert_null(get(w, 0, &c));
	answer(w, 0, "token-value-2", 0);
	turn(w, 0);
	assert_non_null(c.value);
	credential_value_release(c.value);
}

static void test_usage(void **state)
{
	struct world *w = *state;
	uint64_t uses, last_ms;
	struct caller c[3];

	credential_store_usage(w->store, 0, &uses, &last_ms);
	assert_int_equal(uses, 0);
	assert_int_equal(last_ms, 0);
	for (int i = 0; i < 3; i++)
		assert_null(get(w, 0, &c[i]));
	credential_store_usage(w->store, 0, &uses, &last_ms);
	assert_int_equal(uses, 0);
	answer(w, 0, "token-value-1", 0);
	turn(w, 0);
	for (int i = 0; i < 3; i++)
		credential_value_release(c[i].value);
	assert_non_null(get(w, 0, &c[0]));
	credential_store_usage(w->store, 0, &uses, &last_ms);
	assert_int_equal(uses, 4);
	assert_true(last_ms > 0);
	assert_null(get(w, 1, &c[0]));
	credential_store_answer(w->store, 1, (struct slice){"", 0}, 0, 0, "No.");
	turn(w, 0);
	credential_store_usage(w->store, 1, &uses, &last_ms);
	assert_int_equal(uses, 0);
	credential_store_usage(w->store, 3, &uses, &last_ms);
	assert_int_equal(uses, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_the_next_value_is_asked_for_early),
	        TEST(test_a_renewal_that_fails),
	        TEST(test_a_renewal_that_comes_too_late),
	        TEST(test_rotated),
	        TEST(test_rotated_while_asked),
	        TEST(test_revoked),
	        TEST(test_revoked_while_asked),
	        TEST(test_revoked_and_another_keeper),
	        TEST(test_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
