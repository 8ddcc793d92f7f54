/* SPDX-License-Identifier: Apache-2.0 */
/* WebSocket over HTTP/2 from the sandbox: extended CONNECT (RFC 8441), to an upstream that is asked
 * for an upgrade. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_peer.h"
#include "vethguard/tls/digest.h"

static int32_t ask_websocket(struct h2 *h, struct upload *up, const char *protocol)
{
	char authority[64];
	const nghttp2_data_provider body = {.source.ptr = up, .read_callback = h2_read_upload};

	snprintf(authority, sizeof(authority), "a.test:%u", w.port);
	const nghttp2_nv fields[] = {nv(":method", "CONNECT"), nv(":protocol", protocol),
	        nv(":scheme", "https"), nv(":authority", authority), nv(":path", "/ws?x=1"),
	        nv("sec-websocket-version", "13"), nv("sec-websocket-protocol", "chat")};

	H2_UNTIL(h, h->settings[NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL] == 1);
	return nghttp2_submit_request(h->session, NULL, fields, 7, &body, NULL);
}

static void say_accepted(struct peer *o, const char *key_of)
{
	const char *at = strcasestr(key_of, "Sec-WebSocket-Key: ");
	char accept[DIGEST_SHA1_BASE64 + 1], text[512];

	assert_non_null(at);
	const struct slice parts[] = {{at + 19, 24}, SLICE("258EAFA5-E914-47DA-95CA-C5AB0DC85B11")};

	assert_int_equal(digest_sha1_base64(parts, 2, accept), 0);
	snprintf(text, sizeof(text),
	        "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	        "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
	        accept);
	say(o, text);
}

static void test_an_extended_connect(void **state)
{
	struct h2 *h = h2_client();
	struct upload up = {0};
	struct peer *o;
	int32_t id;

	(void)state;
	buf_init(&up.bytes, 1000);
	buf_append(&up.bytes, "\x82\x81\0\0\0\0a", 7); /* before there is an answer */
	id = ask_websocket(h, &up, "websocket");
	h2_run(h);
	o = origin(&w, true);
	expect_head(o, "GET /ws?x=1 HTTP/1.1\r\n");
	assert_true(
	        head_has(o, "connection: upgrade\r\n") && head_has(o, "upgrade: websocket\r\n"));
	assert_true(head_has(o, "sec-websocket-version: 13\r\n"));
	pump(&w, 20);
	assert_int_equal(o->in.len, 0);
	say_accepted(o, o->head);
	H2_UNTIL(h, answer(h, id)->status && o->in.len == 7);
	assert_string_equal(answer(h, id)->fields, ":status: 200\nsec-websocket-protocol: chat\n");
	buf_consume(&o->in, 7);
	say_n(o, "\x82\1b", 3);
	H2_UNTIL(h, answer(h, id)->body.len == 3);
	buf_append(&up.bytes, "\x82\x81\0\0\0\0c", 7);
	nghttp2_session_resume_data(h->session, id);
	H2_UNTIL(h, o->in.len == 7);
	up.ended = true;
	nghttp2_session_resume_data(h->session, id);
	H2_UNTIL(h, o->eof);
	socket_end(&o->socket);
	socket_flush(&o->socket);
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->code, 0);
	assert_true(answer(h, id)->ended);
	assert_int_equal(only(EVENT_HTTP)->status, 101);
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, false);
}

/* Frames that are wrong, and the stream's end behind them, wait for the upstream's consent: then
 * the exchange ends while its own bytes are passed on. Streams are freed at once, so that it shows.
 */
static void test_an_extended_connect_that_ends_at_once(void **state)
{
	struct h2 *h = h2_client();
	struct upload up = {.ended = true};
	struct peer *o;
	int32_t id;

	(void)state;
	w.proxy->free_stream_count = STREAMS_KEPT;
	buf_init(&up.bytes, 1000);
	buf_append(&up.bytes, "\x82\1x", 3); /* not masked */
	id = ask_websocket(h, &up, "websocket");
	h2_run(h);
	o = origin(&w, true);
	expect_head(o, "GET /ws?x=1 HTTP/1.1\r\n");
	pump(&w, 20);
	say_accepted(o, o->head);
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_CLIENT);
	UNTIL(&w, !w.proxy->stream_count);
	w.proxy->free_stream_count = 0;
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, false);
}

/* Another key's answer, no switch at all, another protocol: never 200. */
static void test_an_extended_connect_that_fails(void **state)
{
	static const char *const answers[] = {
	        "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
	        "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"};
	struct upload up = {0};

	(void)state;
	buf_init(&up.bytes, 1000);
	for (size_t i = 0; i < 3; i++) {
		struct h2 *h = h2_client();
		int32_t id = ask_websocket(h, &up, "websocket");
		struct peer *o;

		h2_run(h);
		o = origin(&w, true);
		expect_head(o, "GET /ws");
		say(o, answers[i]);
		H2_UNTIL(h, answer(h, id)->closed);
		assert_int_equal(answer(h, id)->status, 502);
		h2_hang_up(h, false);
		hang_up(o, false);
	}
	struct h2 *h = h2_client();
	int32_t id = ask_websocket(h, &up, "connect-udp");

	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->status, 400);
	assert_false(origin_is_asked(&w));
	h2_hang_up(h, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        TEST(test_an_extended_connect),
	        TEST(test_an_extended_connect_that_ends_at_once),
	        TEST(test_an_extended_connect_that_fails),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
