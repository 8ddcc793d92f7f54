/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets through a whole proxy: what is found in the sandbox's messages. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include "websocket_fixture.h"

/* The sandbox sends the frames in pieces of that size; they arrive unchanged. */
static void send_cut(const struct buf *frames, size_t piece)
{
	for (size_t at = 0; at < frames->len; at += piece) {
		say_n(c, buf_bytes(frames) + at,
		        frames->len - at < piece ? frames->len - at : piece);
		pump(&w, 0);
	}
	expect_n(o, buf_bytes(frames), frames->len);
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
		/* One message ends with its first half, the next one begins with the second. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_a_placeholder_in_any_two_frames),
	        TEST(test_what_is_no_placeholder),
	        TEST(test_the_credential_itself),
	        TEST(test_a_placeholder_in_compressed_fragments),
	        TEST(test_compressed_messages_that_are_damaged),
	        TEST(test_compressed_texts_that_are_none),
	        TEST(test_compressed_messages_come_back_as_they_are),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
