/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of a registry's token service in a store: how long they stay, and what hides them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store_fixture.h"

#define LOGIN "the-registry-password"

static int setup_registry(void **state)
{
	third_inject = POLICY_INJECT_DOCKER_REGISTRY;
	return setup(state);
}

/* Keeps a token that the token service gave in answer to a request with the login `used`. */
static int seal_with(struct world *w, const struct credential_value *used, const char *token)
{
	struct jar_token sealed;
	char end[JAR_END_MAX];

	jar_seal(&sealed, slice_from_string(token), SLICE("vethguard-hub-0123456789abcdef"), end);
	return credential_store_seal(w->store, 2, used, &sealed);
}

static void seal(struct world *w, const char *token)
{
	static const struct credential_value first = {.credential = 2};
	const struct credential_value *held = credential_store_held(w->store, 2);

	assert_int_equal(seal_with(w, held ? held : &first, token), 0);
}

static bool holds(struct world *w, const char *token)
{
	const struct credential_value *v = credential_store_held(w->store, 2);
	struct jar_token found;

	return v && jar_has(secret_slice(&v->jar), slice_from_string(token), &found);
}

static bool hides(struct world *w, const char *text)
{
	char copy[256];
	size_t n = strlen(text);

	memcpy(copy, text, n);
	return mask_in_place(credential_store_held(w->store, 2)->mask, (uint8_t *)copy, n) > 0;
}

static void hold(struct world *w, const char *value, uint32_t ttl_s)
{
	struct caller c;

	assert_null(get(w, 2, &c));
	answer(w, 2, value, ttl_s);
	turn(w, 0);
	assert_non_null(c.value);
	credential_value_release(c.value);
}

static void test_masks(void **state)
{
	static const char login[] = "dXNlcjp0aGUtcmVnaXN0cnktcGFzc3dvcmQ="; /* user:LOGIN */
	struct world *w = *state;

	hold(w, LOGIN, 0);
	assert_true(slice_equals(secret_slice(&credential_store_held(w->store, 2)->rendered),
	        SLICE("Basic dXNlcjp0aGUtcmVnaXN0cnktcGFzc3dvcmQ=")));
	assert_true(hides(w, LOGIN) && hides(w, "user:" LOGIN) && hides(w, login));
	assert_false(hides(w, "token-number-one"));
	seal(w, "token-number-one");
	seal(w, "token-number-two");
	assert_true(hides(w, LOGIN) && hides(w, login) && hides(w, "token-number-one") &&
	            hides(w, "token-number-two"));
}

/* Tokens stay while values come and go; a request under way keeps what it had. */
static void test_tokens_stay(void **state)
{
	struct world *w = *state;
	struct credential_value *before;
	struct caller c;

	seal(w, "token-number-one"); /* before any value is held */
	hold(w, LOGIN, 0);
	assert_true(holds(w, "token-number-one"));
	before = get(w, 2, &c);
	credential_value_retain(before);
	seal(w, "token-number-two");
	assert_true(holds(w, "token-number-one") && holds(w, "token-number-two"));
	assert_ptr_not_equal(before, credential_store_held(w->store, 2));
	assert_true(before->jar.n < credential_store_held(w->store, 2)->jar.n);
	credential_value_release(before);
}

static void test_another_policy(void **state)
{
	static const uint32_t same[] = {0, 1, 2}, without[] = {0, 1, POLICY_NONE};
	struct world *w = *state;

	hold(w, LOGIN, 0);
	seal(w, "token-number-one");
	assert_int_equal(credential_store_renumber(w->store, same, 3), 0);
	hold(w, "another-password", 0);
	assert_true(holds(w, "token-number-one"));
	assert_int_equal(credential_store_renumber(w->store, without, 3), 0);
	hold(w, LOGIN, 0);
	assert_false(holds(w, "token-number-one"));
}

static void test_operators(void **state)
{
	struct world *w = *state;

	hold(w, LOGIN, 0);
	seal(w, "token-number-one");
	credential_store_rotate(w->store, 2);
	answer(w, 2, LOGIN, 0);
	turn(w, 0);
	assert_non_null(credential_store_held(w->store, 2));
	assert_false(holds(w, "token-number-one"));
	seal(w, "token-number-two");
	credential_store_revoke(w->store, 2);
	assert_null(credential_store_held(w->store, 2));
}

/* The token service's answer comes after the operator's word: the login that it was asked with does
 * not count any more. */
static void test_tokens_of_an_earlier_login(void **state)
{
	struct world *w = *state;
	struct credential_value *before;
	struct caller c;

	hold(w, LOGIN, 0);
	before = get(w, 2, &c);
	credential_value_retain(before);
	assert_int_equal(seal_with(w, before, "token-number-one"), 0);
	credential_store_rotate(w->store, 2);
	assert_int_equal(seal_with(w, before, "token-number-two"), -ESTALE);
	answer(w, 2, "another-password", 0);
	turn(w, 0);
	assert_int_equal(seal_with(w, before, "token-number-two"), -ESTALE);
	assert_false(holds(w, "token-number-one") || holds(w, "token-number-two"));
	seal(w, "token-number-three");
	assert_true(holds(w, "token-number-three"));
	credential_value_release(before);

	before = get(w, 2, &c);
	credential_value_retain(before);
	credential_store_revoke(w->store, 2);
	assert_int_equal(seal_with(w, before, "token-number-four"), -ESTALE);
	credential_value_release(before);
}

/* The answer to a question from before the rotation has the earlier login, and is only for those
 * who wait. */
static void test_tokens_of_a_login_on_its_way(void **state)
{
	struct world *w = *state;
	struct caller c;

	assert_null(get(w, 2, &c));
	credential_store_rotate(w->store, 2);
	answer(w, 2, LOGIN, 0);
	turn(w, 0);
	assert_non_null(c.value);
	assert_int_equal(seal_with(w, c.value, "token-number-one"), -ESTALE);
	credential_value_release(c.value);
	hold(w, "another-password", 0);
	assert_false(holds(w, "token-number-one"));
	seal(w, "token-number-two");
	assert_true(holds(w, "token-number-two"));
}

static void test_refused(void **state)
{
	struct world *w = *state;
	const struct credential_value used = {.credential = 2};
	struct jar_token token = {.value = SLICE("short"), .end = SLICE("x")};
	struct caller c;

	assert_int_equal(credential_store_seal(w->store, 2, &used, &token), -EINVAL);
	assert_int_equal(credential_store_seal(w->store, 3, &used, &token), -EINVAL);
	assert_int_equal(
	        credential_store_seal(w->store, 0, &used, &token), -EINVAL); /* not sealed */
	assert_null(get(w, 2, &c));
	answer(w, 2, "short", 0);
	turn(w, 0);
	assert_null(c.value);
	assert_non_null(strstr(c.error, "shorter than 6"));
}

#define REGISTRY(name) cmocka_unit_test_setup_teardown(name, setup_registry, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        REGISTRY(test_masks),
	        REGISTRY(test_tokens_stay),
	        REGISTRY(test_another_policy),
	        REGISTRY(test_operators),
	        REGISTRY(test_tokens_of_an_earlier_login),
	        REGISTRY(test_tokens_of_a_login_on_its_way),
	        REGISTRY(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
