/* SPDX-License-Identifier: Apache-2.0 */
/* A store whose keeper is the test: it answers late, twice, wrongly or never. */
#ifndef VETHGUARD_TESTS_UNIT_CREDENTIAL_STORE_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_CREDENTIAL_STORE_FIXTURE_H

#include <errno.h>
#include <stdio.h>

#include "vethguard/base/base64.h"
#include "vethguard/credential/store.h"

static enum policy_inject third_inject = POLICY_INJECT_BASIC; /* of the third credential */

/* The store asks two things of a policy; this one says: three credentials. */
uint32_t policy_credential_count(const struct policy *policy)
{
	(void)policy;
	return 3;
}

void policy_credential(const struct policy *policy, uint32_t index, struct policy_credential *out)
{
	(void)policy;
	*out = (struct policy_credential){
	        .inject = index == 2 ? third_inject : POLICY_INJECT_BEARER,
	        .username = index == 2 ? SLICE("user") : SLICE("")};
}

struct world {
	struct loop *loop;
	struct loop_timer stop;
	struct policy policy;
	struct credential_store *store;
	int asked[3];
	int ask_result;
	int renews;
};

struct caller {
	struct credential_wait wait;
	struct credential_value *value; /* retained */
	char error[256];
	int told;
	struct credential_wait *cancels; /* another caller to let go from the callback */
	struct world *asks_again;
};

static inline int on_ask(void *context, uint32_t credential, bool renew)
{
	struct world *w = context;

	w->renews += renew;
	w->asked[credential]++;
	return w->ask_result;
}

static inline void on_value(
        struct credential_wait *wait, struct credential_value *v, const char *error)
{
	struct caller *c = container_of(wait, struct caller, wait);

	c->told++;
	assert_true((v == NULL) == (error != NULL));
	c->value = v;
	if (v)
		credential_value_retain(v);
	else
		snprintf(c->error, sizeof(c->error), "%s", error);
	if (c->cancels)
		credential_wait_cancel(c->cancels);
	if (c->asks_again && c->told < 5)
		assert_null(credential_store_get(c->asks_again->store, 0, wait));
}

static inline void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static inline void turn(struct world *w, int64_t ms)
{
	loop_timer_set(&w->stop, ms);
	assert_int_equal(loop_run(w->loop), 0);
}

static inline struct credential_value *get(struct world *w, uint32_t credential, struct caller *c)
{
	*c = (struct caller){.wait.on_value = on_value};
	return credential_store_get(w->store, credential, &c->wait);
}

static inline void answer(struct world *w, uint32_t credential, const char *value, uint32_t ttl_s)
{
	credential_store_answer(
	        w->store, credential, slice_from_string(value), ttl_s * 1000, 0, NULL);
}

static inline int setup(void **state)
{
	static struct world w;

	w = (struct world){.loop = loop_new()};
	assert_non_null(w.loop);
	assert_int_equal(loop_timer_open(w.loop, &w.stop, on_stop), 0);
	w.store = credential_store_new(w.loop, &w.policy, on_ask, &w);
	assert_non_null(w.store);
	*state = &w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	credential_store_free(w->store);
	loop_timer_close(&w->stop);
	loop_free(w->loop);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
