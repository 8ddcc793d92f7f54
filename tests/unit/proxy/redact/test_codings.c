/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses in each content coding to requests with a credential, through a whole proxy: a client
 * that takes the coding gets them decompressed and masked; another gets the very bytes of the
 * origin, or none that hold the credential. What is no such coding, or several, is refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"
#include "compress.h"

#define COVERED "*****************************"
_Static_assert(sizeof(COVERED) == sizeof(SECRET_VALUE), "as long as the value");
#define ALL "Accept-Encoding: zstd, br, deflate, gzip;q=0.1\r\n"

static struct peer *c, *o;

static void begin(const char *fields)
{
	c = client(&w, NAME_C, "c.test");
	ask(c, "GET /x", "c.test", fields);
	o = origin(&w, true);
	take_head(o);
	assert_true(head_has(o, "\r\nAuthorization: Bearer " SECRET_VALUE "\r\n"));
}

static void leave_both(void)
{
	assert_false(has(c, "s3cr3t-", 7));
	hang_up(c, false);
	hang_up(o, false);
	w.event_count = 0;
}

static void say_head(const char *coding, size_t n, const char *fields)
{
	char head[300];

	snprintf(head, sizeof(head),
	        "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n%sContent-Length: %zu\r\n\r\n", coding,
	        fields, n);
	say(o, head);
}

static void expect_unreadable(void)
{
	UNTIL(&w, w.event_count);
	assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UNREADABLE);
}

/* The value crosses each border of two pieces, in pieces of each size. */
static void test_decompressed_and_masked(void **state)
{
	static const char text[] = "before " SECRET_VALUE " after";
	uint8_t packed[300];

	(void)state;
	for (unsigned way = 0; way < COMPRESS_WAYS; way++) {
		size_t n = compress_in(way, text, sizeof(text) - 1, 6, packed, sizeof(packed));

		for (size_t piece = 1; piece <= n; piece += 1 + piece / 3) {
			begin(ALL);
			assert_true(head_has(o, "accept-encoding: gzip, deflate, br, zstd\r\n"));
			say_head(compress_name(way), n, "ETag: \"v1\"\r\n");
			for (size_t at = 0; at < n; at += piece) {
				say_n(o, packed + at, n - at < piece ? n - at : piece);
				pump(&w, 0);
			}
			expect_head(c, "HTTP/1.1 200 ");
			assert_true(head_has(c, "etag: W/\"v1\"\r\n"));
			assert_false(head_has(c, "content-encoding"));
			UNTIL(&w, has(c, "\r\n0\r\n\r\n", 7));
			assert_non_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
			leave_both();
		}
		begin(ALL);
		say_head(compress_name(way), n, "");
		say_n(o, packed, n);
		UNTIL(&w, has(c, "before " COVERED, sizeof("before " COVERED) - 1) &&
		                  has(c, "after\r\n0\r\n\r\n", 12));
		leave_both();
	}
}

static void test_the_same_bytes(void **state)
{
	static const char *const how[] = {
	        "", "Accept-Encoding: identity\r\n", ALL "Cache-Control: no-transform\r\n"};
	static uint8_t text[100000], packed[300000];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * i >> 7 ^ i);
	for (unsigned i = 0; i < COMPRESS_WAYS * 3; i++) {
		size_t n = compress_in(i / 3, text, sizeof(text), 5, packed, sizeof(packed));

		begin(how[i % 3]);
		say_head(compress_name(i / 3), n, "ETag: \"v1\"\r\n");
		for (size_t at = 0; at < n; at += 7777) {
			say_n(o, packed + at, n - at < 7777 ? n - at : 7777);
			pump(&w, 0);
		}
		expect_head(c, "HTTP/1.1 200 ");
		assert_true(head_has(c, "etag: \"v1\"\r\n") && head_has(c, "content-encoding: "));
		UNTIL(&w, c->in.len >= n || c->eof || c->failed);
		assert_int_equal(c->in.len, n);
		assert_memory_equal(buf_bytes(&c->in), packed, n);
		leave_both();
	}
}

/* Found where it would have to be covered in compressed bytes: the client gets none of them. */
static void test_found_in_what_must_stay(void **state)
{
	uint8_t packed[300];

	(void)state;
	for (unsigned i = 0; i < COMPRESS_WAYS * 2; i++) {
		size_t n = compress_in(i / 2, "x" SECRET_VALUE "y", sizeof(SECRET_VALUE) + 1,
		        i & 1 ? 6 : 0, packed, sizeof(packed));

		begin("");
		say_head(compress_name(i / 2), n, "");
		for (size_t at = 0; at < n; at += 5) {
			say_n(o, packed + at, n - at < 5 ? n - at : 5);
			pump(&w, 0);
		}
		expect_unreadable();
		assert_non_null(find_finding(&w, EVENT_FINDING_CREDENTIAL_ECHO));
		leave_both();
	}
}

/* The value is beside zstd's content, in a frame that readers skip. */
static void test_found_in_a_skipped_frame(void **state)
{
	uint8_t packed[300] = {0x50, 0x2a, 0x4d, 0x18, sizeof(SECRET_VALUE) - 1, 0, 0, 0};
	size_t n = 8;

	(void)state;
	memcpy(packed + n, SECRET_VALUE, sizeof(SECRET_VALUE) - 1);
	n += sizeof(SECRET_VALUE) - 1;
	n += compress_in(DECOMPRESS_ZSTD, "text", 4, 1, packed + n, sizeof(packed) - n);
	begin("");
	say_head("zstd", n, "");
	say_n(o, packed, n);
	expect_unreadable();
	leave_both();
	begin(ALL); /* decompressed, it is left out */
	say_head("zstd", n, "");
	say_n(o, packed, n);
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, has(c, "text", 4));
	leave_both();
}

/* Codings inside of each other, the same coding twice, unknown ones, and content that is not in its
 * coding. */
static void test_refused(void **state)
{
	static const char *const codings[] = {"gzip, br", "br\r\nContent-Encoding: gzip",
	        "zstd, zstd", "deflate, identity", "compress", "dcb", "dcz", "brotli", "zst",
	        "x-deflate", "br;q=1", "\"br\"", "aws-chunked"};
	uint8_t packed[100];
	size_t n = compress_in(DECOMPRESS_BROTLI, "text", 4, 1, packed, sizeof(packed));

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(codings) / sizeof(*codings); i++) {
		begin(i & 1 ? ALL : "");
		say_head(codings[i / 2], n, "");
		say_n(o, packed, n);
		expect_head(c, "HTTP/1.1 502 ");
		expect_unreadable();
		leave_both();
	}
	for (unsigned i = 0; i < 2 * COMPRESS_WAYS; i++) {
		begin(i & 1 ? ALL : "");
		say_head(compress_name(i / 2), 30, "");
		say_n(o, "\xff\xff\xff\xff plain and no coding 12345", 30);
		expect_unreadable();
		leave_both();
	}
}

/* A client that drains all of it gets no more than the bound. */
static void test_bombs(void **state)
{
	const size_t n = 24u << 20, room = 1u << 20;
	uint8_t *zeros = calloc(1, n), *packed = malloc(room);

	(void)state;
	for (unsigned i = 0; i < 2 * COMPRESS_WAYS; i++) {
		size_t packed_n = compress_in(i / 2, zeros, n, 6, packed, room);
		uint64_t taken = 0;

		begin(i & 1 ? ALL : "");
		say_head(compress_name(i / 2), packed_n, "");
		say_n(o, packed, packed_n);
		UNTIL(&w, (taken += c->in.len, buf_consume(&c->in, c->in.len),
		                  find_event(&w, EVENT_HTTP) != NULL));
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UNREADABLE);
		assert_true(taken < n);
		leave_both();
	}
	free(zeros);
	free(packed);
}

/* Cut off at every third byte: what is decompressed is not whole, the rest is passed as it came. */
static void test_truncated(void **state)
{
	static const char text[] = "a text that is compressed, and more of it";
	uint8_t packed[200];

	(void)state;
	for (unsigned i = 0; i < 2 * COMPRESS_WAYS; i++) {
		size_t n = compress_in(i / 2, text, sizeof(text) - 1, 6, packed, sizeof(packed));

		for (size_t cut = 1; cut < n; cut += 3) {
			begin(i & 1 ? ALL : "");
			say_head(compress_name(i / 2), cut, "");
			say_n(o, packed, cut);
			UNTIL(&w, w.event_count);
			assert_int_equal(find_event(&w, EVENT_HTTP)->cause,
			        i & 1 ? EVENT_CAUSE_UNREADABLE : EVENT_CAUSE_POLICY);
			leave_both();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_decompressed_and_masked),
	        TEST(test_the_same_bytes),
	        TEST(test_found_in_what_must_stay),
	        TEST(test_found_in_a_skipped_frame),
	        TEST(test_refused),
	        TEST(test_bombs),
	        TEST(test_truncated),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
