/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed responses to requests with a credential, through a whole proxy: a client that did
 * not ask for gzip, or asked for nothing to be changed, gets the very bytes of the origin, or none
 * that hold the credential; a client that did gets them decompressed, with true fields. And
 * beginnings of bodies that name their character set.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <zlib.h>

#include "../fixture.h"
#include "proxy/http/content.h"

#define COVERED "*****************************"
_Static_assert(sizeof(COVERED) == sizeof(SECRET_VALUE), "as long as the value");
#define ASKS "Accept-Encoding: deflate, gzip;q=0.8\r\n"
#define ETAG "ETag: \"v1\"\r\n"

static struct peer *c, *o;

static void begin(const char *line, const char *fields)
{
	c = client(&w, NAME_C, "c.test");
	ask(c, line, "c.test", fields);
	o = origin(&w, true);
	take_head(o);
	assert_true(head_has(o, "\r\nAuthorization: Bearer " SECRET_VALUE "\r\n"));
}

static void leave(void)
{
	assert_false(has(c, SECRET_VALUE, sizeof(SECRET_VALUE) - 1));
	hang_up(c, false);
	hang_up(o, false);
	w.event_count = 0;
}

/* One member; level 0: stored. name: in its head, or NULL. */
static size_t gzip(const void *p, size_t n, int level, const char *name, uint8_t *out, size_t cap)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p,
	        .avail_in = (uInt)n,
	        .next_out = out,
	        .avail_out = (uInt)cap};
	gz_header head = {.name = (Bytef *)(uintptr_t)name, .os = 3};

	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	if (name)
		assert_int_equal(deflateSetHeader(&z, &head), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return cap - z.avail_out;
}

static void say_head(size_t n, const char *fields)
{
	char head[400];

	snprintf(head, sizeof(head),
	        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n%sContent-Length: %zu\r\n\r\n",
	        fields, n);
	say(o, head);
}

/* In one piece. */
static void say_response(const uint8_t *packed, size_t n)
{
	uint8_t whole[1000];
	int head_n = snprintf((char *)whole, sizeof(whole),
	        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", n);

	assert_true((size_t)head_n + n <= sizeof(whole));
	memcpy(whole + head_n, packed, n);
	say_n(o, whole, (size_t)head_n + n);
}

static void expect_bytes(const void *bytes, size_t n)
{
	UNTIL(&w, c->in.len >= n || c->eof || c->failed);
	assert_int_equal(c->in.len, n);
	assert_memory_equal(buf_bytes(&c->in), bytes, n);
	buf_consume(&c->in, n);
}

static void expect_refused(const char *words)
{
	expect_head(c, "HTTP/1.1 502 ");
	UNTIL(&w, has(c, "\n", 1));
	if (!has(c, words, strlen(words)))
		fail_msg("\"%s\" is not in %.*s", words, (int)c->in.len,
		        (const char *)buf_bytes(&c->in));
	assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UNREADABLE);
}

/* --- the same bytes --- */

static const struct {
	const char *asks, *answers;
} unchanged[] = {
        {"", ""},
        {"Accept-Encoding: identity\r\n", ""},
        {"Accept-Encoding: gzip;q=0, br\r\n", ""},
        {"Accept-Encoding: br, zstd, *\r\n", ""},
        {ASKS, "Cache-Control: private, no-transform\r\n"},
        {ASKS, "Cache-Control: private\r\nCache-Control: No-Transform\r\n"},
        {ASKS "Cache-Control: no-transform\r\n", ""},
        {ASKS, "Repr-Digest: sha-256=:AAAA:\r\n"},
        {ASKS, "content-md5: AAAA\r\n"},
        {ASKS, "Digest: sha-256=AAAA\r\n"},
        {ASKS, "x-amz-checksum-sha256: AAAA\r\n"},
};
#define UNCHANGED (sizeof(unchanged) / sizeof(*unchanged))

static void test_the_same_bytes(void **state)
{
	static uint8_t text[200000], packed[500000];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * i >> 7 ^ i);
	for (size_t i = 0; i < 2 * UNCHANGED; i++) {
		size_t n = gzip(
		        text, sizeof(text), i & 1 ? 0 : 9, "x.tar", packed, sizeof(packed) / 2);

		/* Two members, of which the second is stored. */
		n += gzip(text, 70000, 0, NULL, packed + n, sizeof(packed) - n);
		begin("GET /x", unchanged[i / 2].asks);
		say_head(n, unchanged[i / 2].answers);
		say(o, "");
		for (size_t at = 0; at < n; at += 7777) {
			say_n(o, packed + at, n - at < 7777 ? n - at : 7777);
			pump(&w, 0);
		}
		expect_head(c, "HTTP/1.1 200 ");
		assert_true(head_has(c, "\r\nContent-Encoding: gzip\r\n"));
		assert_true(head_has(c, unchanged[i / 2].answers));
		expect_bytes(packed, n);
		assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_POLICY);
		assert_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
		leave();
	}
}

/* Text without any byte that a value could not have: a search keeps an end of it back all the time,
 * but never more than a value's length, however small the pieces. */
static void test_text_like_values(void **state)
{
	static const size_t pieces[] = {13, 700, 60000};
	static uint8_t text[1500000], packed[1600000];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = "abcdefghijklmnopqrstuvwxyz012345"[(i * i >> 7 ^ i) & 31];
	for (size_t i = 0; i < 2 * sizeof(pieces) / sizeof(*pieces); i++) {
		size_t piece = pieces[i / 2], n,
		       text_n = piece == 13 ? sizeof(text) / 10 : sizeof(text);

		n = gzip(text, text_n, i & 1 ? 0 : 9, NULL, packed, sizeof(packed));
		begin("GET /x", "");
		say_head(n, "");
		for (size_t at = 0; at < n; at += piece) {
			say_n(o, packed + at, n - at < piece ? n - at : piece);
			pump(&w, 0);
		}
		expect_head(c, "HTTP/1.1 200 ");
		expect_bytes(packed, n);
		leave();
	}
}

static void test_an_entity_tag_stays(void **state)
{
	uint8_t packed[100];
	size_t n = gzip("text", 4, 9, NULL, packed, sizeof(packed));

	(void)state;
	begin("GET /x", "");
	assert_true(head_has(o, "accept-encoding: identity\r\n"));
	say_head(n, ETAG);
	say_n(o, packed, n);
	expect_head(c, "HTTP/1.1 200 ");
	assert_true(head_has(c, "\r\n" ETAG) && head_has(c, "\r\ncontent-length: "));
	expect_bytes(packed, n);
	leave();
}

/* Byte by byte, with an end that may be the beginning of the value in the middle of the text. */
static void test_byte_by_byte(void **state)
{
	static const char text[] = "s3cr3t-TOKEN-value/012345678 and s3cr3t-TOKEN-val s3cr3t-TOK";
	uint8_t packed[300];
	size_t n = gzip(
	        text, sizeof(text) - 1, 0, "s3cr3t-TOKEN-value/01234567_", packed, sizeof(packed));

	(void)state;
	begin("GET /x", "");
	say_head(n, "");
	for (size_t i = 0; i < n; i++) {
		say_n(o, packed + i, 1);
		pump(&w, 0);
	}
	expect_head(c, "HTTP/1.1 200 ");
	expect_bytes(packed, n);
	leave();
}

/* --- the credential in them --- */

static void test_found_at_once(void **state)
{
	static const char *const texts[] = {"before " SECRET_VALUE " after",
	        "czNjcjN0LVRPS0VOLXZhbHVlLzAxMjM0NTY3ODk=", "s3cr3t%2DTOKEN%2dvalue%2F0123456789",
	        SECRET_VALUE};
	uint8_t packed[300];

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(texts) / sizeof(*texts); i++) {
		size_t n = gzip(texts[i / 2], strlen(texts[i / 2]), i & 1 ? 0 : 9, NULL, packed,
		        sizeof(packed));

		begin("GET /x", i & 2 ? ASKS "Cache-Control: no-transform\r\n" : "");
		say_response(packed, n);
		expect_refused("holds the credential");
		assert_non_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
		leave();
	}
}

/* In the head of a member, and in that of a later one. */
static void test_found_beside_the_content(void **state)
{
	uint8_t packed[500];
	size_t first = gzip("text", 4, 9, NULL, packed, sizeof(packed)), n;

	(void)state;
	for (int i = 0; i < 2; i++) {
		size_t at = i ? first : 0;

		n = at + gzip("text", 4, 9, "x" SECRET_VALUE, packed + at, sizeof(packed) - at);
		begin("GET /x", "");
		say_response(packed, n);
		expect_refused("holds the credential");
		leave();
		first = gzip("text", 4, 9, NULL, packed, sizeof(packed));
	}
}

/* The content before the value has gone out; wherever the bytes are cut, no more of the value
 * than may be seen at a pause. */
static void test_found_later(void **state)
{
	static char text[3000];
	static uint8_t packed[4000];
	size_t n;

	(void)state;
	memset(text, '.', sizeof(text));
	memcpy(text + 2000, SECRET_VALUE, sizeof(SECRET_VALUE) - 1);
	n = gzip(text, sizeof(text), 0, NULL, packed, sizeof(packed));
	for (size_t cut = 2010; cut < 2010 + sizeof(SECRET_VALUE); cut += 3) {
		begin("GET /x", "");
		say_head(n, "");
		say_n(o, packed, 1000);
		UNTIL(&w, has(c, "....", 4));
		say_n(o, packed + 1000, cut - 1000);
		pump(&w, 1);
		say_n(o, packed + cut, n - cut);
		UNTIL(&w, c->eof || c->failed);
		assert_false(has(c, "s3cr3", 5));
		assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_UNREADABLE);
		assert_non_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
		leave();
	}
}

/* --- what cannot be searched --- */

static void test_damaged(void **state)
{
	static const char *const how[] = {"", ASKS};
	uint8_t packed[200];

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		size_t n = gzip("a text that is packed", 21, 9, NULL, packed, sizeof(packed));
		bool passes = false;

		switch (i / 2) {
		case 0:
			packed[0] = 'x';
			break;
		case 1:
			packed[n - 1] ^= 1; /* the length */
			break;
		case 2:
			packed[n - 5] ^= 1; /* the sum */
			break;
		case 3:
			packed[n++] = 'x'; /* something behind it */
			packed[n++] = 'x';
			break;
		case 4:
			n -= 3; /* its end is missing: so it is passed on, unless it is decompressed
			         */
			passes = !(i & 1);
			break;
		default:
			packed[12] ^= 0xff;
		}
		begin("GET /x", how[i & 1]);
		say_head(n, "");
		say_n(o, packed, n);
		UNTIL(&w, w.event_count);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause,
		        passes ? EVENT_CAUSE_POLICY : EVENT_CAUSE_UNREADABLE);
		leave();
	}
}

/* 64 MiB of zeros: no reader slows it down, so a ratio bounds it. */
static void test_a_bomb(void **state)
{
	const size_t n = 64u << 20;
	uint8_t *zeros = calloc(1, n), *packed = malloc(100000);
	size_t packed_n = gzip(zeros, n, 9, NULL, packed, 100000);

	(void)state;
	begin("GET /x", "");
	say_head(packed_n, "");
	say_n(o, packed, packed_n);
	UNTIL(&w, c->in.len > 12 || c->eof || c->failed);
	pump(&w, 20);
	assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UNREADABLE);
	free(zeros);
	free(packed);
	leave();
}

/* Members without content, as many as there are: they are passed on, and keep nothing. */
static void test_empty_members(void **state)
{
	static uint8_t packed[400000];
	size_t n = 0;

	(void)state;
	while (n < sizeof(packed) - 100)
		n += gzip("", 0, 9, NULL, packed + n, sizeof(packed) - n);
	begin("GET /x", "");
	say_head(n, "");
	for (size_t at = 0; at < n; at += 50000) {
		say_n(o, packed + at, n - at < 50000 ? n - at : 50000);
		pump(&w, 1);
	}
	expect_head(c, "HTTP/1.1 200 ");
	expect_bytes(packed, n);
	leave();
}

/* --- decompressed --- */

static void test_what_is_said_of_decompressed_content(void **state)
{
	static const char body[] = "before " SECRET_VALUE " after";
	static const struct {
		const char *sent, *gets;
	} tags[] = {{"\"v1\"", "W/\"v1\""}, {"W/\"v1\"", "W/\"v1\""}};
	uint8_t packed[200];
	size_t n = gzip(body, sizeof(body) - 1, 9, NULL, packed, sizeof(packed));

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		char fields[100], expected[100];

		begin(i & 2 ? "HEAD /x" : "GET /x", ASKS);
		assert_true(head_has(o, "accept-encoding: gzip, deflate\r\n"));
		snprintf(fields, sizeof(fields), "eTag: %s\r\nVary: accept-encoding\r\n",
		        tags[i & 1].sent);
		snprintf(expected, sizeof(expected), "\r\netag: %s\r\n", tags[i & 1].gets);
		say_head(n, fields);
		if (!(i & 2))
			say_n(o, packed, n);
		expect_head(c, "HTTP/1.1 200 ");
		assert_true(head_has(c, expected));
		assert_true(head_has(c, "\r\nVary: accept-encoding\r\n"));
		assert_false(head_has(c, "content-encoding") || head_has(c, "content-length"));
		if (!(i & 2))
			UNTIL(&w, has(c, "before " COVERED, sizeof(body) - 1 - 6) &&
			                  has(c, "after\r\n0\r\n\r\n", 12));
		leave();
	}
}

/* A digest behind the content would be that of the compressed content. */
static void test_digests_in_trailers(void **state)
{
	uint8_t packed[200];
	size_t n = gzip("text", 4, 9, NULL, packed, sizeof(packed));
	char head[200];

	(void)state;
	for (int decompressed = 0; decompressed < 2; decompressed++) {
		begin("GET /x", decompressed ? ASKS : "");
		snprintf(head, sizeof(head),
		        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: "
		        "chunked\r\n\r\n%zx\r\n",
		        n);
		say(o, head);
		say_n(o, packed, n);
		say(o, "\r\n0\r\nRepr-Digest: sha-256=:AAAA:\r\nX-Other: 1\r\n\r\n");
		expect_head(c, "HTTP/1.1 200 ");
		UNTIL(&w, has(c, "X-Other: 1\r\n\r\n", 14));
		assert_int_equal(has(c, "Repr-Digest", 11), !decompressed);
		leave();
	}
}

static void test_not_modified(void **state)
{
	static const struct {
		const char *asks, *gets;
	} cases[] = {{ASKS "If-None-Match: W/\"v1\"\r\n", "\r\nETag: W/\"v1\"\r\n"},
	        {ASKS "If-None-Match: \"v0\", W/\"v1\"\r\n", "\r\nETag: W/\"v1\"\r\n"},
	        {ASKS "If-None-Match: \"v1\"\r\n", "\r\nETag: \"v1\"\r\n"},
	        {ASKS "If-None-Match: W/\"v2\"\r\n", "\r\nETag: \"v1\"\r\n"},
	        {"If-None-Match: W/\"v1\"\r\n", "\r\nETag: \"v1\"\r\n"},
	        {ASKS, "\r\nETag: \"v1\"\r\n"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin("GET /x", cases[i].asks);
		say(o, "HTTP/1.1 304 Same\r\n" ETAG "\r\n");
		expect_head(c, "HTTP/1.1 304 ");
		if (!head_has(c, cases[i].gets))
			fail_msg("%s: %s", cases[i].asks, c->head);
		leave();
	}
}

/* --- how bodies begin --- */

static void test_beginnings(void **state)
{
	static const struct {
		const char *type;
		size_t n;
		const char *p;
		bool passes;
	} cases[] = {
#define BEGINS(type, text, passes) \
	{                          \
	        type,              \
	        sizeof(text) - 1,  \
	        text,              \
	        passes,            \
	}
	        BEGINS("text/plain; charset=utf-8", "\xff\xfes\0e\0c\0r\0", false),
	        BEGINS("text/plain", "\xfe\xff\0s\0e\0c\0r", false),
	        BEGINS("application/json", "{\0\"\0a\0\"\0", false),
	        BEGINS("application/problem+json", "\0{\0\"\0a\0\"", false),
	        BEGINS("text/html", "\0\0\xfe\xff\0\0\0<", false),
	        BEGINS("", "\xff\xfe<\0h\0t\0m\0", false),
	        BEGINS("text/plain", "+/v8-text in UTF-7", false),
	        BEGINS("application/xml", "\x4c\x6f\xa7\x94\x93\x40\xa5\x85", false),
	        BEGINS("image/svg+xml", "<?xml version='1.0' encoding='UTF-7'?><svg/>", false),
	        BEGINS("text/xml", "\xef\xbb\xbf<?xml version=\"1.0\" encoding = \"cp037\"?><x/>",
	                false),
	        BEGINS("text/xml", "<?xml version=\"1.0\" encoding=\"", true),
	        BEGINS("text/xml",
	                "<?xml version=\"1.0\" encoding=\"utf-8\"?><x encoding=\"utf-16\"/>", true),
	        BEGINS("text/plain",
	                "\xef\xbb\xbf"
	                "with the mark of UTF-8",
	                true),
	        BEGINS("text/plain", "\xff", true),
	        BEGINS("application/octet-stream", "\xff\xfes\0e\0c\0r\0", true),
	        BEGINS("image/jpeg", "\xff\xd8\xff\xe0\0\x10JFIF", true),
	        BEGINS("application/grpc+json", "\0\0\0\0\x02{}...", true),
	        BEGINS("", "\0\0\1\0 an icon", true),
	        BEGINS("text/plain", "text\0with a NUL behind", true),
	};

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(cases) / sizeof(*cases); i++) {
		size_t k = i / 3, n = cases[k].n;
		uint8_t packed[300];
		char head[600];
		bool coded = i % 3 == 2, pieces = i % 3 == 1;

		if (coded)
			n = gzip(cases[k].p, n, 9, NULL, packed, sizeof(packed));
		begin("GET /x", coded ? ASKS : "");
		snprintf(head, sizeof(head),
		        "HTTP/1.1 200 OK\r\n%s%s%s%sContent-Length: %zu\r\n\r\n",
		        *cases[k].type ? "Content-Type: " : "", cases[k].type,
		        *cases[k].type ? "\r\n" : "", coded ? "Content-Encoding: gzip\r\n" : "", n);
		if (pieces) {
			say(o, head);
			for (size_t at = 0; at < n; at++) {
				say_n(o, cases[k].p + at, 1);
				pump(&w, 0);
			}
		} else {
			size_t head_n = strlen(head);

			memcpy(head + head_n, coded ? (const char *)packed : cases[k].p, n);
			say_n(o, head, head_n + n);
		}
		UNTIL(&w, w.event_count);
		if ((find_event(&w, EVENT_HTTP)->cause != EVENT_CAUSE_UNREADABLE) !=
		        cases[k].passes)
			fail_msg("%zu: %s %s", k, cases[k].type, cases[k].p);
		if (!cases[k].passes && !pieces)
			expect_refused("character set");
		leave();
	}
}

/* --- fields --- */

static unsigned accepted(const char *one, const char *two)
{
	static struct http_fields fields;

	fields = (struct http_fields){0};
	assert_true(http_add(&fields, SLICE("Accept-Encoding"), slice_from_string(one)));
	assert_true(http_add(&fields, SLICE("accept-encoding"), slice_from_string(two)));
	return content_accepted(&fields);
}

#define G (1u << DECOMPRESS_GZIP)
#define D (1u << DECOMPRESS_DEFLATE)
#define B (1u << DECOMPRESS_BROTLI)
#define Z (1u << DECOMPRESS_ZSTD)

static void test_who_takes_which_coding(void **state)
{
	(void)state;
	assert_int_equal(accepted("gzip", ""), G);
	assert_int_equal(accepted("br, GZIP;q=1.0", ""), B | G);
	assert_int_equal(accepted("deflate", "x-gzip ; q=0.001"), D | G);
	assert_int_equal(accepted("", ""), 0);
	assert_int_equal(accepted("gzip;q=0", "x-gzip"), 0);
	assert_int_equal(accepted("gzip; Q=0.000", "br"), B);
	assert_int_equal(accepted("br;q=0, deflate;q=0.5, identity, *", "Br"), D);
	assert_int_equal(accepted("gzipped, xgzip", "zip, brotli, zst, x-deflate, zstd;q=0"), 0);
	assert_int_equal(accepted("dcb, dcz, compress, *;q=1", ""), 0);
	assert_int_equal(accepted("gzip, deflate, br, zstd", ""), G | D | B | Z);
	assert_true(slice_equals(content_asking_for(0), SLICE("identity")));
	for (unsigned i = 1; i < 16; i++) {
		char text[40];

		snprintf(text, sizeof(text), "%.*s", SLICE_ARG(content_asking_for(i)));
		assert_int_equal(accepted(text, ""), i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_the_same_bytes),
	        TEST(test_text_like_values),
	        TEST(test_an_entity_tag_stays),
	        TEST(test_byte_by_byte),
	        TEST(test_found_at_once),
	        TEST(test_found_beside_the_content),
	        TEST(test_found_later),
	        TEST(test_damaged),
	        TEST(test_a_bomb),
	        TEST(test_empty_members),
	        TEST(test_what_is_said_of_decompressed_content),
	        TEST(test_digests_in_trailers),
	        TEST(test_not_modified),
	        TEST(test_beginnings),
	        TEST(test_who_takes_which_coding),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
