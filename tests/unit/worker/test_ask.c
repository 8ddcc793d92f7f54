/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about requests that reach a worker before its proxy: they take effect in the order in
 * which they came, so a grant that has ended is not in force. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../proxy/fixture.h"
#include "worker/worker.h"

#define GRANT 0x1234u

static const char asking[] = "vethguard: 1\n"
                             "name: test\n"
                             "allow:\n"
                             "  - {name: a, to: \"https://a.test:%1$u\"}\n"
                             "ask:\n"
                             "  - {name: posts, to: \"https://a.test:%1$u\", methods: [POST]}\n";

static size_t asked;

static int on_ask(void *context, uint64_t id, const struct message_worker_ask *question)
{
	(void)context, (void)id, (void)question;
	asked++;
	return 0;
}

static void on_ask_end(void *context, uint64_t id)
{
	(void)context, (void)id;
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
	asked = 0;
	return 0;
}

/* The worker receives a grant of all that the rule asks about, or its end. */
static void receive(struct worker *worker, bool ends)
{
	const struct message_worker_grant grant = {.ends = ends,
	        .whole = true,
	        .ask = {.rule = SLICE("posts"), .method = SLICE("POST"), .host = SLICE("a.test")},
	        .text = SLICE("approved by somebody")};
	static uint8_t bytes[MESSAGE_BYTES_MAX];
	struct ipc_message m = {.fd_count = 0};
	size_t n = message_worker_grant_encode(
	        bytes, sizeof(bytes), MESSAGE_WORKER_GRANT, GRANT, &grant);

	assert_true(n > 0);
	assert_int_equal(message_open(bytes, n, &m.head, &m.body), 0);
	assert_int_equal(worker_take_grant(worker, &m), 0);
}

static struct peer *post(void)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	ask(c, "POST /1", "a.test", "Content-Length: 0\r\n");
	return c;
}

static void an_early_grant_approves(void **state)
{
	static struct worker worker;
	struct peer *c, *o;

	(void)state;
	receive(&worker, true);
	receive(&worker, false);
	worker.proxy = w.proxy;
	worker_apply_grants(&worker);
	assert_null(worker.early_grants);
	c = post();
	o = origin(&w, true);
	expect_head(o, "POST /1 ");
	assert_int_equal(asked, 0);
	hang_up(c, false);
	hang_up(o, false);
}

static void an_early_grant_that_has_ended_does_not(void **state)
{
	static struct worker worker;
	struct peer *c;

	(void)state;
	receive(&worker, false);
	receive(&worker, true);
	worker.proxy = w.proxy;
	worker_apply_grants(&worker);
	c = post();
	UNTIL(&w, asked == 1);
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(an_early_grant_approves, set_up_asking, tear_down),
	        cmocka_unit_test_setup_teardown(
	                an_early_grant_that_has_ended_does_not, set_up_asking, tear_down),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
