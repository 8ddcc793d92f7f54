/* SPDX-License-Identifier: Apache-2.0 */
/* A fetch's request: the URL of its service, and the keys of its source. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "fetch/form.h"
#include "fetch/libraries.h"

static struct fetch_request of(const char *url)
{
	return (struct fetch_request){
	        .message = {.site_count = 1, .sites = {{.url = slice_from_string(url)}}}};
}

static void test_urls(void **state)
{
	static const struct {
		const char *url, *host;
		uint16_t port;
	} rows[] = {{"https://a.test", "a.test", 443}, {"https://a.test/x/y", "a.test", 443},
	        {"https://a.test:8200/", "a.test", 8200}, {"https://10.0.0.1:1", "10.0.0.1", 1},
	        {"https://[fd00::1]", "fd00::1", 443},
	        {"https://[fd00::1]:8443/x", "fd00::1", 8443},
	        {"http://169.254.169.254", "169.254.169.254", 80},
	        {"http://169.254.1.1:8080/", "169.254.1.1", 8080},
	        {"http://[fd00:ec2::254]", "fd00:ec2::254", 80}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fetch_request r = of(rows[i].url);

		assert_true(fetch_request_read_urls(&r));
		assert_string_equal(r.sites[0].host, rows[i].host);
		assert_int_equal(r.sites[0].port, rows[i].port);
	}
}

static void test_urls_that_are_none(void **state)
{
	static const char *const rows[] = {"", "https://", "https:///x", "http://a.test",
	        "https://u@a.test", "https://a.test:0", "https://a.test:65536", "https://a.test:x",
	        "https://[fd00::1]8443", "https://[]", "http://10.0.0.1", "http://127.0.0.1",
	        "http://169.254.169.254.test", "http://169.255.0.1", "http://[fd00::1]",
	        "http://169.254.169.254:0", "http://", "HTTP://169.254.169.254"};
	char longer[FETCH_HOST_MAX + 16] = "https://";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fetch_request r = of(rows[i]);

		assert_false(fetch_request_read_urls(&r));
	}
	memset(longer + 8, 'a', FETCH_HOST_MAX + 1);
	struct fetch_request r = of(longer);
	assert_false(fetch_request_read_urls(&r));
	longer[8 + FETCH_HOST_MAX] = '\0';
	r = of(longer);
	assert_true(fetch_request_read_urls(&r));
}

static void test_one_of_several_urls_is_none(void **state)
{
	struct fetch_request r = of("https://a.test");

	(void)state;
	r.message.site_count = 2;
	r.message.sites[1].url = SLICE("https://login.test:8443/x");
	assert_true(fetch_request_read_urls(&r));
	assert_int_equal(r.sites[1].port, 8443);
	r.message.sites[1].url = SLICE("http://login.test");
	assert_false(fetch_request_read_urls(&r));
}

static void test_arguments(void **state)
{
	struct fetch_request r = {.message = {.argument_count = 4,
	                                  .arguments = {SLICE("vault"), SLICE("path=a=b"),
	                                          SLICE("pathology=c"), SLICE("empty=")}}};

	(void)state;
	assert_true(slice_equals(fetch_argument(&r, "path"), SLICE("a=b")));
	assert_true(slice_equals(fetch_argument(&r, "pathology"), SLICE("c")));
	assert_int_equal(fetch_argument(&r, "empty").n, 0);
	assert_int_equal(fetch_argument(&r, "vault").n, 0);
	assert_int_equal(fetch_argument(&r, "none").n, 0);
}

static void test_paths_behind_the_url(void **state)
{
	struct fetch_request r = of("https://a.test:1/base//");
	char url[64];

	(void)state;
	assert_true(fetch_url(&r, "/v1/x", url, sizeof(url)));
	assert_string_equal(url, "https://a.test:1/base/v1/x");
	assert_false(fetch_url(&r, "/a-path-that-has-no-room-in-the-buffer", url, 40));
}

static void test_lifetimes(void **state)
{
	static const struct {
		const char *json;
		uint32_t ttl_s;
	} rows[] = {{"3600", 3600}, {"0", 0}, {"-1", 0}, {"\"3600\"", 0}, {"1.5", 0}, {"null", 0},
	        {"9223372036854775807", FETCH_LIFETIME_MAX_S}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *json = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
		struct fetched f = {.ttl_s = 0};

		fetched_lives(&f, json);
		assert_int_equal(f.ttl_s, rows[i].ttl_s);
		json_decref(json);
	}
	struct fetched none = {.ttl_s = 0};
	fetched_lives(&none, NULL);
	assert_int_equal(none.ttl_s, 0);
}

/* RFC 7617 section 2, and the lengths around it. */
static void test_logins(void **state)
{
	static const struct {
		const char *login, *field;
	} rows[] = {{"Aladdin:open sesame", "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
	        {"", "Authorization: Basic "}, {"a:", "Authorization: Basic YTo="},
	        {"a:b", "Authorization: Basic YTpi"},
	        {"\xff\xfe:\xfd", "Authorization: Basic //46/Q=="}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf field;

		buf_init(&field, 128);
		assert_int_equal(form_basic(&field, slice_from_string(rows[i].login)), 0);
		assert_string_equal((const char *)buf_bytes(&field), rows[i].field);
		private_buf_fini(&field);
	}
	struct buf none;
	buf_init(&none, 24);
	assert_int_not_equal(form_basic(&none, SLICE("a:bcdefg")), 0);
	private_buf_fini(&none);
}

/* AddressSanitizer, where it is on, is to fail a huge malloc as the C library does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* A buffer that grows would leave what it held in memory that nobody wipes. */
static void test_buffers_stay_where_they_are(void **state)
{
	struct buf b;
	const uint8_t *at;

	(void)state;
	private_buf_init(&b, 1000);
	at = b.mem;
	assert_non_null(at);
	for (size_t i = 0; i < 1000 / 4; i++)
		assert_int_equal(
		        i % 2 ? buf_append(&b, "abcd", 4) : buf_printf(&b, "%s", "abcd"), 0);
	assert_int_not_equal(buf_append(&b, "e", 1), 0);
	assert_ptr_equal(b.mem, at);
	private_buf_fini(&b);
	assert_null(b.mem);
	private_buf_init(&b, SIZE_MAX / 2);
	assert_int_not_equal(buf_append(&b, "a", 1), 0);
	private_buf_fini(&b);
}

/* A service's token goes into a field of the next request. */
static void test_fields_are_one_line(void **state)
{
	static const char *const rows[] = {"X-Token: a\r\nX-Other: b", "X-Token: a\nb",
	        "X-Token: a\rb", "X-Token: a\x01", "X-Token: a\x7f"};
	struct https *https;

	(void)state;
	libraries_wipe_memory();
	https = https_open();
	assert_non_null(https);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *const fields[] = {"X-First: 1", rows[i], NULL};
		const struct https_call call = {
		        .method = "GET", .url = "https://127.0.0.1:1/", .fields = fields};
		char fault[HTTPS_TEXT_MAX];

		assert_null(https_json(https, &call, fault));
		assert_non_null(strstr(fault, "a line end or another control character"));
		assert_null(strstr(fault, "X-"));
	}
	https_free(https);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_urls),
	        cmocka_unit_test(test_urls_that_are_none),
	        cmocka_unit_test(test_one_of_several_urls_is_none),
	        cmocka_unit_test(test_arguments),
	        cmocka_unit_test(test_paths_behind_the_url),
	        cmocka_unit_test(test_lifetimes),
	        cmocka_unit_test(test_logins),
	        cmocka_unit_test(test_buffers_stay_where_they_are),
	        cmocka_unit_test(test_fields_are_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
