/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request to the gateway: what passes and which part of it goes on; what is
 * refused; and the proofs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/wire/proxy_head.h"

#define LINE "CONNECT a.example:443 HTTP/1.1\r\n"
#define MOST "GET http://a.example/x?y HTTP/1.0\r\nHost: a.example\r\n"

/* In memory of exactly that size. */
static enum proxy_head_status parse(const char *text, size_t n, struct proxy_head *out)
{
	static uint8_t *exact;
	size_t looked = 0;

	free(exact);
	exact = malloc(n + !n);
	assert_non_null(exact);
	memcpy(exact, text, n);
	return proxy_head_parse(exact, n, &looked, out);
}

static void passes(const char *text, const char *authorization, const char *onward)
{
	const size_t n = strlen(text);
	struct proxy_head head;
	struct buf out;
	size_t looked = 0;

	for (size_t cut = 0; cut < n; cut++) /* what was examined is not examined again */
		assert_int_equal(proxy_head_parse((const uint8_t *)text, cut, &looked, &head),
		        PROXY_HEAD_MORE);
	assert_int_equal(
	        proxy_head_parse((const uint8_t *)text, n, &looked, &head), PROXY_HEAD_DONE);
	assert_int_equal(parse(text, n, &head), PROXY_HEAD_DONE);
	assert_int_equal(head.used, n);
	assert_int_equal(head.authorization.n, strlen(authorization));
	assert_memory_equal(head.authorization.p, authorization, head.authorization.n);
	buf_init(&out, PROXY_HEAD_MAX + 64);
	assert_int_equal(proxy_head_write((const uint8_t *)text, &head, &out), 0);
	assert_int_equal(out.len, strlen(onward));
	assert_memory_equal(buf_bytes(&out), onward, out.len);
	buf_fini(&out);
}

static void test_what_passes(void **state)
{
	(void)state;
	passes(LINE "\r\n", "", LINE "Connection: close\r\n\r\n");
	passes(LINE "Proxy-Authorization: Bearer x\r\n\r\n", "Bearer x",
	        LINE "Connection: close\r\n\r\n");
	passes(LINE "A: b\r\nproxy-AUTHORIZATION:\t Basic  eA== \t\r\nC:d\r\n\r\n",
	        "Basic  eA==", LINE "A: b\r\nC:d\r\nConnection: close\r\n\r\n");
	passes(MOST "Proxy-Authorization:\r\n\r\n", "", MOST "Connection: close\r\n\r\n");
	passes(MOST "Proxy-Authorizations: x\r\nX-Proxy-Authorization: y\r\n\r\n", "",
	        MOST "Proxy-Authorizations: x\r\nX-Proxy-Authorization: y\r\nConnection: "
	             "close\r\n\r\n");
	passes(MOST "Connection: upgrade\r\nUpgrade: websocket\r\nX: \xc3\xa9\r\n\r\n", "",
	        MOST "Connection: upgrade\r\nUpgrade: websocket\r\nX: \xc3\xa9\r\nConnection: "
	             "close\r\n\r\n");
	passes("M-X!# HTTP://a/ HTTP/1.1\r\n\r\n", "", "M-X!# HTTP://a/ HTTP/1.1\r\n\r\n");
	passes("GET /s/x HTTP/1.1\r\nConnection: a, CLOSE\r\n\r\n", "",
	        "GET /s/x HTTP/1.1\r\nConnection: a, CLOSE\r\nConnection: close\r\n\r\n");
}

static void test_what_comes_behind(void **state)
{
	static const char text[] = LINE "\r\n\x16\x03\x01 more\r\n\r\n";
	struct proxy_head head;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, &head), PROXY_HEAD_DONE);
	assert_int_equal(head.used, sizeof(LINE "\r\n") - 1);
	assert_int_equal(head.method.n, 7);
	assert_int_equal(head.target.n, sizeof("a.example:443") - 1);
}

#define POST "POST http://a/ HTTP/1.1\r\nHost: a\r\n"

static void test_forms_and_bodies(void **state)
{
	static const struct {
		const char *text;
		enum proxy_form form;
		enum proxy_body body;
		uint64_t length;
		bool last, upgrade;
	} cases[] = {
	        {LINE "\r\n", PROXY_FORM_CONNECT, PROXY_BODY_NONE, 0, true, true},
	        {"GET / HTTP/1.1\r\n\r\n", PROXY_FORM_ORIGIN, PROXY_BODY_NONE, 0, false, false},
	        {"GET / HTTP/1.0\r\n\r\n", PROXY_FORM_ORIGIN, PROXY_BODY_NONE, 0, true, false},
	        {POST "\r\n", PROXY_FORM_ABSOLUTE, PROXY_BODY_NONE, 0, false, false},
	        {POST "Content-Length: 0\r\n\r\n", PROXY_FORM_ABSOLUTE, PROXY_BODY_NONE, 0, false,
	                false},
	        {POST "content-LENGTH: 007\r\n\r\n", PROXY_FORM_ABSOLUTE, PROXY_BODY_LENGTH, 7,
	                false, false},
	        {POST "Content-Length: 999999999999999999\r\n\r\n", PROXY_FORM_ABSOLUTE,
	                PROXY_BODY_LENGTH, 999999999999999999, false, false},
	        {POST "Transfer-Encoding: Chunked\r\n\r\n", PROXY_FORM_ABSOLUTE, PROXY_BODY_CHUNKED,
	                0, false, false},
	        {POST "Connection: keep-alive\r\nConnection: x,close\r\n\r\n", PROXY_FORM_ABSOLUTE,
	                PROXY_BODY_NONE, 0, true, false},
	        {POST "Connection: , Upgrade ,\r\n\r\n", PROXY_FORM_ABSOLUTE, PROXY_BODY_NONE, 0,
	                true, true},
	        {POST "Connection: closed\r\n\r\n", PROXY_FORM_ABSOLUTE, PROXY_BODY_NONE, 0, false,
	                false},
	        {POST "Content-Length_: 1\r\n\r\n", PROXY_FORM_ABSOLUTE, PROXY_BODY_NONE, 0, false,
	                false},
	};
	struct proxy_head head;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
		        parse(cases[i].text, strlen(cases[i].text), &head), PROXY_HEAD_DONE);
		assert_int_equal(head.form, cases[i].form);
		assert_int_equal(head.body, cases[i].body);
		assert_int_equal(head.length, cases[i].length);
		assert_int_equal(head.last, cases[i].last);
		assert_int_equal(head.upgrade, cases[i].upgrade);
	}
}

static void test_keys(void **state)
{
	static const char text[] = "OPTIONS /v1 HTTP/1.1\r\nhost: A:1\r\nX-Goog-Api-Key: g\r\n"
	                           "x-api-key:\tx\r\nAuthorization: Bearer a\r\nOrigin: o\r\n"
	                           "Access-Control-Request-Method: PUT\r\n"
	                           "Access-Control-Request-Headers: a, b\r\n";
	char twice[512];
	struct proxy_head head;
	int n = snprintf(twice, sizeof(twice), "%s\r\n", text);

	(void)state;
	assert_int_equal(parse(twice, (size_t)n, &head), PROXY_HEAD_DONE);
	assert_true(slice_equals(head.host, SLICE("A:1")));
	assert_true(slice_equals(head.keys[PROXY_KEY_AUTHORIZATION], SLICE("Bearer a")));
	assert_true(slice_equals(head.keys[PROXY_KEY_X_API_KEY], SLICE("x")));
	assert_true(slice_equals(head.keys[PROXY_KEY_X_GOOG_API_KEY], SLICE("g")));
	assert_true(slice_equals(head.origin, SLICE("o")));
	assert_true(slice_equals(head.preflight_method, SLICE("PUT")));
	assert_true(slice_equals(head.preflight_fields, SLICE("a, b")));
	assert_false(head.keys_twice);
	n = snprintf(twice, sizeof(twice), "%sX-API-Key: y\r\n\r\n", text);
	assert_int_equal(parse(twice, (size_t)n, &head), PROXY_HEAD_DONE);
	assert_true(head.keys_twice);
}

static void refuses(const char *text, size_t n, unsigned status)
{
	struct proxy_head head;

	if (parse(text, n, &head) != PROXY_HEAD_BAD || head.status != status)
		fail_msg("%u for %.40s", head.status, text);
	assert_true(*head.why);
	assert_int_equal(head.used, 0);
	assert_int_equal(head.authorization.n, 0);
}

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *text;
		unsigned status;
	} cases[] = {{"\x16\x03", 400}, {"\x05", 400}, {" GET", 400}, {"\r\n", 400}, {"\n", 400},
	        {"\x80", 400}, {"(", 400}, {"GET\n", 400}, {"GET http://a/ HTTP/1.1\n", 400},
	        {LINE "A: b\n", 400}, {LINE "\n", 400}, {"\r\n\r\n", 400}, {"G\r\n\r\n", 400},
	        {"GET http://a/\r\n\r\n", 505}, {"GET http://a/ \r\n\r\n", 505},
	        {"GET http://a/ HTTP/1.1 \r\n\r\n", 505}, {"GET http://a/ HTTP/1.10\r\n\r\n", 505},
	        {"GET http://a/ HTTP/0.9\r\n\r\n", 505}, {"GET http://a/ HTTP/2\r\n\r\n", 505},
	        {"PRI * HTTP/2.0\r\n\r\n", 505}, {"GET http://a/ b HTTP/1.1\r\n\r\n", 505},
	        {"GET  http://a/ HTTP/1.1\r\n\r\n", 400}, {"GET * HTTP/1.1\r\n\r\n", 400},
	        {"GET a.example:80 HTTP/1.1\r\n\r\n", 400}, {"GET http:// HTTP/1.1\r\n\r\n", 400},
	        {"GET https://a/ HTTP/1.1\r\n\r\n", 400}, {"GET ws://a/ HTTP/1.1\r\n\r\n", 400},
	        {"connect a:1 HTTP/1.1\r\n\r\n", 400}, {"G@T http://a/ HTTP/1.1\r\n\r\n", 400},
	        {"GET http://a/\x7f HTTP/1.1\r\n\r\n", 400},
	        {"GET http://a/\xc3\xa9 HTTP/1.1\r\n\r\n", 400},
	        {"GET http://a/\t HTTP/1.1\r\n\r\n", 400}, {LINE ": b\r\n\r\n", 400},
	        {LINE "A b\r\n\r\n", 400}, {LINE "A : b\r\n\r\n", 400}, {LINE "A\r\n\r\n", 400},
	        {LINE " A: b\r\n\r\n", 400}, {LINE "A: b\r\n c\r\n\r\n", 400},
	        {LINE "A: b\rc\r\n\r\n", 400}, {LINE "A: \x01\r\n\r\n", 400},
	        {LINE "A: \x7f\r\n\r\n", 400}, {LINE "\xc3\xa9: b\r\n\r\n", 400},
	        {LINE "Proxy-Authorization: a\r\nProxy-Authorization: a\r\n\r\n", 400},
	        {LINE "Proxy-Authorization:\r\nproxy-authorization: a\r\n\r\n", 400},
	        {POST "Host: a\r\n\r\n", 400},
	        {POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
	        {POST "Content-Length: 1, 1\r\n\r\n", 400},
	        {POST "Content-Length: +1\r\n\r\n", 400}, {POST "Content-Length:\r\n\r\n", 400},
	        {POST "Content-Length: 0x1\r\n\r\n", 400},
	        {POST "Content-Length: 1000000000000000000\r\n\r\n", 400},
	        {POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	        {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	        {POST "Transfer-Encoding: chunked, chunked\r\n\r\n", 501},
	        {POST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
	        {POST "Transfer-Encoding: identity\r\n\r\n", 501},
	        {POST "Transfer-Encoding:\r\n\r\n", 501},
	        {"POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400}};
	static const char nul[] = LINE "A: b\0c\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuses(cases[i].text, strlen(cases[i].text), cases[i].status);
	refuses(nul, sizeof(nul) - 1, 400);
}

static void test_bounds(void **state)
{
	static char text[2 * PROXY_HEAD_MAX];
	struct proxy_head head;
	size_t n = (size_t)sprintf(text, LINE "A: ");

	(void)state;
	memset(text + n, 'x', PROXY_HEAD_MAX - n - 4);
	memcpy(text + PROXY_HEAD_MAX - 4, "\r\n\r\n", 4);
	assert_int_equal(parse(text, PROXY_HEAD_MAX - 1, &head), PROXY_HEAD_MORE);
	assert_int_equal(parse(text, PROXY_HEAD_MAX, &head), PROXY_HEAD_DONE);
	assert_int_equal(parse(text, PROXY_HEAD_MAX + 7, &head), PROXY_HEAD_DONE);
	memcpy(text + PROXY_HEAD_MAX - 4, "x\r\n\r\n", 5);
	refuses(text, PROXY_HEAD_MAX, 431);
	refuses(text, PROXY_HEAD_MAX + 1, 431);
	n = (size_t)sprintf(text, LINE);
	for (size_t i = 0; i < PROXY_HEAD_FIELDS_MAX; i++)
		n += (size_t)sprintf(text + n, "A: b\r\n");
	sprintf(text + n, "\r\n");
	assert_int_equal(parse(text, n + 2, &head), PROXY_HEAD_DONE);
	sprintf(text + n, "A: b\r\n\r\n");
	refuses(text, n + 8, 431);
}

static void proves(const char *authorization, const char *token)
{
	struct proxy_proof proof;

	if (!proxy_proof_read(slice_from_string(authorization), &proof))
		fail_msg("%s", authorization);
	assert_int_equal(proof.n, strlen(token));
	assert_memory_equal(proof.text, token, proof.n);
}

static void test_proofs(void **state)
{
	static char longest[PROXY_PROOF_MAX + 16] = "Bearer ";
	struct proxy_proof proof;

	(void)state;
	proves("Bearer a.b-c_d~e+/=", "a.b-c_d~e+/=");
	proves("BEARER   x", "x");
	proves("Basic c2Vzc2lvbjp0b2tlbg==", "token"); /* session:token */
	proves("basic OnRva2Vu", "token");             /* :token */
	proves("Basic dG9rZW46", "token");             /* token: */
	proves("Basic OnRva2Vu", "token");
	proves("Basic dTp4Onk", "x:y"); /* u:x:y, without padding */
	memset(longest + 7, 'x', PROXY_PROOF_MAX);
	proves(longest, longest + 7);
	longest[7 + PROXY_PROOF_MAX] = 'x';
	assert_false(proxy_proof_read(slice_from_string(longest), &proof));
}

static void test_what_proves_nothing(void **state)
{
	static const char *const cases[] = {"", " ", "Bearer", "Bearer ", "Bearer a b",
	        "Bearer \x01", "Bearer \xc3\xa9", "Bearer\tx", "Bearerx", "Digest x", "Basic",
	        "Basic =", "Basic ====", "Basic eA==", "Basic Og==", "Basic !!!!",
	        "Basic dTp4Onk===", "Basic dTp4 Onk", "Basic dTp4Onl", "Basic dTp4O", "Basic dTo=x",
	        "Basic dTogeA==", "Basic dTp4-_8", "NTLM x", ",Bearer x"};
	struct proxy_proof proof;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (proxy_proof_read(slice_from_string(cases[i]), &proof))
			fail_msg("%s is %.*s", cases[i], (int)proof.n, proof.text);
	assert_false(proxy_proof_of_pair(SLICE(""), SLICE(""), &proof));
	assert_false(proxy_proof_of_pair(SLICE("u"), SLICE("a b"), &proof));
	assert_false(proxy_proof_of_pair(SLICE("u"), SLICE("a\0b"), &proof));
	assert_true(proxy_proof_of_pair(SLICE("u"), SLICE("p"), &proof));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_what_passes),
	        cmocka_unit_test(test_what_comes_behind),
	        cmocka_unit_test(test_forms_and_bodies),
	        cmocka_unit_test(test_keys),
	        cmocka_unit_test(test_what_is_refused),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_proofs),
	        cmocka_unit_test(test_what_proves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
