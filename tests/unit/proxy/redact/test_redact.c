/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A credential that an upstream sends back, in each form that is covered, by each way that a
 * response has: in pieces of one byte, across the steps in which gzip is decompressed, as part of a
 * range, in fields and trailers, over HTTP/2. The sandbox sees no form of it, and no part longer
 * than what may be shown at a pause.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include "../http2_origin.h"

#define PART 8           /* of a form: this many bytes of it in one run would reveal something */
#define STEP (64u << 10) /* bytes that are decompressed at once */

/* SECRET_VALUE, written otherwise. */
static const char *const forms[] = {
        SECRET_VALUE,
        "%73%33%63%72%33%74%2D%54%4F%4B%45%4E%2d%76%61%6c%75%65%2f%30%31%32%33%34%35%36%37%38%39",
        "s3cr3t-TOKEN-value%2F0123456789",
        "s3cr3t%2dTOKEN%2Dvalue%2f012345678%39",
        "s3cr3t-TOKEN-value\\/0123456789",
        "\\u0073\\u0033cr3t-\\u0054OKEN-value\\u002F012345678\\u0039",
        "\\u0073\\u0033\\u0063\\u0072\\u0033\\u0074\\u002d\\u0054\\u004f\\u004b\\u0045\\u004e\\u002"
        "d"
        "\\u0076\\u0061\\u006c\\u0075\\u0065\\u002f\\u0030\\u0031\\u0032\\u0033\\u0034\\u0035\\u003"
        "6"
        "\\u0037\\u0038\\u0039",
        /* base64 of the value behind none, one, two and three bytes, and of "Bearer " before it */
        "czNjcjN0LVRPS0VOLXZhbHVlLzAxMjM0NTY3ODk=",
        "LnMzY3IzdC1UT0tFTi12YWx1ZS8wMTIzNDU2Nzg5",
        "Li5zM2NyM3QtVE9LRU4tdmFsdWUvMDEyMzQ1Njc4OQ==",
        "Li4uczNjcjN0LVRPS0VOLXZhbHVlLzAxMjM0NTY3ODk",
        "QmVhcmVyIHMzY3IzdC1UT0tFTi12YWx1ZS8wMTIzNDU2Nzg5",
        "czNjcjN0LVRPS0VOLXZhbHVlLzAxMjM0NTY3ODk%3D",
        "cz\\u004ejcjN0LVRPS0VOLXZhbHVlLzAxMjM0NTY3ODk=",
};
#define FORMS (sizeof(forms) / sizeof(*forms))

/* The characters of base64 at both ends tell of other bytes, too, and are not covered: whatever
 * else of the form is seen is too much. */
static void expect_unseen(const void *seen, size_t n, const char *form)
{
	size_t length = strlen(form);
	bool base64 = !strstr(form, "TOKEN") && form[0] != '%' && form[0] != '\\';
	size_t from = base64 ? 12 : 0;

	if (base64)
		length -= 4;
	for (size_t i = from; i + PART <= length; i++)
		if (n && memmem(seen, n, form + i, PART))
			fail_msg("%.*s of %s in %.*s", PART, form + i, form, n < 300 ? (int)n : 300,
			        (const char *)seen);
}

static struct peer *bound(struct peer *c, const char *line)
{
	struct peer *o;

	ask(c, line, "c.test", "Accept-Encoding: gzip\r\nRange: bytes=3-9\r\n");
	o = origin(&w, true);
	take_head(o);
	assert_true(head_has(o, "\r\nAuthorization: Bearer " SECRET_VALUE "\r\n"));
	assert_false(head_has(o, "range"));
	return o;
}

static void leave_both(struct peer *c, struct peer *o)
{
	hang_up(c, false);
	hang_up(o, false);
}

static void test_one_byte_at_a_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		struct peer *c = client(&w, NAME_C, "c.test"), *o = bound(c, "GET /x");

		say(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
		for (const char *p = forms[i]; *p; p++) {
			char chunk[] = "1\r\n?\r\n";

			chunk[3] = *p;
			say(o, chunk);
			pump(&w, 0);
		}
		say(o, "1\r\n.\r\n0\r\n\r\n");
		expect_head(c, "HTTP/1.1 200 ");
		UNTIL(&w, has(c, "\r\n0\r\n\r\n", 7));
		/* Of pieces of one byte those of the chunks are between. */
		expect_unseen(buf_bytes(&c->in), c->in.len, forms[i]);
		assert_non_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
		leave_both(c, o);
		w.event_count = 0;
	}
}

static size_t pack(const uint8_t *p, size_t n, uint8_t *out, size_t room)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p,
	        .avail_in = (uInt)n,
	        .next_out = out,
	        .avail_out = (uInt)room};

	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

/* The value lies across the border between two steps, at each place. */
static void test_across_the_steps_of_unpacking(void **state)
{
	static uint8_t text[STEP + 512], packed[STEP];

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		size_t length = strlen(forms[i]), stride = 1 + length / 6;

		for (size_t before = 0; before <= length; before += stride) {
			struct peer *c = client(&w, NAME_C, "c.test"), *o = bound(c, "GET /x");
			char head[128];
			size_t n;

			memset(text, '.', sizeof(text));
			memcpy(text + STEP - before, forms[i], length);
			n = pack(text, sizeof(text), packed, sizeof(packed));
			snprintf(head, sizeof(head),
			        "HTTP/1.1 206 Part\r\nContent-Encoding: gzip\r\nContent-Range: "
			        "bytes "
			        "0-9/10\r\nContent-Length: %zu\r\n\r\n",
			        n);
			say(o, head);
			say_n(o, packed, n);
			expect_head(c, "HTTP/1.1 206 ");
			UNTIL(&w, c->in.len > sizeof(text) && has(c, "\r\n0\r\n\r\n", 7));
			expect_unseen(buf_bytes(&c->in), c->in.len, forms[i]);
			leave_both(c, o);
			w.event_count = 0;
		}
	}
}

static void test_fields_and_trailers(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		struct peer *c = client(&w, NAME_C, "c.test"), *o = bound(c, "GET /x");
		const char *f = forms[i];
		char text[4096];

		snprintf(text, sizeof(text),
		        "HTTP/1.1 416 %s\r\nSet-Cookie: k=%s; Path=/\r\nLocation: "
		        "https://evil.test/?a=b&k=%s#x\r\nAlt-Svc: h3=\"%s:443\"\r\nLink: "
		        "<%s>\r\nContent-Type: text/plain; x=\"%s\"\r\nTransfer-Encoding: "
		        "chunked\r\n\r\n1\r\n.\r\n0\r\nX-T: %s\r\n\r\n",
		        f, f, f, f, f, f, f);
		say(o, text);
		expect_head(c, "HTTP/1.1 416 ");
		expect_unseen(c->head, strlen(c->head), f);
		UNTIL(&w, has(c, "\r\n0\r\n", 5) && has(c, "\r\n\r\n", 4));
		assert_true(has(c, "X-T: ", 5));
		expect_unseen(buf_bytes(&c->in), c->in.len, f);
		leave_both(c, o);
		w.event_count = 0;
	}
}

/* HTTP/2 on both sides: heads, content in frames of their own, trailers. */
static void test_over_http2(void **state)
{
	struct h2 *c = enliven(h2_client_of(NAME_C, "c.test")), *o = NULL;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		const nghttp2_nv trailers[] = {nv("grpc-message", forms[i])};
		const nghttp2_nv fields[] = {nv(":status", "200"), nv("x-a", forms[i])};
		struct upload up = {.trailers = trailers, .trailer_count = 1};
		int32_t id = h2_ask_with(c, "GET", "c.test", "/x", NULL, 0, NULL);
		struct answer *asked;

		if (!o)
			o = h2_origin();
		asked = request_of(o, i);
		buf_init(&up.bytes, 4096);
		respond_with(o, asked->id, fields, 2, &up);
		for (size_t k = 0, length = strlen(forms[i]); k < length; k += 3) {
			buf_append(&up.bytes, forms[i] + k, length - k < 3 ? length - k : 3);
			nghttp2_session_resume_data(o->session, asked->id);
			run_all();
			pump(&w, 0);
		}
		up.ended = true;
		nghttp2_session_resume_data(o->session, asked->id);
		ALL_UNTIL(answer(c, id)->closed);
		assert_int_equal(answer(c, id)->status, 200);
		assert_non_null(strstr(answer(c, id)->fields, "--\ngrpc-message: "));
		expect_unseen(answer(c, id)->fields, strlen(answer(c, id)->fields), forms[i]);
		expect_unseen(buf_bytes(&answer(c, id)->body), answer(c, id)->body.len, forms[i]);
		buf_fini(&up.bytes);
		w.event_count = 0;
	}
	leave(c, false);
	leave(o, false);
}

/* The end of a piece of text that could be a value's beginning waits, whether it is one or not, but
 * not for ever. */
static void test_ends_wait_and_are_released(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o = bound(c, "GET /x");
	int64_t begin;

	(void)state;
	say(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	begin = clock_monotonic_us();
	say(o, "d\r\ndata: hello\n\n\r\n");
	UNTIL(&w, has(c, "data: hello\n\n", 13));
	assert_true(clock_monotonic_us() - begin < HELD_MS * 1000ll / 2);
	buf_consume(&c->in, c->in.len);
	begin = clock_monotonic_us();
	say(o, "b\r\ndata: hello\r\n");
	UNTIL(&w, has(c, "data: ", 6));
	assert_false(has(c, "hello", 5));
	UNTIL(&w, has(c, "hello", 5));
	assert_true(clock_monotonic_us() - begin >= HELD_MS * 1000ll - 1000);
	/* Text that goes on in time is not cut; the end releases what waits at once. */
	begin = clock_monotonic_us();
	say(o, "8\r\n, good-b\r\n");
	UNTIL(&w, has(c, ", ", 2));
	say(o, "2\r\nye\r\n0\r\n\r\n");
	UNTIL(&w, has(c, "good-bye\r\n0\r\n\r\n", 15));
	assert_true(clock_monotonic_us() - begin < HELD_MS * 1000ll);
	assert_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
	leave_both(c, o);
	w.event_count = 0;
}

/* Two more bytes of the value than may be seen, and nothing more: whoever guessed them rightly has
 * had their last answer. An open response is cut off as well. */
static void test_a_beginning_that_does_not_go_on(void **state)
{
	struct peer *other = client(&w, NAME_C, "c.test"), *other_o = bound(other, "GET /other"),
	            *c = client(&w, NAME_C, "c.test"), *o = bound(c, "GET /x"), *late;

	(void)state;
	say(other_o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n");
	expect_head(other, "HTTP/1.1 200 ");
	say(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n ;s3cr3t\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, c->failed); /* so that it is not taken for whole */
	assert_false(has(c, "s3", 2));
	assert_true(credential_store_is_guessed(w.store, 0));
	assert_non_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
	say(other_o, "8\r\nmore of \r\n0\r\n\r\n");
	UNTIL(&w, other->failed);
	assert_false(has(other, "more", 4));
	late = client(&w, NAME_C, "c.test");
	ask(late, "GET /late", "c.test", "");
	expect_head(late, "HTTP/1.1 502 ");
	UNTIL(&w, has(late, "the credential is not available", 31));
	leave_both(other, other_o);
	leave_both(c, o);
	hang_up(late, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_one_byte_at_a_time),
	        TEST(test_across_the_steps_of_unpacking),
	        TEST(test_fields_and_trailers),
	        TEST(test_over_http2),
	        TEST(test_ends_wait_and_are_released),
	        TEST(test_a_beginning_that_does_not_go_on),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
