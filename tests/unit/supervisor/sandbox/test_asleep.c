/* SPDX-License-Identifier: Apache-2.0 */
/* The linker wraps: sandbox_event instance_ask_stats */
/* When a session's worker counts as idle, and what becomes of its figures. The rest is tested with
 * whole daemons (test_gateway_asleep.py). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "../../policy/policy_test.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

#define PLAIN "vethguard: 1\nallow: [{to: 'http://a.test'}]\n"

static unsigned slept;
static int asked;

void __wrap_sandbox_event(struct sandbox *s, enum sandbox_event event);
void __wrap_sandbox_event(struct sandbox *s, enum sandbox_event event)
{
	assert_int_equal(event, SANDBOX_IDLE);
	assert_int_equal(s->state, SANDBOX_SERVING);
	slept++;
}

int __wrap_instance_ask_stats(struct instance *i, uint64_t id);
int __wrap_instance_ask_stats(struct instance *i, uint64_t id)
{
	(void)i;
	assert_int_not_equal(id, 0);
	return asked;
}

static struct supervisor sv;
static const struct session_token token;

struct world {
	struct test_policy policy;
	struct settings settings;
	struct generation generation;
	struct instance worker;
	struct sandbox sandbox;
};

static struct sandbox *begin(struct world *w, const char *policy)
{
	struct sandbox *s = &w->sandbox;

	memset(w, 0, sizeof(*w));
	slept = 0;
	asked = 0;
	test_load(&w->policy, policy, false);
	w->settings.policy = w->policy.policy;
	w->generation = (struct generation){.refs = 1, .settings = &w->settings};
	w->worker.sandbox = s;
	s->supervisor = &sv;
	s->session = &token;
	s->state = SANDBOX_SERVING;
	s->generation = &w->generation;
	s->current = s->instances = &w->worker;
	assert_int_equal(loop_timer_open(sv.loop, &s->timer, NULL), 0);
	sv.gateway.config.keep_worker_ms = 60000;
	sandbox_begin_looking(s);
	return s;
}

static void end(struct world *w)
{
	loop_timer_close(&w->sandbox.timer);
	test_unload(&w->policy);
}

/* One look, and its answer. */
static void look(struct world *w, const struct message_worker_stats *m)
{
	struct sandbox *s = &w->sandbox;

	assert_int_equal(sandbox_look(s), SANDBOX_SERVING);
	if (s->sleep.question)
		assert_true(sandbox_take_look(s, &w->worker, s->sleep.question, m));
}

static const struct message_worker_stats nothing = {.connections = 7};

static void test_idle(void **state)
{
	struct world w;

	(void)state;
	begin(&w, PLAIN);
	for (unsigned i = 1; i < SANDBOX_IDLE_IN_A_ROW; i++)
		look(&w, &nothing);
	assert_int_equal(slept, 0);
	look(&w, &nothing);
	assert_int_equal(slept, 1);
	end(&w);
}

/* Anything that is open begins the count anew. */
static void test_not_idle(void **state)
{
	const struct message_worker_stats open[] = {{.connections_open = 1}, {.streams_open = 1},
	        {.exchanges_open = 1}, {.flows_open = 1}, {.visits_open = 1}, {.backlog_bytes = 1}};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		begin(&w, PLAIN);
		for (unsigned k = 1; k < SANDBOX_IDLE_IN_A_ROW; k++)
			look(&w, &nothing);
		look(&w, &open[i]);
		for (unsigned k = 1; k < SANDBOX_IDLE_IN_A_ROW; k++)
			look(&w, &nothing);
		assert_int_equal(slept, 0);
		look(&w, &nothing);
		assert_int_equal(slept, 1);
		end(&w);
	}
}

/* A connection that was given to the worker between two looks, or during one, counts too. */
static void test_entered(void **state)
{
	struct world w;
	struct sandbox *s = begin(&w, PLAIN);

	(void)state;
	for (unsigned i = 0; i < 5 * SANDBOX_IDLE_IN_A_ROW; i++) {
		look(&w, &nothing);
		if (i % 2)
			s->gateway.entered++;
	}
	assert_int_equal(slept, 0);
	end(&w);
	s = begin(&w, PLAIN);
	for (unsigned i = 1; i < SANDBOX_IDLE_IN_A_ROW; i++)
		look(&w, &nothing);
	sandbox_look(s);
	s->gateway.entered++;
	assert_true(sandbox_take_look(s, &w.worker, s->sleep.question, &nothing));
	assert_int_equal(slept, 0);
	end(&w);
}

/* Answers to other questions are not taken, and none is taken twice. */
static void test_other_answers(void **state)
{
	struct instance former = {0};
	struct world w;
	struct sandbox *s = begin(&w, PLAIN);

	(void)state;
	assert_false(sandbox_take_look(s, &w.worker, 1, &nothing));
	assert_false(sandbox_take_look(s, &w.worker, 0, &nothing));
	for (unsigned i = 0; i < 2 * SANDBOX_IDLE_IN_A_ROW; i++) {
		sandbox_look(s);
		assert_false(sandbox_take_look(s, &w.worker, s->sleep.question + 1, &nothing));
	}
	for (unsigned i = 0; i < 2 * SANDBOX_IDLE_IN_A_ROW; i++) {
		const uint64_t question = (sandbox_look(s), s->sleep.question);

		assert_true(sandbox_take_look(s, &former, question, &nothing));
		assert_false(sandbox_take_look(s, &former, question, &nothing));
	}
	assert_int_equal(slept, 0);
	asked = -EPIPE;
	sandbox_look(s);
	assert_int_equal(s->sleep.question, 0);
	end(&w);
}

static void expect_awake(struct world *w)
{
	for (unsigned i = 0; i < 2 * SANDBOX_IDLE_IN_A_ROW; i++)
		look(w, &nothing);
	assert_int_equal(slept, 0);
	end(w);
}

static void test_may_not_sleep(void **state)
{
	static const struct session_token *const none;
	struct instance retired = {0};
	struct world w;
	struct sandbox *s;

	(void)state;
	begin(&w, PLAIN)->session = none;
	expect_awake(&w);
	s = begin(&w, PLAIN);
	w.worker.next = &retired; /* it may have connections of an earlier policy */
	expect_awake(&w);
	s = begin(&w, PLAIN);
	s->successor = &retired;
	expect_awake(&w);
	begin(&w, PLAIN)->promoted = true;
	expect_awake(&w);
	begin(&w, PLAIN)->quiescing = true;
	expect_awake(&w);
	begin(&w, PLAIN)->current = NULL;
	expect_awake(&w);
	begin(&w, "vethguard: 1\ncredentials:\n  login: {source: sealed, inject: placeholder, in: "
	          "[header]}\nallow:\n  - {to: 'https://a.test', credential: login}\n");
	expect_awake(&w);
}

/* The figures of all workers are added; what was open is not. */
static void test_past(void **state)
{
	struct message_worker_stats m = {.findings = 1,
	        .bytes_in = 2,
	        .bytes_out = 3,
	        .connections = 4,
	        .limits_met = 5,
	        .heap_bytes = 6,
	        .names_kept = 7,
	        .upstreams_idle = 8};
	struct world w;
	struct sandbox *s = begin(&w, PLAIN);

	(void)state;
	m.kinds[MESSAGE_STATS_HTTP].allowed = 9;
	m.kinds[MESSAGE_STATS_DNS].denied = 10;
	for (unsigned i = 0; i < SANDBOX_IDLE_IN_A_ROW; i++)
		look(&w, &m);
	assert_int_equal(slept, 1);
	sandbox_begin_looking(s);
	for (unsigned i = 0; i < SANDBOX_IDLE_IN_A_ROW; i++)
		look(&w, &m);
	assert_int_equal(slept, 2);
	m = (struct message_worker_stats){.findings = 1, .heap_bytes = 1};
	sandbox_add_past(s, &m);
	assert_int_equal(m.findings, 3);
	assert_int_equal(m.bytes_in, 4);
	assert_int_equal(m.bytes_out, 6);
	assert_int_equal(m.connections, 8);
	assert_int_equal(m.limits_met, 10);
	assert_int_equal(m.kinds[MESSAGE_STATS_HTTP].allowed, 18);
	assert_int_equal(m.kinds[MESSAGE_STATS_DNS].denied, 20);
	assert_int_equal(m.heap_bytes, 1);
	assert_int_equal(m.names_kept, 0);
	assert_int_equal(m.upstreams_idle, 0);
	end(&w);
}

static int setup(void **state)
{
	(void)state;
	sv.loop = loop_new();
	return sv.loop ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	loop_free(sv.loop);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_idle),
	        cmocka_unit_test(test_not_idle),
	        cmocka_unit_test(test_entered),
	        cmocka_unit_test(test_other_answers),
	        cmocka_unit_test(test_may_not_sleep),
	        cmocka_unit_test(test_past),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
