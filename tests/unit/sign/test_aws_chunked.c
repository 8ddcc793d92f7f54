/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are signed anew chunk by chunk: the examples of S3's documentation cut at every byte,
 * bounds, and malformed bodies. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "hmac_fixture.h"
#include "vethguard/sign/aws_chunked.h"

#define S3_SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define SEED "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
#define FIRST "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2"
#define SECOND "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7"
#define THIRD "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992"
#define TRAILER "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"

static struct aws_chunked c;

static void begin(const char *seed, bool with_trailer)
{
	struct sigv4_scope scope = {.region = SLICE("us-east-1"), .service = SLICE("s3")};
	uint8_t key[HMAC_BYTES];

	sigv4_time(1369353600, scope.time);
	assert_int_equal(sigv4_key(&hmac, SLICE(S3_SECRET), &scope, key), 0);
	assert_int_equal(aws_chunked_init(&c, &hmac, key, &scope, seed, with_trailer), 0);
}

/* The documentation's body, of 65 KiB of 'a', with these signatures. */
static void example(struct buf *out, const char *const signatures[3], const char *end)
{
	static const size_t sizes[] = {65536, 1024, 0};

	buf_init(out, 1 << 20);
	for (size_t i = 0; i < 3; i++) {
		buf_printf(out, "%zx;chunk-signature=%s\r\n", sizes[i], signatures[i]);
		memset(buf_reserve(out, sizes[i] + 1), 'a', sizes[i]);
		buf_commit(out, sizes[i]);
		if (sizes[i])
			buf_append(out, "\r\n", 2);
	}
	buf_append_slice(out, slice_from_string(end));
}

/* Feeds p in pieces of n bytes and compares what is ready with the expected bytes. */
static void run(const struct buf *body, size_t n, const struct buf *expected)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	for (size_t at = 0; at < body->len; at += n) {
		size_t piece = n < body->len - at ? n : body->len - at;

		assert_int_equal(aws_chunked_take(&c, buf_bytes(body) + at, piece), 0);
		buf_append(&out, buf_bytes(&c.out), c.ready);
		aws_chunked_sent(&c, c.ready);
	}
	assert_true(aws_chunked_is_whole(&c));
	assert_int_equal(c.out.len, 0);
	assert_true(slice_equals(buf_slice(&out), buf_slice(expected)));
	buf_fini(&out);
	aws_chunked_fini(&c);
}

static void test_examples(void **state)
{
	static const char
	        *const none[] = {ZEROS, ZEROS, ZEROS},
	               *const right[] = {FIRST, SECOND, THIRD},
	               *const plain[] = {
	                       "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
	                       "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
	                       "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"};
	static const size_t pieces[] = {
	        1, 7, 83, 84, 85, 4096, 65536, 65620, 65622, 66000, 1 << 17};
	struct buf body, expected;

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		example(&body, none,
		        "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:" ZEROS
		        "\r\n\r\n");
		example(&expected, right,
		        "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:" TRAILER
		        "\r\n\r\n");
		begin(SEED, true);
		run(&body, pieces[i], &expected);
		buf_fini(&body);
		buf_fini(&expected);
		example(&body, none, "\r\n");
		example(&expected, plain, "\r\n");
		begin("4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9", false);
		run(&body, pieces[i], &expected);
		buf_fini(&body);
		buf_fini(&expected);
	}
}

/* Nothing of a chunk is ready before its whole data was signed, and the end waits for its line. */
static void test_nothing_leaves_unsigned(void **state)
{
	static const char head[] = "3;chunk-signature=" ZEROS "\r\n";
	static const char last[] = "0;chunk-signature=" ZEROS "\r\n";

	(void)state;
	begin(SEED, false);
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)head, sizeof(head) - 1), 0);
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)"abc", 3), 0);
	assert_int_equal(c.ready, 0);
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)"\r\n", 2), 0);
	assert_int_equal(c.ready, sizeof(head) - 1 + 5);
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)last, sizeof(last) - 1), 0);
	assert_int_equal(c.ready, sizeof(head) - 1 + 5);
	assert_false(aws_chunked_is_whole(&c));
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)"\r\n", 2), 0);
	assert_true(aws_chunked_is_whole(&c));
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)"x", 1), -EBADMSG);
	assert_false(aws_chunked_is_whole(&c));
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)"x", 1), -EBADMSG);
	aws_chunked_fini(&c);
}

#define LAST "0;chunk-signature=" ZEROS "\r\n"

static void test_bodies_that_are_none(void **state)
{
	static const struct {
		const char *body;
		bool with_trailer;
		int rc; /* 0: it is not whole */
	} rows[] = {
	        {"", false, 0},
	        {LAST, false, 0},
	        {LAST, true, 0},
	        {LAST "\r\n", true, 0},
	        {LAST "a:b\r\n\r\n", true, 0},
	        {LAST "x", false, 0},
	        {LAST "x\r\n", false, -EBADMSG},
	        {LAST "\n", false, -EBADMSG},
	        {LAST "\r\n\r\n", false, -EBADMSG},
	        {LAST "a:b\r\n", false, -EBADMSG},
	        {LAST "no field\r\n", true, -EBADMSG},
	        {LAST ": b\r\n", true, -EBADMSG},
	        {LAST "a b: c\r\n", true, -EBADMSG},
	        {LAST "x-amz-trailer-signature:\r\n", true, -EBADMSG},
	        {LAST "x-amz-trailer-signature:0" ZEROS "\r\n", true, -EBADMSG},
	        {LAST "x-amz-trailer-signature:x" ZEROS "\r\n", true, -EBADMSG},
	        {LAST "x-amz-trailer-signature:" ZEROS "\r\na: b\r\n", true, -EBADMSG},
	        {LAST "x-amz-trailer-signature:" ZEROS "\r\n\r\nx", true, -EBADMSG},
	        {"0\r\n\r\n", false, -EBADMSG},
	        {";chunk-signature=" ZEROS "\r\n", false, -EBADMSG},
	        {"0; chunk-signature=" ZEROS "\r\n", false, -EBADMSG},
	        {"0;chunk-signature=" ZEROS "0\r\n", false, -EBADMSG},
	        {"0;chunk-signature=" ZEROS "\n", false, -EBADMSG},
	        {"0;Chunk-Signature=" ZEROS "\r\n", false, -EBADMSG},
	        {"0x1;chunk-signature=" ZEROS "\r\n", false, -EBADMSG},
	        {"+1;chunk-signature=" ZEROS "\r\n", false, -EBADMSG},
	        {"000000001;chunk-signature=" ZEROS "\r\n", false, -EBADMSG},
	        {"1;chunk-signature=" ZEROS "\r\nab\r\n", false, -EBADMSG},
	        {"100001;chunk-signature=" ZEROS "\r\n", false, -EFBIG},
	        {"ffffffff;chunk-signature=" ZEROS "\r\n", false, -EFBIG},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct slice body = slice_from_string(rows[i].body);
		int rc = 0;

		begin(SEED, rows[i].with_trailer);
		for (size_t at = 0; at < body.n && rc == 0; at++)
			rc = aws_chunked_take(&c, (const uint8_t *)body.p + at, 1);
		if (rc != rows[i].rc || aws_chunked_is_whole(&c))
			fail_msg("row %zu: %d", i, rc);
		assert_true(!rc || c.why);
		aws_chunked_fini(&c);
	}
}

/* One byte more than each bound. */
static void test_bounds(void **state)
{
	static const char head[] = "100000;chunk-signature=" ZEROS "\r\n";
	struct sigv4_scope scope = {.time = "20130524T000000Z",
	        .region = SLICE("r2345678901234567890123456789012x"),
	        .service = SLICE("s3")};
	uint8_t *big = calloc(1, AWS_CHUNK_MAX), key[HMAC_BYTES] = {0};
	char line[AWS_CHUNK_LINE_MAX + 1];

	(void)state;
	assert_non_null(big);
	begin(SEED, false);
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)head, sizeof(head) - 1), 0);
	for (size_t at = 0; at < AWS_CHUNK_MAX; at += AWS_CHUNK_INPUT_MAX)
		assert_int_equal(aws_chunked_take(&c, big + at, AWS_CHUNK_INPUT_MAX), 0);
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)"\r\n", 2), 0);
	assert_int_equal(c.ready, AWS_CHUNK_MAX + sizeof(head) + 1);
	assert_int_equal(aws_chunked_take(&c, big, AWS_CHUNK_INPUT_MAX + 1), -EINVAL);
	aws_chunked_fini(&c);
	memset(line, 'a', sizeof(line));
	begin(SEED, false);
	assert_int_equal(aws_chunked_take(&c, (uint8_t *)line, AWS_CHUNK_LINE_MAX), 0);
	assert_int_equal(aws_chunked_take(&c, (uint8_t *)line, 1), -EBADMSG);
	aws_chunked_fini(&c);
	begin(SEED, true);
	assert_int_equal(aws_chunked_take(&c, (const uint8_t *)LAST, sizeof(LAST) - 1), 0);
	memcpy(line, "a:", 2);
	line[1000] = '\n';
	for (int i = 0; i < 4; i++)
		assert_int_equal(aws_chunked_take(&c, (uint8_t *)line, 1001), 0);
	assert_int_equal(aws_chunked_take(&c, (uint8_t *)line, 1001), -EBADMSG);
	aws_chunked_fini(&c);
	assert_int_equal(aws_chunked_init(&c, &hmac, key, &scope, SEED, false), -EINVAL);
	aws_chunked_fini(&c);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_examples, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_nothing_leaves_unsigned, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_bodies_that_are_none, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
