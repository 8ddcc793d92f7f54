/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a representation in answer to requests with a credential, through a whole proxy. The
 * content holds the credential, and the client asks for parts that begin and end inside of it:
 * what it gets is that part of the masked content, and nothing else. Parts that the upstream was
 * not asked for are refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>

#include "../fixture.h"

#define TOTAL 9000u
#define VALUE_N (sizeof(SECRET_VALUE) - 1)
#define AT 4000u     /* where the value is */
#define MARGIN 1024u /* of this value: one step */

static struct peer *c, *o;
static char content[TOTAL + 1], masked[TOTAL + 1];

static int fill(void **state)
{
	(void)state;
	for (size_t i = 0; i < TOTAL; i++)
		content[i] = " .,:;"[i % 5];
	memcpy(masked, content, TOTAL);
	memcpy(content + AT, SECRET_VALUE, VALUE_N);
	memset(masked + AT, '*', VALUE_N);
	return 0;
}

/* Sends the request, and lets the origin take it. fields: with Range. */
static void begin(const char *line, const char *fields)
{
	c = client(&w, NAME_C, "c.test");
	ask(c, line, "c.test", fields);
	o = origin(&w, true);
	take_head(o);
	assert_true(head_has(o, "\r\nAuthorization: Bearer " SECRET_VALUE "\r\n"));
}

static void leave_both(void)
{
	hang_up(c, false);
	hang_up(o, false);
	w.event_count = 0;
}

/* Reads the range that the upstream was asked for. *last is UINT64_MAX if it has no end. */
static void asked(uint64_t *first, uint64_t *last)
{
	const char *text = strcasestr(o->head, "\r\nrange: bytes=");
	char *end;

	assert_non_null(text);
	text += strlen("\r\nrange: bytes=");
	if (*text == '-') {
		uint64_t n = strtoull(text + 1, NULL, 10);

		*first = n < TOTAL ? TOTAL - n : 0;
		*last = UINT64_MAX;
		return;
	}
	*first = strtoull(text, &end, 10);
	assert_int_equal(*end, '-');
	*last = end[1] == '\r' ? UINT64_MAX : strtoull(end + 1, NULL, 10);
}

static void say_part(uint64_t first, uint64_t last, const char *total, const char *fields)
{
	char head[500];

	snprintf(head, sizeof(head),
	        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %" PRIu64 "-%" PRIu64
	        "/%s\r\n%sContent-Length: %" PRIu64 "\r\n\r\n",
	        first, last, total, fields, last - first + 1);
	say(o, head);
	for (uint64_t at = first; at <= last; at += 700)
		say_n(o, content + at, last + 1 - at < 700 ? (size_t)(last + 1 - at) : 700);
}

/* The origin sends the part that it was asked for. */
static void serve(const char *fields)
{
	uint64_t first, last;

	asked(&first, &last);
	say_part(first, last < TOTAL ? last : TOTAL - 1, "9000", fields);
}

static void expect_part(size_t first, size_t n)
{
	char text[100];

	expect_head(c, "HTTP/1.1 206 ");
	snprintf(text, sizeof(text), "\r\ncontent-range: bytes %zu-%zu/9000\r\n", first,
	        first + n - 1);
	if (!head_has(c, text))
		fail_msg("no%sin %s", text, c->head);
	snprintf(text, sizeof(text), "\r\ncontent-length: %zu\r\n", n);
	assert_true(head_has(c, text));
	UNTIL(&w, c->in.len >= n || c->eof || c->failed);
	pump(&w, 0);
	assert_int_equal(c->in.len, n);
	assert_memory_equal(buf_bytes(&c->in), masked + first, n);
}

static void part_of(size_t first, size_t n, const char *more)
{
	char fields[200];

	snprintf(fields, sizeof(fields), "Range: bytes=%zu-%zu\r\n%s", first, first + n - 1, more);
	begin("GET /x", fields);
	assert_true(head_has(o, "\r\naccept-encoding: identity\r\n"));
	serve("");
	expect_part(first, n);
	leave_both();
}

/* Every end inside of the value, and parts that are only a bit of it. */
static void test_ends_inside_of_the_value(void **state)
{
	(void)state;
	for (size_t i = 0; i <= VALUE_N + 1; i++) {
		part_of(AT - 1 + i, 2000, "");
		part_of(AT - 2000 + i, 2000, "");
	}
	for (size_t i = 0; i < VALUE_N; i++)
		part_of(AT + i, 1 + i % 6, "");
}

static void test_other_parts(void **state)
{
	static const struct {
		const char *range;
		size_t first, n;
	} parts[] = {{"bytes=0-0", 0, 1}, {"BYTES=10-20", 10, 11}, {"bytes=8999-", 8999, 1},
	        {"bytes=4010-", 4010, 4990}, {"bytes=-1", 8999, 1}, {"bytes=-4990", 4010, 4990},
	        {"bytes=-100000", 0, 9000}, {"bytes=0-", 0, 9000}, {"bytes=0-100000", 0, 9000},
	        {"bytes= 8000-4611686018427387904 ", 8000, 1000}};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		char fields[100];

		snprintf(fields, sizeof(fields), "Range: %s\r\n", parts[i].range);
		begin("GET /x", fields);
		serve("ETag: \"v1\"\r\nRepr-Digest: sha-256=:AAAA:\r\nDigest: md5=AA\r\n"
		      "Content-Digest: sha-256=:AAAA:\r\nContent-MD5: AAAA\r\n");
		expect_part(parts[i].first, parts[i].n);
		assert_true(head_has(c, "\r\netag: \"v1\"\r\n"));
		assert_true(head_has(c, "\r\nrepr-digest: ") && head_has(c, "\r\ndigest: "));
		assert_false(head_has(c, "content-digest") || head_has(c, "content-md5"));
		leave_both();
	}
}

/* A client that has everything already asks for what follows: the upstream sends the end of the
 * content, and the client gets 416. */
static void test_behind_the_end(void **state)
{
	static const char *const ranges[] = {"bytes=9000-", "bytes=9000-9010", "bytes=9500-"};

	(void)state;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		char fields[100];

		snprintf(fields, sizeof(fields), "Range: %s\r\n", ranges[i]);
		begin("GET /x", fields);
		serve("Content-Type: text/plain\r\n");
		expect_head(c, "HTTP/1.1 416 ");
		assert_true(head_has(c, "\r\ncontent-range: bytes */9000\r\n"));
		assert_true(head_has(c, "\r\ncontent-length: 0\r\n"));
		pump(&w, 1);
		assert_int_equal(c->in.len, 0);
		leave_both();
	}
	begin("GET /x", "Range: bytes=20000-\r\n");
	say(o, "HTTP/1.1 416 No\r\nContent-Range: bytes */9000\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 416 ");
	assert_true(head_has(c, "\r\ncontent-range: bytes */9000\r\n"));
	leave_both();
}

/* An upstream may send all of it; and the total may be unknown. */
static void test_other_answers(void **state)
{
	(void)state;
	begin("GET /x", "Range: bytes=4010-5000\r\n");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n");
	say_n(o, content, TOTAL);
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, c->in.len >= TOTAL);
	assert_memory_equal(buf_bytes(&c->in), masked, TOTAL);
	leave_both();

	begin("GET /x", "Range: bytes=4010-5000\r\n");
	say_part(4010 - MARGIN, 5000 + MARGIN, "*", "");
	expect_head(c, "HTTP/1.1 206 ");
	assert_true(head_has(c, "\r\ncontent-range: bytes 4010-5000/*\r\n"));
	UNTIL(&w, c->in.len >= 991);
	assert_memory_equal(buf_bytes(&c->in), masked + 4010, 991);
	leave_both();

	begin("GET /x", "Range: bytes=4010-5000\r\n"); /* without a length */
	say(o, "HTTP/1.1 206 OK\r\nContent-Range: bytes 2986-6024/9000\r\n"
	       "Transfer-Encoding: chunked\r\n\r\nbdf\r\n");
	say_n(o, content + 2986, 3039);
	say(o, "\r\n0\r\nX-T: 1\r\nContent-Digest: x\r\n\r\n");
	expect_head(c, "HTTP/1.1 206 ");
	UNTIL(&w, has(c, "\r\n0\r\nX-T: 1\r\n\r\n", 15));
	assert_false(has(c, "s3cr3", 5) || has(c, "Digest", 6));
	leave_both();
}

static void test_refused_answers(void **state)
{
	static const struct {
		const char *range;
		uint64_t first, last;
		const char *total, *fields;
	} wrong[] = {
	        {"bytes=4010-5000", 4010, 5000, "9000", ""}, /* what the client wanted */
	        {"bytes=4010-5000", 2987, 6024, "9000", ""},
	        {"bytes=4010-5000", 2986, 6023, "9000", ""},
	        {"bytes=4010-5000", 2986, 6025, "9000", ""},
	        {"bytes=4010-5000", 2986, 4020, "*", ""},
	        {"bytes=4010-5000", 0, 8999, "9000", ""},
	        {"bytes=4010-", 2986, 8998, "9000", ""},
	        {"bytes=4010-", 2986, 8999, "*", ""},
	        {"bytes=-4990", 2985, 8999, "9000", ""},
	        {"bytes=-4990", 2986, 8998, "9000", ""},
	        {"bytes=-4990", 2986, 8999, "*", ""},
	        {"bytes=4010-5000", 2986, 6024, "6000", ""},
	        {"bytes=4010-5000", 2986, 6024, "x", ""},
	        {"bytes=4010-5000", 2986, 6024, "9000", "Content-Range: bytes 2986-6024/9000\r\n"},
	        {"bytes=4010-5000", 2986, 6024, "9000", "Content-Encoding: gzip\r\n"},
	};
	static const char *const heads[] = {"", "Content-Range: items 2986-6024/9000\r\n",
	        "Content-Range: bytes 2986-6024\r\n", "Content-Range: bytes -6024/9000\r\n",
	        "Content-Range: bytes 2986-/9000\r\n", "Content-Range: bytes */9000\r\n",
	        "Content-Range: bytes 2986-6024/99999999999999999999\r\n",
	        "Content-Type: multipart/byteranges; boundary=x\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char fields[100];

		snprintf(fields, sizeof(fields), "Range: %s\r\n", wrong[i].range);
		begin("GET /x", fields);
		say_part(wrong[i].first, wrong[i].last, wrong[i].total, wrong[i].fields);
		expect_head(c, "HTTP/1.1 502 ");
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UNREADABLE);
		assert_false(has(c, "TOKEN", 5) || has(c, "value/", 6));
		leave_both();
	}
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		char head[200];

		begin("GET /x", "Range: bytes=4010-5000\r\n");
		snprintf(head, sizeof(head), "HTTP/1.1 206 OK\r\n%sContent-Length: 3039\r\n\r\n",
		        heads[i]);
		say(o, head);
		expect_head(c, "HTTP/1.1 502 ");
		leave_both();
	}
	begin("GET /x", "Range: bytes=4010-5000\r\n"); /* the length is another one */
	say(o, "HTTP/1.1 206 OK\r\nContent-Range: bytes 2986-6024/9000\r\n"
	       "Content-Length: 3038\r\n\r\n");
	expect_head(c, "HTTP/1.1 502 ");
	leave_both();
}

/* Requests whose Range is dropped, and requests whose Range stays. */
static void test_what_is_dropped(void **state)
{
	static const struct {
		const char *line, *fields;
		bool stays;
	} cases[] = {
	        {"GET /x", "Range: bytes=0-5\r\nIf-Range: \"v1\"\r\n", true},
	        {"GET /x", "Range: bytes=0-5\r\nIf-Range: \"v1\"\r\nAccept-Encoding: gzip\r\n",
	                true},
	        {"GET /x", "Range: bytes=0-5\r\nAccept-Encoding: identity, *;q=0\r\n", true},
	        {"GET /x", "Range: bytes=0-5\r\nAccept-Encoding: gzip\r\n", false},
	        {"GET /x", "Range: bytes=0-5\r\nAccept-Encoding: br\r\nIf-Range: W/\"v1\"\r\n",
	                false},
	        {"GET /x",
	                "Range: bytes=0-5\r\nAccept-Encoding: br\r\n"
	                "If-Range: Thu, 26 Nov 2026 12:00:00 GMT\r\n",
	                false},
	        {"HEAD /x", "Range: bytes=0-5\r\n", false},
	        {"OPTIONS /x", "Range: bytes=0-5\r\n", false},
	        {"GET /x", "Range: bytes=0-5,8-9\r\n", false},
	        {"GET /x", "Range: bytes=0-5, -9\r\n", false},
	        {"GET /x", "Range: bytes=5-0\r\n", false},
	        {"GET /x", "Range: bytes=-\r\n", false},
	        {"GET /x", "Range: bytes=-0\r\n", false},
	        {"GET /x", "Range: bytes=\r\n", false},
	        {"GET /x", "Range: bytes\r\n", false},
	        {"GET /x", "Range: bytes=a-b\r\n", false},
	        {"GET /x", "Range: bytes=+1-5\r\n", false},
	        {"GET /x", "Range: bytes=1 -5\r\n", false},
	        {"GET /x", "Range: bytes=0x1-5\r\n", false},
	        {"GET /x", "Range: bytes=4611686018427387905-\r\n", false},
	        {"GET /x", "Range: bytes=0-99999999999999999999\r\n", false},
	        {"GET /x", "Range: items=0-5\r\n", false},
	        {"GET /x", "Range: bytes=0-5\r\nRange: bytes=0-5\r\n", false},
	        {"GET /x", "Request-Range: bytes=0-5\r\n", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin(cases[i].line, cases[i].fields);
		if ((strcasestr(o->head, "\r\nrange: ") != NULL) != cases[i].stays)
			fail_msg("%zu: %s", i, o->head);
		assert_false(head_has(o, "request-range"));
		assert_int_equal(head_has(o, "\r\nif-range: "),
		        cases[i].stays && strstr(cases[i].fields, "If-Range") != NULL);
		if (cases[i].stays)
			assert_true(head_has(o, "\r\naccept-encoding: identity\r\n"));
		leave_both();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_ends_inside_of_the_value),
	        TEST(test_other_parts),
	        TEST(test_behind_the_end),
	        TEST(test_other_answers),
	        TEST(test_refused_answers),
	        TEST(test_what_is_dropped),
	};

	world_network();
	return cmocka_run_group_tests(tests, fill, NULL);
}
