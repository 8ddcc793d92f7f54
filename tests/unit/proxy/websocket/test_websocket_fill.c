/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets through a whole proxy: placeholders that are replaced in the sandbox's text messages,
 * and those that are not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/inject/fill.h"
#include "websocket_fixture.h"

#define OTHER "sk-vethguard-par-0123456789abcdef"

static const char fill_policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "credentials:\n"
        "  key: {source: \"env:KEY\", inject: placeholder, in: [header, websocket], env: KEY}\n"
        "  par: {source: \"env:PAR\", inject: bearer, env: PAR}\n"
        "allow:\n"
        "  - {name: a, to: \"https://a.test:%1$u\"}\n"
        "  - {name: c, to: \"https://c.test:%1$u\", credential: key}\n"
        "  - {name: d, to: \"https://d.test:%1$u\", credential: par}\n";

static int set_up_fill(void **state)
{
	const struct world_options options = {.timeouts = patient_timeouts,
	        .limits = usual_limits,
	        .send_bytes = 8192,
	        .policy = fill_policy};

	(void)state;
	world_open(&w, &options);
	credential_store_set_placeholder(w.store, 1, SLICE(OTHER));
	return credential_store_set_placeholder(w.store, 0, SLICE(PLACEHOLDER));
}

/* Reads one frame at the upstream, unmasked, into text (with a NUL). Returns its opcode with the
 * FIN bit. */
static uint8_t take_frame(char *out, size_t cap, uint8_t key[4])
{
	struct websocket read = {.masked = true};
	enum websocket_step step;
	size_t head;

	UNTIL(&w, o->in.len >= 6 || o->eof || o->failed);
	assert_true(o->in.len >= 6);
	head = websocket_next(&read, buf_bytes(&o->in), o->in.len, &step);
	assert_int_equal(step, WEBSOCKET_HEAD);
	memcpy(key, read.key, 4);
	buf_consume(&o->in, head);
	UNTIL(&w, o->in.len >= read.left || o->eof || o->failed);
	assert_true(read.left < cap);
	if (read.left) {
		size_t n = websocket_next(&read, buf_bytes(&o->in), (size_t)read.left, &step);

		websocket_unmask(&read, buf_bytes(&o->in), n, (uint8_t *)out);
		buf_consume(&o->in, n);
	}
	out[read.at] = '\0';
	return (uint8_t)(read.opcode | (read.fin ? 0x80 : 0));
}

static void expect_frame(uint8_t first, const char *text)
{
	static char got[FILL_BODY_MAX + 4096];
	uint8_t key[4];
	uint8_t opcode = take_frame(got, sizeof(got), key);

	if (opcode != first || strcmp(got, text) != 0)
		fail_msg("%02x \"%.300s\" instead of %02x \"%.300s\"", opcode, got, first, text);
}

static void send_frames(const struct buf *frames, size_t piece)
{
	for (size_t at = 0; at < frames->len; at += piece) {
		say_n(c, buf_bytes(frames) + at,
		        frames->len - at < piece ? frames->len - at : piece);
		pump(&w, 0);
	}
}

static const struct {
	const char *sent, *arrives;
} messages[] = {
        {"{\"key\": \"" PLACEHOLDER "\"}", "{\"key\": \"" SECRET_VALUE "\"}"},
        {"auth " PLACEHOLDER " " PLACEHOLDER "\n", "auth " SECRET_VALUE " " SECRET_VALUE "\n"},
        {PLACEHOLDER, SECRET_VALUE},
        {"nothing of it", "nothing of it"},
        {"\xc3\xa4 " PLACEHOLDER, "\xc3\xa4 " SECRET_VALUE},
};

/* Each message in one frame and in fragments, with a ping between, in pieces of several sizes. */
static void test_replaced(void **state)
{
	struct buf frames;

	(void)state;
	buf_init(&frames, 10000);
	switch_over(true, "Sec-WebSocket-Extensions: permessage-deflate\r\n", "");
	assert_false(head_has(o, "permessage-deflate"));
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
		const char *sent = messages[i].sent;
		size_t n = strlen(sent);

		for (size_t cut = 0; cut <= n; cut += 1 + i * 7) {
			buf_consume(&frames, frames.len);
			frame(&frames, 1, sent, cut);
			frame(&frames, 0x89, "there", 5);
			frame(&frames, 0, "", 0);
			frame(&frames, 0x80, sent + cut, n - cut);
			frame(&frames, 0x82, "\x80\xff", 2);
			frame(&frames, 0x81, sent, n);
			send_frames(&frames, 1 + (cut + i) % 90);
			expect_frame(0x89, "there");
			expect_frame(0x81, messages[i].arrives);
			expect_frame(0x82, "\x80\xff");
			expect_frame(0x81, messages[i].arrives);
		}
	}
	assert_int_equal(count_events(&w, EVENT_FINDING), 0);
	buf_fini(&frames);
	leave();
}

static void test_masks_are_new(void **state)
{
	uint8_t first[4], second[4];
	struct buf frames;
	char got[64];

	(void)state;
	buf_init(&frames, 10000);
	switch_over(true, "", "");
	frame(&frames, 0x81, "same", 4);
	frame(&frames, 0x81, "same", 4);
	send_frames(&frames, frames.len);
	assert_int_equal(take_frame(got, sizeof(got), first), 0x81);
	assert_int_equal(take_frame(got, sizeof(got), second), 0x81);
	assert_memory_not_equal(first, second, 4);
	assert_memory_not_equal(first, "\xde\xad\xbe\xef", 4);
	buf_fini(&frames);
	leave();
}

/* The value's characters that JSON escapes are escaped in JSON, and only there. */
static void test_escapes(void **state)
{
	struct buf frames;

	(void)state;
	w.value = "quote\"and\\back";
	buf_init(&frames, 10000);
	switch_over(true, "", "");
	frame(&frames, 0x81, "[\"" PLACEHOLDER "\"]", sizeof(PLACEHOLDER) + 3);
	frame(&frames, 0x81, "(" PLACEHOLDER ")", sizeof(PLACEHOLDER) + 1);
	send_frames(&frames, frames.len);
	expect_frame(0x81, "[\"quote\\\"and\\\\back\"]");
	expect_frame(0x81, "(quote\"and\\back)");
	buf_fini(&frames);
	leave();
}

/* The upstream's echo of the value stays masked. */
static void test_echo(void **state)
{
	struct buf frames;

	(void)state;
	buf_init(&frames, 10000);
	switch_over(true, "", "");
	frame(&frames, 0x81, PLACEHOLDER, sizeof(PLACEHOLDER) - 1);
	send_frames(&frames, frames.len);
	expect_frame(0x81, SECRET_VALUE);
	say_n(o, "\x81\x1d" SECRET_VALUE, 2 + SECRET_BYTES);
	UNTIL(&w, c->in.len == 2 + SECRET_BYTES);
	leave();
	buf_fini(&frames);
}

/* --- not replaced --- */

static void expect_leak(uint8_t first, const char *text, size_t n, size_t leaks)
{
	struct buf frames;

	buf_init(&frames, 10000);
	switch_over(true, "", "");
	frame(&frames, first, text, n);
	send_frames(&frames, 50);
	UNTIL(&w, findings(EVENT_FINDING_PLACEHOLDER_LEAK) == leaks);
	buf_fini(&frames);
}

/* A placeholder where it is not replaced is a finding, and passes: its own destination learns
 * nothing. */
static void test_tripwires(void **state)
{
	(void)state;
	expect_leak(0x82, PLACEHOLDER, sizeof(PLACEHOLDER) - 1, 1);
	expect_frame(0x82, PLACEHOLDER);
	leave();
	expect_leak(0x89, PLACEHOLDER, sizeof(PLACEHOLDER) - 1, 2);
	leave();
	/* in the name of a member, and with a byte escaped */
	expect_leak(0x81, "{\"" PLACEHOLDER "\":1}", sizeof(PLACEHOLDER) + 5, 3);
	expect_frame(0x81, "{\"" PLACEHOLDER "\":1}");
	leave();
	expect_leak(0x81,
	        "[\"\\u0076"
	        "ethguard-key-0123456789abcdef0123456789abcdef\"]",
	        sizeof(PLACEHOLDER) + 8, 4);
	leave();
}

/* Another credential's placeholder ends the connection before a byte of the message has left. */
static void test_of_another_credential(void **state)
{
	(void)state;
	expect_leak(0x81, "{\"a\":\"" PLACEHOLDER "\",\"b\":\"" OTHER "\"}",
	        sizeof(PLACEHOLDER) + sizeof(OTHER) + 13, 1);
	expect_close(c, WEBSOCKET_POLICY);
	expect_close(o, WEBSOCKET_POLICY);
	leave();
}

/* Where the rule's credential does not say websocket, and where there is none. */
static void test_other_rules(void **state)
{
	struct buf frames;

	(void)state;
	buf_init(&frames, 10000);
	switch_over(false, "", "");
	frame(&frames, 0x81, PLACEHOLDER, sizeof(PLACEHOLDER) - 1);
	send_frames(&frames, frames.len);
	expect_close(c, WEBSOCKET_POLICY);
	assert_int_equal(findings(EVENT_FINDING_PLACEHOLDER_LEAK), 1);
	assert_false(has(o, SECRET_VALUE, SECRET_BYTES));
	leave();
	buf_fini(&frames);
}

/* --- what ends it --- */

static void test_too_large(void **state)
{
	char *text = malloc(FILL_BODY_MAX + 1);
	struct buf frames;

	(void)state;
	memset(text, 'a', FILL_BODY_MAX + 1);
	buf_init(&frames, 4u << 20);
	for (size_t more = 0; more < 2; more++) {
		buf_consume(&frames, frames.len);
		switch_over(true, "", "");
		frame(&frames, 1, text, FILL_BODY_MAX - 10);
		frame(&frames, 0x80, text, 10 + more);
		send_frames(&frames, 40000);
		if (more) {
			expect_close(c, WEBSOCKET_TOO_BIG);
			expect_close(o, WEBSOCKET_TOO_BIG);
		} else {
			text[FILL_BODY_MAX] = '\0';
			expect_frame(0x81, text);
			text[FILL_BODY_MAX] = 'a';
		}
		leave();
	}
	UNTIL(&w, w.proxy->body_held == 0);
	buf_fini(&frames);
	free(text);
}

static void test_too_many(void **state)
{
	for (size_t count = FILL_GAPS_MAX; count < FILL_GAPS_MAX + 2; count++) {
		struct buf text, frames;

		(void)state;
		buf_init(&text, 10000);
		buf_init(&frames, 10000);
		for (size_t i = 0; i < count; i++)
			buf_append_slice(&text, SLICE(PLACEHOLDER " "));
		switch_over(true, "", "");
		frame(&frames, 0x81, buf_bytes(&text), text.len);
		send_frames(&frames, frames.len);
		if (count > FILL_GAPS_MAX)
			expect_close(c, WEBSOCKET_TOO_BIG);
		else
			UNTIL(&w, o->in.len > count * (SECRET_BYTES + 1));
		leave();
		buf_fini(&text);
		buf_fini(&frames);
	}
}

static void test_no_utf8(void **state)
{
	struct buf frames;

	(void)state;
	buf_init(&frames, 10000);
	switch_over(true, "", "");
	frame(&frames, 1, "abc\xc3", 4);
	frame(&frames, 0x80, "abc", 3);
	send_frames(&frames, frames.len);
	expect_close(c, WEBSOCKET_BAD_DATA);
	expect_close(o, WEBSOCKET_BAD_DATA);
	leave();
	/* a value that is not UTF-8 */
	w.value = "value-\xff-value";
	credential_store_rotate(w.store, 0);
	switch_over(true, "", "");
	buf_consume(&frames, frames.len);
	frame(&frames, 0x81, "x", 1);
	frame(&frames, 0x81, PLACEHOLDER, sizeof(PLACEHOLDER) - 1);
	send_frames(&frames, frames.len);
	expect_frame(0x81, "x");
	expect_close(c, WEBSOCKET_POLICY);
	leave();
	buf_fini(&frames);
}

/* A wrong frame behind a held fragment, and a close frame. */
static void test_ends_within_a_message(void **state)
{
	struct buf frames;

	(void)state;
	buf_init(&frames, 10000);
	switch_over(true, "", "");
	frame(&frames, 1, PLACEHOLDER, sizeof(PLACEHOLDER) - 1);
	frame(&frames, 0x81, "x", 1); /* a continuation has to follow */
	send_frames(&frames, frames.len);
	expect_close(c, WEBSOCKET_PROTOCOL_ERROR);
	expect_close(o, WEBSOCKET_PROTOCOL_ERROR);
	leave();
	switch_over(true, "", "");
	buf_consume(&frames, frames.len);
	frame(&frames, 1, PLACEHOLDER, sizeof(PLACEHOLDER) - 1);
	frame(&frames, 0x88, "\x03\xe8", 2);
	send_frames(&frames, frames.len);
	expect_frame(0x88, "\x03\xe8");
	leave();
	UNTIL(&w, w.proxy->body_held == 0);
	buf_fini(&frames);
}

#define FILLS(name) cmocka_unit_test_setup_teardown(name, set_up_fill, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        FILLS(test_replaced),
	        FILLS(test_masks_are_new),
	        FILLS(test_escapes),
	        FILLS(test_echo),
	        FILLS(test_tripwires),
	        FILLS(test_of_another_credential),
	        FILLS(test_other_rules),
	        FILLS(test_too_large),
	        FILLS(test_too_many),
	        FILLS(test_no_utf8),
	        FILLS(test_ends_within_a_message),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
