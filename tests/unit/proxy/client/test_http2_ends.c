/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 where one thing ends while another goes on: streams that end while others are served,
 * bodies that wait for the connection, connections whose last stream is over, requests sent twice.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_origin.h"

static uint8_t bytes[1 << 20];

/* Streams that end are freed, so that AddressSanitizer sees who looks at them afterwards. */
static void keep_no_streams(void)
{
	w.proxy->free_stream_count = STREAMS_KEPT;
	w.proxy->free_upstream_count = STREAMS_KEPT;
}

static void wide_windows(struct h2 *h)
{
	const nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX};

	nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, &wide, 1);
	nghttp2_submit_window_update(h->session, NGHTTP2_FLAG_NONE, 0, INT32_MAX - 65535);
	h2_run(h);
}

/* --- requests --- */

/* Trailers end a request: they go out behind the last byte of its body, however long that waits for
 * the upstream's window. */
static void test_trailers_wait_for_the_body(void **state)
{
	const nghttp2_nv trailers[] = {nv("x-sum", "7")};
	struct upload up = {.ended = true, .trailers = trailers, .trailer_count = 1};
	struct h2 *c = enliven(h2_client()), *o;
	enum { SIZE = 100000 };
	struct answer *a;
	int32_t id;

	(void)state;
	buf_init(&up.bytes, SIZE);
	buf_append(&up.bytes, bytes, SIZE);
	id = h2_ask_with(c, "POST", "a.test", "/up", NULL, 0, &up);
	o = h2_origin_over(accept_tls("\x02h2"), true);
	a = request_of(o, 0);
	ALL_UNTIL(a->body.len == 65535);
	run_for(50);
	assert_null(strstr(a->fields, "x-sum"));
	assert_false(a->ended);
	nghttp2_session_consume(o->session, a->id, 65535);
	ALL_UNTIL(a->ended);
	assert_int_equal(a->body.len, SIZE);
	assert_non_null(strstr(a->fields, "x-sum: 7\n"));
	respond(o, a->id);
	ALL_UNTIL(answer(c, id)->closed);
	assert_int_equal(answer(c, id)->status, 200);
	buf_fini(&up.bytes);
	leave(c, false);
	leave(o, false);
}

enum { SIZE = 3 << 20 }; /* of a body that no buffer holds */

/* A body for an upstream whose windows are wide, and whose socket takes that many bytes at once. */
static struct h2 *prepare_upload(struct h2 *c, struct upload *up, int socket_bytes)
{
	struct h2 *o;

	buf_init(&up->bytes, SIZE);
	for (size_t n = 0; n < SIZE; n += sizeof(bytes))
		buf_append(&up->bytes, bytes, sizeof(bytes));
	h2_ask_with(c, "POST", "a.test", "/none", NULL, 0, NULL);
	o = h2_origin_over(accept_tls("\x02h2"), false);
	wide_windows(o);
	respond(o, request_of(o, 0)->id);
	run_for(50);
	setsockopt(container_of(w.proxy->upstreams.next, struct upstream_conn, all)->socket.fd,
	        SOL_SOCKET, SO_SNDBUF, &socket_bytes, sizeof(socket_bytes));
	return o;
}

/* The upstream's windows are wide, its socket is full: the body goes on when that takes bytes. */
static void test_a_body_waits_for_the_socket(void **state)
{
	struct upload up = {.ended = true};
	struct h2 *c = enliven(h2_client()), *o = prepare_upload(c, &up, 65536);
	struct answer *a;

	(void)state;
	h2_ask_with(c, "POST", "a.test", "/up", NULL, 0, &up);
	a = request_of(o, 1);
	o->peer->deaf = true;
	run_for(250);
	assert_false(a->ended);
	o->peer->deaf = false;
	peer_read(o->peer);
	ALL_UNTIL(a->ended);
	assert_int_equal(a->body.len, SIZE);
	respond(o, a->id);
	buf_fini(&up.bytes);
	leave(c, false);
	leave(o, false);
}

/* The end of a body without content was sent already: a second attempt has to say it again. */
static void test_an_empty_body_is_sent_again_to_its_end(void **state)
{
	struct upload up = {0};
	struct h2 *c = enliven(h2_client()), *o;
	struct peer *again;
	int32_t id;

	(void)state;
	buf_init(&up.bytes, 1);
	id = h2_ask_with(c, "POST", "a.test", "/up", NULL, 0, &up);
	o = h2_origin();
	request_of(o, 0);
	up.ended = true;
	nghttp2_session_resume_data(c->session, id);
	ALL_UNTIL(o->answers[0]->ended);
	reset_stream(o, o->answers[0]->id, NGHTTP2_HTTP_1_1_REQUIRED);
	again = accept_tls("\x08http/1.1");
	ALL_UNTIL(again->in.len);
	expect_head(again, "POST /up HTTP/1.1\r\n");
	assert_true(head_has(again, "transfer-encoding: chunked"));
	expect(again, "0\r\n\r\n");
	say(again, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	ALL_UNTIL(answer(c, id)->closed);
	assert_int_equal(answer(c, id)->status, 200);
	leave(c, false);
	leave(o, false);
	hang_up(again, false);
}

/* --- ends --- */

/* The last stream ends in a turn of its own, and the client has nothing more to say. */
static void test_a_connection_is_idle_after_its_last_stream(void **state)
{
	struct h2 *c = enliven(h2_client());
	int32_t id = h2_ask(c, "GET", "/");
	struct peer *o = origin(&w, true);

	(void)state;
	expect_head(o, "GET / ");
	say(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
	ALL_UNTIL(body_is(answer(c, id), "abc"));
	run_for(20);
	say(o, "0\r\n\r\n");
	ALL_UNTIL(answer(c, id)->closed);
	ALL_UNTIL(c->goaway);
	leave(c, false);
	hang_up(o, false);
}

/* Windows are wide and nobody reads: the connection has to be given up. */
static void test_a_client_that_reads_nothing(void **state)
{
	struct h2 *c = enliven(h2_client());
	struct peer *o;
	const struct client *at;
	size_t said = 0;

	(void)state;
	wide_windows(c);
	h2_ask(c, "GET", "/");
	o = origin(&w, true);
	expect_head(o, "GET / ");
	run_for(20);
	c->peer->deaf = true;
	at = container_of(w.proxy->clients.next, struct client, list);
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
	/* Small pieces: all of the stream's bytes are in the connection. */
	for (; !at->socket.congested; said += 1000) {
		assert_true(said < 4000000);
		say_n(o, bytes, 1000);
		pump(&w, 1);
	}
	say_n(o, bytes, 1000);
	ALL_UNTIL(find_event(&w, EVENT_HTTP));
	expect_detail("the sandbox made no progress for too long");
	UNTIL(&w, !w.proxy->client_count);
	leave(c, false);
	hang_up(o, false);
}

/* One request waits for the other's connection, and no further one is permitted: both end with
 * their client.
 */
static void test_who_waits_goes_with_the_connection(void **state)
{
	struct world_options few = {
	        .timeouts = patient_timeouts, .limits = usual_limits, .send_bytes = 8192};
	struct h2 *c;

	(void)state;
	few.limits.upstream_connections = 1;
	again(few);
	c = enliven(h2_client());
	keep_no_streams();
	for (size_t i = 0; i < 3; i++)
		h2_ask(c, "GET", "/x");
	UNTIL(&w, w.proxy->exchanges == 3);
	say_n(c->peer, "\0\0\5\2\0\0\0\0\0\0\0\0\0\1", 14); /* PRIORITY of stream 0 */
	UNTIL(&w, count_events(&w, EVENT_HTTP) == 3);
	UNTIL(&w, !w.proxy->client_count);
	assert_int_equal(w.proxy->stream_count, 0);
	assert_int_equal(w.proxy->upstream_count, 0);
	leave(c, false);
	w.proxy->free_stream_count = w.proxy->free_upstream_count = 0;
}

/* The upstream reads nothing: neither the request nor that it is reset. The connection goes. */
static void test_an_upstream_that_reads_nothing(void **state)
{
	struct upload up = {.ended = true};
	struct h2 *c = enliven(h2_client()), *o = prepare_upload(c, &up, 16384);
	int32_t id;

	(void)state;
	id = h2_ask_with(c, "POST", "a.test", "/up", NULL, 0, &up);
	request_of(o, 1);
	o->peer->deaf = true;
	ALL_UNTIL(answer(c, id)->closed || answer(c, id)->ended);
	assert_int_equal(answer(c, id)->status, 504);
	ALL_UNTIL(!w.proxy->upstream_count);
	buf_fini(&up.bytes);
	leave(c, false);
	leave(o, false);
}

/* Closed connections do not count for the bound: a request that waited for one dials. */
static void test_who_waits_dials_in_its_place(void **state)
{
	struct world_options few = {
	        .timeouts = patient_timeouts, .limits = usual_limits, .send_bytes = 8192};
	struct h2 *c, *o;
	int32_t id[2];

	(void)state;
	few.limits.upstream_connections = 1;
	again(few);
	c = enliven(h2_client());
	id[0] = h2_ask(c, "GET", "/x");
	id[1] = h2_ask(c, "GET", "/y");
	UNTIL(&w, w.proxy->exchanges == 2);
	reset_stream(c, id[0], NGHTTP2_CANCEL);
	UNTIL(&w, w.proxy->exchanges == 1);
	for (int fd = -1; fd < 0; pump(&w, 1)) { /* the first one may have been accepted */
		fd = accept4(w.origin_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			close(fd);
	}
	o = h2_origin();
	respond(o, request_of(o, 0)->id);
	ALL_UNTIL(answer(c, id[1])->ended);
	assert_int_equal(answer(c, id[1])->status, 200);
	leave(c, false);
	leave(o, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        TEST(test_trailers_wait_for_the_body),
	        TEST(test_a_body_waits_for_the_socket),
	        TEST(test_an_empty_body_is_sent_again_to_its_end),
	        HASTY(test_a_connection_is_idle_after_its_last_stream),
	        HASTY(test_a_client_that_reads_nothing),
	        TEST(test_who_waits_goes_with_the_connection),
	        HASTY(test_an_upstream_that_reads_nothing),
	        TEST(test_who_waits_dials_in_its_place),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
