/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, authorities, paths and URLs: what is taken, in which form, and the many forms that are
 * refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "policy/url/url_path.h"
#include "vethguard/policy/url.h"

struct form {
	const char *in, *out; /* out NULL: refused */
};

static void check_hosts(const struct form *forms, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char out[POLICY_HOST_MAX + 1];
		size_t n;
		bool good = url_canonical_host(slice_from_string(forms[i].in), out, &n);

		if (good != (forms[i].out != NULL))
			fail_msg("host %s: %s", forms[i].in, good ? "taken" : "refused");
		if (good) {
			assert_string_equal(out, forms[i].out);
			assert_int_equal(n, strlen(out));
		}
	}
}

static void test_hosts(void **state)
{
	static const struct form forms[] = {
	        {"example.com", "example.com"},
	        {"EXAMPLE.Com", "example.com"},
	        {"example.com.", "example.com"},
	        {"localhost", "localhost"},
	        {"_dmarc.a-b.example", "_dmarc.a-b.example"},
	        {"1.2.3.4.example", "1.2.3.4.example"},
	        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
	        {"0x1g", "0x1g"},
	        {"", NULL},
	        {".", NULL},
	        {"..", NULL},
	        {"example.com..", NULL},
	        {".example.com", NULL},
	        {"a..b", NULL},
	        {"127.0.0.1", NULL},
	        {"127.1", NULL},
	        {"2130706433", NULL},
	        {"0x7f000001", NULL},
	        {"0x", NULL},
	        {"a.0x", NULL},
	        {"a.0X7F", NULL},
	        {"017700000001", NULL},
	        {"127.0.0.1.", NULL},
	        {"example.1", NULL},
	        {"exa mple.com", NULL},
	        {"example.com:80", NULL},
	        {"user@example.com", NULL},
	        {"example.com/", NULL},
	        {"example.com\\", NULL},
	        {"ex%61mple.com", NULL},
	        {"b\xc3\xbc"
	         "cher.example",
	                NULL},
	        {"example\xe3\x80\x82"
	         "com",
	                NULL},
	        {"[::1]", NULL},
	        {"a*b", NULL},
	        {"a\tb", NULL},
	};

	(void)state;
	check_hosts(forms, sizeof(forms) / sizeof(forms[0]));
}

static void test_host_bounds(void **state)
{
	char host[POLICY_HOST_MAX + 3], out[POLICY_HOST_MAX + 1];
	size_t n;

	(void)state;
	memset(host, 'a', sizeof(host));
	assert_true(url_canonical_host(slice_of(host, 63), out, &n));
	assert_false(url_canonical_host(slice_of(host, 64), out, &n));
	for (size_t i = 50; i < sizeof(host); i += 50)
		host[i] = '.';
	assert_true(url_canonical_host(slice_of(host, POLICY_HOST_MAX), out, &n));
	assert_int_equal(n, POLICY_HOST_MAX);
	assert_false(url_canonical_host(slice_of(host, POLICY_HOST_MAX + 1), out, &n));
	host[POLICY_HOST_MAX] = '.';
	assert_true(url_canonical_host(slice_of(host, POLICY_HOST_MAX + 1), out, &n));
	assert_false(url_canonical_host(slice_of("a\0b", 3), out, &n));
}

static const struct {
	const char *in, *host;
	int family, port; /* port -1: refused */
} authorities[] = {
        {"example.com", "example.com", 0, 0},
        {"Example.COM:443", "example.com", 0, 443},
        {"example.com.:65535", "example.com", 0, 65535},
        {"127.0.0.1", "", 4, 0},
        {"127.0.0.1:8080", "", 4, 8080},
        {"[::1]", "", 6, 0},
        {"[2001:db8::1]:443", "", 6, 443},
        {"", NULL, 0, -1},
        {":443", NULL, 0, -1},
        {"example.com:", NULL, 0, -1},
        {"example.com:0", NULL, 0, -1},
        {"example.com:080", NULL, 0, -1},
        {"example.com:65536", NULL, 0, -1},
        {"example.com:443x", NULL, 0, -1},
        {"example.com:+443", NULL, 0, -1},
        {"example.com:443:443", NULL, 0, -1},
        {"example.com:4 3", NULL, 0, -1},
        {"user@example.com", NULL, 0, -1},
        {"user:pw@example.com:443", NULL, 0, -1},
        {"@example.com", NULL, 0, -1},
        {"::1", NULL, 0, -1},
        {"[::1", NULL, 0, -1},
        {"::1]", NULL, 0, -1},
        {"[::1]443", NULL, 0, -1},
        {"[::1]:", NULL, 0, -1},
        {"[[::1]]", NULL, 0, -1},
        {"[]", NULL, 0, -1},
        {"[127.0.0.1]", NULL, 0, -1},
        {"[example.com]", NULL, 0, -1},
        {"[fe80::1%25eth0]", NULL, 0, -1},
        {"[fe80::1%eth0]:80", NULL, 0, -1},
        {"127.1", NULL, 0, -1},
        {"0177.0.0.1", NULL, 0, -1},
        {"127.0.0.1.:80", NULL, 0, -1},
        {"a b", NULL, 0, -1},
        {"example.com,other", NULL, 0, -1},
};

static void test_authorities(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(authorities) / sizeof(authorities[0]); i++) {
		struct url_authority a;
		bool good = url_parse_authority(slice_from_string(authorities[i].in), &a);

		if (good != (authorities[i].port >= 0))
			fail_msg("authority %s: %s", authorities[i].in, good ? "taken" : "refused");
		if (!good)
			continue;
		assert_string_equal(a.host, authorities[i].host);
		assert_int_equal(a.host_n, strlen(authorities[i].host));
		assert_int_equal(a.address.family, authorities[i].family);
		assert_int_equal(a.port, authorities[i].port);
	}
}

static const struct form paths[] = {
        {"/", "/"},
        {"/a", "/a"},
        {"/a/", "/a/"},
        {"/a/b", "/a/b"},
        {"//", "//"},
        {"/a//b", "/a//b"},
        {"/%61%2D%2e%5F%7e", "/a-._~"},
        {"/%c3%a9", "/%C3%A9"},
        {"/a%3ab", "/a%3Ab"},
        {"/a:b@c!$&'()*+,;=", "/a:b@c!$&'()*+,;="},
        {"/a%20b%25", "/a%20b%25"},
        {"/%252e%252e/", NULL},
        {"/%252e%252ex/", "/%252e%252ex/"},
        {"/[id]/{x}|^`\"<>", "/%5Bid%5D/%7Bx%7D%7C%5E%60%22%3C%3E"},
        {"/.", "/"},
        {"/./", "/"},
        {"/a/.", "/a/"},
        {"/a/./b", "/a/b"},
        {"/a/..", "/"},
        {"/a/../", "/"},
        {"/a/../b", "/b"},
        {"/a/b/../../c", "/c"},
        {"/a;v=1.2/..b;c", "/a;v=1.2/..b;c"},
        {"/a/%2e%2E/b", "/b"},
        {"/a/.%2e/b", "/b"},
        {"/a//../b", "/a/b"},
        {"/...", "/..."},
        {"/.a/..b", "/.a/..b"},
        {"/%3F%23", "/%3F%23"},
        {"/@scope%2fname", "/@scope%2Fname"},
        {"/a%2Fb/c", "/a%2Fb/c"},
        {"", NULL},
        {"a", NULL},
        {"*", NULL},
        {"http://x/", NULL},
        {"/..", NULL},
        {"/../a", NULL},
        {"/a/../../b", NULL},
        {"/a/..;/b", NULL},
        {"/a/..;x=1/b", NULL},
        {"/a/..%3b/b", NULL},
        {"/a/.;/b", NULL},
        {"/a/b%2f..;x", NULL},
        {"/a/..;", NULL},
        {"/%2e%2e", NULL},
        {"/%2e%2e/a", NULL},
        {"/a/..%2f..%2fb", NULL},
        {"/a%2f..%2fb", NULL},
        {"/a%2F..", NULL},
        {"/%2F", NULL},
        {"/%2Fetc", NULL},
        {"/etc%2F", NULL},
        {"/a%2F%2Fb", NULL},
        {"/a%2F.%2Fb", NULL},
        {"/a%2F%2e%2e%2Fb", NULL},
        {"/%", NULL},
        {"/%a", NULL},
        {"/%zz", NULL},
        {"/%4", NULL},
        {"/%4/", NULL},
        {"/%00", NULL},
        {"/a%0d%0ab", NULL},
        {"/%7f", NULL},
        {"/%1F", NULL},
        {"/%5c", NULL},
        {"/..\\a", NULL},
        {"/a\\b", NULL},
        {"/a b", NULL},
        {"/a\tb", NULL},
        {"/a\r\nb", NULL},
        {"/a\x7f", NULL},
        {"/caf\xc3\xa9", NULL},
        {"/a?b", NULL},
        {"/a#b", NULL},
        {"/%u002e", NULL},
};

static void test_paths(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char out[256];
		size_t n;
		bool good =
		        url_canonical_path(slice_from_string(paths[i].in), out, sizeof(out), &n);

		if (good != (paths[i].out != NULL))
			fail_msg("path %s: %s", paths[i].in, good ? "taken" : "refused");
		if (!good)
			continue;
		if (n != strlen(paths[i].out) || memcmp(out, paths[i].out, n) != 0)
			fail_msg("path %s: %.*s, not %s", paths[i].in, (int)n, out, paths[i].out);
	}
}

/* A path made canonical is canonical, and a canonical path stays as it is. */
static void test_canonical_agrees(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct slice in = slice_from_string(paths[i].in);
		struct slice out = slice_from_string(paths[i].out);

		assert_int_equal(url_path_is_canonical(in), paths[i].out && slice_equals(in, out));
		if (paths[i].out)
			assert_true(url_path_is_canonical(out));
	}
}

/* Every byte, raw and escaped, in all positions of a two-byte segment: rewriting twice changes
 * nothing more. */
static void test_every_byte(void **state)
{
	char in[32], once[128], twice[128];
	size_t n, m;

	(void)state;
	for (unsigned c = 0; c < 256; c++)
		for (int escaped = 0; escaped < 2; escaped++) {
			size_t len = 3;

			memcpy(in, "/a/", 3);
			if (escaped)
				len += (size_t)snprintf(in + 3, 8, "%%%02x", c);
			else
				in[len++] = (char)c;
			in[len++] = 'z';
			if (!url_canonical_path(slice_of(in, len), once, sizeof(once), &n))
				continue;
			assert_true(url_path_is_canonical(slice_of(once, n)));
			assert_true(
			        url_canonical_path(slice_of(once, n), twice, sizeof(twice), &m));
			assert_int_equal(n, m);
			assert_memory_equal(once, twice, n);
			assert_true(c >= 0x20 || (!escaped && c == '/'));
			assert_true(escaped ||
			            (c < 0x7f && c != '\\' && c != '?' && c != '#' && c != ' '));
		}
}

static void test_path_bounds(void **state)
{
	static char in[POLICY_PATH_MAX * 2], out[POLICY_PATH_MAX];
	size_t n;

	(void)state;
	memset(in, 'a', sizeof(in));
	in[0] = '/';
	assert_true(url_canonical_path(slice_of(in, POLICY_PATH_MAX), out, sizeof(out), &n));
	assert_true(url_path_is_canonical(slice_of(out, n)));
	assert_false(url_canonical_path(slice_of(in, POLICY_PATH_MAX + 1), out, sizeof(out), &n));
	assert_false(url_path_is_canonical(slice_of(in, POLICY_PATH_MAX + 1)));
	in[POLICY_PATH_MAX - 1] = '[';
	assert_false(url_canonical_path(slice_of(in, POLICY_PATH_MAX), out, sizeof(out), &n));
	assert_false(url_canonical_path(SLICE("/"), out, 0, &n));
}

static void test_urls(void **state)
{
	static const struct {
		const char *in;
		int scheme, port; /* scheme -1: refused */
		const char *host, *path, *query;
	} forms[] = {
	        {"https://a.example", POLICY_HTTPS, 443, "a.example", "/", ""},
	        {"HTTPS://A.example/X?y=z?", POLICY_HTTPS, 443, "a.example", "/X", "y=z?"},
	        {"http://a.example?q", POLICY_HTTP, 80, "a.example", "/", "q"},
	        {"https://a.example:8443/a/../b", POLICY_HTTPS, 8443, "a.example", "/a/../b", ""},
	        {"tcp://a.example:22", POLICY_TCP, 22, "a.example", "/", ""},
	        {"udp://a.example:53/", POLICY_UDP, 53, "a.example", "/", ""},
	        {"https://[::1]/", POLICY_HTTPS, 443, "", "/", ""},
	        {"", -1, 0, NULL, NULL, NULL},
	        {"a.example", -1, 0, NULL, NULL, NULL},
	        {"https:/a.example", -1, 0, NULL, NULL, NULL},
	        {"https://", -1, 0, NULL, NULL, NULL},
	        {"https:///a", -1, 0, NULL, NULL, NULL},
	        {"ftp://a.example", -1, 0, NULL, NULL, NULL},
	        {"https://u@a.example/", -1, 0, NULL, NULL, NULL},
	        {"https://a.example#f", -1, 0, NULL, NULL, NULL},
	        {"https://a.example#@b.example/", -1, 0, NULL, NULL, NULL},
	        {"https://a.example\\@b.example/", -1, 0, NULL, NULL, NULL},
	        {"https://a.example /", -1, 0, NULL, NULL, NULL},
	        {" https://a.example/", -1, 0, NULL, NULL, NULL},
	        {"https://a.example/\r\n", -1, 0, NULL, NULL, NULL},
	        {"https://a.example/?q=\xc3\xa9", -1, 0, NULL, NULL, NULL},
	        {"https://a.example:99999/", -1, 0, NULL, NULL, NULL},
	        {"tcp://a.example", -1, 0, NULL, NULL, NULL},
	        {"tcp://a.example:22/x", -1, 0, NULL, NULL, NULL},
	        {"tcp://a.example:22?x", -1, 0, NULL, NULL, NULL},
	        {"udp://a.example:53//", -1, 0, NULL, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct url u;
		bool good = url_parse(slice_from_string(forms[i].in), &u);

		if (good != (forms[i].scheme >= 0))
			fail_msg("URL %s: %s", forms[i].in, good ? "taken" : "refused");
		if (!good)
			continue;
		assert_int_equal(u.scheme, forms[i].scheme);
		assert_int_equal(u.authority.port, forms[i].port);
		assert_string_equal(u.authority.host, forms[i].host);
		assert_true(slice_equals(u.path, slice_from_string(forms[i].path)));
		assert_true(slice_equals(u.query, slice_from_string(forms[i].query)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_hosts),
	        cmocka_unit_test(test_host_bounds),
	        cmocka_unit_test(test_authorities),
	        cmocka_unit_test(test_paths),
	        cmocka_unit_test(test_canonical_agrees),
	        cmocka_unit_test(test_every_byte),
	        cmocka_unit_test(test_path_bounds),
	        cmocka_unit_test(test_urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
