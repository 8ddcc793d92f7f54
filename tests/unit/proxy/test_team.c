/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that is one of several: what others have open counts against its limits and the reverse,
 * and a credential that is guessed at one of them is used by none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"

static const char policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "credentials:\n"
        "  other: {source: \"env:O\", inject: bearer, env: O}\n"
        "  key: {source: \"env:KEY\", inject: bearer, env: KEY}\n"
        "allow:\n"
        "  - {name: a, to: \"https://a.test:%1$u\", limits: {requests: 9/1h, streams: 2}}\n"
        "  - {name: q, to: \"https://q.test:%1$u\", limits: {streams: 2}}\n"
        "  - {to: \"https://c.test:%1$u\", credential: key}\n";
enum { KEY = 1 };

static struct team own, other;

static int begin(void **state)
{
	const struct world_options o = {.policy = policy,
	        .timeouts = patient_timeouts,
	        .limits = usual_limits,
	        .team = &own};
	int memory = team_create();

	(void)state;
	assert_true(memory >= 0);
	assert_int_equal(team_open(&own, dup(memory), 0), 0);
	assert_int_equal(team_open(&other, memory, 1), 0);
	world_open(&w, &o);
	return 0;
}

static int end(void **state)
{
	int rc = tear_down(state);

	team_close(&own);
	team_close(&other);
	return rc;
}

/* Where the limit on streams of q.test is counted. */
static uint32_t gauge_of_q(void)
{
	for (uint32_t i = 0; i < w.proxy->limits.count; i++) {
		const struct limit *l = &w.proxy->limits.items[i];

		if (l->spec.kind == POLICY_LIMIT_STREAMS && l->spec.rule == 1)
			return w.proxy->limits.gauges[l->gauge].shared;
	}
	return TEAM_GAUGES;
}

static struct peer *asked(const char *status)
{
	struct peer *c = client(&w, NAME_Q, "q.test");

	ask(c, "GET /x", "q.test", "");
	expect_head(c, status);
	return c;
}

static void what_others_have_open_counts(void **state)
{
	const uint32_t gauge = gauge_of_q();
	struct peer *c, *o;

	(void)state;
	assert_true(gauge < TEAM_GAUGES);
	assert_true(team_enter(&other, gauge, 2));
	assert_true(team_enter(&other, gauge, 2));
	hang_up(asked("HTTP/1.1 429 "), false);
	assert_int_equal(team_open_count(&other, gauge), 2);
	team_leave(&other, gauge);
	c = client(&w, NAME_Q, "q.test");
	ask(c, "GET /x", "q.test", "");
	o = origin(&w, true);
	take_head(o);
	assert_int_equal(team_open_count(&other, gauge), 2);
	assert_false(team_enter(&other, gauge, 2));
	hang_up(asked("HTTP/1.1 429 "), false);
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, team_open_count(&other, gauge) == 1);
	assert_true(team_enter(&other, gauge, 2));
	hang_up(c, false);
	hang_up(o, false);
}

/* Under a later policy items are numbered anew, so a worker that retires counts by itself. */
static void under_a_later_policy_it_counts_by_itself(void **state)
{
	const uint32_t gauge = gauge_of_q();

	(void)state;
	assert_true(gauge < TEAM_GAUGES);
	assert_true(team_enter(&other, gauge, 2));
	limits_renew(w.proxy);
	assert_int_equal(gauge_of_q(), TEAM_GAUGES);
}

static void a_guess_elsewhere_ends_its_use(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	team_note_guess(&other, KEY);
	ask(c, "GET /x", "c.test", "");
	expect_head(c, "HTTP/1.1 502 ");
	assert_true(credential_store_is_guessed(w.store, KEY));
	assert_false(credential_store_is_guessed(w.store, 0));
	hang_up(c, false);
}

/* A response that is under way with the credential is cut off, too. */
static void a_guess_elsewhere_ends_responses(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	ask(c, "GET /x", "c.test", "");
	o = origin(&w, true);
	take_head(o);
	say(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	team_note_guess(&other, KEY);
	say(o, "8\r\nmore of \r\n0\r\n\r\n");
	UNTIL(&w, c->failed);
	hang_up(c, false);
	hang_up(o, false);
}

static void a_guess_here_is_told(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	ask(c, "GET /x", "c.test", "");
	o = origin(&w, true);
	take_head(o);
	assert_false(team_is_guessed(&other, KEY));
	say(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n ;s3cr3t\r\n");
	UNTIL(&w, c->failed);
	assert_true(team_is_guessed(&other, KEY));
	assert_false(team_is_guessed(&other, 0));
	hang_up(c, false);
	hang_up(o, false);
}

#define TEAM(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEAM(what_others_have_open_counts),
	        TEAM(under_a_later_policy_it_counts_by_itself),
	        TEAM(a_guess_elsewhere_ends_its_use),
	        TEAM(a_guess_elsewhere_ends_responses),
	        TEAM(a_guess_here_is_told),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
