/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of other proxies: what they mean, what is refused, and the request that is written from
 * them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/wire/callback.h"

#define END "\r\n\r\n"
#define TOKEN "X-Vethguard-Token: vgs_t\r\n"

static struct proxy_head head;
static struct callback q;

static const char *parse(const char *text)
{
	size_t looked = 0;

	assert_int_equal(proxy_head_parse((const uint8_t *)text, strlen(text), &looked, &head),
	        PROXY_HEAD_DONE);
	return callback_parse((const uint8_t *)text, &head, &q);
}

static void means(
        const char *text, bool https, bool tells_body, const char *authority, const char *path)
{
	const char *why = parse(text);

	if (why)
		fail_msg("%s: %s", text, why);
	assert_int_equal(q.kind, CALLBACK_CHECK);
	assert_int_equal(q.url.https, https);
	assert_int_equal(q.tells_body, tells_body);
	assert_true(slice_equals(q.url.authority, slice_from_string(authority)));
	assert_true(slice_equals(q.url.path, slice_from_string(path)));
}

static void refuses(const char *text, const char *words)
{
	const char *why = parse(text);

	if (!why || !strstr(why, words))
		fail_msg("%s: %s, not: %s", text, why ? why : "taken", words);
}

static void test_meaning(void **state)
{
	(void)state;
	means("GET /check/https/v1/x?y=/../z HTTP/1.1\r\n" TOKEN "Host: a.example" END, true, false,
	        "a.example", "/v1/x?y=/../z");
	assert_true(slice_equals(q.token, SLICE("vgs_t")));
	means("POST /check-body/http/ HTTP/1.1\r\nhost: A.example:8080" END, false, true,
	        "A.example:8080", "/");
	assert_int_equal(q.token.n, 0);
	means("GET /check/https//x HTTP/1.1\r\nHost: 192.0.2.1" END, true, false, "192.0.2.1",
	        "//x");
	means("PUT /check-body/https/x HTTP/1.1\r\nHost: a\r\nX-Envoy-Auth-Partial-Body: false" END,
	        true, true, "a", "/x");
	/* If any field says that the body was cut off, it does not count as told. */
	means("PUT /check-body/https/x HTTP/1.1\r\nHost: a\r\nX-Envoy-Auth-Partial-Body: true" END,
	        true, false, "a", "/x");
	means("PUT /check-body/https/x HTTP/1.1\r\nHost: a\r\nX-Envoy-Auth-Partial-Body: false\r\n"
	      "x-envoy-auth-partial-body: true" END,
	        true, false, "a", "/x");
	means("PUT /check/https/x HTTP/1.1\r\nHost: a\r\nX-Envoy-Auth-Partial-Body: false" END,
	        true, false, "a", "/x");
	assert_null(
	        parse("POST /callback/langsmith HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n" TOKEN
	              "X-LangSmith-Signature-JWT: a.b.c" END));
	assert_int_equal(q.kind, CALLBACK_LANGSMITH);
	assert_true(slice_equals(q.signature, SLICE("a.b.c")));
	assert_true(slice_equals(q.token, SLICE("vgs_t")));
}

static void test_what_is_refused(void **state)
{
	static const char *const targets[] = {"/", "/check", "/check/", "/check/https",
	        "/check/http", "/check/httpsx/", "/check/ftp/x", "/check/HTTPS/x", "/Check/https/x",
	        "//check/https/x", "/check/https?x", "/check/https/../x", "/check/https/%2e%2e/x",
	        "/check/https/x/.", "/check/https/x#y", "/check/https/..;x/y", "/check-body",
	        "/check-body/https", "/check-bodyx/https/x", "/checkhttps/x", "/s/t/https/a/",
	        "/callback", "/callback/langsmith/", "/callback/langsmith?x", "/callback/other"};
	static const char *const hosts[] = {"u@a", "u:p@a.example", "a b", "a/b", "a,b", "[::1]",
	        "a:0", "a:65536", "a:", ":1", ".a", "a%40b", "a\\b"};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a" END, targets[i]);
		if (!parse(text))
			fail_msg("%s is taken", targets[i]);
	}
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		snprintf(text, sizeof(text), "GET /check/https/x HTTP/1.1\r\nHost: %s" END,
		        hosts[i]);
		refuses(text, "Host is not");
	}
	refuses("GET /check/https/x HTTP/1.1\r\nX: y" END, "Host is not");
	refuses("GET /check/https/x HTTP/1.1\r\nHost: a\r\n" TOKEN "x-vethguard-token: u" END,
	        "twice");
	refuses("POST /callback/langsmith HTTP/1.1\r\nHost: a\r\nX-LangSmith-Signature-JWT: a\r\n"
	        "x-langsmith-signature-jwt: b" END,
	        "twice");
	refuses("CONNECT a:443 HTTP/1.1\r\nHost: a" END, "to the gateway itself");
	refuses("GET http://a/check/https/x HTTP/1.1\r\nHost: a" END, "to the gateway itself");
	refuses("GET /callback/langsmith HTTP/1.1\r\nHost: a\r\nContent-Length: 1" END, "POST");
	refuses("POST /callback/langsmith HTTP/1.1\r\nHost: a" END, "Content-Length");
	refuses("POST /callback/langsmith HTTP/1.1\r\nHost: a\r\nContent-Length: 0" END,
	        "Content-Length");
	refuses("POST /callback/langsmith HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked" END,
	        "Content-Length");
}

static void test_writing(void **state)
{
	static const char text[] =
	        "POST /check-body/https/v1?x HTTP/1.0\r\nHost: a.example:8443\r\n" TOKEN
	        "Proxy-Authorization: Basic x\r\nAuthorization: Bearer own\r\n"
	        "X-Envoy-Auth-Partial-Body: false\r\nX-LangSmith-Signature-JWT: y\r\n"
	        "content-length: 3" END;
	static const char onward[] =
	        "POST https://a.example:8443/v1?x HTTP/1.1\r\nHost: a.example:8443\r\n"
	        "Authorization: Bearer own\r\ncontent-length: 3\r\nConnection: close" END;
	struct buf out;

	(void)state;
	assert_null(parse(text));
	buf_init(&out, 4096);
	assert_int_equal(callback_write_check((const uint8_t *)text, &head, &q, &out), 0);
	assert_true(slice_equals(buf_slice(&out), SLICE(onward)));
	buf_fini(&out);
	buf_init(&out, 64);
	assert_int_not_equal(callback_write_check((const uint8_t *)text, &head, &q, &out), 0);
	buf_fini(&out);
}

/* --- the JSON --- */

#define IDENTITY "\"identity\":{\"tenant_id\":\"t\",\"sandbox_id\":\"s\"}"
#define REQUEST                                                                                 \
	"\"method\":\"POST\",\"url\":\"https://api.example/v1/x?y=1\",\"scheme\":\"https\","    \
	"\"host\":\"api.example\",\"path\":\"/v1/x\",\"query\":\"y=1\",\"headers\":{\"Accept\"" \
	":[\"a\",\"b\"],\"Content-Type\":[\"text/plain\"]},\"body_base64\":\"aGVsbG8=\","       \
	"\"body_truncated\":false"
#define AROUND(request) \
	"{\"host\":\"api.example\",\"port\":443," IDENTITY ",\"request\":{" request "}}"

static struct buf out;

static const char *described(const char *json, bool last, bool *tells_body)
{
	buf_fini(&out);
	buf_init(&out, CALLBACK_REQUEST_MAX);
	return callback_write_described(slice_from_string(json), last, tells_body, &out);
}

static void writes(const char *json, bool tells_body, const char *onward)
{
	bool told;
	const char *why = described(json, false, &told);

	if (why)
		fail_msg("%s: %s", json, why);
	assert_int_equal(told, tells_body);
	if (!slice_equals(buf_slice(&out), slice_from_string(onward)))
		fail_msg("%.*s", SLICE_ARG(buf_slice(&out)));
}

/* Returns json with `from` replaced by `to`. */
static const char *changed(const char *json, const char *from, const char *to)
{
	static char text[8192];
	const char *at = strstr(json, from);

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - json), json, to, at + strlen(from));
	return text;
}

static void rejects(const char *from, const char *to, const char *words)
{
	bool told;
	const char *why = described(changed(AROUND(REQUEST), from, to), false, &told);

	if (!why || !strstr(why, words))
		fail_msg("%s for %s: %s, not: %s", to, from, why ? why : "taken", words);
}

static void test_described(void **state)
{
	bool told;

	(void)state;
	writes(AROUND(REQUEST), true,
	        "POST https://api.example/v1/x?y=1 HTTP/1.1\r\nHost: api.example\r\nAccept: a\r\n"
	        "Accept: b\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
	writes(changed(AROUND(REQUEST), "\"body_truncated\":false", "\"body_truncated\":true"),
	        false,
	        "POST https://api.example/v1/x?y=1 HTTP/1.1\r\nHost: api.example\r\nAccept: a\r\n"
	        "Accept: b\r\nContent-Type: text/plain\r\n\r\n");
	writes(changed(AROUND(REQUEST), "\"aGVsbG8=\"", "\"\""), true,
	        "POST https://api.example/v1/x?y=1 HTTP/1.1\r\nHost: api.example\r\nAccept: a\r\n"
	        "Accept: b\r\nContent-Type: text/plain\r\n\r\n");
	/* Fields of the connection are left out, an upgrade is told. */
	writes(changed(AROUND(REQUEST), "\"Accept\":[\"a\",\"b\"]",
	               "\"Connection\":[\"x\"],\"Host\":[\"evil\"],\"transfer-encoding\":["
	               "\"chunked\"]"
	               ",\"Content-Length\":[\"99\"],\"Upgrade\":[\"websocket\"],\"Empty\":[]"),
	        true,
	        "POST https://api.example/v1/x?y=1 HTTP/1.1\r\nHost: api.example\r\n"
	        "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Type: text/plain\r\n"
	        "Content-Length: 5\r\n\r\nhello");
	assert_null(described(AROUND(REQUEST), true, &told));
	assert_non_null(memmem(buf_bytes(&out), out.len, "Connection: close\r\n", 19));
	/* The same host in other words, another port, escapes, fields nobody knows. */
	assert_null(described(changed(AROUND(REQUEST), "\"host\":\"api.example\",\"path\"",
	                              "\"host\":\"API.example:443\",\"path\""),
	        false, &told));
	assert_null(described(
	        "{\"more\":[{}],\"host\":\"a\",\"port\":8443," IDENTITY
	        ",\"request\":{\"method\":\"GET\","
	        "\"url\":\"http://a:8443/"
	        "%40x\",\"scheme\":\"http\",\"host\":\"a:8443\",\"path\":\"/@x\","
	        "\"headers\":{},\"body_base64\":\"\",\"body_truncated\":false,\"more\":1}}",
	        false, &told));
}

static void test_what_is_rejected(void **state)
{
	static const char *const texts[] = {
	        "", "{", "[]", "7", "null", "{}x", "\xff", "{\"request\":{},\"request\":{}}"};
	bool told;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!described(texts[i], false, &told))
			fail_msg("%s is taken", texts[i]);
	assert_non_null(
	        strstr(described("{\"host\":\"a\",\"port\":443," IDENTITY "}", false, &told),
	                "full_request"));
	rejects("\"method\":\"POST\"", "\"method\":\"PO ST\"", "method");
	rejects("\"method\":\"POST\"", "\"method\":\"\"", "method");
	rejects("\"method\":\"POST\"", "\"method\":7", "method");
	rejects("\"method\":\"POST\"", "\"method\":\"CONNECT\"", "method");
	rejects("\"method\":\"POST\"", "\"method\":\"G\\r\\nX: y\"", "method");
	rejects("\"method\":\"POST\"", "\"method\":\"GET\",\"method\":\"POST\"", "one reading");
	rejects("https://api.example/v1", "https://u:p@api.example/v1", "request.url");
	rejects("https://api.example/v1", "https://api.example@evil.example/v1", "request.url");
	rejects("https://api.example/v1", "ftp://api.example/v1", "request.url");
	rejects("https://api.example/v1", "/v1", "request.url");
	rejects("https://api.example/v1", "https://api.example\\r\\nX: y/v1", "request.url");
	rejects("https://api.example/v1", "https://api.example/ /v1", "request.url");
	rejects("https://api.example/v1", "https://evil.example/v1", "request.host");
	rejects("https://api.example/v1", "https://api.example:8443/v1", "request.host");
	rejects("https://api.example/v1", "http://api.example/v1", "request.scheme");
	rejects("https://api.example/v1/x", "https://api.example/v1/y", "request.path");
	rejects("/v1/x?y=1\"", "/v1/x#y\"", "request.url");
	rejects("example/v1/x", "example/%2e%2e/x", "dot segment");
	rejects("\"scheme\":\"https\"", "\"scheme\":\"http\"", "request.scheme");
	rejects("\"scheme\":\"https\",\"host\":\"api.example\"",
	        "\"scheme\":\"https\",\"host\":\"evil.example\"", "request.host");
	rejects("{\"host\":\"api.example\"", "{\"host\":\"evil.example\"", "host and port");
	rejects("\"port\":443", "\"port\":444", "host and port");
	rejects("\"port\":443", "\"port\":\"443\"", "host and port");
	rejects("\"port\":443", "\"port\":443.5", "host and port");
	rejects("\"port\":443", "\"port\":65979", "host and port");
	rejects("\"headers\":", "\"header\":", "headers is missing");
	rejects("\"Accept\":[", "\"a b\":[", "a name that no field may have");
	rejects("\"Accept\":[", "\"\":[", "a name that no field may have");
	rejects("\"Accept\":[", "\"content-type\":[", "twice");
	rejects("\"Accept\":[", "\"Content-Type\":[", "one reading");
	rejects("[\"a\",\"b\"]", "\"a\"", "not a list of strings");
	rejects("[\"a\",\"b\"]", "[7]", "not a list of strings");
	rejects("[\"a\",\"b\"]", "[[\"a\"]]", "not a list of strings");
	rejects("\"b\"", "\"b\\r\\nX: y\"", "control character");
	rejects("\"b\"", "\"\\u007f\"", "control character");
	rejects("aGVsbG8=", "aGVsbG8=x", "base64");
	rejects("aGVsbG8=", "a-_sbG8=", "base64");
	rejects("\"body_base64\":\"aGVsbG8=\"", "\"body_base64\":null", "body_base64");
	rejects("\"body_truncated\":false", "\"body_truncated\":\"no\"", "body_truncated");
	rejects("\"body_truncated\":false", "\"x\":0", "body_truncated");
}

/* A head that is too long, too many names, a body as large as there may be. */
static void test_bounds(void **state)
{
	static const char before[] = "{\"host\":\"a\",\"port\":443," IDENTITY
	                             ",\"request\":{\"method\":\"GET\",\"url\":\"https://a/"
	                             "\",\"scheme\":\"https\",\"host\":\"a\","
	                             "\"path\":\"/\",\"body_truncated\":false,\"headers\":{";
	char *text = malloc(2 * CALLBACK_BODY_MAX);
	size_t n;
	bool told;

	(void)state;
	n = (size_t)sprintf(text, "%s\"x\":[\"", before);
	memset(text + n, 'a', PROXY_HEAD_MAX);
	strcpy(text + n + PROXY_HEAD_MAX, "\"]},\"body_base64\":\"\"}}");
	assert_non_null(strstr(described(text, false, &told), "head is too long"));
	n = (size_t)sprintf(text, "%s\"x\":[]", before);
	for (unsigned i = 0; i < PROXY_HEAD_FIELDS_MAX; i++)
		n += (size_t)sprintf(text + n, ",\"x%u\":[]", i);
	strcpy(text + n, "},\"body_base64\":\"\"}}");
	assert_non_null(strstr(described(text, false, &told), "too many names"));
	n = (size_t)sprintf(text, "%s},\"body_base64\":\"", before);
	memset(text + n, 'A', CALLBACK_BODY_MAX);
	strcpy(text + n + CALLBACK_BODY_MAX, "\"}}");
	assert_null(described(text, false, &told));
	assert_true(out.len > CALLBACK_BODY_MAX / 4 * 3);
	free(text);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_meaning),
	        cmocka_unit_test(test_what_is_refused), cmocka_unit_test(test_writing),
	        cmocka_unit_test(test_described), cmocka_unit_test(test_what_is_rejected),
	        cmocka_unit_test(test_bounds)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
