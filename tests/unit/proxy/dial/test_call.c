/* SPDX-License-Identifier: Apache-2.0 */
/* A destination that is another sandbox: the questions, which answers count, and that its name
 * never leads anywhere else. The test is the supervisor. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"
#include "proxy/dial/dial.h"

#define MANY 140 /* more than may be asked at once */

static uint64_t last_id;
static unsigned asked;
static char last_name[POLICY_HOST_MAX + 1];
static uint16_t last_port;
static int refuse_to_ask;

static struct answered {
	unsigned count;
	int fd;
	enum event_cause cause;
	const char *detail;
} answered;

static int call(void *context, uint64_t id, struct slice sandbox, uint16_t port)
{
	(void)context;
	last_id = id;
	last_port = port;
	asked++;
	snprintf(last_name, sizeof(last_name), "%.*s", SLICE_ARG(sandbox));
	return refuse_to_ask;
}

static void on_dialled(void *context, const struct dial_result *result)
{
	struct answered *a = context;

	a->count++;
	a->fd = result->fd;
	a->cause = result->cause;
	a->detail = result->detail;
	loop_io_close(result->io);
}

static int call_set_up(void **state)
{
	set_up(state);
	w.proxy->config.call = call;
	asked = 0;
	last_id = 0;
	refuse_to_ask = 0;
	answered = (struct answered){.fd = -1};
	return 0;
}

static struct dial *dial(const char *host, bool observed)
{
	const struct policy_decision decision = {.observed = observed};
	struct destination d = {.port = 8080};

	assert_true(destination_set_host(&d, slice_from_string(host)));
	return dial_start(w.proxy, &d, &decision, on_dialled, &answered);
}

static void test_answered(void **state)
{
	int pair[2];
	char byte;

	(void)state;
	assert_non_null(dial("one.two.sandbox.internal", false));
	assert_int_equal(asked, 1);
	assert_string_equal(last_name, "one.two");
	assert_int_equal(last_port, 8080);
	assert_int_equal(
	        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(proxy_called(w.proxy, last_id, pair[0]), 0);
	UNTIL(&w, answered.count == 1);
	assert_int_equal(answered.fd, pair[0]);
	assert_int_equal(write(pair[1], "x", 1), 1);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	close(pair[0]);
	close(pair[1]);
}

static void failed(const char *detail)
{
	UNTIL(&w, answered.count == 1);
	assert_int_equal(answered.fd, -1);
	assert_int_equal(answered.cause, EVENT_CAUSE_CONNECT);
	assert_string_equal(answered.detail, detail);
}

static void test_refused(void **state)
{
	(void)state;
	assert_non_null(dial("one.sandbox.internal", false));
	assert_int_equal(proxy_called(w.proxy, last_id, -1), 0);
	failed("no sandbox of that name exposes this port to this one now");
}

static void test_observed(void **state)
{
	(void)state;
	assert_non_null(dial("one.sandbox.internal", true));
	failed("mode observe opens no other sandbox: only a rule that names it does");
	assert_int_equal(asked, 0);
}

static void test_cannot_be_asked(void **state)
{
	(void)state;
	refuse_to_ask = -EPIPE;
	assert_non_null(dial("one.sandbox.internal", false));
	failed("the supervisor cannot be asked");
}

/* The suffix alone, or within a name, is a name like others. */
static void test_names(void **state)
{
	static const char *const others[] = {
	        "sandbox.internal", "onesandbox.internal", "one.sandbox.internal.test"};
	struct destination d;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		d = (struct destination){0};
		assert_true(destination_set_host(&d, slice_from_string(others[i])));
		assert_false(dial_is_call(&d));
	}
	d = (struct destination){0};
	assert_true(destination_set_host(&d, SLICE("one.sandbox.internal")));
	assert_true(dial_is_call(&d));
	d = (struct destination){.address = {4, {127, 0, 0, 1}}};
	assert_false(dial_is_call(&d));
}

/* Answers to no question, to a call that has given up, and a second answer. */
static void test_wrong_answers(void **state)
{
	struct dial *d;

	(void)state;
	assert_int_equal(proxy_called(w.proxy, 0, -1), -EBADMSG);
	assert_int_equal(proxy_called(w.proxy, 1, dup(w.origin_fd)), -EBADMSG);
	d = dial("one.sandbox.internal", false);
	assert_int_equal(proxy_called(w.proxy, last_id + 1, -1), -EBADMSG);
	dial_cancel(d);
	assert_int_equal(proxy_called(w.proxy, last_id, dup(w.origin_fd)), 0);
	assert_non_null(dial("one.sandbox.internal", false));
	assert_int_equal(proxy_called(w.proxy, last_id, -1), 0);
	assert_int_equal(proxy_called(w.proxy, last_id, -1), 0);
	UNTIL(&w, answered.count == 1);
	pump(&w, 20);
	assert_int_equal(answered.count, 1);
}

/* Beyond what the supervisor takes, calls wait. */
static void test_many(void **state)
{
	unsigned at_once;

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		assert_non_null(dial("one.sandbox.internal", false));
	at_once = asked;
	assert_true(at_once >= DIAL_CALLS_PER_S * DIAL_CALLS_BURST_S && at_once < MANY);
	for (uint64_t id = 1; id <= MANY; id++) {
		UNTIL(&w, asked >= id);
		assert_int_equal(proxy_called(w.proxy, id, -1), 0);
	}
	UNTIL(&w, answered.count == MANY);
}

#define CALL(name) cmocka_unit_test_setup_teardown(name, call_set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CALL(test_answered),
	        CALL(test_refused),
	        CALL(test_observed),
	        CALL(test_cannot_be_asked),
	        CALL(test_names),
	        CALL(test_wrong_answers),
	        CALL(test_many),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
