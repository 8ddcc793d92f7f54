/* SPDX-License-Identifier: Apache-2.0 */
/* One request on a stream to an upstream that speaks HTTP/2: resets in each phase, heads that lie,
 * bodies that nobody reads, trailers, silence, and clients that leave. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/upstream/http2.h"
#include "../http2_origin.h"

#define TOTAL (8u << 20)
/* The bound on what is kept of a response that nobody reads. */
#define KEPT_MAX (2u << 20)

static struct h2 *c, *o;
static struct upload body;

static int begin_both(void)
{
	c = enliven(h2_client());
	o = NULL;
	memset(&body, 0, sizeof(body));
	buf_init(&body.bytes, 64u << 20);
	return 0;
}

static int set_up_both(void **state)
{
	set_up(state);
	return begin_both();
}

static int set_up_hasty_both(void **state)
{
	set_up_hasty(state);
	return begin_both();
}

static int tear_down_both(void **state)
{
	leave(c, false);
	if (o)
		leave(o, false);
	memset(live, 0, sizeof(live));
	buf_fini(&body.bytes);
	return tear_down(state);
}

#undef TEST
#undef HASTY
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_both, tear_down_both)
#define HASTY(name) cmocka_unit_test_setup_teardown(name, set_up_hasty_both, tear_down_both)

static const uint8_t piece[65536] = {1, 2, 3};

static void fill(size_t n)
{
	while (body.bytes.len < n)
		assert_int_equal(buf_append(&body.bytes, piece, sizeof(piece)), 0);
}

static void expect_status(int32_t id, int status)
{
	ALL_UNTIL(answer(c, id)->ended || answer(c, id)->closed);
	if (answer(c, id)->status != status)
		fail_msg("status %d instead of %d: %.*s", answer(c, id)->status, status,
		        (int)answer(c, id)->body.len,
		        answer(c, id)->body.len ? (const char *)buf_bytes(&answer(c, id)->body)
		                                : "");
}

/* A request that has come to the origin; the first one makes the connection. */
static struct answer *asked(int32_t *id, const char *method, const char *path, struct upload *up)
{
	size_t n = o ? o->count : 0;

	*id = h2_ask_with(c, method, "a.test", path, NULL, 0, up);
	if (!o)
		o = h2_origin();
	return request_of(o, n);
}

/* The connection is as good as new after what was done to one stream. */
static void expect_alive(void)
{
	int32_t id;
	struct answer *r = asked(&id, "GET", "/alive", NULL);

	respond(o, r->id);
	expect_status(id, 200);
	assert_true(nobody_dials());
}

/* --- resets --- */

static void expect_given_back(int32_t id)
{
	ALL_UNTIL(answer(c, id)->closed);
	assert_int_equal(answer(c, id)->status, 0);
	assert_int_equal(answer(c, id)->code, NGHTTP2_REFUSED_STREAM);
}

static void test_a_refused_stream_is_tried_again(void **state)
{
	int32_t id;
	struct answer *r = asked(&id, "POST", "/x", NULL);

	(void)state;
	reset_stream(o, r->id, NGHTTP2_REFUSED_STREAM);
	r = request_of(o, 1);
	assert_true(asked_for(r, "/x"));
	respond(o, r->id);
	expect_status(id, 200);
	r = asked(&id, "GET", "/y", NULL);
	for (unsigned i = 0; i < EXCHANGE_RETRIES_MAX; i++) {
		reset_stream(o, r->id, NGHTTP2_REFUSED_STREAM);
		r = request_of(o, 3 + i);
	}
	reset_stream(o, r->id, NGHTTP2_REFUSED_STREAM);
	expect_given_back(id);
	expect_detail("the upstream refused the stream");
	assert_int_equal(o->count, 3 + EXCHANGE_RETRIES_MAX);
	expect_alive();
}

/* With its body and what follows it. */
static void test_a_refused_stream_with_a_body(void **state)
{
	const nghttp2_nv sum = nv("x-sum", "7");
	struct answer *r;
	int32_t id;

	(void)state;
	buf_append(&body.bytes, "some", 4);
	body.ended = true;
	body.trailers = &sum;
	body.trailer_count = 1;
	r = asked(&id, "POST", "/x", &body);
	ALL_UNTIL(r->ended);
	reset_stream(o, r->id, NGHTTP2_REFUSED_STREAM);
	r = request_of(o, 1);
	ALL_UNTIL(r->ended);
	assert_true(body_is(r, "some"));
	assert_non_null(strstr(r->fields, "x-sum: 7\n"));
	respond(o, r->id);
	expect_status(id, 200);
	assert_int_equal(find_event(&w, EVENT_HTTP)->bytes_out, 4);
	assert_int_equal(w.proxy->kept, 0);
	expect_alive();
}

/* A response has begun: whatever is said afterwards, it is not sent again. */
static void test_a_stream_refused_too_late(void **state)
{
	const nghttp2_nv early = nv(":status", "103");
	struct answer *r;
	int32_t id;

	(void)state;
	buf_append(&body.bytes, "some", 4);
	r = asked(&id, "POST", "/x", &body);
	ALL_UNTIL(r->body.len == 4);
	nghttp2_submit_headers(o->session, NGHTTP2_FLAG_NONE, r->id, NULL, &early, 1, NULL);
	ALL_UNTIL(answer(c, id)->status == 103);
	reset_stream(o, r->id, NGHTTP2_REFUSED_STREAM);
	ALL_UNTIL(answer(c, id)->closed || answer(c, id)->status == 502);
	assert_int_equal(o->count, 1);
	expect_alive();
}

static void test_http1_is_required(void **state)
{
	struct peer *o1;
	int32_t id;
	struct answer *r = asked(&id, "POST", "/x", NULL);

	(void)state;
	reset_stream(o, r->id, NGHTTP2_HTTP_1_1_REQUIRED);
	o1 = accept_tls("\x02h2\x08http/1.1");
	assert_true(slice_equals(tls_alpn(o1->socket.tls), SLICE("http/1.1")));
	expect_head(o1, "POST /x HTTP/1.1\r\n");
	say(o1, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_status(id, 200);
	assert_true(body_is(answer(c, id), "ok"));
	hang_up(o1, false);
	expect_alive(); /* it holds for that request only */
}

static void test_resets_before_a_head(void **state)
{
	static const uint32_t codes[] = {NGHTTP2_NO_ERROR, NGHTTP2_PROTOCOL_ERROR,
	        NGHTTP2_INTERNAL_ERROR, NGHTTP2_CANCEL, NGHTTP2_CONNECT_ERROR, 0xfe, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		int32_t id;
		struct answer *r = asked(&id, "GET", "/x", NULL);

		reset_stream(o, r->id, codes[i]);
		expect_status(id, 502);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
		assert_int_equal(count_events(&w, EVENT_HTTP), i + 1);
	}
	expect_alive();
}

/* A response that is cut off never looks whole: neither with a code that sounds like an end, nor
 * without its trailers.
 */
static void test_resets_inside_a_body(void **state)
{
	static const uint32_t codes[] = {NGHTTP2_NO_ERROR, NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM,
	        NGHTTP2_HTTP_1_1_REQUIRED};
	const nghttp2_nv fields[] = {nv(":status", "200")};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		int32_t id;
		struct answer *r = asked(&id, "GET", "/x", NULL);

		buf_append(&body.bytes, "half", 4);
		respond_with(o, r->id, fields, 1, &body);
		ALL_UNTIL(body_is(answer(c, id), "half"));
		reset_stream(o, r->id, codes[i]);
		ALL_UNTIL(answer(c, id)->closed);
		assert_false(answer(c, id)->ended);
		assert_int_not_equal(answer(c, id)->code, NGHTTP2_NO_ERROR);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
		assert_int_equal(find_event(&w, EVENT_HTTP)->bytes_in, 4);
	}
	expect_alive();
}

static void test_an_early_answer_and_a_reset(void **state)
{
	struct answer *r;
	int32_t id;

	(void)state;
	buf_append(&body.bytes, "some", 4);
	r = asked(&id, "PUT", "/x", &body);
	ALL_UNTIL(r->body.len == 4);
	respond(o, r->id);
	reset_stream(o, r->id, NGHTTP2_NO_ERROR);
	expect_status(id, 200);
	assert_true(answer(c, id)->ended);
	assert_int_equal(only(EVENT_HTTP)->status, 200);
	expect_alive();
}

/* The same where the connection is reset, and sending finds that out before the answer was read. */
static void test_an_early_answer_and_a_lost_connection(void **state)
{
	struct answer *r;
	int32_t id;

	(void)state;
	buf_append(&body.bytes, "some", 4);
	r = asked(&id, "PUT", "/x", &body);
	ALL_UNTIL(r->body.len == 4);
	respond(o, r->id);
	leave(o, true);
	o = NULL;
	buf_append(&body.bytes, "more", 4);
	nghttp2_session_resume_data(c->session, id);
	h2_run(c);
	only_the_client_is_ready();
	expect_status(id, 200);
	assert_true(answer(c, id)->ended);
	assert_int_equal(only(EVENT_HTTP)->status, 200);
}

static void test_a_client_that_goes(void **state)
{
	int32_t id, other;
	struct answer *r = asked(&id, "GET", "/x", NULL), *r2 = asked(&other, "GET", "/y", NULL);

	(void)state;
	nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	ALL_UNTIL(r->closed);
	assert_int_equal(r->code, NGHTTP2_CANCEL);
	assert_false(r2->closed);
	leave(c, true);
	c = enliven(h2_client());
	ALL_UNTIL(r2->closed);
	assert_int_equal(r2->code, NGHTTP2_CANCEL);
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
	expect_alive();
}

/* --- silence --- */

static void test_silence_ends_the_request_and_the_sharing(void **state)
{
	const nghttp2_nv fields[] = {nv(":status", "200")};
	struct h2 *o2;
	int32_t id, other, third;
	struct answer *r = asked(&id, "GET", "/silent", NULL),
	              *r2 = asked(&other, "GET", "/y", NULL);

	(void)state;
	buf_append(&body.bytes, "a", 1);
	respond_with(o, r2->id, fields, 1, &body);
	for (int i = 0; i < 8 && !answer(c, id)->closed; i++) {
		run_for(100);
		buf_append(&body.bytes, "a", 1);
		nghttp2_session_resume_data(o->session, r2->id);
	}
	expect_status(id, 504);
	expect_detail("the upstream was silent for too long");
	ALL_UNTIL(r->closed);
	assert_int_equal(r->code, NGHTTP2_CANCEL);
	third = h2_ask(c, "GET", "/z");
	o2 = h2_origin();
	assert_true(asked_for(request_of(o2, 0), "/z"));
	body.ended = true;
	nghttp2_session_resume_data(o->session, r2->id);
	expect_status(other, 200);
	respond(o2, o2->answers[0]->id);
	expect_status(third, 200);
	ALL_UNTIL(o->peer->eof || o->peer->failed);
	leave(o2, false);
}

/* --- heads --- */

static void expect_refused(int status, const nghttp2_nv *fields, size_t n, const char *what)
{
	int32_t id;
	struct answer *r = asked(&id, "GET", "/x", NULL);

	respond_with(o, r->id, fields, n, NULL);
	ALL_UNTIL(answer(c, id)->ended || answer(c, id)->closed);
	if (answer(c, id)->status != status)
		fail_msg("%s: status %d", what, answer(c, id)->status);
	if (find_event(&w, EVENT_HTTP)->cause != EVENT_CAUSE_UPSTREAM)
		fail_msg("%s: cause %d, %.*s", what, find_event(&w, EVENT_HTTP)->cause,
		        (int)find_event(&w, EVENT_HTTP)->detail.n,
		        find_event(&w, EVENT_HTTP)->detail.p);
	expect_alive();
}

static void test_malformed_heads(void **state)
{
	static const char *const bad[][4] = {{"x-a", "b"}, {":status", "2000"}, {":status", "99"},
	        {":status", "000"}, {":status", ""}, {":status", "abc"}, {":status", "+20"},
	        {":status", "101"}, {":status", "100"}, {"x-a", "b", ":status", "200"},
	        {":status", "200", ":status", "200"}, {":status", "200", ":path", "/"},
	        {":status", "200", ":new", "1"}, {":status", "200", "connection", "close"},
	        {":status", "200", "transfer-encoding", "chunked"},
	        {":status", "200", "upgrade", "websocket"}, {":status", "200", "keep-alive", "1"},
	        {":status", "200", "proxy-connection", "x"}, {":status", "200", "X-Upper", "1"},
	        {":status", "200", "x-a", "b\r\nx: y"}, {":status", "200", "x-a", "b\nc"},
	        {":status", "200", "x a", "1"}, {":status", "200", "x:a", "1"},
	        {":status", "200", "", "1"}, {":status", "200", "content-length", "x"},
	        {":status", "200", "content-length", "-1"},
	        {":status", "200", "content-length", "5"},
	        {":status", "200", "content-length", "18446744073709551616"}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const nghttp2_nv fields[] = {nv(bad[i][0], bad[i][1]),
		        nv(bad[i][2] ? bad[i][2] : "", bad[i][3] ? bad[i][3] : "")};

		expect_refused(502, fields, bad[i][2] ? 2 : 1, bad[i][bad[i][2] ? 2 : 0]);
	}
}

/* A head without a field is the beginning of a response all the same: a request that may be sent
 * again, on a connection that has served others, is not. */
static void test_heads_without_a_field(void **state)
{
	static const uint8_t ends[] = {0, NGHTTP2_FLAG_END_STREAM};
	int32_t id;
	struct answer *r = asked(&id, "GET", "/first", NULL);

	(void)state;
	respond(o, r->id);
	expect_status(id, 200);
	for (size_t i = 0; i < sizeof(ends); i++) {
		char raw[9] = {0, 0, 0, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS};
		size_t count;

		r = asked(&id, "GET", "/x", NULL);
		count = o->count;
		raw[4] |= (char)ends[i];
		raw[8] = (char)r->id;
		say_n(o->peer, raw, sizeof(raw));
		ALL_UNTIL(answer(c, id)->ended || answer(c, id)->closed || o->count > count);
		assert_int_equal(o->count, count);
		expect_status(id, 502);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
		expect_alive();
	}
}

/* With one content-length for the client. */
static void expect_taken(const nghttp2_nv *fields, size_t n)
{
	int32_t id;
	struct answer *r = asked(&id, "GET", "/x", NULL);

	respond_with(o, r->id, fields, n, NULL);
	expect_status(id, 200);
	assert_string_equal(answer(c, id)->fields, ":status: 200\ncontent-length: 0\n");
	expect_alive();
}

static void test_two_lengths(void **state)
{
	const nghttp2_nv same[] = {nv(":status", "200"), nv("content-length", "0"),
	        nv("content-length", "0, 0")},
	                 other[] = {nv(":status", "200"), nv("content-length", "0"),
	                         nv("content-length", "1")};

	(void)state;
	expect_taken(same, 3);
	expect_refused(502, other, 3, "other");
}

static void test_heads_beyond_the_bounds(void **state)
{
	static char value[9000];
	static nghttp2_nv fields[600];

	(void)state;
	memset(value, 'a', sizeof(value) - 1);
	fields[0] = nv(":status", "200");
	for (size_t i = 1; i < 600; i++)
		fields[i] = nv("x-a", i < 9 ? value : "b");
	expect_refused(502, fields, 9, "bytes");
	for (size_t i = 1; i < 600; i++)
		fields[i] = nv("x-a", "b");
	expect_refused(502, fields, HTTP_FIELDS_MAX + HTTP2_PSEUDO_MAX + 1, "fields");
}

static void interims(struct answer *r, size_t n)
{
	const nghttp2_nv hints[] = {nv(":status", "103"), nv("link", "</a>")};

	for (size_t i = 0; i < n; i++) {
		nghttp2_submit_headers(o->session, NGHTTP2_FLAG_NONE, r->id, NULL, hints, 2, NULL);
		h2_run(o);
	}
}

static void test_interim_responses(void **state)
{
	int32_t id;
	struct answer *r = asked(&id, "GET", "/x", NULL);

	(void)state;
	interims(r, 2);
	respond(o, r->id);
	expect_status(id, 200);
	assert_string_equal(answer(c, id)->fields,
	        ":status: 103\nlink: </a>\n:status: 103\nlink: "
	        "</a>\n:status: 200\nx-from: origin\ncontent-length: 0\n");
	r = asked(&id, "GET", "/x", NULL);
	interims(r, EXCHANGE_INTERIMS_MAX + 1);
	expect_status(id, 502);
	expect_detail("the upstream sent too many interim responses");
	expect_alive();
}

/* --- bodies --- */

static void test_lengths_that_lie(void **state)
{
	static const char *const lengths[] = {"3", "5", "0"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const nghttp2_nv fields[] = {
		        nv(":status", "200"), nv("content-length", lengths[i])};
		int32_t id;
		struct answer *r = asked(&id, "GET", "/x", NULL);

		body.ended = true;
		buf_append(&body.bytes, "four", 4);
		respond_with(o, r->id, fields, 2, &body);
		ALL_UNTIL(answer(c, id)->closed || answer(c, id)->ended);
		if (answer(c, id)->status == 200)
			assert_false(answer(c, id)->ended);
		/* With length 0 its head makes a response whole, and the event is written before
		 * that. */
		assert_int_equal(
		        find_event(&w, EVENT_HTTP)->cause, i < 2 ? EVENT_CAUSE_UPSTREAM : 0);
		expect_alive();
	}
}

static void test_a_body_where_there_is_none(void **state)
{
	static const char *const cases[][2] = {{"HEAD", "200"}, {"GET", "204"}, {"GET", "304"}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const nghttp2_nv fields[] = {nv(":status", cases[i][1]), nv("x-a", "b")};
		int32_t id;
		struct answer *r = asked(&id, cases[i][0], "/x", NULL);

		body.ended = true;
		buf_append(&body.bytes, "four", 4);
		respond_with(o, r->id, fields, 2, &body);
		ALL_UNTIL(answer(c, id)->closed || answer(c, id)->ended);
		assert_null(memmem(answer(c, id)->body.len
		                           ? (const void *)buf_bytes(&answer(c, id)->body)
		                           : "",
		        answer(c, id)->body.len, "four", 4));
		expect_alive();
	}
}

static void test_trailers_both_ways(void **state)
{
	const nghttp2_nv up[] = {nv("x-sum", "7"), nv("authorization", "no")};
	const nghttp2_nv down[] = {nv("grpc-status", "0"), nv("set-cookie", "no")};
	const nghttp2_nv fields[] = {nv(":status", "200")};
	struct upload back = {.trailers = down, .trailer_count = 2, .ended = true};
	struct answer *r;
	int32_t id;

	(void)state;
	body.trailers = up;
	body.trailer_count = 2;
	buf_append(&body.bytes, "hello", 5);
	r = asked(&id, "POST", "/x", &body);
	ALL_UNTIL(body_is(r, "hello"));
	assert_false(r->ended);
	body.ended = true;
	nghttp2_session_resume_data(c->session, id);
	ALL_UNTIL(r->ended);
	assert_non_null(strstr(r->fields, "x-sum: 7\n"));
	assert_null(strstr(r->fields, "authorization"));
	buf_init(&back.bytes, 100);
	buf_append(&back.bytes, "bye", 3);
	respond_with(o, r->id, fields, 1, &back);
	expect_status(id, 200);
	assert_string_equal(answer(c, id)->fields, ":status: 200\n--\ngrpc-status: 0\n");
	assert_true(body_is(answer(c, id), "bye"));
	buf_fini(&back.bytes);
	expect_alive();
}

static void test_trailers_against_the_rules(void **state)
{
	static const char *const bad[][2] = {
	        {":status", "200"}, {"connection", "close"}, {"x-a", "b\r\nc"}, {"X-Upper", "1"}};
	const nghttp2_nv fields[] = {nv(":status", "200")};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const nghttp2_nv down[] = {nv(bad[i][0], bad[i][1])};
		struct upload back = {.trailers = down, .trailer_count = 1, .ended = true};
		int32_t id;
		struct answer *r = asked(&id, "GET", "/x", NULL);

		buf_init(&back.bytes, 100);
		buf_append(&back.bytes, "bye", 3);
		respond_with(o, r->id, fields, 1, &back);
		ALL_UNTIL(answer(c, id)->closed);
		assert_false(answer(c, id)->ended);
		assert_null(strstr(answer(c, id)->fields, "--\n"));
		buf_fini(&back.bytes);
		expect_alive();
	}
}

/* The greatest number arrives, each of them; with one more nothing arrives that looks whole. */
static void test_many_trailers(void **state)
{
	const nghttp2_nv fields[] = {nv(":status", "200")};
	nghttp2_nv down[HTTP_TRAILERS_MAX + 1];
	char name[HTTP_TRAILERS_MAX + 1][8];

	(void)state;
	for (size_t i = 0; i <= HTTP_TRAILERS_MAX; i++) {
		snprintf(name[i], sizeof(name[i]), "x-%zu", i);
		down[i] = nv(name[i], "1");
	}
	for (size_t n = HTTP_TRAILERS_MAX; n <= HTTP_TRAILERS_MAX + 1; n++) {
		struct upload back = {.trailers = down, .trailer_count = n, .ended = true};
		int32_t id;
		struct answer *r = asked(&id, "GET", "/x", NULL);

		buf_init(&back.bytes, 100);
		buf_append(&back.bytes, "bye", 3);
		respond_with(o, r->id, fields, 1, &back);
		ALL_UNTIL(answer(c, id)->closed);
		assert_int_equal(answer(c, id)->ended, n == HTTP_TRAILERS_MAX);
		assert_int_equal(!!strstr(answer(c, id)->fields, "x-0: 1\n"), answer(c, id)->ended);
		assert_int_equal(
		        !!strstr(answer(c, id)->fields, "x-63: 1\n"), answer(c, id)->ended);
		buf_fini(&back.bytes);
		expect_alive();
	}
}

/* --- windows --- */

/* Bytes of responses that wait for clients, on the first connection. */
static size_t stashed(void)
{
	struct upstream_http2 *s =
	        container_of(w.proxy->upstreams.next, struct upstream_conn, all)->http2;
	size_t n = 0;

	for (struct list *l = s->streams.next; l != &s->streams; l = l->next)
		n += container_of(l, struct upstream_http2_stream, list)->input_buf.len;
	return n;
}

/* A client that reads nothing costs bounded memory, and costs others nothing. */
static void test_a_client_that_takes_nothing(void **state)
{
	const nghttp2_nv fields[] = {nv(":status", "200")};
	struct h2 *slow = c;
	int32_t id, other;
	struct answer *r = asked(&id, "GET", "/x", NULL), *r2;

	(void)state;
	run_for(20);
	slow->peer->deaf = true;
	fill(TOTAL);
	body.ended = true;
	respond_with(o, r->id, fields, 1, &body);
	ALL_UNTIL(stashed() > 0);
	run_for(200);
	assert_true(body.bytes.len > TOTAL - KEPT_MAX); /* the rest has not left the origin */
	assert_true(stashed() < KEPT_MAX);
	c = enliven(h2_client());
	r2 = asked(&other, "GET", "/y", NULL);
	respond(o, r2->id);
	expect_status(other, 200);
	slow->peer->deaf = false;
	peer_read(slow->peer);
	ALL_UNTIL(answer(slow, id)->ended);
	assert_int_equal(answer(slow, id)->body.len, TOTAL);
	assert_int_equal(stashed(), 0);
	leave(slow, false);
}

/* All of a response has come, and its client takes it slowly: the connection may end. A client
 * that has not got all of its response is told. */
static void test_a_slow_client_and_a_connection_that_ends(void **state)
{
	const nghttp2_nv fields[] = {nv(":status", "200")};
	struct upload one = {.ended = true};
	int32_t id, other;
	size_t total;
	struct answer *r = asked(&id, "GET", "/x", NULL);

	(void)state;
	buf_init(&one.bytes, 1);
	buf_append(&one.bytes, "x", 1);
	asked(&other, "POST", "/y", &one);
	run_for(20);
	c->peer->deaf = true;
	fill(512u << 10);
	total = body.bytes.len;
	body.ended = true;
	respond_with(o, r->id, fields, 1, &body);
	ALL_UNTIL(!body.bytes.len && r->closed);
	say_goaway(o, LAST_OF_ALL, NGHTTP2_NO_ERROR);
	leave(o, false);
	o = NULL;
	ALL_UNTIL(!socket_is_open(
	        &container_of(w.proxy->upstreams.next, struct upstream_conn, all)->socket));
	assert_true(stashed() > 0);
	c->peer->deaf = false;
	peer_read(c->peer);
	expect_status(other, 502);
	ALL_UNTIL(answer(c, id)->ended);
	assert_int_equal(answer(c, id)->body.len, total);
	ALL_UNTIL(list_is_empty(&w.proxy->upstreams));
	buf_fini(&one.bytes);
}

/* An upstream that gives no window: the client stops, nothing piles up, and it goes on later. */
static void test_an_upstream_that_takes_nothing(void **state)
{
	struct answer *r;
	int32_t id;

	(void)state;
	id = h2_ask_with(c, "PUT", "a.test", "/x", NULL, 0, &body);
	o = h2_origin_over(accept_tls("\x02h2"), true);
	r = request_of(o, 0);
	fill(TOTAL);
	body.ended = true;
	nghttp2_session_resume_data(c->session, id);
	ALL_UNTIL(r->body.len >= 65535);
	run_for(200);
	assert_int_equal(r->body.len, 65535);
	assert_true(body.bytes.len > TOTAL - KEPT_MAX);
	for (size_t given = 65535; given < TOTAL; given += 65535 * 8) {
		nghttp2_submit_window_update(o->session, NGHTTP2_FLAG_NONE, 0, 65535 * 8);
		nghttp2_submit_window_update(o->session, NGHTTP2_FLAG_NONE, r->id, 65535 * 8);
		run_for(1);
	}
	ALL_UNTIL(r->ended);
	assert_int_equal(r->body.len, TOTAL);
	respond(o, r->id);
	expect_status(id, 200);
}

static void test_an_upstream_that_takes_nothing_for_too_long(void **state)
{
	int32_t id;

	(void)state;
	id = h2_ask_with(c, "PUT", "a.test", "/x", NULL, 0, &body);
	o = h2_origin_over(accept_tls("\x02h2"), true);
	request_of(o, 0);
	fill(1u << 20);
	nghttp2_session_resume_data(c->session, id);
	expect_status(id, 504);
	ALL_UNTIL(o->answers[0]->closed);
	assert_int_equal(o->answers[0]->code, NGHTTP2_CANCEL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_a_refused_stream_is_tried_again),
	        TEST(test_a_refused_stream_with_a_body),
	        TEST(test_a_stream_refused_too_late),
	        TEST(test_http1_is_required),
	        TEST(test_resets_before_a_head),
	        TEST(test_resets_inside_a_body),
	        TEST(test_an_early_answer_and_a_reset),
	        TEST(test_an_early_answer_and_a_lost_connection),
	        TEST(test_a_client_that_goes),
	        HASTY(test_silence_ends_the_request_and_the_sharing),
	        TEST(test_malformed_heads),
	        TEST(test_heads_without_a_field),
	        TEST(test_two_lengths),
	        TEST(test_heads_beyond_the_bounds),
	        TEST(test_interim_responses),
	        TEST(test_lengths_that_lie),
	        TEST(test_a_body_where_there_is_none),
	        TEST(test_trailers_both_ways),
	        TEST(test_trailers_against_the_rules),
	        TEST(test_many_trailers),
	        TEST(test_a_client_that_takes_nothing),
	        TEST(test_a_slow_client_and_a_connection_that_ends),
	        TEST(test_an_upstream_that_takes_nothing),
	        HASTY(test_an_upstream_that_takes_nothing_for_too_long),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
