/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that a person has to approve, when two decisions come in the same turn of the loop: a
 * grant approves only requests that still wait, and a refusal that comes after a grant refuses.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"

#define QUESTIONS_MAX 8
#define GRANT 0x1234u

static const char asking[] = "vethguard: 1\n"
                             "name: test\n"
                             "allow:\n"
                             "  - {name: a, to: \"https://a.test:%1$u\"}\n"
                             "ask:\n"
                             "  - {name: posts, to: \"https://a.test:%1$u\", methods: [POST]}\n"
                             "  - {name: puts, to: \"https://a.test:%1$u\", methods: [PUT]}\n";

/* The ids of the requests that a person was asked about, and of those that wait no longer. */
static uint64_t asked[QUESTIONS_MAX], ended[QUESTIONS_MAX];
static size_t asked_count, ended_count;

static int on_ask(void *context, uint64_t id, const struct message_worker_ask *question)
{
	(void)context, (void)question;
	assert_true(asked_count < QUESTIONS_MAX);
	asked[asked_count++] = id;
	return 0;
}

static void on_ask_end(void *context, uint64_t id)
{
	(void)context;
	assert_true(ended_count < QUESTIONS_MAX);
	ended[ended_count++] = id;
}

static int set_up_asking(void **state)
{
	const struct world_options options = {.policy = asking,
	        .timeouts = patient_timeouts,
	        .limits = usual_limits,
	        .send_bytes = 8192};

	(void)state;
	world_open(&w, &options);
	w.proxy->config.ask = on_ask;
	w.proxy->config.ask_end = on_ask_end;
	asked_count = ended_count = 0;
	return 0;
}
#define ASKING(name) cmocka_unit_test_setup_teardown(name, set_up_asking, tear_down)

/* Sends a request and waits until a person was asked about it. */
static struct peer *begin(const char *line)
{
	struct peer *c = client(&w, NAME_A, "a.test");
	const size_t before = asked_count;

	ask(c, line, "a.test", "Content-Length: 0\r\n");
	UNTIL(&w, asked_count == before + 1);
	return c;
}

/* Grants everything that the rule asks about. */
static void grant(struct slice rule)
{
	const struct message_worker_grant m = {
	        .whole = true, .ask = {.rule = rule}, .text = SLICE("approved by somebody")};

	proxy_grant(w.proxy, GRANT, &m);
}

static void refuse(uint64_t id)
{
	proxy_answer(w.proxy, id, false, SLICE("refused by somebody"));
}

static void expect_refusal(struct peer *c)
{
	expect_head(c, "HTTP/1.1 403 ");
	UNTIL(&w, has(c, "refused by somebody", 19));
	hang_up(c, false);
}

/* The origin gets the request and answers it. */
static void expect_passage(struct peer *c, const char *line)
{
	struct peer *o = origin(&w, true);

	expect_head(o, line);
	say(o, "HTTP/1.1 204 No Content\r\n\r\n");
	expect_head(c, "HTTP/1.1 204 ");
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_grant_after_a_refusal(void **state)
{
	struct peer *refused = begin("POST /1"), *waits = begin("POST /2");

	(void)state;
	refuse(asked[0]);
	grant(SLICE("posts"));
	expect_refusal(refused);
	expect_passage(waits, "POST /2 ");
	assert_false(origin_is_asked(&w));
	/* the supervisor has forgotten the request that it refused by itself */
	assert_int_equal(ended_count, 1);
	assert_int_equal(ended[0], asked[1]);
}

static void test_a_refusal_after_a_grant(void **state)
{
	struct peer *refused = begin("POST /1"), *later;

	(void)state;
	grant(SLICE("posts"));
	refuse(asked[0]);
	expect_refusal(refused);
	assert_false(origin_is_asked(&w));
	assert_int_equal(ended_count, 0);
	/* the grant is for what comes later */
	later = client(&w, NAME_A, "a.test");
	ask(later, "POST /3", "a.test", "Content-Length: 0\r\n");
	expect_passage(later, "POST /3 ");
	assert_int_equal(asked_count, 1);
}

static void test_a_grant_of_another_rule(void **state)
{
	struct peer *c = begin("PUT /1");

	(void)state;
	grant(SLICE("posts"));
	assert_false(origin_is_asked(&w));
	refuse(asked[0]);
	expect_refusal(c);
}

static void test_a_refusal_of_nothing(void **state)
{
	struct peer *c = begin("POST /1");

	(void)state;
	refuse(asked[0] + 1);
	assert_false(origin_is_asked(&w));
	proxy_answer(w.proxy, asked[0], true, SLICE("approved by somebody"));
	expect_passage(c, "POST /1 ");
	refuse(asked[0]); /* it waits no longer */
	pump(&w, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ASKING(test_a_grant_after_a_refusal),
	        ASKING(test_a_refusal_after_a_grant),
	        ASKING(test_a_grant_of_another_rule),
	        ASKING(test_a_refusal_of_nothing),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
