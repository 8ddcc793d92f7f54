/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures against the published test suite and the examples of S3's documentation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "hmac_fixture.h"
#include "vethguard/sign/sigv4.h"

/* What the suite and the documentation sign with. */
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define S3_SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define S3_TIME 1369353600 /* 20130524T000000Z */
#define TEXT_MAX 65536

struct vector {
	const char *name;
	bool s3; /* the path is not normalized */
	const char *method, *path, *query, *fields, *body, *token, *header, *in_query;
};
#include "vectors.h"

static size_t split_fields(const char *text, bool in_query, struct sigv4_field *out)
{
	size_t count = 0;

	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *colon = strchr(text, ':');
		struct slice name = slice_of(text, (size_t)(colon - text));

		if (in_query && slice_equals(name, SLICE("x-amz-content-sha256")))
			continue;
		out[count].name = name;
		out[count++].value = slice_of(colon + 1, (size_t)(end - colon - 1));
	}
	return count;
}

/* The query of a presigned URL without its signature. */
static void presign(struct buf *out, const struct vector *v, const struct sigv4_scope *scope,
        const struct sigv4_field *fields, size_t count)
{
	char text[SIGV4_SCOPE_MAX];
	struct buf names;

	buf_init(&names, TEXT_MAX);
	assert_int_equal(sigv4_names(&names, fields, count), 0);
	assert_int_equal(sigv4_write_query(out, slice_from_string(v->query)), 0);
	if (out->len)
		buf_append(out, "&", 1);
	buf_printf(out, "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%%2F");
	sigv4_escape(out, sigv4_scope_text(scope, text), false);
	buf_printf(out, "&X-Amz-Date=%s&X-Amz-Expires=3600&X-Amz-SignedHeaders=", scope->time);
	sigv4_escape(out, buf_slice(&names), false);
	if (v->token[0]) {
		buf_printf(out, "&X-Amz-Security-Token=");
		sigv4_escape(out, slice_from_string(v->token), false);
	}
	buf_fini(&names);
}

static void check_vector(const struct vector *v, bool in_query)
{
	struct sigv4_scope scope = {.region = SLICE("us-east-1"), .service = SLICE("service")};
	struct sigv4_field fields[SIGV4_FIELDS_MAX];
	char signature[SIGV4_HEX + 1], payload[SIGV4_HEX + 1];
	size_t count = split_fields(v->fields, in_query, fields);
	struct buf query, canonical;
	uint8_t key[HMAC_BYTES];

	sigv4_time(1440938160, scope.time);
	buf_init(&query, TEXT_MAX);
	buf_init(&canonical, TEXT_MAX);
	if (in_query) {
		presign(&query, v, &scope, fields, count);
	} else {
		fields[count++] =
		        (struct sigv4_field){SLICE("X-Amz-Date"), slice_from_string(scope.time)};
		if (v->token[0])
			fields[count++] = (struct sigv4_field){
			        SLICE("X-Amz-Security-Token"), slice_from_string(v->token)};
		assert_int_equal(sigv4_write_query(&query, slice_from_string(v->query)), 0);
	}
	assert_int_equal(sigv4_payload_hex(&hmac, slice_from_string(v->body), payload), 0);
	const struct sigv4_request request = {.method = slice_from_string(v->method),
	        .path = slice_from_string(v->path),
	        .query = buf_slice(&query),
	        .fields = fields,
	        .field_count = count,
	        .payload = slice_of(payload, SIGV4_HEX),
	        .s3 = v->s3};

	assert_int_equal(sigv4_canonical(&canonical, &request), 0);
	assert_int_equal(sigv4_key(&hmac, SLICE(SECRET), &scope, key), 0);
	assert_int_equal(sigv4_sign(&hmac, key, &scope, buf_slice(&canonical), signature), 0);
	if (strcmp(signature, in_query ? v->in_query : v->header) != 0)
		fail_msg("%s (%s): %s, of\n%.*s", v->name, in_query ? "query" : "field", signature,
		        SLICE_ARG(buf_slice(&canonical)));
	buf_fini(&query);
	buf_fini(&canonical);
}

static void test_suite(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
		check_vector(&vectors[i], false);
		check_vector(&vectors[i], true);
	}
}

/* --- S3's documentation --- */

static struct sigv4_scope s3_scope(void)
{
	struct sigv4_scope scope = {.region = SLICE("us-east-1"), .service = SLICE("s3")};

	sigv4_time(S3_TIME, scope.time);
	return scope;
}

static void check_s3(const char *method, const char *path, const char *query, const char *lines,
        const char *payload, const char *expected)
{
	struct sigv4_scope scope = s3_scope();
	struct sigv4_field fields[SIGV4_FIELDS_MAX];
	char signature[SIGV4_HEX + 1];
	uint8_t key[HMAC_BYTES];
	struct buf canonical;
	const struct sigv4_request request = {.method = slice_from_string(method),
	        .path = slice_from_string(path),
	        .query = slice_from_string(query),
	        .fields = fields,
	        .field_count = split_fields(lines, false, fields),
	        .payload = slice_from_string(payload),
	        .s3 = true};

	buf_init(&canonical, TEXT_MAX);
	/* split_fields() leaves the payload's field out only for a query */
	assert_int_equal(sigv4_canonical(&canonical, &request), 0);
	assert_int_equal(sigv4_key(&hmac, SLICE(S3_SECRET), &scope, key), 0);
	assert_int_equal(sigv4_sign(&hmac, key, &scope, buf_slice(&canonical), signature), 0);
	assert_string_equal(signature, expected);
	buf_fini(&canonical);
}

#define S3_HOST "Host:examplebucket.s3.amazonaws.com\n"
#define S3_DATE "x-amz-date:20130524T000000Z\n"
#define S3_EMPTY "x-amz-content-sha256:" SIGV4_EMPTY "\n"

static void test_s3_examples(void **state)
{
	static const char put[] =
	        "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";

	(void)state;
	check_s3("GET", "/test.txt", "", S3_HOST "Range:bytes=0-9\n" S3_EMPTY S3_DATE, SIGV4_EMPTY,
	        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
	check_s3("PUT", "/test$file.text", "",
	        S3_HOST "Date:Fri, 24 May 2013 00:00:00 GMT\n" S3_DATE
	                "x-amz-storage-class:REDUCED_REDUNDANCY\n"
	                "x-amz-content-sha256:44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034"
	                "a8b803f8b072\n",
	        put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
	check_s3("GET", "/", "lifecycle", S3_HOST S3_DATE S3_EMPTY, SIGV4_EMPTY,
	        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
	check_s3("GET", "/", "max-keys=2&prefix=J", S3_HOST S3_DATE S3_EMPTY, SIGV4_EMPTY,
	        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
	check_s3("GET", "/test.txt",
	        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524"
	        "%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
	        "&X-Amz-SignedHeaders=host",
	        S3_HOST, SIGV4_UNSIGNED,
	        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

static void test_s3_chunks(void **state)
{
	struct sigv4_scope scope = s3_scope();
	char signature[SIGV4_HEX + 1];
	uint8_t key[HMAC_BYTES];
	char *data = malloc(65536);

	(void)state;
	assert_non_null(data);
	memset(data, 'a', 65536);
	assert_int_equal(sigv4_key(&hmac, SLICE(S3_SECRET), &scope, key), 0);
	strcpy(signature, "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9");
	sigv4_sign_chunk(&hmac, key, &scope, slice_of(data, 65536), signature);
	assert_string_equal(
	        signature, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
	sigv4_sign_chunk(&hmac, key, &scope, slice_of(data, 1024), signature);
	assert_string_equal(
	        signature, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
	sigv4_sign_chunk(&hmac, key, &scope, SLICE(""), signature);
	assert_string_equal(
	        signature, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9");
	strcpy(signature, "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992");
	sigv4_sign_trailer(
	        &hmac, key, &scope, SLICE("x-amz-checksum-crc32c:sOO8/Q==\n"), signature);
	assert_string_equal(
	        signature, "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435");
	free(data);
}

/* --- parts --- */

static void test_authorization(void **state)
{
	struct sigv4_scope scope = s3_scope();
	struct buf out;

	(void)state;
	buf_init(&out, 1024);
	assert_int_equal(sigv4_write_authorization(&out, SLICE("AKID"), &scope,
	                         SLICE("host;x-amz-date"), SIGV4_EMPTY),
	        0);
	assert_true(slice_equals(buf_slice(&out),
	        SLICE("AWS4-HMAC-SHA256 Credential=AKID/20130524/us-east-1/s3/aws4_request, "
	              "SignedHeaders=host;x-amz-date, Signature=" SIGV4_EMPTY)));
	buf_fini(&out);
	buf_init(&out, 100); /* no room */
	assert_int_equal(sigv4_write_authorization(&out, SLICE("AKID"), &scope,
	                         SLICE("host;x-amz-date"), SIGV4_EMPTY),
	        -ENOBUFS);
	buf_fini(&out);
}

static void test_query(void **state)
{
	static const struct {
		const char *sent, *written;
	} cases[] = {
	        {"", ""},
	        {"acl", "acl"},
	        {"a=", "a="},
	        {"&&a=1&&b=2&", "a=1&b=2"},
	        {"b=2&a=1", "b=2&a=1"},
	        {"a=x+y", "a=x%20y"},
	        {"a=x%20y%2bz", "a=x%20y%2Bz"},
	        {"a=%41%7e~", "a=A~~"},
	        {"a=b=c", "a=b%3Dc"},
	        {"a=%zz%4", "a=%25zz%254"},
	        {"a=%", "a=%25"},
	        {"a;b=c;d", "a%3Bb=c%3Bd"},
	        {"p=/x:y@z", "p=%2Fx%3Ay%40z"},
	        {"=v", "=v"},
	        {"\xe1\x88\xb4=bar", "%E1%88%B4=bar"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf out;

		buf_init(&out, 1024);
		assert_int_equal(sigv4_write_query(&out, slice_from_string(cases[i].sent)), 0);
		if (!slice_equals(buf_slice(&out), slice_from_string(cases[i].written)))
			fail_msg("\"%s\" became \"%.*s\"", cases[i].sent,
			        SLICE_ARG(buf_slice(&out)));
		buf_fini(&out);
	}
}

static void test_scope_words(void **state)
{
	static const char *const regions[] = {"", "us east", "us/east", "us-east-1\n", "eu\xc3\xa9",
	        "r2345678901234567890123456789012x"};

	(void)state;
	assert_true(sigv4_is_region(SLICE("us-gov-west-1")));
	assert_true(sigv4_is_region(SLICE("r2345678901234567890123456789012")));
	assert_true(sigv4_is_service(SLICE("execute-api")));
	for (size_t i = 0; i < sizeof(regions) / sizeof(*regions); i++)
		assert_false(sigv4_is_region(slice_from_string(regions[i])));
	assert_false(sigv4_is_service(SLICE("s3,iam")));
	assert_true(sigv4_is_s3(SLICE("s3")) && sigv4_is_s3(SLICE("s3express")));
	assert_false(sigv4_is_s3(SLICE("s3vectors")) || sigv4_is_s3(SLICE("S3")));
}

/* One more than each bound, and no room at every length. */
static void test_bounds(void **state)
{
	static struct sigv4_field fields[SIGV4_FIELDS_MAX + 1];
	struct sigv4_scope scope = s3_scope();
	uint8_t key[HMAC_BYTES];
	struct slice parts[HMAC_PARTS_MAX + 1] = {SLICE("")};
	char long_secret[SIGV4_SECRET_MAX + 1];
	struct sigv4_request request = {.method = SLICE("GET"),
	        .path = SLICE("/a/./b"),
	        .query = SLICE("x=1&y"),
	        .fields = fields,
	        .field_count = SIGV4_FIELDS_MAX,
	        .payload = SLICE(SIGV4_EMPTY)};
	struct buf out, query;
	size_t whole;

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		fields[i] = (struct sigv4_field){SLICE("A b"), SLICE(" v  w ")};
	buf_init(&out, TEXT_MAX);
	assert_int_equal(sigv4_canonical(&out, &request), 0);
	request.field_count++;
	assert_int_equal(sigv4_canonical(&out, &request), -E2BIG);
	assert_int_equal(sigv4_names(&out, fields, request.field_count), -E2BIG);
	request.field_count = 2;
	buf_init(&query, TEXT_MAX);
	for (size_t i = 0; i < SIGV4_PARAMETERS_MAX; i++)
		buf_printf(&query, "%sa", i ? "&" : "");
	request.query = buf_slice(&query);
	assert_int_equal(sigv4_canonical(&out, &request), 0);
	buf_printf(&query, "&a");
	request.query = buf_slice(&query);
	assert_int_equal(sigv4_canonical(&out, &request), -E2BIG);
	request.query = SLICE("x=1&y");
	buf_fini(&out);
	assert_int_equal(sigv4_canonical(&out, &request), 0);
	whole = out.len;
	buf_fini(&out);
	for (size_t n = 0; n < whole; n++) {
		buf_init(&out, n);
		assert_int_equal(sigv4_canonical(&out, &request), -ENOBUFS);
		buf_fini(&out);
	}
	memset(long_secret, 'x', sizeof(long_secret));
	assert_int_equal(sigv4_key(&hmac, slice_of(long_secret, SIGV4_SECRET_MAX), &scope, key), 0);
	assert_int_equal(
	        sigv4_key(&hmac, slice_of(long_secret, sizeof(long_secret)), &scope, key), -EINVAL);
	assert_int_equal(sigv4_key(&hmac, SLICE(""), &scope, key), -EINVAL);
	assert_int_equal(hmac_sha256(&hmac, SLICE("k"), parts, HMAC_PARTS_MAX + 1, key), -E2BIG);
	buf_fini(&query);
}

/* RFC 4231: short, long and block-sized keys. */
static void test_hmac(void **state)
{
	static const char *const expected[] = {
	        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
	        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"};
	char key[131], hex[2 * HMAC_BYTES + 1] = "";
	uint8_t out[HMAC_BYTES];
	struct slice text[] = {SLICE("what do ya want "), SLICE("for nothing?")};

	(void)state;
	assert_int_equal(hmac_sha256(&hmac, SLICE("Jefe"), text, 2, out), 0);
	hmac_hex(out, sizeof(out), hex);
	assert_string_equal(hex, expected[0]);
	memset(key, 0xaa, sizeof(key));
	text[0] = SLICE("Test Using Larger Than Block-Size Key - Hash Key First");
	assert_int_equal(hmac_sha256(&hmac, slice_of(key, sizeof(key)), text, 1, out), 0);
	hmac_hex(out, sizeof(out), hex);
	assert_string_equal(hex, expected[1]);
	for (size_t i = 0; i < hmac.pads.cap && i < 128; i++)
		assert_int_equal(hmac.pads.p[i], 0); /* nothing of the key stays */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_suite, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_s3_examples, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_s3_chunks, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_authorization, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_query, setup, teardown),
	        cmocka_unit_test(test_scope_words),
	        cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_hmac, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
