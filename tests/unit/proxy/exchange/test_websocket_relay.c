/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets through a whole proxy: handshakes that are refused, frames that end the connection,
 * what is found in what the sandbox sends, what is covered in what comes back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include "../fixture.h"
#include "proxy/http/websocket.h"

#define COVERED "*****************************"
#define SECRET_BYTES (sizeof(SECRET_VALUE) - 1)
_Static_assert(sizeof(COVERED) == sizeof(SECRET_VALUE), "as long as the value");

static struct peer *c, *o;

/* A WebSocket; with the credential where the host is c.test. */
static void switch_over(bool bound, const char *offer, const char *choice)
{
	char fields[600], answer[600];

	c = client(&w, bound ? NAME_C : NAME_A, bound ? "c.test" : "a.test");
	snprintf(fields, sizeof(fields), SWITCH_ASKED "%s", offer);
	ask(c, "GET /ws", bound ? "c.test" : "a.test", fields);
	o = origin(&w, true);
	expect_head(o, "GET /ws ");
	snprintf(answer, sizeof(answer), SWITCHED_FIELDS "%s\r\n", choice);
	say(o, answer);
	expect_head(c, "HTTP/1.1 101 ");
}

static void leave(void)
{
	assert_false(c->in.len && has(c, SECRET_VALUE, SECRET_BYTES));
	hang_up(c, false);
	hang_up(o, false);
}

static void expect_n(struct peer *p, const void *bytes, size_t n)
{
	UNTIL(&w, p->in.len >= n || p->eof || p->failed);
	if (p->in.len < n || memcmp(buf_bytes(&p->in), bytes, n) != 0)
		fail_msg("%zu bytes have come", p->in.len);
	buf_consume(&p->in, n);
}
#define EXPECT(peer, bytes) expect_n(peer, bytes, sizeof(bytes) - 1)
#define SAY(peer, bytes) say_n(peer, bytes, sizeof(bytes) - 1)

/* A masked frame onto out. */
static void frame(struct buf *out, uint8_t first, const void *p, size_t n)
{
	static const uint8_t key[4] = {0xde, 0xad, 0xbe, 0xef};
	uint8_t head[WEBSOCKET_HEAD_MAX];
	size_t head_n = websocket_write_head(head, true, 0, n);

	head[0] = first;
	head[1] |= 0x80;
	buf_append(out, head, head_n);
	buf_append(out, key, 4);
	for (size_t i = 0; i < n; i++) {
		uint8_t byte = ((const uint8_t *)p)[i] ^ key[i & 3];

		buf_append(out, &byte, 1);
	}
}

/* The sandbox sends them, cut in pieces of that size; they arrive as they are. */
static void send_cut(const struct buf *frames, size_t piece)
{
	for (size_t at = 0; at < frames->len; at += piece) {
		say_n(c, buf_bytes(frames) + at,
		        frames->len - at < piece ? frames->len - at : piece);
		pump(&w, 0);
	}
	expect_n(o, buf_bytes(frames), frames->len);
}

static size_t findings(enum event_finding finding)
{
	size_t n = 0;

	for (size_t i = 0; i < w.event_count; i++)
		n += w.events[i].kind == EVENT_FINDING && w.events[i].finding == finding;
	return n;
}

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
		/* With a credential the offer is taken out, so nobody may choose from it. */
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

/* The next thing that has come is a close frame, and nothing comes after it. */
static void expect_close(struct peer *p, uint16_t expected)
{
	struct websocket read = {.masked = p == o};
	size_t n = p == o ? 8 : 4;
	enum websocket_step step;
	uint8_t code[2];

	UNTIL(&w, p->eof || p->failed);
	if (p->in.len != n)
		fail_msg("%zu bytes instead of a close frame", p->in.len);
	assert_int_equal(websocket_next(&read, buf_bytes(&p->in), n, &step), n - 2);
	assert_int_equal(read.opcode, WEBSOCKET_CLOSE);
	websocket_next(&read, buf_bytes(&p->in) + n - 2, 2, &step);
	websocket_unmask(&read, buf_bytes(&p->in) + n - 2, 2, code);
	assert_int_equal(code[0] << 8 | code[1], expected);
	buf_consume(&p->in, n);
}

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

/* The frames with a key of zeros. */
static size_t masked(const char *p, size_t n, uint8_t *out)
{
	size_t made = 0;

	for (size_t at = 0; at < n;) {
		size_t length = (uint8_t)p[at + 1];

		out[made++] = (uint8_t)p[at];
		out[made++] = 0x80 | (uint8_t)length;
		memset(out + made, 0, 4);
		memcpy(out + made + 4, p + at + 2, length);
		made += 4 + length;
		at += 2 + length;
	}
	return made;
}

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

/* The beginning of a text has gone, so there is no place for a close frame. Nothing wrong passes.
 */
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

/* --- what the sandbox sends --- */

#define MESSAGE "{\"key\": \"" PLACEHOLDER "\"}"

static void test_a_placeholder_in_any_two_frames(void **state)
{
	static const char text[] = MESSAGE;
	struct buf frames;
	size_t found = 0;

	(void)state;
	buf_init(&frames, 10000);
	for (unsigned how = 0; how < 3; how++)
		for (size_t cut = 9; cut < sizeof(MESSAGE) - 3; cut += 1 + how * 7) {
			if (w.event_count > EVENTS_MAX - 8) {
				again((struct world_options){.timeouts = patient_timeouts,
				        .limits = usual_limits,
				        .send_bytes = 8192});
				found = 0;
			}
			switch_over(how == 2, "", "");
			buf_consume(&frames, frames.len);
			/* Two fragments with a ping and an empty one between, or two messages. */
			frame(&frames, how == 1 ? 0x82 : 1, text, cut);
			frame(&frames, 0x89, "are you there", 13);
			frame(&frames, how == 1 ? 0x81 : 0, "", 0);
			frame(&frames, how == 1 ? 0x81 : 0x80, text + cut, sizeof(text) - 1 - cut);
			frame(&frames, 0x81, text, sizeof(text) - 1); /* told once */
			send_cut(&frames, 11 + cut % 5);
			assert_int_equal(findings(EVENT_FINDING_PLACEHOLDER_LEAK), ++found);
			leave();
		}
	buf_fini(&frames);
}

static void test_what_is_no_placeholder(void **state)
{
	struct buf frames;

	(void)state;
	buf_init(&frames, 10000);
	switch_over(false, "", "");
	frame(&frames, 0x81, PLACEHOLDER, sizeof(PLACEHOLDER) - 2);
	frame(&frames, 0x81, "x", 1);
	frame(&frames, 0x89, PLACEHOLDER, 20);
	frame(&frames, 0x89, &PLACEHOLDER[20], sizeof(PLACEHOLDER) - 21);
	send_cut(&frames, 7);
	assert_int_equal(findings(EVENT_FINDING_PLACEHOLDER_LEAK), 0);
	buf_consume(&frames, frames.len);
	frame(&frames, 0x8a, PLACEHOLDER, sizeof(PLACEHOLDER) - 1);
	send_cut(&frames, 7);
	assert_int_equal(findings(EVENT_FINDING_PLACEHOLDER_LEAK), 1);
	buf_fini(&frames);
	leave();
}

static void test_the_credential_itself(void **state)
{
	struct buf frames;

	(void)state;
	buf_init(&frames, 10000);
	for (size_t cut = 1; cut < SECRET_BYTES; cut += 3) {
		switch_over(true, "", "");
		buf_consume(&frames, frames.len);
		frame(&frames, 1, SECRET_VALUE, cut);
		frame(&frames, 0x89, "", 0);
		frame(&frames, 0x80, &SECRET_VALUE[cut], SECRET_BYTES - cut);
		frame(&frames, 0x81, SECRET_VALUE, SECRET_BYTES);
		send_cut(&frames, 5);
		assert_int_equal(findings(EVENT_FINDING_CREDENTIAL_SENT), 1 + cut / 3);
		leave();
	}
	/* Elsewhere, once it is held. */
	switch_over(false, "", "");
	buf_consume(&frames, frames.len);
	frame(&frames, 0x89, SECRET_VALUE, SECRET_BYTES);
	send_cut(&frames, 9);
	assert_int_equal(findings(EVENT_FINDING_CREDENTIAL_SENT), 1 + (SECRET_BYTES - 2) / 3 + 1);
	buf_fini(&frames);
	leave();
}

/* --- compressed --- */

static size_t deflated(z_stream *z, const char *text, uint8_t *out, size_t cap)
{
	z->next_in = (Bytef *)(uintptr_t)text;
	z->avail_in = (uInt)strlen(text);
	z->next_out = out;
	z->avail_out = (uInt)cap;
	assert_int_equal(deflate(z, Z_SYNC_FLUSH), Z_OK);
	return cap - z->avail_out - 4;
}

#define OFFER "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
#define CHOICE "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=10\r\n"

static void test_a_placeholder_in_compressed_fragments(void **state)
{
	size_t n = 2;

	(void)state;
	for (size_t cut = 1, found = 0; cut < n; cut += 3) {
		z_stream z = {0};
		struct buf frames;
		uint8_t packed[500];

		buf_init(&frames, 10000);
		switch_over(false, OFFER, CHOICE);
		assert_true(head_has(c, CHOICE));
		deflateInit2(&z, 9, Z_DEFLATED, -10, 8, Z_DEFAULT_STRATEGY);
		frame(&frames, 0x82, "plain", 5); /* one that is not compressed */
		/* Half of it in a message before, so that neither alone shows it. */
		n = deflated(&z, "vethguard-key-0123456789abcd", packed, sizeof(packed));
		frame(&frames, 0xc1, packed, n);
		frame(&frames, 0x82, "", 0);
		n = deflated(&z, "ef0123456789abcdef", packed, sizeof(packed));
		frame(&frames, 0x41, packed, cut);
		frame(&frames, 0x89, "x", 1);
		frame(&frames, 0x80, packed + cut, n - cut);
		deflateEnd(&z);
		send_cut(&frames, cut & 1 ? 3 : frames.len);
		assert_int_equal(findings(EVENT_FINDING_PLACEHOLDER_LEAK), ++found);
		buf_fini(&frames);
		leave();
	}
}

static void test_compressed_messages_that_are_damaged(void **state)
{
	struct buf frames;

	(void)state;
	buf_init(&frames, 1000);
	switch_over(false, OFFER, CHOICE);
	frame(&frames, 0xc1, "\x06\x06\x06", 3);
	say_n(c, buf_bytes(&frames), frames.len);
	EXPECT(c, "\x88\x02\x03\xef");
	expect_end(c);
	expect_close(o, 1007);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_CLIENT);
	buf_fini(&frames);
	leave();
}

static void test_compressed_texts_that_are_none(void **state)
{
	static const char *const texts[] = {"\xff", "whole\xc3", "\xed\xa0\x80"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		z_stream z = {0};
		struct buf frames;
		uint8_t packed[500];
		size_t n;

		buf_init(&frames, 1000);
		switch_over(false, OFFER, CHOICE);
		deflateInit2(&z, 9, Z_DEFLATED, -10, 8, Z_DEFAULT_STRATEGY);
		n = deflated(&z, texts[i], packed, sizeof(packed));
		frame(&frames, 0xc2, packed, n); /* no text */
		send_cut(&frames, 3);
		deflateReset(&z);
		n = deflated(&z, texts[i], packed, sizeof(packed));
		deflateEnd(&z);
		buf_consume(&frames, frames.len);
		frame(&frames, 0xc1, packed, n);
		say_n(c, buf_bytes(&frames), frames.len);
		expect_close(c, 1007);
		expect_close(o, 1007);
		buf_fini(&frames);
		leave();
	}
}

static void test_compressed_messages_come_back_as_they_are(void **state)
{
	(void)state;
	switch_over(false, OFFER, CHOICE);
	SAY(o, "\xc1\x03\x06\x06\x06");
	EXPECT(c, "\xc1\x03\x06\x06\x06");
	leave();
}

/* --- what comes back --- */

/* Frames with the value in them, in any two pieces; the frames are the same, the value is not. */
static void test_covered_in_one_frame(void **state)
{
	static const char sent[] =
	        "\x81\x2a"
	        "before " SECRET_VALUE " after\x8a\x1e." SECRET_VALUE "\x82\x01x";
	static const char come[] = "\x81\x2a"
	                           "before " COVERED " after\x8a\x1e." COVERED "\x82\x01x";

	(void)state;
	switch_over(true, "", "");
	for (size_t cut = 1; cut < sizeof(sent) - 1; cut++) {
		say_n(o, sent, cut);
		pump(&w, 0);
		say_n(o, sent + cut, sizeof(sent) - 1 - cut);
		expect_n(c, come, sizeof(come) - 1);
	}
	leave();
	UNTIL(&w, find_event(&w, EVENT_HTTP));
	assert_int_equal(findings(EVENT_FINDING_CREDENTIAL_ECHO), 1);
}

/* Reads frames of the upstream as the sandbox gets them; appends the content of data frames. */
static size_t read_content(char *out, size_t cap, size_t *pings, bool *whole)
{
	struct websocket read = {0};
	const uint8_t *p = buf_bytes(&c->in);
	size_t n = 0;

	*pings = 0;
	*whole = false;
	for (size_t at = 0; at < c->in.len;) {
		enum websocket_step step;
		size_t used = websocket_next(&read, p + at, c->in.len - at, &step);

		assert_int_not_equal(step, WEBSOCKET_BAD);
		*pings += step == WEBSOCKET_HEAD && read.opcode == WEBSOCKET_PING;
		if (step == WEBSOCKET_CONTENT && !websocket_is_control(&read)) {
			assert_true(n + used <= cap);
			memcpy(out + n, p + at, used);
			n += used;
		}
		at += used;
		*whole = n > 0 && read.left == 0 && read.fin && !read.in_message;
	}
	return n;
}

/* A message in fragments: cut anywhere the value is covered, and what is sent between them passes
 * at once. */
static void test_covered_across_fragments(void **state)
{
	static const char text[] = "before " SECRET_VALUE " after";
	char got[200];
	size_t pings;
	bool whole;

	(void)state;
	switch_over(true, "", "");
	for (size_t cut = 1; cut < sizeof(text) - 2; cut++) {
		struct buf frames;
		uint8_t head[WEBSOCKET_HEAD_MAX];

		buf_init(&frames, 1000);
		buf_append(&frames, head, websocket_write_head(head, false, 1, cut));
		buf_append(&frames, text, cut);
		buf_append(&frames, "\x89\x00", 2);
		say_n(o, buf_bytes(&frames), frames.len);
		UNTIL(&w, (read_content(got, sizeof(got), &pings, &whole), pings == 1));
		buf_consume(&frames, frames.len);
		buf_append(&frames, "\x00\x00\x00\x01", 4); /* an empty one, one of a byte */
		buf_append(&frames, text + cut, 1);
		buf_append(
		        &frames, head, websocket_write_head(head, true, 0, sizeof(text) - 2 - cut));
		buf_append(&frames, text + cut + 1, sizeof(text) - 2 - cut);
		say_n(o, buf_bytes(&frames), frames.len);
		UNTIL(&w, (read_content(got, sizeof(got), &pings, &whole), whole));
		assert_int_equal(read_content(got, sizeof(got), &pings, &whole), sizeof(text) - 1);
		assert_memory_equal(got, "before " COVERED " after", sizeof(text) - 1);
		buf_consume(&c->in, c->in.len);
		buf_fini(&frames);
	}
	leave();
}

static void test_fragments_without_it_stay_as_they_are(void **state)
{
	static const char sent[] = "\x02\x03()(\x00\x00\x89\x01p\x00\x02))\x80\x00"
	                           "\x01\x00\x80\x00\x01\x03(((\x80\x05()));";

	(void)state;
	switch_over(true, "", "");
	SAY(o, sent);
	EXPECT(c, sent);
	/* What might be the beginning waits for the next fragment, whether it is one or not. */
	SAY(o, "\x01\x05"
	       "(s3cr");
	EXPECT(c, "\x01\x01(");
	SAY(o, "\x80\x01z");
	EXPECT(c, "\x80\x05s3crz");
	SAY(o, "\x01\x05"
	       "(s4cr");
	EXPECT(c, "\x01\x01(");
	SAY(o, "\x80\x00");
	EXPECT(c, "\x80\x04s4cr");
	assert_int_equal(c->in.len, 0);
	leave();
	UNTIL(&w, find_event(&w, EVENT_HTTP));
	assert_int_equal(findings(EVENT_FINDING_CREDENTIAL_ECHO), 0);
}

/* ... and where the next one does not come, it waits no longer than HELD_MS. */
static void test_a_fragment_does_not_wait_for_ever(void **state)
{
	(void)state;
	switch_over(true, "", "");
	SAY(o, "\x01\x05"
	       "hello");
	EXPECT(c, "\x01\x05"
	          "hello");
	SAY(o, "\x00\x06"
	       ",world");
	EXPECT(c, "\x00\x01,");
	EXPECT(c, "\x00\x05"
	          "world");
	SAY(o, "\x80\x00");
	EXPECT(c, "\x80\x00");
	/* a frame that is the whole message, of which the rest does not come */
	SAY(o, "\x82\x07"
	       "hello");
	EXPECT(c, "\x82\x07"
	          "hello");
	SAY(o, ",!");
	EXPECT(c, ",!");
	leave();
	UNTIL(&w, find_event(&w, EVENT_HTTP));
	assert_int_equal(findings(EVENT_FINDING_CREDENTIAL_ECHO), 0);
}

/* A beginning of the value where the next fragment does not come: it is cut off, and nobody gets
 * the credential any more. */
static void test_a_beginning_that_does_not_go_on(void **state)
{
	(void)state;
	switch_over(true, "", "");
	SAY(o, "\x01\x0a"
	       "(s3cr3t-TO");
	EXPECT(c, "\x01\x01(");
	UNTIL(&w, c->eof);
	assert_int_equal(c->in.len, 0);
	UNTIL(&w, find_event(&w, EVENT_HTTP));
	assert_int_equal(findings(EVENT_FINDING_CREDENTIAL_ECHO), 1);
	assert_true(credential_store_is_guessed(w.store, 0));
	leave();
}

/* A whole message never waits; the rest of a value in the next one is covered there. */
static void test_covered_across_messages(void **state)
{
	(void)state;
	switch_over(true, "", "");
	for (size_t cut = 1; cut < SECRET_BYTES; cut++) {
		uint8_t head[WEBSOCKET_HEAD_MAX];

		say_n(o, head, websocket_write_head(head, true, 1, cut));
		say_n(o, SECRET_VALUE, cut);
		UNTIL(&w, c->in.len == 2 + cut);
		assert_memory_equal(buf_bytes(&c->in) + 2, SECRET_VALUE, cut);
		buf_consume(&c->in, 2 + cut);
		say_n(o, "\x89\x00", 2);
		EXPECT(c, "\x89\x00");
		say_n(o, head, websocket_write_head(head, true, 2, SECRET_BYTES - cut + 2));
		say_n(o, &SECRET_VALUE[cut], SECRET_BYTES - cut);
		say_n(o, "ok", 2);
		UNTIL(&w, c->in.len == 2 + SECRET_BYTES - cut + 2);
		assert_memory_equal(buf_bytes(&c->in) + 2, COVERED, SECRET_BYTES - cut);
		assert_memory_equal(buf_bytes(&c->in) + 2 + SECRET_BYTES - cut, "ok", 2);
		buf_consume(&c->in, c->in.len);
	}
	leave();
	UNTIL(&w, find_event(&w, EVENT_HTTP));
	assert_int_equal(findings(EVENT_FINDING_CREDENTIAL_ECHO), 1);
}

/* The value cut over any two of control frames, close reasons and messages: what stands in the
 * first is seen, the rest is covered. */
static void test_covered_across_frames_of_any_kind(void **state)
{
	static const uint8_t kinds[][2] = {{0x89, 0x89}, {0x8a, 0x8a}, {0x89, 0x8a}, {0x89, 0x88},
	        {0x81, 0x89}, {0x82, 0x8a}, {0x81, 0x88}, {0x89, 0x81}, {0x8a, 0x82}, {0x89, 1},
	        {0x81, 0x82}, {0x8a, 2}};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		bool closes = kinds[i][1] == 0x88, control = kinds[i][0] & kinds[i][1] & 8;

		for (size_t cut = 1; cut < SECRET_BYTES; cut += closes ? 9 : 1) {
			size_t rest = SECRET_BYTES - cut, from = closes ? 4 : 2, n;
			uint8_t bytes[200];

			if (cut == 1 || closes)
				switch_over(true, "", "");
			/* What control frames hold is one text, whatever comes between. */
			n = (size_t)snprintf((char *)bytes, sizeof(bytes), "%c%c%.*s", kinds[i][0],
			        (char)cut, (int)cut, SECRET_VALUE);
			if (control) {
				memcpy(bytes + n, "\x82\x05other\x8a", 8);
				bytes[n + 8] = 0;
				n += 9;
			}
			say_n(o, bytes, n);
			expect_n(c, bytes, n);
			n = (size_t)snprintf((char *)bytes, sizeof(bytes), "%c%c%s%s", kinds[i][1],
			        (char)(rest + from - 2), closes ? "\x03\xe8" : "",
			        &SECRET_VALUE[cut]);
			if (kinds[i][1] > 2) {
				say_n(o, bytes, n / 2);
				pump(&w, 0);
			}
			say_n(o, bytes + (kinds[i][1] > 2 ? n / 2 : 0),
			        kinds[i][1] > 2 ? n - n / 2 : n);
			memset(bytes + from, '*', rest);
			expect_n(c, bytes, n);
			if (kinds[i][1] < 3) {
				say_n(o, "\x80\x00", 2);
				expect_n(c, "\x80\x00", 2);
			}
			if (closes || cut + 1 == SECRET_BYTES)
				leave();
		}
		UNTIL(&w, findings(EVENT_FINDING_CREDENTIAL_ECHO) > 0);
		again((struct world_options){
		        .timeouts = patient_timeouts, .limits = usual_limits, .send_bytes = 8192});
	}
}

/* A message, a ping and another message: all but the last part is seen. */
static void test_covered_in_three_kinds(void **state)
{
	(void)state;
	switch_over(true, "", "");
	for (size_t a = 1; a + 2 < SECRET_BYTES; a += 4) {
		const char *v = SECRET_VALUE;
		uint8_t bytes[200];
		size_t n = (size_t)snprintf((char *)bytes, sizeof(bytes),
		        "\x81%c%.*s\x89%c%c\x82%c%s", (char)a, (int)a, v, 1, v[a],
		        (char)(SECRET_BYTES - a - 1), v + a + 1);

		say_n(o, bytes, n);
		memset(bytes + a + 7, '*', n - a - 7);
		expect_n(c, bytes, n);
	}
	/* An empty ping is no text, one that does not go on with it parts the wire's. */
	SAY(o, "\x81\x04s3cr\x89\x00\x8a\x01x\x81\x02no\x89\x01n");
	EXPECT(c, "\x81\x04s3cr\x89\x00\x8a\x01x\x81\x02no\x89\x01n");
	leave();
}

static void test_frames_that_only_begin_like_it(void **state)
{
	static const char sent[] = "\x89\x04s3cr\x81\x04s3cr\x8a\x04s3cr\x82\x03xyz\x89\x04"
	                           "s3cr\x89\x04s3cr\x01\x03n()\x80\x00\x88\x06\x03\xe8s3cr";

	(void)state;
	for (size_t cut = 1; cut < sizeof(sent) - 1; cut += 3) {
		switch_over(true, "", "");
		say_n(o, sent, cut);
		pump(&w, 0);
		say_n(o, sent + cut, sizeof(sent) - 1 - cut);
		expect_n(c, sent, sizeof(sent) - 1);
		leave();
	}
	assert_int_equal(findings(EVENT_FINDING_CREDENTIAL_ECHO), 0);
}

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
	        TEST(test_a_placeholder_in_any_two_frames),
	        TEST(test_what_is_no_placeholder),
	        TEST(test_the_credential_itself),
	        TEST(test_a_placeholder_in_compressed_fragments),
	        TEST(test_compressed_messages_that_are_damaged),
	        TEST(test_compressed_texts_that_are_none),
	        TEST(test_compressed_messages_come_back_as_they_are),
	        TEST(test_covered_in_one_frame),
	        TEST(test_covered_across_fragments),
	        TEST(test_fragments_without_it_stay_as_they_are),
	        TEST(test_a_fragment_does_not_wait_for_ever),
	        TEST(test_a_beginning_that_does_not_go_on),
	        TEST(test_covered_across_messages),
	        TEST(test_frames_that_only_begin_like_it),
	        TEST(test_covered_in_three_kinds),
	        TEST(test_covered_across_frames_of_any_kind),
	        TEST(test_an_end_inside_of_a_message),
	        TEST(test_a_side_that_does_not_read),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
