/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to an upstream that speaks HTTP/2: how many are made, which requests share one,
 * how one ends and what becomes of its requests. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_origin.h"

#define MANY 20

static const uint8_t up_piece[65536];

static struct h2 *client_of_a(void)
{
	return enliven(h2_client());
}

static void expect_status(struct h2 *c, int32_t id, int status)
{
	ALL_UNTIL(answer(c, id)->ended || answer(c, id)->closed);
	if (answer(c, id)->status != status)
		fail_msg("status %d instead of %d: %.*s", answer(c, id)->status, status,
		        (int)answer(c, id)->body.len,
		        (const char *)buf_bytes(&answer(c, id)->body));
}

/* A request that is under way at an HTTP/2 origin. */
static struct h2 *begun(struct h2 *c, int32_t *id, const char *path)
{
	struct h2 *o;

	*id = h2_ask(c, "GET", path);
	o = h2_origin();
	assert_true(asked_for(request_of(o, 0), path));
	return o;
}

/* --- sharing --- */

static void test_many_exchanges_make_one_connection(void **state)
{
	struct h2 *c = client_of_a(), *o;
	int32_t id[MANY];

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		id[i] = h2_ask(c, "GET", "/x");
	o = h2_origin();
	request_of(o, MANY - 1);
	assert_true(nobody_dials());
	assert_int_equal(w.proxy->upstream_count, 1);
	for (size_t i = 0; i < MANY; i++)
		respond(o, o->answers[i]->id);
	for (size_t i = 0; i < MANY; i++)
		expect_status(c, id[i], 200);
	assert_int_equal(w.proxy->idle_count, 1);
	id[0] = h2_ask(c, "GET", "/again");
	assert_true(asked_for(request_of(o, MANY), "/again"));
	assert_int_equal(w.proxy->idle_count, 0);
	respond(o, o->answers[MANY]->id);
	expect_status(c, id[0], 200);
	assert_true(nobody_dials());
	leave(c, false);
	leave(o, false);
}

/* A setting that lifts the initial window would lift, once it is acknowledged, what is wide
 * already: beyond what is kept for a client that takes nothing. */
static void test_the_initial_window_stays(void **state)
{
	struct h2 *c = client_of_a(), *o;
	int32_t id = h2_ask(c, "GET", "/x");

	(void)state;
	o = h2_origin();
	respond(o, request_of(o, 0)->id);
	expect_status(c, id, 200);
	assert_int_equal(nghttp2_session_get_remote_settings(
	                         o->session, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE),
	        65535);
	assert_int_equal(
	        nghttp2_session_get_remote_settings(o->session, NGHTTP2_SETTINGS_ENABLE_PUSH), 0);
	leave(c, false);
	leave(o, false);
}

static void test_after_a_failed_dial_the_next_one_dials(void **state)
{
	struct h2 *c = client_of_a(), *o;
	int32_t id[3];
	int fd = -1;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		id[i] = h2_ask(c, "GET", "/x");
	ALL_UNTIL((fd = accept(w.origin_fd, NULL, NULL)) >= 0);
	close(fd);
	expect_status(c, id[0], 502);
	o = h2_origin();
	request_of(o, 1);
	for (size_t i = 0; i < 2; i++)
		respond(o, o->answers[i]->id);
	expect_status(c, id[1], 200);
	expect_status(c, id[2], 200);
	assert_true(nobody_dials());
	leave(c, false);
	leave(o, false);
}

/* Requests that wait for a connection that never comes fail in time, one dial after the other. */
static void test_all_dials_fail(void **state)
{
	struct h2 *c = client_of_a();
	int32_t id[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		id[i] = h2_ask(c, "GET", "/x");
	for (size_t i = 0; i < 3; i++) {
		int fd = -1;

		ALL_UNTIL((fd = accept(w.origin_fd, NULL, NULL)) >= 0);
		close(fd);
		expect_status(c, id[i], 502);
	}
	assert_true(nobody_dials());
	assert_int_equal(count_events(&w, EVENT_HTTP), 3);
	assert_null(w.proxy->pool);
	leave(c, false);
}

static void test_who_waits_too_long_is_told(void **state)
{
	struct h2 *c = client_of_a();
	int32_t first = h2_ask(c, "GET", "/x"), second = h2_ask(c, "GET", "/y");
	int fd = -1;

	(void)state;
	ALL_UNTIL((fd = accept(w.origin_fd, NULL, NULL)) >= 0);
	expect_status(c, first, 504);
	expect_status(c, second, 504);
	assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_TIMEOUT);
	close(fd);
	leave(c, false);
}

static void test_with_http1_everybody_dials(void **state)
{
	struct h2 *c = client_of_a();
	struct peer *o[3];
	int32_t id[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		id[i] = h2_ask(c, "GET", "/x");
	for (size_t i = 0; i < 3; i++) {
		o[i] = accept_tls("\x08http/1.1");
		expect_head(o[i], "GET /x HTTP/1.1\r\n");
	}
	for (size_t i = 0; i < 3; i++) {
		say(o[i], "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		expect_status(c, id[i], 200);
	}
	/* It is known by now: two at once make a second connection without waiting. */
	hang_up(o[1], false);
	hang_up(o[2], false);
	run_for(5);
	id[0] = h2_ask(c, "GET", "/y");
	id[1] = h2_ask(c, "GET", "/y");
	expect_head(o[0], "GET /y ");
	o[1] = accept_tls("\x08http/1.1");
	expect_head(o[1], "GET /y ");
	leave(c, false);
	hang_up(o[0], false);
	hang_up(o[1], false);
}

static const char two_ways[] =
        "vethguard: 1\nname: test\ncredentials:\n  key: {source: \"env:KEY\", inject: bearer}\n"
        "  par: {source: \"env:PAR\", inject: query, query: k}\n"
        "allow:\n  - {to: \"https://c.test:%1$u\", paths: [/with/**], credential: key}\n"
        "  - {to: \"https://c.test:%1$u\", paths: [/other/**], credential: par}\n"
        "  - {to: \"https://c.test:%1$u\", paths: [/without/**]}\n";

static void test_never_shared_between_credentials(void **state)
{
	static const char *const paths[] = {"/with/1", "/without/1", "/other/1"};
	const struct world_options options = {
	        .policy = two_ways, .timeouts = patient_timeouts, .limits = usual_limits};
	struct h2 *c, *o[3];

	(void)state;
	again(options);
	c = enliven(h2_client_of(NAME_C, "c.test"));
	for (size_t i = 0; i < 3; i++) {
		h2_ask_with(c, "GET", "c.test", paths[i], NULL, 0, NULL);
		o[i] = h2_origin();
		request_of(o[i], 0);
		assert_int_equal(
		        strstr(o[i]->answers[0]->fields, "authorization: ") != NULL, i == 0);
		assert_int_equal(strstr(o[i]->answers[0]->fields, "TOKEN") != NULL, i != 1);
	}
	for (size_t i = 0; i < 3; i++) {
		h2_ask_with(c, "GET", "c.test", paths[i], NULL, 0, NULL);
		request_of(o[i], 1);
		assert_int_equal(o[i]->count, 2);
	}
	assert_true(nobody_dials());
	leave(c, false);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(o[i]->count, 2);
		leave(o[i], false);
	}
}

/* Two hosts at one address, with one certificate that would do for both (RFC 9113 section 9.1.1).
 */
static void test_never_shared_between_hosts(void **state)
{
	struct h2 *c = client_of_a(), *d = enliven(h2_client_of(NAME_C, "c.test")), *o, *o2;
	int32_t id;

	(void)state;
	o = begun(c, &id, "/x");
	h2_ask_with(d, "GET", "c.test", "/x", NULL, 0, NULL);
	o2 = h2_origin();
	request_of(o2, 0);
	assert_int_equal(o->count, 1);
	leave(c, false);
	leave(d, false);
	leave(o, false);
	leave(o2, false);
}

static void test_a_lowered_bound_on_streams(void **state)
{
	struct h2 *c = client_of_a(), *o, *o2;
	int32_t id[4];

	(void)state;
	o = begun(c, &id[0], "/0");
	id[1] = h2_ask(c, "GET", "/1");
	id[2] = h2_ask(c, "GET", "/2");
	request_of(o, 2);
	set_max_streams(o, 1);
	run_for(10);
	id[3] = h2_ask(c, "GET", "/3");
	o2 = h2_origin();
	assert_true(asked_for(request_of(o2, 0), "/3"));
	for (size_t i = 0; i < 3; i++)
		respond(o, o->answers[i]->id);
	respond(o2, o2->answers[0]->id);
	for (size_t i = 0; i < 4; i++)
		expect_status(c, id[i], 200);
	assert_int_equal(o->count, 3);
	leave(c, false);
	leave(o, false);
	leave(o2, false);
}

static void test_no_streams_at_all(void **state)
{
	struct h2 *c = client_of_a(), *o, *o2;
	int32_t id;

	(void)state;
	o = begun(c, &id, "/0");
	set_max_streams(o, 0);
	respond(o, o->answers[0]->id);
	expect_status(c, id, 200);
	o2 = begun(c, &id, "/1");
	assert_int_equal(o->count, 1);
	leave(c, false);
	leave(o, false);
	leave(o2, false);
}

/* --- heads that wait for room, and the rules change meanwhile --- */

static struct h2 *patient_client_of_a(void)
{
	again((struct world_options){.timeouts = patient_timeouts, .limits = usual_limits});
	return client_of_a();
}

static struct upstream_conn *first_upstream(void)
{
	return container_of(w.proxy->upstreams.next, struct upstream_conn, all);
}

/* One upload fills the socket to an origin that reads nothing; the second request's head waits. */
static struct h2 *stuck(struct h2 *c, struct upload *up, int32_t id[2])
{
	const nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 64u << 20};
	struct h2 *o;

	buf_init(&up->bytes, 64u << 20);
	id[0] = h2_ask_with(c, "PUT", "a.test", "/up", NULL, 0, up);
	o = h2_origin();
	request_of(o, 0);
	nghttp2_submit_settings(o->session, NGHTTP2_FLAG_NONE, &wide, 1);
	nghttp2_session_set_local_window_size(o->session, NGHTTP2_FLAG_NONE, 0, 64 << 20);
	run_for(20);
	o->peer->deaf = true;
	while (up->bytes.len < 24u << 20)
		assert_int_equal(buf_append(&up->bytes, up_piece, sizeof(up_piece)), 0);
	nghttp2_session_resume_data(c->session, id[0]);
	ALL_UNTIL(socket_is_congested(&first_upstream()->socket));
	run_for(20);
	assert_true(socket_is_congested(&first_upstream()->socket));
	id[1] = h2_ask(c, "GET", "/late");
	run_for(20);
	assert_int_equal(w.proxy->upstream_count, 1);
	return o;
}

static void go_on(struct h2 *o)
{
	run_for(20);
	o->peer->deaf = false;
	peer_read(o->peer);
}

static void test_a_waiting_head_meets_a_lowered_bound(void **state)
{
	struct h2 *c = patient_client_of_a(), *o, *o2;
	struct upload up = {0};
	int32_t id[2];

	(void)state;
	o = stuck(c, &up, id);
	set_max_streams(o, 1);
	go_on(o);
	o2 = h2_origin();
	assert_true(asked_for(request_of(o2, 0), "/late"));
	respond(o2, o2->answers[0]->id);
	expect_status(c, id[1], 200);
	assert_int_equal(o->count, 1);
	assert_false(answer(c, id[0])->closed); /* the upload goes on */
	respond(o, o->answers[0]->id);
	ALL_UNTIL(answer(c, id[0])->status == 200);
	buf_fini(&up.bytes);
	leave(c, false);
	leave(o, false);
	leave(o2, false);
}

static void test_a_waiting_head_meets_goaway(void **state)
{
	struct h2 *c = patient_client_of_a(), *o, *o2;
	struct upload up = {0};
	int32_t id[2];

	(void)state;
	o = stuck(c, &up, id);
	say_goaway(o, 1, NGHTTP2_NO_ERROR);
	go_on(o);
	o2 = h2_origin();
	assert_true(asked_for(request_of(o2, 0), "/late"));
	respond(o2, o2->answers[0]->id);
	expect_status(c, id[1], 200);
	respond(o, o->answers[0]->id);
	ALL_UNTIL(answer(c, id[0])->status == 200);
	buf_fini(&up.bytes);
	leave(c, false);
	leave(o, false);
	leave(o2, false);
}

/* --- GOAWAY --- */

static void test_a_graceful_goaway(void **state)
{
	struct h2 *c = client_of_a(), *o, *o2;
	int32_t id[2];

	(void)state;
	o = begun(c, &id[0], "/old");
	say_goaway(o, LAST_OF_ALL, NGHTTP2_NO_ERROR);
	run_for(10);
	o2 = begun(c, &id[1], "/new");
	respond(o, o->answers[0]->id);
	expect_status(c, id[0], 200);
	ALL_UNTIL(o->peer->eof || o->peer->failed);
	respond(o2, o2->answers[0]->id);
	expect_status(c, id[1], 200);
	leave(c, false);
	leave(o, false);
	leave(o2, false);
}

/* Nothing was done with it: the client may ask again. */
static void expect_given_back(struct h2 *c, int32_t id)
{
	ALL_UNTIL(answer(c, id)->closed);
	assert_int_equal(answer(c, id)->status, 0);
	assert_int_equal(answer(c, id)->code, NGHTTP2_REFUSED_STREAM);
}

/* A request that the origin has not looked at goes to another connection, whatever its method,
 * with the body that has come so far. */
static void test_goaway_below_a_request(void **state)
{
	struct upload part = {0};
	struct h2 *c = client_of_a(), *o, *o2;
	int32_t first, get, post, upload;

	(void)state;
	buf_init(&part.bytes, 100);
	buf_append(&part.bytes, "some", 4);
	o = begun(c, &first, "/first");
	get = h2_ask(c, "GET", "/get");
	post = h2_ask_with(c, "POST", "a.test", "/post",
	        (const nghttp2_nv[]){nv("content-length", "0")}, 1, NULL);
	upload = h2_ask_with(c, "PUT", "a.test", "/upload", NULL, 0, &part);
	ALL_UNTIL(o->count == 4 && o->answers[3]->body.len == 4);
	say_goaway(o, o->answers[0]->id, NGHTTP2_NO_ERROR);
	o2 = h2_origin();
	request_of(o2, 2);
	respond(o2, o2->answers[0]->id);
	respond(o2, o2->answers[1]->id);
	expect_status(c, get, 200);
	expect_status(c, post, 200);
	ALL_UNTIL(body_is(o2->answers[2], "some"));
	buf_append(&part.bytes, " more", 5);
	part.ended = true;
	nghttp2_session_resume_data(c->session, upload);
	ALL_UNTIL(o2->answers[2]->ended);
	assert_true(body_is(o2->answers[2], "some more"));
	assert_int_equal(w.proxy->kept, 9);
	respond(o2, o2->answers[2]->id);
	expect_status(c, upload, 200);
	respond(o, o->answers[0]->id);
	expect_status(c, first, 200);
	assert_int_equal(o2->count, 3);
	assert_int_equal(w.proxy->kept, 0);
	assert_int_equal(find_event(&w, EVENT_HTTP)->status, 200);
	assert_int_equal(count_events(&w, EVENT_HTTP), 4);
	buf_fini(&part.bytes);
	leave(c, false);
	leave(o, false);
	leave(o2, false);
}

static void test_goaway_again_and_again(void **state)
{
	struct h2 *c = client_of_a(), *o;
	int32_t id;

	(void)state;
	o = begun(c, &id, "/x");
	for (unsigned i = 0; i < EXCHANGE_RETRIES_MAX; i++) {
		say_goaway(o, 0, NGHTTP2_NO_ERROR);
		leave(o, false); /* it may be read together with that */
		o = h2_origin();
		request_of(o, 0);
	}
	say_goaway(o, 0, NGHTTP2_NO_ERROR);
	expect_given_back(c, id);
	assert_true(nobody_dials());
	expect_detail("the upstream ended the connection before this request");
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_DENIED);
	assert_int_equal(only(EVENT_HTTP)->status, 0);
	leave(c, false);
	leave(o, false);
}

/* A body longer than what is kept is sent once; the client may send it again. */
static void test_goaway_below_a_long_upload(void **state)
{
	struct upload part = {0};
	struct h2 *c = client_of_a(), *o;
	int32_t first, upload;

	(void)state;
	buf_init(&part.bytes, 1 << 20);
	buf_append(&part.bytes, up_piece, EXCHANGE_KEPT_MAX);
	buf_append(&part.bytes, "x", 1);
	o = begun(c, &first, "/first");
	upload = h2_ask_with(c, "PUT", "a.test", "/upload", NULL, 0, &part);
	ALL_UNTIL(!part.bytes.len && !w.proxy->kept);
	say_goaway(o, o->answers[0]->id, NGHTTP2_NO_ERROR);
	expect_given_back(c, upload);
	assert_true(nobody_dials());
	respond(o, o->answers[0]->id);
	expect_status(c, first, 200);
	buf_fini(&part.bytes);
	leave(c, false);
	leave(o, false);
}

static void test_goaway_with_an_error_ends_all(void **state)
{
	struct upload part = {0};
	struct h2 *c = client_of_a(), *o;
	int32_t id;

	(void)state;
	buf_init(&part.bytes, 100);
	buf_append(&part.bytes, "some", 4);
	id = h2_ask_with(c, "PUT", "a.test", "/upload", NULL, 0, &part);
	o = h2_origin();
	ALL_UNTIL(o->count == 1 && o->answers[0]->body.len == 4);
	nghttp2_session_terminate_session(o->session, NGHTTP2_ENHANCE_YOUR_CALM);
	h2_run(o);
	socket_end(&o->peer->socket);
	expect_status(c, id, 502);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
	buf_fini(&part.bytes);
	leave(c, false);
	leave(o, false);
}

/* --- a connection that is lost --- */

/* The first request of a connection is not sent again; others are sent again once, if that does no
 * harm. */
static void test_a_lost_connection_with_many_streams(void **state)
{
	struct h2 *c = client_of_a(), *o, *o2;
	int32_t first, post, get[5];

	(void)state;
	o = begun(c, &first, "/first");
	post = h2_ask_with(c, "POST", "a.test", "/post",
	        (const nghttp2_nv[]){nv("content-length", "0")}, 1, NULL);
	for (size_t i = 0; i < 5; i++)
		get[i] = h2_ask(c, "GET", "/get");
	request_of(o, 6);
	leave(o, true);
	expect_status(c, first, 502);
	expect_status(c, post, 502);
	o2 = h2_origin();
	request_of(o2, 4);
	respond(o2, o2->answers[0]->id);
	ALL_UNTIL(answer(c, get[0])->closed);
	leave(o2, true);
	expect_status(c, get[0], 200);
	for (size_t i = 1; i < 5; i++)
		expect_status(c, get[i], 502);
	assert_true(nobody_dials());
	assert_int_equal(count_events(&w, EVENT_HTTP), 7);
	assert_int_equal(w.proxy->upstream_count, 0);
	leave(c, false);
}

static void test_bytes_that_are_no_http2(void **state)
{
	static const char *const bytes[] = {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	        "\x7f\xff\xff\4\0\0\0\0\0garbage", "abc"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct h2 *c = client_of_a();
		int32_t id = h2_ask(c, "GET", "/x");
		struct peer *o = accept_tls("\x02h2");

		say_n(o, bytes[i], i == 1 ? 16 : strlen(bytes[i]));
		socket_end(&o->socket);
		expect_status(c, id, 502);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
		hang_up(o, false);
		leave(c, false);
	}
}

static void frame_to_all(const char *frame, size_t n, const char *detail)
{
	struct h2 *c = client_of_a(), *o;
	int32_t id;

	o = begun(c, &id, "/x");
	run_for(10);
	say_n(o->peer, frame, n);
	for (size_t i = 0; i < LIVE_MAX; i++) /* nghttp2 knows nothing of these bytes */
		if (live[i] == o)
			live[i] = NULL;
	expect_status(c, id, 502);
	if (detail)
		expect_detail(detail);
	UNTIL(&w, o->peer->eof || o->peer->failed);
	leave(c, false);
	h2_hang_up(o, false);
}

#define FRAME(bytes) bytes, sizeof(bytes) - 1

static void test_frames_that_end_a_connection(void **state)
{
	static const char broke[] = "the upstream broke the HTTP/2 protocol";

	(void)state;
	frame_to_all(FRAME("\0\0\4\3\0\0\0\0\0\0\0\0\1"), broke);   /* RST on 0 */
	frame_to_all(FRAME("\0\0\4\3\0\0\0\0\x09\0\0\0\1"), broke); /* ... of none */
	frame_to_all(FRAME("\0\0\1\0\0\0\0\0\0x"), broke);          /* DATA on 0 */
	frame_to_all(FRAME("\0\0\1\0\0\0\0\0\x09x"), NULL);         /* ... of none */
	frame_to_all(FRAME("\0\0\5\5\4\0\0\0\1\0\0\0\2\x82"), "the upstream sent a PUSH_PROMISE");
	frame_to_all(FRAME("\0\0\1\1\4\0\0\0\2\x88"), broke);                 /* even stream */
	frame_to_all(FRAME("\0\0\6\4\0\0\0\0\0\0\2\0\0\0\1"), broke);         /* may push */
	frame_to_all(FRAME("\0\0\6\4\0\0\0\0\0\0\4\xff\xff\xff\xff"), broke); /* window */
	frame_to_all(FRAME("\0\0\6\4\0\0\0\0\0\0\5\0\0\0\1"), broke);         /* frame size */
	frame_to_all(FRAME("\0\0\4\x08\0\0\0\0\0\0\0\0\0"), broke);           /* no increment */
	frame_to_all(FRAME("\0\0\4\x08\0\0\0\0\0\x7f\xff\xff\xff"), broke);   /* too much */
	frame_to_all(FRAME("\0\0\1\1\4\0\0\0\1\xff"), NULL);                  /* HPACK */
	frame_to_all(FRAME("\0\0\1\x09\4\0\0\0\1\x88"), broke); /* CONTINUATION of none */
}

static void test_floods(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} frames[] = {{FRAME("\0\0\x08\6\0\0\0\0\0abcdefgh")}, {FRAME("\0\0\0\4\0\0\0\0\0")},
	        {FRAME("\0\0\4\x08\0\0\0\0\0\0\0\0\1")}};

	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		struct buf many;

		buf_init(&many, 1u << 20);
		for (size_t k = 0; k < 5000; k++)
			buf_append(&many, frames[i].bytes, frames[i].n);
		frame_to_all((const char *)buf_bytes(&many), many.len, NULL);
		buf_fini(&many);
	}
}

/* --- idle ones --- */

static struct h2 *idle(struct h2 *c, const char *authority)
{
	int32_t id = h2_ask_with(c, "GET", authority, "/x", NULL, 0, NULL);
	struct h2 *o = h2_origin();

	request_of(o, 0);
	respond(o, o->answers[0]->id);
	expect_status(c, id, 200);
	return o;
}

static void test_idle_connections_are_bounded(void **state)
{
	struct world_options o = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct h2 *c, *d, *old, *young;

	(void)state;
	o.limits.upstream_idle = 1;
	again(o);
	c = client_of_a();
	d = enliven(h2_client_of(NAME_C, "c.test"));
	old = idle(c, "a.test");
	young = idle(d, "c.test");
	ALL_UNTIL(old->peer->eof || old->peer->failed);
	assert_true(old->goaway);
	assert_int_equal(old->goaway_code, NGHTTP2_NO_ERROR);
	run_for(10);
	assert_false(young->peer->eof || young->peer->failed);
	assert_int_equal(w.proxy->idle_count, 1);
	leave(c, false);
	leave(d, false);
	leave(old, false);
	leave(young, false);
}

static void test_an_idle_connection_makes_room(void **state)
{
	struct world_options options = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct h2 *c, *d, *o;
	struct peer *o2;
	int32_t id, late;

	(void)state;
	options.limits.upstream_connections = 1;
	again(options);
	c = client_of_a();
	d = enliven(h2_client_of(NAME_C, "c.test"));
	o = idle(c, "a.test");
	id = h2_ask_with(d, "GET", "c.test", "/x", NULL, 0, NULL);
	o2 = accept_tls("\x02h2");
	ALL_UNTIL(o->peer->eof || o->peer->failed);
	late = h2_ask(c, "GET", "/x"); /* the one connection is busy: no room */
	expect_status(c, late, 503);
	assert_false(answer(d, id)->closed);
	leave(c, false);
	leave(d, false);
	leave(o, false);
	hang_up(o2, false);
}

static void test_an_idle_connection_ends_in_time(void **state)
{
	struct h2 *c = client_of_a(), *o = idle(c, "a.test");

	(void)state;
	ALL_UNTIL(o->peer->eof || o->peer->failed);
	assert_int_equal(w.proxy->idle_count, 0);
	leave(c, false);
	leave(o, false);
}

static void test_an_idle_connection_that_ends_is_not_used(void **state)
{
	struct h2 *c = client_of_a(), *o = idle(c, "a.test"), *o2;
	int32_t id;

	(void)state;
	leave(o, false);
	run_for(10);
	assert_int_equal(w.proxy->idle_count, 0);
	o2 = begun(c, &id, "/x");
	leave(c, false);
	leave(o2, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_many_exchanges_make_one_connection),
	        TEST(test_the_initial_window_stays),
	        TEST(test_after_a_failed_dial_the_next_one_dials),
	        TEST(test_all_dials_fail),
	        HASTY(test_who_waits_too_long_is_told),
	        TEST(test_with_http1_everybody_dials),
	        TEST(test_never_shared_between_credentials),
	        TEST(test_never_shared_between_hosts),
	        TEST(test_a_lowered_bound_on_streams),
	        TEST(test_no_streams_at_all),
	        TEST(test_a_waiting_head_meets_a_lowered_bound),
	        TEST(test_a_waiting_head_meets_goaway),
	        TEST(test_a_graceful_goaway),
	        TEST(test_goaway_below_a_request),
	        TEST(test_goaway_again_and_again),
	        TEST(test_goaway_below_a_long_upload),
	        TEST(test_goaway_with_an_error_ends_all),
	        TEST(test_a_lost_connection_with_many_streams),
	        TEST(test_bytes_that_are_no_http2),
	        TEST(test_frames_that_end_a_connection),
	        TEST(test_floods),
	        TEST(test_idle_connections_are_bounded),
	        TEST(test_an_idle_connection_makes_room),
	        HASTY(test_an_idle_connection_ends_in_time),
	        TEST(test_an_idle_connection_that_ends_is_not_used),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
