/* SPDX-License-Identifier: Apache-2.0 */
/* Heads and bodies of HTTP/1: what is accepted, in every segmentation, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "proxy/http/http1.h"

struct outcome {
	enum http1_status status;
	struct http_request request;
	struct http_response response;
	size_t head_used;
	char body[4096];
	size_t body_n;
	enum http1_status body_status;
	size_t left;
	char error[128];
	uint16_t refusal; /* status */
};

static void on_body(void *context, const uint8_t *p, size_t n)
{
	struct outcome *o = context;

	assert_true(o->body_n + n <= sizeof(o->body));
	memcpy(o->body + o->body_n, p, n);
	o->body_n += n;
}

/* Runs text through the parser in steps of at most step bytes, head first, then body. */
static void run(struct http1 *h, const char *text, size_t n, size_t step, bool response, bool head,
        struct outcome *o)
{
	size_t at = 0;
	bool in_body = false;

	memset(o, 0, sizeof(*o));
	o->status = o->body_status = HTTP1_MORE;
	http1_init(h, response, 4096);
	while (at < n) {
		size_t k = n - at < step ? n - at : step, used = 0;
		const uint8_t *p = (const uint8_t *)text + at;

		if (!in_body) {
			o->status =
			        response ? http1_response_head(h, p, k, &used, head, &o->response)
			                 : http1_request_head(h, p, k, &used, &o->request);
			if (o->status == HTTP1_BAD || o->status == HTTP1_TOO_LARGE)
				break;
			at += used;
			if (o->status == HTTP1_DONE) {
				in_body = true;
				o->head_used = at;
				o->body_status = http1_body(h, NULL, 0, &used, on_body, o);
			}
			continue;
		}
		if (o->body_status != HTTP1_MORE)
			break;
		o->body_status = http1_body(h, p, k, &used, on_body, o);
		if (o->body_status == HTTP1_BAD)
			break;
		at += used;
	}
	o->left = n - at;
	if (o->status != HTTP1_DONE || o->body_status == HTTP1_BAD)
		snprintf(o->error, sizeof(o->error), "%s", http1_fault(h).why);
	o->refusal = http1_fault(h).status;
}

static const size_t steps[] = {1, 2, 3, 7, 64, 100000};
#define STEPS (sizeof(steps) / sizeof(*steps))

static void test_request_in_every_segmentation(void **state)
{
	static const char text[] =
	        "POST /a%41/../b?x=1&y HTTP/1.1\r\nHost: Example.COM:8443\r\nContent-Length: 5\r\n"
	        "X-Empty:\r\nX-Spaces:  a b \t\r\n\r\nhelloGET";

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		struct http1 h;
		struct outcome o;

		run(&h, text, sizeof(text) - 1, steps[i], false, false, &o);
		assert_int_equal(o.status, HTTP1_DONE);
		assert_int_equal(o.body_status, HTTP1_DONE);
		assert_int_equal(o.left, 3);
		assert_string_equal(o.request.authority.host, "example.com");
		assert_int_equal(o.request.authority.port, 8443);
		assert_memory_equal(o.request.path, "/b", 2);
		assert_int_equal(o.request.path_n, 2);
		assert_true(slice_equals(o.request.query, SLICE("x=1&y")));
		assert_int_equal(o.request.fields.count, 4);
		assert_true(slice_equals(o.request.fields.items[3].value, SLICE("a b")));
		assert_int_equal(o.request.fields.items[2].value.n, 0);
		assert_memory_equal(o.body, "hello", 5);
		http1_fini(&h);
	}
}

static void test_chunked_with_trailers(void **state)
{
	static const char text[] =
	        "PUT /u HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
	        "4\r\nWiki\r\n6;ext=1\r\npedia \r\n0\r\nX-Sum: 1\r\nX-Two: b c\r\n\r\nNEXT";

	(void)state;
	for (size_t i = 0; i < STEPS; i++) {
		struct http1 h;
		struct outcome o;

		run(&h, text, sizeof(text) - 1, steps[i], false, false, &o);
		assert_int_equal(o.body_status, HTTP1_DONE);
		assert_int_equal(o.left, 4);
		assert_int_equal(o.body_n, 10);
		assert_memory_equal(o.body, "Wikipedia ", 10);
		assert_true(slice_equals(http1_trailers(&h), SLICE("X-Sum: 1\r\nX-Two: b c\r\n")));
		http1_fini(&h);
	}
}

static void test_refused_requests(void **state)
{
	static const char *const bad[] = {
	        "GET / HTTP/1.1\r\n\r\n",                       /* no Host */
	        "GET / HTTP/1.1\nHost: a\n\n",                  /* bare LF */
	        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", /* two Hosts */
	        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", /* obs-fold */
	        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",           /* space before colon */
	        "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",       /* no colon */
	        "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", /* bare CR */
	        "GET / HTTP/1.1\r\nHost: a\r\n: v\r\n\r\n",     /* no name */
	        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
	        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
	        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx",
	        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nx",
	        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: "
	        "chunked\r\n\r\n0\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
	        "chunked\r\n\r\n0\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	        "GET / RTSP/1.0\r\nHost: a\r\n\r\n", "GET / ICE/1.0\r\nHost: a\r\n\r\n",
	        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: y\r\n\r\n",
	        "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\n\r\nx",
	        "POST / HTTP/1.1\r\nHost: a\r\ntransfer_Encoding: chunked\r\n\r\n0\r\n\r\n",
	        "POST / HTTP/1.1\r\nHost: a\r\nTRANSFER-ENCODING: chunked\r\nContent_Length: "
	        "1\r\n\r\n0\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, "
	        "identity\r\n\r\n0\r\n\r\n",
	        "GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	        "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "GET / HTTP/0.9\r\nHost: a\r\n\r\n",
	        "GET /\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET /a%2 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a%00 HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET /../.. HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", /* target against Host */
	        "GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
	        "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", /* no port */
	        "GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n",
	        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	        "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", /* more than one empty line */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		for (size_t k = 0; k < STEPS; k++) {
			struct http1 h;
			struct outcome o;

			run(&h, bad[i], strlen(bad[i]), steps[k], false, false, &o);
			if (o.status != HTTP1_BAD)
				fail_msg("taken (step %zu): %s", steps[k], bad[i]);
			assert_true(o.error[0]);
			http1_fini(&h);
		}
}

/* Old clients send an empty line after a body; one is skipped, however it is cut. */
static void test_one_empty_line_before_a_request(void **state)
{
	static const char text[] = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
	static const char *const bad[] = {"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
	        "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"};

	(void)state;
	for (size_t k = 0; k < STEPS; k++) {
		struct http1 h;
		struct outcome o;

		run(&h, text, sizeof(text) - 1, steps[k], false, false, &o);
		assert_int_equal(o.status, HTTP1_DONE);
		assert_int_equal(o.left, 0);
		http1_fini(&h);
		for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			run(&h, bad[i], strlen(bad[i]), steps[k], false, false, &o);
			assert_int_equal(o.status, HTTP1_BAD);
			http1_fini(&h);
		}
	}
}

/* 64 KiB of empty lines cost one look, not one frame of the stack each. */
static void test_many_empty_lines(void **state)
{
	static char text[65536];
	struct http1 h;
	struct outcome o;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "\r\n"[i % 2];
	run(&h, text, sizeof(text), sizeof(text), false, false, &o);
	assert_int_equal(o.status, HTTP1_BAD);
	http1_fini(&h);
}

static void test_nul_in_a_head_is_refused(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n";
	struct http1 h;
	struct outcome o;

	(void)state;
	run(&h, text, sizeof(text) - 1, 100000, false, false, &o);
	assert_int_equal(o.status, HTTP1_BAD);
	http1_fini(&h);
}

static void test_bad_chunks(void **state)
{
	static const char *const bodies[] = {"g\r\n", "-1\r\n", "5 \r\nhello\r\n",
	        "0x5\r\nhello\r\n", "5\nhello\r\n", "5\r\nhelloX", "ffffffffffffffffff\r\n", "\r\n",
	        " 5\r\nhello\r\n", "5\r\nhello\n0\r\n\r\n", "0\r\nX : y\r\n\r\n"};
	static const char head[] =
	        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		char text[512];
		struct http1 h;
		struct outcome o;

		snprintf(text, sizeof(text), "%s%s", head, bodies[i]);
		run(&h, text, strlen(text), 100000, false, false, &o);
		if (o.body_status != HTTP1_BAD)
			fail_msg("taken: %s", bodies[i]);
		http1_fini(&h);
	}
}

/* The received part of a body is examined without consuming it. */
static void test_a_body_looked_at(void **state)
{
	static const struct {
		const char *body;
		bool sound;
	} rows[] = {{"", true}, {"3", true}, {"3\r\nabc\r\n", true}, {"0\r\n\r\nwhatever", true},
	        {"x", false}, {"3\r\nabcd", false}, {"3\r\nabc\r\n0\r\n\n", false}};
	static const char head[] =
	        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct http1 h;
		struct http_request r;
		size_t used;

		http1_init(&h, false, 4096);
		assert_int_equal(
		        http1_request_head(&h, (const uint8_t *)head, sizeof(head) - 1, &used, &r),
		        HTTP1_DONE);
		for (int twice = 0; twice < 2; twice++)
			assert_int_equal(http1_body_is_sound(&h, (const uint8_t *)rows[i].body,
			                         strlen(rows[i].body)),
			        rows[i].sound);
		http1_fini(&h);
	}
}

static void test_head_limit(void **state)
{
	static char text[HTTP_HEAD_MAX + 4096];
	struct http1 h;
	struct outcome o;
	size_t n;

	(void)state;
	n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nX: ");
	memset(text + n, 'a', sizeof(text) - n);
	run(&h, text, 4097, 100000, false, false, &o);
	assert_int_equal(o.status, HTTP1_TOO_LARGE);
	http1_fini(&h);
	run(&h, text, sizeof(text), 1000, false, false, &o);
	assert_int_equal(o.status, HTTP1_TOO_LARGE);
	http1_fini(&h);
	memcpy(text + 4092, "\r\n\r\n", 4);
	run(&h, text, 4096, 100000, false, false, &o);
	assert_int_equal(o.status, HTTP1_DONE);
	http1_fini(&h);
}

static void test_field_limit(void **state)
{
	static char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n");
	struct http1 h;
	struct outcome o;

	(void)state;
	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "a: b\r\n");
	n += (size_t)snprintf(text + n, sizeof(text) - n, "\r\n");
	run(&h, text, n, 100000, false, false, &o);
	assert_int_equal(o.status, HTTP1_TOO_LARGE);
	assert_int_equal(o.refusal, HTTP_FIELDS_TOO_LARGE);
	http1_fini(&h);
}

/* Every refusal has the right status, in every segmentation. */
static void test_statuses_of_refusals(void **state)
{
	static const struct {
		uint16_t status;
		const char *text;
	} rows[] = {
	        {400, "G T / HTTP/1.1\r\nHost: a\r\n\r\n"},
	        {400, "PRI / HTTP/1.1\r\nHost: a\r\n\r\n"},
	        {400, "head / HTTP/1.1\r\nHost: a\r\n\r\n"},
	        {400, "connect a:1 HTTP/1.1\r\nHost: a\r\n\r\n"},
	        {400, "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"},
	        {400, "GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n"},
	        {400, "GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n"},
	        {400, "GET / HTTP/1.1\r\nHost: a\r\nX\x01: y\r\n\r\n"},
	        {400, "GET / HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n"},
	        {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"},
	        {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,\r\n\r\n"},
	        {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n"},
	        {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, "
	              "chunked\r\n\r\n"},
	        {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"x\", "
	              "chunked\r\n\r\n"},
	        {417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, y\r\n\r\n"},
	        {421, "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"},
	        {501, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\nHost: a\r\n\r\n"},
	        {501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, "
	              "chunked\r\n\r\n"},
	        {505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
	        {505, "GET / HTTP/0.9\r\nHost: a\r\n\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (size_t k = 0; k < STEPS; k++) {
			struct http1 h;
			struct outcome o;

			run(&h, rows[i].text, strlen(rows[i].text), steps[k], false, false, &o);
			if (o.status != HTTP1_BAD || o.refusal != rows[i].status)
				fail_msg("%u (%s), not %u: %s", o.refusal, o.error, rows[i].status,
				        rows[i].text);
			http1_fini(&h);
		}
}

static void test_a_target_beyond_its_bound(void **state)
{
	static char text[2 * HTTP_TARGET_MAX];
	struct http1 h;
	struct outcome o;
	size_t n = (size_t)snprintf(text, sizeof(text), "GET /");

	(void)state;
	memset(text + n, 'a', HTTP_TARGET_MAX);
	snprintf(text + n + HTTP_TARGET_MAX, sizeof(text) - n - HTTP_TARGET_MAX,
	        " HTTP/1.1\r\nHost: a\r\n\r\n");
	memset(&o, 0, sizeof(o));
	http1_init(&h, false, HTTP_HEAD_MAX);
	assert_int_equal(
	        http1_request_head(&h, (const uint8_t *)text, strlen(text), &n, &o.request),
	        HTTP1_BAD);
	assert_int_equal(http1_fault(&h).status, HTTP_TARGET_TOO_LONG);
	http1_fini(&h);
	/* A request line that never ends; the limit of run() is below its bound. */
	run(&h, text, 5000, 100, false, false, &o);
	assert_int_equal(o.status, HTTP1_TOO_LARGE);
	assert_int_equal(o.refusal, HTTP_TARGET_TOO_LONG);
	http1_fini(&h);
}

/* Odd messages that the RFCs require to be accepted. */
static void test_odd_requests_that_are_read(void **state)
{
	static const char *const good[] = {
	        "LIST /v1/secret HTTP/1.1\r\nHost: a\r\n\r\n",
	        "get / HTTP/1.1\r\nHost: a\r\n\r\n",
	        "!#$%&'*+-.^_`|~ / HTTP/1.1\r\nHost: a\r\n\r\n",
	        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET / HTTP/1.7\r\nHost: a\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\r\nX: \x80\xff\ta\t\r\nY:\r\n\r\n",
	        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\t\r\n\r\n",
	        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , Chunked ,\t\r\n\r\n"
	        "0\r\n\r\n",
	        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nTransfer-Encoding: "
	        "chunked\r\n\r\n0\r\n\r\n",
	        "POST / HTTP/1.1\r\nHost: a\r\nExpect: , 100-continue\r\n\r\n",
	        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: "
	        "100-continue\r\n\r\n",
	        "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		for (size_t k = 0; k < STEPS; k++) {
			struct http1 h;
			struct outcome o;

			run(&h, good[i], strlen(good[i]), steps[k], false, false, &o);
			if (o.status != HTTP1_DONE || o.body_status != HTTP1_DONE || o.left)
				fail_msg("%s: %s", o.error, good[i]);
			http1_fini(&h);
		}
}

/* Of a response. */
static void test_odd_responses(void **state)
{
	static const struct {
		const char *text, *name, *value; /* of the first field; name NULL: refused */
		const char *content;
	} rows[] = {
	        {"HTTP/1.1 200 OK\r\nX-XSS-Protection : 1\r\nContent-Length:0\r\n\r\n",
	                "X-XSS-Protection", "1", ""},
	        {"HTTP/1.1 200 OK\r\nX \t : 1\r\nContent-Length:0\r\n\r\n", "X", "1", ""},
	        {"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx", "Content-Length", "1", "x"},
	        {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 0\r\n\r\n", "X",
	                "a   b   c", ""},
	        {"HTTP/1.1 200 OK\r\nX: a \t\r\n\t b\r\nContent-Length: 0\r\n\r\n", "X", "a      b",
	                ""},
	        {"HTTP/1.1 200 OK\r\nX:\r\n b\r\n \r\nContent-Length: 0\r\n\r\n", "X", "b", ""},
	        {"HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\nx", "Content-Length", "1", "x"},
	        {"HTTP/1.1 200 OK\r\nContent-Length: 1, 1,\r\n\r\nx", "Content-Length", "1, 1,",
	                "x"},
	        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 01\r\n\r\nx",
	                "Content-Length", "1", "x"},
	        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: ,chunked\r\n\r\n1 ; a = b\r\nx\r\n0\t;"
	         "c\r\n\r\n",
	                "Transfer-Encoding", ",chunked", "x"},
	        {"HTTP/1.9 999 \x80\t\r\nContent-Length: 0\r\n\r\n", "Content-Length", "0", ""},
	        {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "Content-Length", "0", ""},
	        {"HTTP/1.1 204 \r\nContent-Length: 4\r\n\r\n", "Content-Length", "4", ""},
	        {"HTTP/1.1 200 OK\r\n X: a\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\nX\r\n : a\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\nX\r\n Y: a\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\nX Y: a\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\n : a\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\nX : a\x01\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 1\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\nContent-Length: ,\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 099 OK\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200 O\x01K\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/1.1 200\tOK\r\n\r\n", NULL, NULL, NULL},
	        {"HTTP/2.0 200 OK\r\n\r\n", NULL, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (size_t k = 0; k < STEPS; k++) {
			const struct http_field *f;
			struct http1 h;
			struct outcome o;

			run(&h, rows[i].text, strlen(rows[i].text), steps[k], true, false, &o);
			f = &o.response.fields.items[0];
			if (!rows[i].name) {
				if (o.status != HTTP1_BAD)
					fail_msg("taken: %s", rows[i].text);
			} else if (o.status != HTTP1_DONE || o.body_status != HTTP1_DONE ||
			           !slice_equals(f->name, slice_from_string(rows[i].name)) ||
			           !slice_equals(f->value, slice_from_string(rows[i].value)) ||
			           o.body_n != strlen(rows[i].content) || o.left) {
				fail_msg("%s (%.*s: %.*s): %s", o.error, SLICE_ARG(f->name),
				        SLICE_ARG(f->value), rows[i].text);
			}
			http1_fini(&h);
		}
}

/* Many folded lines cost each byte once, not each of them all that came before. */
static void test_many_folds(void **state)
{
	static char text[HTTP_HEAD_MAX];
	struct http_response r;
	struct http1 h;
	size_t used, n = (size_t)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nX: a");

	(void)state;
	for (; n < sizeof(text) - 8; n += 3)
		memcpy(text + n, "\r\n ", 3);
	memcpy(text + n, "\r\n\r\n", 4);
	http1_init(&h, true, HTTP_HEAD_MAX);
	assert_int_equal(http1_response_head(&h, (const uint8_t *)text, n + 4, &used, false, &r),
	        HTTP1_DONE);
	assert_int_equal(r.fields.items[0].value.n, 1);
	http1_fini(&h);
}

struct response_case {
	const char *text;
	bool head;
	enum http_body body;
	enum http1_status end; /* of the body without the connection's end */
	const char *content;
};

static void test_responses(void **state)
{
	static const struct response_case cases[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, HTTP_BODY_LENGTH,
	                HTTP1_DONE, "hi"},
	        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", true, HTTP_BODY_LENGTH, HTTP1_DONE,
	                ""},
	        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", false, HTTP_BODY_LENGTH,
	                HTTP1_DONE, ""},
	        {"HTTP/1.1 204 No Content\r\n\r\n", false, HTTP_BODY_NONE, HTTP1_DONE, ""},
	        {"HTTP/1.1 100 Continue\r\n\r\n", false, HTTP_BODY_NONE, HTTP1_DONE, ""},
	        {"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", false,
	                HTTP_BODY_CHUNKED, HTTP1_DONE, "x"},
	        {"HTTP/1.0 200 OK\r\n\r\nuntil the end", false, HTTP_BODY_UNTIL_CLOSE, HTTP1_MORE,
	                "until the end"},
	        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
	         "Upgrade\r\n\r\n",
	                false, HTTP_BODY_NONE, HTTP1_DONE, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (size_t k = 0; k < STEPS; k++) {
			struct http1 h;
			struct outcome o;

			run(&h, cases[i].text, strlen(cases[i].text), steps[k], true, cases[i].head,
			        &o);
			if (o.status != HTTP1_DONE || o.body_status != cases[i].end ||
			        o.response.body != cases[i].body)
				fail_msg("case %zu step %zu: head %d body %d framing %d: %s", i,
				        steps[k], o.status, o.body_status, o.response.body,
				        o.error);
			assert_int_equal(o.body_n, strlen(cases[i].content));
			assert_memory_equal(o.body, cases[i].content, o.body_n);
			if (cases[i].end == HTTP1_MORE)
				assert_int_equal(http1_end(&h), HTTP1_DONE);
			http1_fini(&h);
		}
}

static void test_an_ended_connection_cuts_a_body_short(void **state)
{
	static const char *const texts[] = {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi",
	        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
	        "HTTP/1.1 200 OK\r\nX"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct http1 h;
		struct outcome o;

		run(&h, texts[i], strlen(texts[i]), 100000, true, false, &o);
		assert_int_equal(http1_end(&h), HTTP1_BAD);
		http1_fini(&h);
	}
}

static void test_what_is_written_was_judged(void **state)
{
	static const char text[] =
	        "GET http://Example.com/%7euser/./x?q=a%20b HTTP/1.1\r\nHost: example.COM\r\n"
	        "Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Kept: yes\r\nProxy-Authorization: Basic "
	        "x\r\n"
	        "TE: trailers\r\nContent-Length: 0\r\n\r\n";
	struct http1 h;
	struct outcome o;
	struct buf out;

	(void)state;
	run(&h, text, sizeof(text) - 1, 100000, false, false, &o);
	assert_int_equal(o.status, HTTP1_DONE);
	http_drop_hop_by_hop(&o.request.fields);
	buf_init(&out, 4096);
	assert_int_equal(http1_write_request(&out, &(struct outgoing){.request = &o.request,
	                                                   .has_query = o.request.has_query,
	                                                   .query = o.request.query,
	                                                   .fields = {{SLICE("A"), SLICE("b")}},
	                                                   .field_count = 1}),
	        0);
	assert_true(slice_equals(
	        buf_slice(&out), SLICE("GET /~user/x?q=a%20b HTTP/1.1\r\nHost: "
	                               "example.com\r\nX-Kept: yes\r\ncontent-length: 0\r\n"
	                               "A: b\r\n\r\n")));
	buf_fini(&out);
	http1_fini(&h);
}

static void test_writing_needs_room(void **state)
{
	struct http_response r = {.status = 200, .reason = SLICE("OK"), .body = HTTP_BODY_LENGTH};
	struct buf out;

	(void)state;
	buf_init(&out, 16);
	assert_int_not_equal(http1_write_response(&out, &r, 11, true, SLICE("")), 0);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_request_in_every_segmentation),
	        cmocka_unit_test(test_chunked_with_trailers),
	        cmocka_unit_test(test_refused_requests),
	        cmocka_unit_test(test_one_empty_line_before_a_request),
	        cmocka_unit_test(test_many_empty_lines),
	        cmocka_unit_test(test_nul_in_a_head_is_refused),
	        cmocka_unit_test(test_bad_chunks),
	        cmocka_unit_test(test_a_body_looked_at),
	        cmocka_unit_test(test_head_limit),
	        cmocka_unit_test(test_field_limit),
	        cmocka_unit_test(test_statuses_of_refusals),
	        cmocka_unit_test(test_a_target_beyond_its_bound),
	        cmocka_unit_test(test_odd_requests_that_are_read),
	        cmocka_unit_test(test_odd_responses),
	        cmocka_unit_test(test_many_folds),
	        cmocka_unit_test(test_responses),
	        cmocka_unit_test(test_an_ended_connection_cuts_a_body_short),
	        cmocka_unit_test(test_what_is_written_was_judged),
	        cmocka_unit_test(test_writing_needs_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
