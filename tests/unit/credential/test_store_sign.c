/* SPDX-License-Identifier: Apache-2.0 */
/* store: signatures by keys in tokens: how many the keeper is asked for at a time, callers that go,
 * and keepers that end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "vethguard/credential/store.h"

#define OPEN_MAX 16 /* of the store */

/* Two credentials, of which a test may rename the second. */
static const char *second_name;

uint32_t policy_credential_count(const struct policy *policy)
{
	(void)policy;
	return 2;
}

void policy_credential(const struct policy *policy, uint32_t index, struct policy_credential *out)
{
	(void)policy;
	*out = (struct policy_credential){
	        .name = index ? slice_from_string(second_name) : SLICE("first")};
}

static struct loop *loop;
static struct loop_timer stop;
static struct credential_store *store;
static uint64_t ids[64];
static uint32_t credentials[64];
static size_t asked;
static int result;

static int on_sign(
        void *context, uint64_t id, uint32_t credential, uint16_t scheme, struct slice digest)
{
	assert_ptr_equal(context, &asked);
	if (result)
		return result;
	assert_int_equal(scheme, 0x0403);
	assert_true(slice_equals(digest, SLICE("0123456789abcdef0123456789abcdef")));
	ids[asked] = id;
	credentials[asked++] = credential;
	return 0;
}

static int on_ask(void *context, uint32_t credential, bool renew)
{
	(void)context, (void)credential, (void)renew;
	return 0;
}

struct caller {
	struct credential_signature wait;
	int told;
	char signature[16], error[128];
};

static void on_signed(struct credential_signature *s, struct slice signature, const char *error)
{
	struct caller *c = container_of(s, struct caller, wait);

	c->told++;
	snprintf(c->signature, sizeof(c->signature), "%.*s", SLICE_ARG(signature));
	snprintf(c->error, sizeof(c->error), "%s", error ? error : "");
}

static void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void turn(void)
{
	loop_timer_set(&stop, 0);
	assert_int_equal(loop_run(loop), 0);
}

static void ask(struct caller *c, const char *name)
{
	*c = (struct caller){.wait.on_signed = on_signed};
	assert_int_equal(credential_store_sign(store, slice_from_string(name), 0x0403,
	                         SLICE("0123456789abcdef0123456789abcdef"), &c->wait),
	        0);
	assert_int_equal(c->told, 0);
}

static int set_up(void **state)
{
	static struct policy policy;

	(void)state;
	second_name = "second";
	asked = 0;
	result = 0;
	loop = loop_new();
	assert_int_equal(loop_timer_open(loop, &stop, on_stop), 0);
	store = credential_store_new(loop, &policy, on_ask, &asked);
	assert_non_null(store);
	credential_store_on_sign(store, on_sign);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	credential_store_free(store);
	loop_timer_close(&stop);
	loop_free(loop);
	return 0;
}

static void test_answers(void **state)
{
	struct caller a, b;

	(void)state;
	ask(&a, "first");
	ask(&b, "second");
	assert_int_equal(asked, 0);
	turn();
	assert_int_equal(asked, 2);
	assert_int_equal(credentials[0], 0);
	assert_int_equal(credentials[1], 1);
	credential_store_signed(store, ids[1], SLICE("signed"), NULL);
	assert_int_equal(a.told, 0);
	assert_string_equal(b.signature, "signed");
	credential_store_signed(store, ids[1], SLICE("again"), NULL);
	credential_store_signed(store, 999, SLICE("nobody's"), NULL);
	assert_int_equal(b.told, 1);
	credential_store_signed(store, ids[0], SLICE(""), "the token was removed");
	assert_string_equal(a.error, "the token was removed");
}

static void test_only_some_at_a_time(void **state)
{
	struct caller c[OPEN_MAX + 4];

	(void)state;
	for (size_t i = 0; i < OPEN_MAX + 4; i++)
		ask(&c[i], "first");
	credential_signature_cancel(&c[OPEN_MAX].wait); /* one that waits */
	turn();
	assert_int_equal(asked, OPEN_MAX);
	credential_signature_cancel(&c[0].wait); /* one that the keeper has */
	credential_signature_cancel(&c[0].wait);
	assert_int_equal(asked, OPEN_MAX);
	credential_store_signed(store, ids[0], SLICE("late"), NULL);
	assert_int_equal(asked, OPEN_MAX + 1);
	for (size_t i = 1; i < asked; i++)
		credential_store_signed(store, ids[i], SLICE("x"), NULL);
	assert_int_equal(asked, OPEN_MAX + 3);
	for (size_t i = 0; i < OPEN_MAX + 4; i++)
		assert_int_equal(c[i].told, i != 0 && i != OPEN_MAX);
}

static void test_another_keeper(void **state)
{
	struct caller a, b;

	(void)state;
	ask(&a, "first");
	turn();
	result = -EAGAIN; /* it has just gone */
	ask(&b, "second");
	turn();
	assert_int_equal(asked, 1);
	assert_int_equal(b.told, 0);
	result = 0;
	credential_store_ask_again(store);
	assert_int_equal(asked, 3);
	assert_int_equal(a.told + b.told, 0);
	credential_store_signed(store, ids[1], SLICE("one"), NULL);
	credential_store_signed(store, ids[2], SLICE("two"), NULL);
	assert_int_equal(a.told + b.told, 2);
	ask(&a, "first");
	turn();
	ask(&b, "second");
	credential_store_fail_all(store, "the keeper is gone");
	assert_string_equal(a.error, "the keeper is gone");
	assert_string_equal(b.error, "the keeper is gone");
}

/* The same keeper, under another policy: what it has answered just before makes no room, because it
 * has forgotten these questions. */
static void test_another_policy(void **state)
{
	static struct caller c[OPEN_MAX + 1]; /* some wait until the store ends */

	(void)state;
	for (size_t i = 0; i < OPEN_MAX + 1; i++)
		ask(&c[i], "first");
	turn();
	assert_int_equal(asked, OPEN_MAX);
	credential_store_ask_again(store);
	assert_int_equal(asked, 2 * OPEN_MAX);
	for (size_t i = 0; i < OPEN_MAX; i++)
		credential_store_signed(store, ids[i], SLICE("late"), NULL);
	assert_int_equal(asked, 2 * OPEN_MAX);
	for (size_t i = 0; i < OPEN_MAX + 1; i++)
		assert_int_equal(c[i].told, 0);
	credential_store_signed(store, ids[OPEN_MAX], SLICE("new"), NULL);
	assert_int_equal(asked, 2 * OPEN_MAX + 1);
}

static void test_what_is_not_asked(void **state)
{
	static struct caller a, b; /* they wait until the store ends */
	char name[80];

	(void)state;
	ask(&a, "third");
	turn();
	assert_int_equal(asked, 0);
	assert_non_null(strstr(a.error, "no longer"));
	ask(&b, "second");
	second_name = "renamed"; /* the policy changes before the question is sent */
	turn();
	assert_non_null(strstr(b.error, "no longer"));
	result = -EPIPE;
	ask(&a, "first");
	turn();
	assert_non_null(strstr(a.error, "cannot be asked"));
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(
	        credential_store_sign(store, slice_from_string(name), 0x0403, SLICE("d"), &a.wait),
	        -EINVAL);
	assert_int_equal(
	        credential_store_sign(store, SLICE("first"), 0x0403, slice_of(name, 65), &a.wait),
	        -EINVAL);
	result = 0;
	ask(&a, "first"); /* nobody is called when the store ends */
	turn();
	ask(&b, "first");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_answers), CASE(test_only_some_at_a_time),
	        CASE(test_another_keeper), CASE(test_another_policy), CASE(test_what_is_not_asked)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
