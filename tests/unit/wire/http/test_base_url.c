/* SPDX-License-Identifier: Apache-2.0 */
/* Base URLs: what they mean, what is refused, and the head that goes on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "vethguard/wire/base_url.h"

static void means(
        const char *target, const char *token, bool https, const char *authority, const char *path)
{
	struct base_url url;
	const char *why = base_url_parse(slice_from_string(target), &url);

	if (why)
		fail_msg("%s: %s", target, why);
	assert_true(slice_equals(url.token, slice_from_string(token)));
	assert_int_equal(url.https, https);
	assert_true(slice_equals(url.authority, slice_from_string(authority)));
	assert_true(slice_equals(url.path, slice_from_string(path)));
}

static void test_meaning(void **state)
{
	(void)state;
	means("/s/t/https/a.example/", "t", true, "a.example", "/");
	means("/s/vgs_A-b~c.d/http/A.example:8080/v1/x?y=/../z", "vgs_A-b~c.d", false,
	        "A.example:8080", "/v1/x?y=/../z");
	means("/s/t/https/192.0.2.1:65535//x//", "t", true, "192.0.2.1:65535", "//x//");
	means("/s/t/https/a/...", "t", true, "a", "/...");
	means("/s/t/https/a/.x/..x/x../x.;/.%2ex%2e", "t", true, "a", "/.x/..x/x../x.;/.%2ex%2e");
	means("/s/t/https/a/@scope%2Fpackage", "t", true, "a", "/@scope%2Fpackage");
	means("/s/t/https/a/s/t/https/b/", "t", true, "a", "/s/t/https/b/");
}

static void test_what_is_refused(void **state)
{
	static const char *const cases[] = {"", "/", "/s", "/s/", "/s/t", "/s/t/", "/s/t/https",
	        "/s/t/https/", "/s/t/https/a", "/s/t/https/a?x", "/s/t/https//", "/s//https/a/",
	        "//s/t/https/a/", "/S/t/https/a/", "/x/t/https/a/", "/s/./https/a/",
	        "/s/../https/a/", "/s/t%2fx/https/a/", "/s/t%2e/https/a/", "/s/t:x/https/a/",
	        "/s/t;x/https/a/", "/s/t?x/https/a/", "/s/t/HTTPS/a/", "/s/t/ftp/a/", "/s/t/wss/a/",
	        "/s/t/file//a/", "/s/t/https:/a/", "/s/t/https:%2f%2fa/", "/s/t/https%2fa/",
	        "/s/t/https/u@a/", "/s/t/https/u:p@a/", "/s/t/https/a%40b/", "/s/t/https/a%2fb/",
	        "/s/t/https/a%2eb/", "/s/t/https/a b/", "/s/t/https/a,b/", "/s/t/https/.a/",
	        "/s/t/https/./a/", "/s/t/https/../a/", "/s/t/https/a:/", "/s/t/https/a:0/",
	        "/s/t/https/a:080/", "/s/t/https/a:65536/", "/s/t/https/a:8x/", "/s/t/https/a:-1/",
	        "/s/t/https/a:1:2/", "/s/t/https/:443/", "/s/t/https/[::1]/",
	        "/s/t/https/[::1]:443/", "/s/t/https/a\\b/", "/s/t/https/a#/", "/s/t/https/a/..",
	        "/s/t/https/a/.", "/s/t/https/a/../b/", "/s/t/https/a/x/../../b/",
	        "/s/t/https/a/./x", "/s/t/https/a/%2e%2e/b", "/s/t/https/a/.%2E/b",
	        "/s/t/https/a/%2E/b", "/s/t/https/a/%2e", "/s/t/https/a/..;x/b",
	        "/s/t/https/a/.;/b", "/s/t/https/a/x%2f..%2fb", "/s/t/https/a/x%2F%2E%2E",
	        "/s/t/https/a/..\\b", "/s/t/https/a/x%5c..%5Cb", "/s/t/https/a/x#y",
	        "/s/t/https/a/?x#y"};
	static char longest[PROXY_PROOF_MAX + 32];
	struct base_url url;
	char host[300];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (!base_url_parse(slice_from_string(cases[i]), &url))
			fail_msg("%s is taken", cases[i]);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "/s/", 3);
	memcpy(longest + 3 + PROXY_PROOF_MAX, "/https/a/", 10);
	assert_null(base_url_parse(slice_from_string(longest), &url));
	memcpy(longest + 3 + PROXY_PROOF_MAX, "x/https/a/", 11);
	assert_non_null(base_url_parse(slice_from_string(longest), &url));
	snprintf(host, sizeof(host), "%0253d", 0);
	assert_true(base_url_is_authority(slice_from_string(host)));
	assert_true(base_url_is_authority(slice_from_string(strcat(host, ":65535"))));
	snprintf(host, sizeof(host), "%0254d", 0);
	assert_false(base_url_is_authority(slice_from_string(host)));
	assert_false(base_url_is_authority(slice_of("a\0b", 3)));
}

/* without: a name of the gateway's; NULL: the token is in the path. */
static void writes(
        const char *text, const struct base_url *by_name, const char *without, const char *onward)
{
	struct proxy_head head;
	struct base_url url;
	struct buf out;
	size_t looked = 0;

	assert_int_equal(proxy_head_parse((const uint8_t *)text, strlen(text), &looked, &head),
	        PROXY_HEAD_DONE);
	if (by_name)
		url = *by_name;
	else
		assert_null(base_url_parse(head.target, &url));
	buf_init(&out, 2 * PROXY_HEAD_MAX);
	assert_int_equal(base_url_write((const uint8_t *)text, &head, &url,
	                         slice_from_string(without), &out),
	        0);
	assert_int_equal(out.len, strlen(onward));
	assert_memory_equal(buf_bytes(&out), onward, out.len);
	buf_fini(&out);
}

static void test_writing(void **state)
{
	const struct base_url named = {.token = SLICE(""),
	        .https = false,
	        .authority = SLICE("b.example:8080"),
	        .path = SLICE("/v1?x")};

	(void)state;
	writes("GET /s/t/https/a.example/x?y HTTP/1.1\r\nhost: api.evil.example\r\nReferer: "
	       "https://g/s/t/https/a/\r\nProxy-Authorization: Bearer t\r\nAuthorization: Bearer "
	       "key\r\nX: y\r\n\r\n",
	        NULL, "",
	        "GET https://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer "
	        "key\r\nX: y\r\n\r\n");
	writes("POST /s/t/http/a.example:81/ HTTP/1.0\r\nContent-Length: 3\r\n\r\n", NULL, "",
	        "POST http://a.example:81/ HTTP/1.0\r\nHost: a.example:81\r\nContent-Length: "
	        "3\r\nConnection: close\r\n\r\n");
	writes("GET /v1?x HTTP/1.1\r\nHost: openai.gateway\r\nX-Api-Key: t\r\nReferer: r\r\n"
	       "x-api-keys: u\r\n\r\n",
	        &named, "x-api-key",
	        "GET http://b.example:8080/v1?x HTTP/1.1\r\nHost: b.example:8080\r\nReferer: r\r\n"
	        "x-api-keys: u\r\n\r\n");
}

static void test_keys(void **state)
{
	(void)state;
	assert_true(
	        slice_equals(base_url_key_name(PROXY_KEY_AUTHORIZATION), SLICE("authorization")));
	assert_true(slice_equals(base_url_key_name(PROXY_KEY_X_API_KEY), SLICE("x-api-key")));
	assert_true(
	        slice_equals(base_url_key_name(PROXY_KEY_X_GOOG_API_KEY), SLICE("x-goog-api-key")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_meaning),
	        cmocka_unit_test(test_what_is_refused),
	        cmocka_unit_test(test_writing),
	        cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
