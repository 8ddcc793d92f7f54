/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets through a whole proxy: what is covered in the upstream's messages. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "websocket_fixture.h"

#define COVERED "*****************************"
_Static_assert(sizeof(COVERED) == sizeof(SECRET_VALUE), "as long as the value");

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
	/* Text that might begin the value waits for the next fragment, whether it is the value or
	 * not. */
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

/* A beginning of the value without a next fragment: the message is cut off, and nobody gets the
 * credential any more. */
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

/* The value cut over any two of control frames, close reasons and messages: the part in the
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
			/* The contents of control frames are one text, whatever comes between. */
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
	/* An empty ping has no text; a ping that does not continue the value separates the texts
	 * around it. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_covered_in_one_frame),
	        TEST(test_covered_across_fragments),
	        TEST(test_fragments_without_it_stay_as_they_are),
	        TEST(test_a_fragment_does_not_wait_for_ever),
	        TEST(test_a_beginning_that_does_not_go_on),
	        TEST(test_covered_across_messages),
	        TEST(test_frames_that_only_begin_like_it),
	        TEST(test_covered_in_three_kinds),
	        TEST(test_covered_across_frames_of_any_kind),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
