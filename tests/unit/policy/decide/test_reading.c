/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as servers may read them: denies hold against each rewriting and all of them together,
 * allows do not lead out of what they say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/decide/reading.h"
#include "policy/url/pattern.h"
#include "../policy_test.h"

#define A "https://a.example"

static const char *const denied[] = {"/v1/admin", "/files/*", "/t/**/secret", "/@evil%2F*",
        "/@big%2F*/**", "/m;v=1/x", "/a//b", "/Caps", "/dir/", "/x/*.key", "/p/%25"};

static void load_denies(struct test_policy *t)
{
	char text[4096];
	size_t n = (size_t)snprintf(text, sizeof(text),
	        "vethguard: 1\nallow: [{to: " A "}]\ndeny:\n  - to: " A "\n    paths: [");

	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++)
		n += (size_t)snprintf(
		        text + n, sizeof(text) - n, "%s\"%s\"", i ? ", " : "", denied[i]);
	snprintf(text + n, sizeof(text) - n, "]\n");
	test_load(t, text, false);
}

static enum policy_verdict ask(const struct policy *policy, const char *path)
{
	char url[3 * POLICY_PATH_MAX];

	snprintf(url, sizeof(url), A "%s", path);
	return test_ask(policy, "GET", url).verdict;
}

static void test_denies(void **state)
{
	static const char *const paths[] = {
	        /* each rewriting apart */
	        "/v1/admin",
	        "/v1/%61dmin",
	        "/v1/admin/",
	        "/v1/admin;",
	        "/v1/admin;x=y",
	        "/v1/admin%3Bx",
	        "//v1/admin",
	        "/v1//admin",
	        "/v1%2Fadmin",
	        "/v1/./admin",
	        "/v1/x/../admin",
	        "/V1/ADMIN",
	        "/v1/admin.",
	        "/v1/admin%20",
	        "/v1/admin%20.%20",
	        "/v1;x/admin",
	        "/;x/v1/admin",
	        "/v1%252Fadmin",
	        "/v1%25252Fadmin",
	        "/v1/%2561dmin",
	        "/v1/%25%36%31dmin",
	        "/v1%255Cadmin",
	        "/v1%C0%AFadmin",
	        "/v1%E0%80%AFadmin",
	        "/v1%F0%80%80%AFadmin",
	        "/v1%EF%BC%8Fadmin",
	        "/v1/%EF%BD%81dmin",
	        "/v1/%C1%A1dmin",
	        "/v1/%25C1%25A1dmin",
	        "/v1%E2%88%95admin",
	        "/v1/adm%EF%BC%A9n",
	        "/v1%F8%80%80%80%AFadmin",
	        /* together */
	        "/v1/admin;x%2Fy",
	        "/v1/admin%3Bx%2Fy",
	        "/v1/admin;x%2Fy/",
	        "/v1/admin;a;b%2Fc;d%2fe",
	        "//V1;x//admin.;y%2Fz/",
	        "/v1;a%2Fb/admin;c%2Fd",
	        "/v1%2F/admin",
	        "/v1%253B%252Fx/admin",
	        "/;a%2Fb/;c/v1/admin",
	        "/v1/admin%2F",
	        "/v1/admin%EF%BC%9Bx",
	        "/v1/admin%20;x%2fy",
	        /* a wildcard takes what a server may read as one segment */
	        "/files/a",
	        "/files/a%2Fb",
	        "/files/a%2Fb;c",
	        "/files/;x",
	        "/files%2Fa",
	        "/files/a/",
	        "/t/secret",
	        "/t/a/b/secret",
	        "/t/a%2Fb%2Fsecret",
	        "/t;x/a/secret;y",
	        "/t/secret%2F",
	        "/x/a.key",
	        "/x/a%2Fb.key",
	        "/x/a.key;z",
	        "/x/a;b.key",
	        "/x/a.KEY",
	        "//x/a;b.key",
	        "//x/a%253Bb.key",
	        /* patterns that hold what is rewritten */
	        "/@evil%2Fpkg",
	        "//@evil%2Fpkg",
	        "/%40evil%2Fpkg",
	        "/@evil/pkg",
	        "/@evil%2fPKG;x",
	        "/%2540evil%252Fpkg",
	        "/@evil;x%2Fpkg",
	        "/@big%2Fa%2Fb",
	        "/@big/a/b",
	        "/m;v=1/x",
	        "/m%3Bv=1/x",
	        "/m;v=1;w=2/x",
	        "/m;v%3D1/x",
	        "//m;v=1/x",
	        "/a//b",
	        "/a/b",
	        "/a///b",
	        "/Caps",
	        "/caps",
	        "/CAPS;x",
	        "/dir/",
	        "/dir",
	        "/dir//",
	        "/p/%25",
	        "/p/%2525",
	        "/p//%25",
	};
	static const char *const others[] = {"/", "/v1", "/v1/", "/v1/admins", "/v1/admi",
	        "/v1/admin/x", "/v1/admin%2Fx", "/v1/x;admin", "/v1/x%3Badmin", "/v1admin",
	        "/v1/a.dmin", "/files", "/files/", "/files/a/b", "/t/secrets", "/t/a;secret",
	        "/x/key", "/x/a.key/b", "/@evil", "/@evilx%2Fpkg", "/@evil/a/b", "/@evi", "/m/x",
	        "/m;v=2/x", "/a;b", "/cap", "/dirs", "/p/25", "/p/", "/v1/%C3%A1dmin",
	        "/v1/adm%C4%B1n"};
	struct test_policy t;

	(void)state;
	load_denies(&t);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (ask(&t.policy, paths[i]) != POLICY_DENY)
			fail_msg("allowed: %s", paths[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (ask(&t.policy, others[i]) != POLICY_ALLOW)
			fail_msg("denied: %s", others[i]);
	test_unload(&t);
}

/* Bytes and segments that no path may hold in any reading. */
static void test_refused(void **state)
{
	static const char *const paths[] = {"/a/%252e%252e/b", "/a/%252E/b", "/a/.%252e",
	        "/a/%25252e./b", "/a/..%252Fb", "/a%252F..%252Fb", "/a%252F..", "/a/%C0%AE%C0%AE/b",
	        "/a/%C0%AE./b", "/a/%E0%80%AE%E0%80%AE/", "/a/%25C0%25AE%25C0%25AE/",
	        "/a/%EF%BC%8E%EF%BC%8E/b", "/a/%EF%BC%8E./b", "/a/%E2%80%A4%E2%80%A4/b",
	        "/a/..%20/b", "/a/.%20./b", "/a/..%253Bx/b", "/a/%252E%252E;x/b",
	        "/a/..%EF%BC%9Bx/b", "/a/..%C0%AFb", "/a/..%255Cb", "/a%255C..%255Cb",
	        "/a/..%EF%BC%BCb", "/a%2500", "/a%252500b", "/a%C0%80", "/a%E3%80%80/.%C2%A0/b",
	        "/a/..;x", "/a/..%3Bx", "/a%2F..", "/a/..%2Fb", "/a%00", "/a%5C", "/a\\b",
	        "/a/.%252e%20/b"};
	static const char *const good[] = {"/a/...", "/a/..b", "/a/.b", "/a/%2520", "/a/x%20/b",
	        "/a%252Fb", "/%E5%96%87%E5%96%87", "/%C7%D1%B1%DB", "/100%25", "/50%2525",
	        "/a/%252e.b", "/a/b..", "/%C3%A9t%C3%A9", "/a%250Ab", "/%E2%80%A6", "/%25%25"};
	char out[POLICY_PATH_MAX];
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct slice path = slice_from_string(paths[i]);
		struct policy_request request = {.scheme = POLICY_HTTPS,
		        .host = SLICE("a.example"),
		        .port = 443,
		        .method = SLICE("GET"),
		        .path = path};
		struct policy_decision d;
		struct test_policy t;

		if (url_canonical_path(path, out, sizeof(out), &n))
			fail_msg("canonical: %s", paths[i]);
		/* nor where somebody asks without making it canonical */
		test_load(&t, "vethguard: 1\nallow: [{to: " A "}]\n", true);
		policy_decide(&t.policy, &request, &d);
		assert_int_equal(d.reason, POLICY_REASON_BAD_REQUEST);
		assert_int_equal(d.verdict, POLICY_DENY);
		test_unload(&t);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (!url_canonical_path(slice_from_string(good[i]), out, sizeof(out), &n))
			fail_msg("refused: %s", good[i]);
}

static void test_allows(void **state)
{
	static const struct {
		const char *pattern, *path;
		enum policy_reason reason; /* or POLICY_REASON_RULE: allowed */
	} cases[] = {
	        {"/public/*", "/public/a", POLICY_REASON_RULE},
	        {"/public/*", "/public/a;b", POLICY_REASON_RULE},
	        {"/public/*", "/public/a%3Bb", POLICY_REASON_RULE},
	        {"/public/*", "/public/a.", POLICY_REASON_RULE},
	        {"/public/*", "/public/%40a", POLICY_REASON_RULE},
	        {"/public/*", "/public/A%C3%A9", POLICY_REASON_RULE},
	        {"/public/*", "/public/100%25", POLICY_REASON_RULE},
	        {"/public/*", "/public/;b", POLICY_REASON_READING},
	        {"/public/*", "/public/a%252Fb", POLICY_REASON_READING},
	        {"/public/*", "/public/a%255Cb", POLICY_REASON_READING},
	        {"/public/*", "/public/a%C0%AFb", POLICY_REASON_READING},
	        {"/public/*", "/public/%20", POLICY_REASON_READING},
	        {"/public/*%252F*", "/public/a%252Fb", POLICY_REASON_RULE},
	        {"/public/*", "/public/a%2Fb", POLICY_REASON_PATH},
	        {"/public/*", "/public/a/b", POLICY_REASON_PATH},
	        {"/public/*", "/PUBLIC/a", POLICY_REASON_PATH},
	        {"/public/*", "//public/a", POLICY_REASON_PATH},
	        {"/public/*", "/public;x/a", POLICY_REASON_PATH},
	        {"/public/*", "/public/a/", POLICY_REASON_PATH},
	        {"/public", "/public/", POLICY_REASON_PATH},
	        {"/public/**", "/public/a%252Fb", POLICY_REASON_RULE},
	        {"/public/**", "/public//a;b//c", POLICY_REASON_RULE},
	        {"/public/**", "/public/;/admin", POLICY_REASON_RULE},
	        {"/public/**", "/public/;/../admin",
	                POLICY_REASON_RULE}, /* sent as /public/admin */
	        {"/*/public/**", "/a/public/b", POLICY_REASON_RULE},
	        {"/*/public/**", "/;/public/b", POLICY_REASON_READING},
	        {"/a/*.json", "/a/b.json", POLICY_REASON_RULE},
	        {"/a/*.json", "/a/b;c.json", POLICY_REASON_READING},
	        {"/a/*.json", "/a/b.json;c", POLICY_REASON_PATH},
	        {"/a/*x", "/a/b;x", POLICY_REASON_READING},
	        {"/a/b;x", "/a/b;x", POLICY_REASON_RULE},
	        {"/a/*;x", "/a/b;x", POLICY_REASON_RULE},
	        {"/a/*;x%2Fy", "/a/b;x%2Fy", POLICY_REASON_READING},
	        {"/a/b;x%2Fy", "/a/b;x%2Fy", POLICY_REASON_RULE},
	        {"/@*%2F*", "/@scope%2Fpkg", POLICY_REASON_RULE},
	        {"/@*%2F*", "/@scope%2Fpkg%2F-%2Fx.tgz", POLICY_REASON_PATH},
	        {"/@*%2F*", "/@a;b%2Fc", POLICY_REASON_READING},
	        {"/@*%2F*", "/@scope/pkg", POLICY_REASON_PATH},
	        {"/api/v4/projects/*%2F*/issues", "/api/v4/projects/group%2Fproject/issues",
	                POLICY_REASON_RULE},
	        {"/storage/v1/b/*/o/*%2F*", "/storage/v1/b/x/o/dir%2FKey%20one",
	                POLICY_REASON_RULE},
	        {"/2.3/questions/*", "/2.3/questions/1;2;3;4", POLICY_REASON_RULE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct policy_decision d;
		struct test_policy t;
		char text[512];

		snprintf(text, sizeof(text),
		        "vethguard: 1\nallow: [{to: " A ", paths: [\"%s\"]}]\n", cases[i].pattern);
		test_load(&t, text, false);
		snprintf(text, sizeof(text), A "%s", cases[i].path);
		d = test_ask(&t.policy, "GET", text);
		if (d.reason != cases[i].reason ||
		        (d.verdict == POLICY_ALLOW) != (cases[i].reason == POLICY_REASON_RULE))
			fail_msg("%s for %s: %s", cases[i].pattern, cases[i].path,
			        policy_reason_text(d.reason));
		test_unload(&t);
	}
}

/* --- any servers, any combination --- */

static uint32_t seed = 20;

static uint32_t dice(uint32_t sides)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % sides;
}

static void cut(char *s, size_t at, size_t n)
{
	memmove(s + at, s + at + n, strlen(s + at + n) + 1);
}

/* The rewriting that some server does at a place of s, if there is one. whole: an escaped slash
 * becomes a byte of its segment, as for who splits the path first. */
static void rewrite(char *s, size_t at, bool whole)
{
	size_t n = strlen(s), end = at;
	int high, low;

	while (end < n && s[end] != '/')
		end++;
	if (s[at] == '%' && n - at >= 3) {
		high = slice_hex_digit(s[at + 1]), low = slice_hex_digit(s[at + 2]);
		if (high >= 0 && low >= 0 && high * 16 + low < 0x80) {
			s[at] = (char)(high * 16 + low);
			if (s[at] == '/' && whole)
				s[at] = 1;
			cut(s, at + 1, 2);
		} else if (n - at >= 6 && strncmp(s + at, "%C0%AF", 6) == 0) {
			s[at] = whole ? 1 : '/';
			cut(s, at + 1, 5);
		}
	} else if (s[at] == ';') {
		cut(s, at, end - at);
	} else if (s[at] == '/' && s[at - 1] == '/') {
		cut(s, at, 1);
	} else if (s[at] == '\\') {
		s[at] = '/';
	} else if ((s[at] == '.' || s[at] == ' ') &&
	           strspn(s + at, ". ") == strcspn(s + at, "/;")) {
		cut(s, at, strspn(s + at, ". "));
	} else if (s[at] == '/' && at + 1 == n) {
		cut(s, at, 1);
	} else if (s[at] >= 'A' && s[at] <= 'Z' && s[at - 1] != '%' &&
	           (at < 2 || s[at - 2] != '%')) {
		s[at] += 'a' - 'A';
	}
}

static void random_text(char *out, const char *const *pieces, uint32_t count)
{
	out[0] = '\0';
	for (uint32_t i = 2 + dice(7); i > 0; i--)
		strcat(out, pieces[dice(count)]);
}

static void test_any_combination(void **state)
{
	static const char *const of_paths[] = {"/", "/", "/", "a", "b", "A", ";", "%3B", "%2F",
	        "%252F", "%255C", "%C0%AF", ".", "%20", "c", "%40", "%2540", "*", "%25"};
	static const char *const of_patterns[] = {
	        "/", "/", "/", "a", "b", "c", "*", "/*", "/**", "/a", "/b", "@", ";", "."};
	unsigned matched = 0, denies = 0;
	char pattern[256], path[256], read[256], out[POLICY_PATH_MAX], text[512];
	size_t n;

	(void)state;
	for (unsigned round = 0; round < 30000; round++) {
		struct slice p = {pattern + 1, 0};
		struct test_policy t;
		struct policy_reader reader = {text, test_read, NULL};
		struct policy_load_options options = {0};

		random_text(pattern + 1, of_patterns, sizeof(of_patterns) / sizeof(*of_patterns));
		pattern[0] = '/';
		p = slice_from_string(pattern);
		if (!url_canonical_path(p, out, sizeof(out), &n) ||
		        !slice_equals(p, slice_of(out, n)))
			continue;
		snprintf(text, sizeof(text),
		        "vethguard: 1\nallow: [{to: " A "}]\ndeny: [{to: " A
		        ", paths: [\"%s\"]}]\n",
		        pattern);
		memset(&t, 0, sizeof(t));
		if (policy_load(&reader, "/test.yaml", &options, &t.image, &t.size, &t.diags) != 0)
			continue;
		assert_int_equal(policy_open(&t.policy, t.image, t.size), 0);
		for (unsigned k = 0; k < 60; k++) {
			struct policy_request request = {.scheme = POLICY_HTTPS,
			        .host = SLICE("a.example"),
			        .port = 443,
			        .method = SLICE("GET")};
			struct policy_decision d;

			random_text(path + 1, of_paths, sizeof(of_paths) / sizeof(*of_paths));
			path[0] = '/';
			if (!url_canonical_path(slice_from_string(path), out, sizeof(out), &n))
				continue;
			request.path = slice_of(out, n);
			snprintf(read, sizeof(read), "%.*s", (int)n, out);
			policy_decide(&t.policy, &request, &d);
			denies += d.verdict == POLICY_DENY;
			for (uint32_t i = dice(12); i > 0; i--)
				if (strlen(read) > 1)
					rewrite(read, 1 + dice((uint32_t)strlen(read) - 1),
					        dice(2));
			if (!pattern_matches(p, slice_from_string(read)))
				continue;
			matched++;
			if (d.verdict != POLICY_DENY)
				fail_msg("%s denied, %s allowed, which some server reads as %s",
				        pattern, path, read);
		}
		test_unload(&t);
	}
	print_message("%u readings matched, %u denials\n", matched, denies);
	assert_true(matched > 3000);
}

/* No more than that is denied: all readings of short paths are listed. */
#define READINGS_MAX 3000

static bool some_reading_matches(struct slice pattern, const char *path, bool *too_many)
{
	static char all[READINGS_MAX + 1][128];
	size_t count = 1;

	snprintf(all[0], sizeof(all[0]), "%s", path);
	for (size_t i = 0; i < count; i++) {
		if (pattern_matches(pattern, slice_from_string(all[i])))
			return true;
		for (size_t at = 1; at < 2 * strlen(all[i]); at++) {
			size_t known = 0;

			if (at / 2 == 0 || count == READINGS_MAX)
				continue;
			memcpy(all[count], all[i], sizeof(all[i]));
			rewrite(all[count], at / 2, at % 2);
			while (strcmp(all[known], all[count]) != 0)
				known++;
			count += known == count;
		}
	}
	*too_many = count == READINGS_MAX;
	return false;
}

static void test_no_more(void **state)
{
	static const char *const of_paths[] = {
	        "/", "/", "a", "b", ";", "%2F", "%3B", "%252F", ".", "A"};
	static const char *const of_patterns[] = {
	        "/", "/a", "/b", "a", "b", "*", "/*", "/**", "/**/", ";", "."};
	char pattern[128], path[128], text[512], out[POLICY_PATH_MAX];
	unsigned denied_ones = 0;
	size_t n;

	(void)state;
	for (unsigned round = 0; round < 8000; round++) {
		struct policy_reader reader = {text, test_read, NULL};
		struct policy_load_options options = {0};
		struct test_policy t;
		struct slice p;

		pattern[0] = path[0] = '/';
		random_text(pattern + 1, of_patterns, sizeof(of_patterns) / sizeof(*of_patterns));
		p = slice_from_string(pattern);
		if (!url_canonical_path(p, out, sizeof(out), &n) ||
		        !slice_equals(p, slice_of(out, n)) || strstr(pattern, "//") ||
		        slice_ends_with(p, SLICE("/")))
			continue;
		snprintf(text, sizeof(text),
		        "vethguard: 1\nallow: [{to: " A "}]\ndeny: [{to: " A
		        ", paths: [\"%s\"]}]\n",
		        pattern);
		memset(&t, 0, sizeof(t));
		if (policy_load(&reader, "/test.yaml", &options, &t.image, &t.size, &t.diags) != 0)
			continue;
		assert_int_equal(policy_open(&t.policy, t.image, t.size), 0);
		for (unsigned k = 0; k < 30; k++) {
			bool too_many = false;

			random_text(path + 1, of_paths, sizeof(of_paths) / sizeof(*of_paths));
			if (!url_canonical_path(slice_from_string(path), out, sizeof(out), &n) ||
			        ask(&t.policy, path) != POLICY_DENY)
				continue;
			denied_ones++;
			out[n] = '\0';
			if (!some_reading_matches(p, out, &too_many) && !too_many)
				fail_msg("%s denies %s, which no server reads so", pattern, path);
		}
		test_unload(&t);
	}
	print_message("%u denials\n", denied_ones);
	assert_true(denied_ones > 1000);
}

/* Long ones, and as many ambiguities as there is room for. */
static void test_bounds(void **state)
{
	static const char *const pieces[] = {
	        ";", "%2F;", "/;", "%252F", "a;b%2F", ".", "%20", "//", "%25", "A;", ";%2F"};
	char path[POLICY_PATH_MAX + 64], out[POLICY_PATH_MAX];
	struct test_policy t;
	size_t n;

	(void)state;
	test_load(&t,
	        "vethguard: 1\nallow: [{to: " A "}]\ndeny: [{to: " A
	        ", paths: ['/**/zz', '/*a*a*a*a*a*a*a*a*a*z', '/**/a/**/a/**/b/*/*/*;*z', "
	        "'/*%2F*%2F*z']}]\n",
	        false);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		strcpy(path, "/x");
		while (strlen(path) + strlen(pieces[i]) < POLICY_PATH_MAX)
			strcat(path, pieces[i]);
		if (!url_canonical_path(slice_from_string(path), out, sizeof(out), &n))
			continue;
		ask(&t.policy, path);
		strcpy(path + strlen(path) - 3, "/zz");
		if (url_canonical_path(slice_from_string(path), out, sizeof(out), &n))
			assert_int_equal(ask(&t.policy, path), POLICY_DENY);
	}
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_denies),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_allows),
	        cmocka_unit_test(test_any_combination),
	        cmocka_unit_test(test_no_more),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
