/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets through a whole proxy: handshakes that are refused, frames and ends that close the
 * connection. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include "websocket_fixture.h"

/* --- handshakes --- */

static void test_upstreams_that_answer_wrongly(void **state)
{
	static const char *const answers[] = {
	        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", /* no Upgrade */
	        "Upgrade: websocket\r\n", "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n",
	        "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
	        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
	        "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
	        "Sec-WebSocket-Extensions: permessage-deflate\r\n",
	        "Upgrade: h2c\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(answers) / sizeof(*answers); i++) {
		char text[400];
		bool bound = i & 1;

		c = client(&w, bound ? NAME_C : NAME_A, bound ? "c.test" : "a.test");
		/* With a credential the extension offer is removed, so no upstream may accept it.
		 */
		ask(c, "GET /ws", bound ? "c.test" : "a.test",
		        bound ? SWITCH_ASKED "Sec-WebSocket-Extensions: permessage-deflate\r\n"
		              : SWITCH_ASKED);
		o = origin(&w, true);
		expect_head(o, "GET /ws ");
		assert_false(head_has(o, "permessage"));
		snprintf(text, sizeof(text),
		        "HTTP/1.1 101 Go\r\nConnection: upgrade\r\n%s\r\n\x81\x02hi",
		        answers[i / 2]);
		say(o, text);
		take_head(c);
		if (strncmp(c->head, "HTTP/1.1 502 ", 13) != 0)
			fail_msg("taken: %s", answers[i / 2]);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
		leave();
	}
}

static void test_unknown_extensions_are_not_offered(void **state)
{
	(void)state;
	switch_over(false, "Sec-WebSocket-Extensions: x-webkit-deflate-frame\r\n", "");
	assert_false(head_has(o, "extensions"));
	leave();
}

static void test_early_frames(void **state)
{
	struct buf early;

	(void)state;
	buf_init(&early, 1000);
	frame(&early, 0x81, "early", 5);
	c = client(&w, NAME_A, "a.test");
	ask(c, "GET /ws", "a.test", SWITCH_ASKED);
	say_n(c, buf_bytes(&early), early.len);
	o = origin(&w, true);
	expect_head(o, "GET /ws ");
	pump(&w, 20);
	assert_int_equal(o->in.len, 0);
	say(o, SWITCHED "\x81\x03one\x81\x03two");
	expect_head(c, "HTTP/1.1 101 ");
	EXPECT(c, "\x81\x03one\x81\x03two");
	expect_n(o, buf_bytes(&early), early.len);
	buf_fini(&early);
	leave();
}

/* --- frames that end it --- */

static void test_wrong_frames_of_the_sandbox(void **state)
{
	static const struct {
		size_t n;
		const char *p;
	} wrong[] = {{3, "\x81\x01x"}, {7, "\xc1\x81kkkkx"}, {7, "\x83\x81kkkkx"},
	        {7, "\x09\x81kkkkx"}, {8, "\x89\xfe\x00\x7ekkkk"}, {8, "\x81\xfe\x00\x01kkkk"},
	        {14, "\x82\xff\x80\0\0\0\0\0\0\0kkkk"}, {7, "\x80\x81kkkkx"}};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct websocket read = {.masked = true};
		enum websocket_step step;
		uint8_t code[2];
		size_t at;

		switch_over(i & 1, "", "");
		SAY(o, "\x81\x02hi");
		EXPECT(c, "\x81\x02hi");
		SAY(c, "\x81\x82....up");
		say_n(c, wrong[i].p, wrong[i].n);
		EXPECT(c, "\x88\x02\x03\xea");
		expect_end(c);
		EXPECT(o, "\x81\x82....up");
		UNTIL(&w, o->eof || o->failed);
		assert_int_equal(o->in.len, 8);
		at = websocket_next(&read, buf_bytes(&o->in), 8, &step);
		assert_int_equal(read.opcode, WEBSOCKET_CLOSE);
		websocket_next(&read, buf_bytes(&o->in) + at, 8 - at, &step);
		websocket_unmask(&read, buf_bytes(&o->in) + at, 2, code);
		assert_int_equal(code[0] << 8 | code[1], 1002);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_CLIENT);
		assert_int_equal(find_event(&w, EVENT_HTTP)->status, 101);
		assert_int_equal(findings(EVENT_FINDING_SMUGGLING), i + 1);
		leave();
	}
}

static void test_wrong_frames_of_the_upstream(void **state)
{
	static const struct {
		size_t n;
		const char *p;
	} wrong[] = {{7, "\x81\x81kkkkx"}, {3, "\xc1\x01x"}, {3, "\x8b\x01x"}, {3, "\x0a\x01x"},
	        {4, "\x8a\x7e\x00\x7e"}, {4, "\x82\x7e\x00\x7d"},
	        {10, "\x82\x7f\x80\0\0\0\0\0\0\0"}, {3, "\x80\x01x"}};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(wrong) / sizeof(*wrong); i++) {
		switch_over(i & 1, "", "");
		SAY(o, "\x81\x02hi");
		for (size_t k = 0; k < wrong[i / 2].n; k++) {
			say_n(o, wrong[i / 2].p + k, 1);
			pump(&w, 0);
		}
		EXPECT(c, "\x81\x02hi\x88\x02\x03\xea");
		expect_end(c);
		UNTIL(&w, o->in.len == 8);
		assert_int_equal(buf_bytes(&o->in)[0], 0x88);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
		assert_int_equal(findings(EVENT_FINDING_SMUGGLING), 0);
		leave();
	}
}

static const struct {
	size_t n;
	const char *p;
	uint16_t code;
} wrong_content[] = {
#define WRONG(bytes, code)                     \
	{                                      \
		sizeof(bytes) - 1, bytes, code \
	}
        WRONG("\x81\x01\xff", 1007),
        WRONG("\x81\x02o\xc3", 1007),
        WRONG("\x81\x03\xed\xa0\x80", 1007),
        WRONG("\x01\x01\xe2\x89\x01\x82\x80\x02\x28\xa1", 1007),
        WRONG("\x01\x01\xe2\x80\x00", 1007),
        WRONG("\x88\x02\x03\xe7", 1002),
        WRONG("\x88\x02\x03\xed", 1002),
        WRONG("\x88\x02\x03\xee", 1002),
        WRONG("\x88\x02\x03\xf7", 1002),
        WRONG("\x88\x02\x07\xd0", 1002),
        WRONG("\x88\x02\x0b\xb7", 1002),
        WRONG("\x88\x02\x13\x88", 1002),
        WRONG("\x88\x02\xff\xff", 1002),
        WRONG("\x88\x04\x03\xe8o\xc3", 1007),
        WRONG("\x88\x03\x03\xe8\x80", 1007),
};

/* Content that RFC 6455 forbids: what comes before goes on, both sides are told the code, wherever
 * the last frame is cut behind its head. */
static void test_content_that_is_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong_content) / sizeof(*wrong_content); i++)
		for (int how = 0; how < 4; how++) {
			bool bound = how & 1, from_sandbox = how & 2;
			struct peer *from, *to;
			uint8_t bytes[64];
			size_t n = wrong_content[i].n, last, good = 0;

			if (how == 0)
				again((struct world_options){.timeouts = patient_timeouts,
				        .limits = usual_limits,
				        .send_bytes = 8192});
			switch_over(bound, "", "");
			from = from_sandbox ? c : o;
			to = from_sandbox ? o : c;
			memcpy(bytes, wrong_content[i].p, n);
			if (from_sandbox)
				n = masked(wrong_content[i].p, wrong_content[i].n, bytes);
			last = from_sandbox ? 6 : 2;
			while (good + last + (bytes[good + 1] & 0x7f) < n)
				good += last + (bytes[good + 1] & 0x7f);
			say_n(from, bytes, n);
			if (good)
				expect_n(to, bytes, good);
			expect_close(c, wrong_content[i].code);
			if (to == o)
				expect_close(o, wrong_content[i].code);
			else
				UNTIL(&w, o->in.len == 8);
			assert_int_equal(find_event(&w, EVENT_HTTP)->cause,
			        from_sandbox ? EVENT_CAUSE_CLIENT : EVENT_CAUSE_UPSTREAM);
			buf_consume(&o->in, o->in.len);
			leave();
		}
}

/* The beginning of the text was passed on, so no close frame may follow. The wrong part stays. */
static void test_content_that_is_wrong_in_pieces(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		bool from_sandbox = how & 2;
		struct peer *from, *to;
		uint8_t bytes[64];
		size_t n = 6;

		switch_over(how & 1, "", "");
		from = from_sandbox ? c : o;
		to = from_sandbox ? o : c;
		memcpy(bytes, "\x81\x04ok\xc3\x28", n);
		if (from_sandbox)
			n = masked("\x81\x04ok\xc3\x28", n, bytes);
		say_n(from, bytes, n - 2); /* its head has gone out then */
		expect_n(to, bytes, n - 2);
		say_n(from, bytes + n - 2, 2);
		if (from_sandbox)
			expect_close(c, 1007);
		else
			expect_end(c);
		UNTIL(&w, to->eof || to->failed);
		assert_int_equal(to->in.len, 0);
		leave();
	}
}

static void test_close_frames_in_pieces(void **state)
{
	(void)state;
	for (int bound = 0; bound < 2; bound++) {
		static const char text[] = "\x88\x07\x03\xe8"
		                           "bye\xc3\xa4";
		uint8_t bytes[64];
		size_t n = masked(text, sizeof(text) - 1, bytes);

		switch_over(bound, "", "");
		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			assert_int_equal(c->in.len, 0);
			say_n(o, text + i, 1);
			pump(&w, 1);
		}
		EXPECT(c, text);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(o->in.len, 0);
			say_n(c, bytes + i, 1);
			pump(&w, 1);
		}
		expect_n(o, bytes, n);
		leave();
	}
}

/* Inside of a frame there is no place for a close frame. */
static void test_no_close_frame_inside_of_a_frame(void **state)
{
	(void)state;
	switch_over(false, "", "");
	SAY(o, "\x82\x0ahalf");
	EXPECT(c, "\x82\x0ahalf");
	SAY(c, "\x81\x01x");
	expect_end(c);
	leave();
}

static void test_behind_a_close(void **state)
{
	(void)state;
	switch_over(false, "", "");
	SAY(c, "\x88\x82....\x2d\xc6\xff\xff\xff");
	EXPECT(o, "\x88\x82....\x2d\xc6");
	SAY(o, "\x88\x02\x03\xe8\x81\x01x");
	EXPECT(c, "\x88\x02\x03\xe8");
	socket_end(&o->socket);
	expect_end(c);
	assert_int_equal(o->in.len, 0);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_POLICY);
	leave();
}

static void test_the_sandbox_ends_first(void **state)
{
	(void)state;
	switch_over(false, "", "");
	SAY(c, "\x88\x80....");
	socket_end(&c->socket);
	EXPECT(o, "\x88\x80....");
	UNTIL(&w, o->eof);
	SAY(o, "\x81\x03"
	       "bye\x88\x00");
	socket_end(&o->socket);
	EXPECT(c, "\x81\x03"
	          "bye\x88\x00");
	expect_end(c);
	leave();
}

/* --- what comes back --- */

static void test_an_end_inside_of_a_message(void **state)
{
	(void)state;
	switch_over(true, "", "");
	SAY(o, "\x01\x05"
	       "(s3cr");
	EXPECT(c, "\x01\x01(");
	socket_end(&o->socket);
	expect_end(c);
	assert_int_equal(only(EVENT_HTTP)->status, 101);
	leave();
}

/* --- bounds --- */

static void test_a_side_that_does_not_read(void **state)
{
	struct client *pc;
	static uint8_t zeros[4 << 20];
	uint8_t head[WEBSOCKET_HEAD_MAX];

	(void)state;
	again((struct world_options){
	        .timeouts = patient_timeouts, .limits = usual_limits, .send_bytes = 8192});
	for (int bound = 0; bound < 2; bound++) {
		switch_over(bound, "", "");
		pc = container_of(w.proxy->clients.prev, struct client, list);
		c->deaf = true;
		say_n(o, head, websocket_write_head(head, true, 2, sizeof(zeros)));
		for (size_t at = 0; at < sizeof(zeros); at += 65536) {
			o->socket.writable = true;
			if (o->socket.out.len < 65536)
				say_n(o, zeros + at, 65536);
			pump(&w, 1);
		}
		pump(&w, 50);
		assert_true(pc->socket.out.len <= 2 * SOCKET_HIGH + SOCKET_CHUNK);
		assert_non_null(pc->exchange);
		leave();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_upstreams_that_answer_wrongly),
	        TEST(test_unknown_extensions_are_not_offered),
	        TEST(test_early_frames),
	        TEST(test_wrong_frames_of_the_sandbox),
	        TEST(test_wrong_frames_of_the_upstream),
	        TEST(test_close_frames_in_pieces),
	        TEST(test_content_that_is_wrong_in_pieces),
	        TEST(test_content_that_is_wrong),
	        TEST(test_no_close_frame_inside_of_a_frame),
	        TEST(test_behind_a_close),
	        TEST(test_the_sandbox_ends_first),
	        TEST(test_an_end_inside_of_a_message),
	        TEST(test_a_side_that_does_not_read),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
