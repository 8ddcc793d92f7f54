/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 from the sandbox where one end is slow: flow control and deadlines. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_peer.h"

/* --- flow control --- */

/* A world with deadlines too long for any busy machine. */
static void unhurried(void)
{
	struct world_options o = {.timeouts = patient_timeouts, .limits = usual_limits};

	o.timeouts.response_ms = o.timeouts.idle_ms = o.timeouts.header_ms = 60000;
	again(o);
}

/* A slow upstream keeps its own stream only. */
static void test_a_slow_upstream_slows_its_stream(void **state)
{
	struct h2 *h;
	struct upload up = {0};
	struct peer *slow, *o;
	int32_t stuck, id;
	static uint8_t bytes[1 << 20];

	(void)state;
	unhurried();
	h = h2_client();
	buf_init(&up.bytes, 8 << 20);
	for (int i = 0; i < 8; i++)
		buf_append(&up.bytes, bytes, sizeof(bytes));
	stuck = h2_ask_with(h, "PUT", "a.test", "/slow", NULL, 0, &up);
	slow = origin(&w, true);
	expect_head(slow, "PUT /slow ");
	slow->deaf = true;
	for (int i = 0; i < 50; i++) {
		h2_run(h);
		pump(&w, 1);
	}
	assert_true(up.bytes.len > 0);
	for (int i = 0; i < 3; i++) {
		struct upload small = {.ended = true};

		buf_init(&small.bytes, 60000);
		buf_append(&small.bytes, bytes, 60000);
		id = h2_ask_with(h, "PUT", "a.test", "/fast", NULL, 0, &small);
		o = origin(&w, true);
		expect_head(o, "PUT /fast ");
		say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
		H2_UNTIL(h, answer(h, id)->closed);
		assert_int_equal(answer(h, id)->status, 200);
		hang_up(o, false);
		buf_fini(&small.bytes);
	}
	assert_false(answer(h, stuck)->closed);
	buf_fini(&up.bytes);
	h2_hang_up(h, true);
	hang_up(slow, true);
}

/* A client that opens no window keeps its own stream only, and the upstream is not read on. */
static void test_a_stream_without_window(void **state)
{
	struct world_options options = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct h2 *h;
	static uint8_t bytes[1 << 20];
	struct peer *o, *o2;
	int32_t stuck, id;

	(void)state;
	options.timeouts.response_ms = 60000;
	options.timeouts.idle_ms = 4000; /* longer than it takes to fill what lies between */
	again(options);
	h = h2_client();
	const nghttp2_settings_entry none = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};

	nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, &none, 1);
	stuck = h2_ask(h, "GET", "/big");
	o = origin(&w, true);
	expect_head(o, "GET /big ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
	for (int i = 0; i < 100 && !socket_is_congested(&o->socket); i++) {
		say_n(o, bytes, 80000);
		pump(&w, 2);
	}
	assert_true(socket_is_congested(&o->socket));
	id = h2_ask(h, "GET", "/small");
	nghttp2_submit_window_update(h->session, NGHTTP2_FLAG_NONE, id, 100);
	o2 = origin(&w, true);
	expect_head(o2, "GET /small ");
	say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_true(body_is(answer(h, id), "ok"));
	/* No progress for too long: that stream ends. */
	H2_UNTIL(h, answer(h, stuck)->closed);
	assert_int_equal(answer(h, stuck)->code, NGHTTP2_CANCEL);
	h2_hang_up(h, true);
	hang_up(o, true);
	hang_up(o2, true);
}

/* --- time --- */

/* A world whose upstreams may be silent for longer than its sandbox. */
static void patient(void)
{
	struct world_options o = {
	        .timeouts = hasty_timeouts, .limits = usual_limits, .send_bytes = 8192};

	o.timeouts.response_ms = PATIENCE_MS;
	again(o);
}

static void test_an_idle_connection_is_sent_away(void **state)
{
	struct h2 *h = h2_client();
	int32_t id = h2_ask(h, "DELETE", "/");

	(void)state;
	H2_UNTIL(h, answer(h, id)->closed);
	H2_UNTIL(h, h->goaway && h->peer->eof);
	assert_int_equal(h->goaway_code, NGHTTP2_NO_ERROR);
	assert_int_equal(count_events(&w, EVENT_FINDING), 0);
	h2_hang_up(h, false);
}

static void test_a_stalled_body_ends_its_stream(void **state)
{
	struct h2 *h = h2_client();
	struct upload up = {0};
	struct peer *o;
	int32_t id;

	(void)state;
	h2_hang_up(h, false);
	patient();
	h = h2_client();
	buf_init(&up.bytes, 100);
	buf_append(&up.bytes, "hello", 5);
	id = h2_ask_with(h, "POST", "a.test", "/up", NULL, 0, &up);
	o = origin(&w, true);
	expect_head(o, "POST /up ");
	say(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->code, NGHTTP2_CANCEL);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_TIMEOUT);
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        TEST(test_a_slow_upstream_slows_its_stream),
	        TEST(test_a_stream_without_window),
	        HASTY(test_an_idle_connection_is_sent_away),
	        TEST(test_a_stalled_body_ends_its_stream),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
