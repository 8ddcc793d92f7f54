/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of fetches, of each version of the protocol, as they are and compressed; and their
 * types. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "git_test.h"

/* Lines of a body: "F" is a flush, "D" a delimiter. */
#define LINES_MAX 8

static void make(struct git_test *t, const char *const lines[])
{
	t->n = 0;
	for (size_t i = 0; i < LINES_MAX && lines[i]; i++)
		if (strcmp(lines[i], "F") == 0)
			git_test_raw(t, "0000");
		else if (strcmp(lines[i], "D") == 0)
			git_test_raw(t, "0001");
		else
			git_test_line(t, lines[i]);
}

static bool passes(const char *const *fields, const char *p, size_t n)
{
	struct policy_body body;
	bool good;

	git_test_read(&body, fields, slice_of(p, n));
	good = body.kind == POLICY_BODY_GIT_FETCH;
	assert_true(!good || !body.fault);
	policy_body_fini(&body);
	return good;
}

#define WANT "want " ID_A " multi_ack_detailed no-done side-band-64k agent=git/2\n"

static const char *const good[][LINES_MAX] = {
        {WANT, "want " ID_B "\n", "F", "done\n"},
        {WANT, "deepen 1", "F", "done"},
        {WANT, "shallow " ID_A, "filter blob:none", "F", "have " ID_A "\n", "F"},
        {WANT, "F", "have " ID_A, "have " ID_B, "F", "have " ID_A, "done\n"},
        {"F"},
        {"command=ls-refs\n", "agent=git/2.39.5", "object-format=sha1", "D", "peel\n", "symrefs\n",
                "ref-prefix refs/heads/\n", "F"},
        {"command=ls-refs\n", "F"},
        {"command=fetch", "agent=x", "D", "thin-pack", "want " ID_A "\n", "have " ID_B, "done",
                "F"},
        {"command=fetch", "D", "deepen 1", "want-ref refs/heads/main", "F"},
        {"command=object-info", "D", "size", "oid " ID_A, "F"},
};

static const char *const bad[][LINES_MAX] = {
        {NULL},
        {"D"},
        {WANT},
        {"x", "F", "done"},
        {"want ", "F"},
        {"want " ID_A "a", "F"},
        {"want aaaa", "F"},
        {"wants " ID_A, "F"},
        {"WANT " ID_A, "F"},
        {"want  " ID_A, "F"},
        {WANT, "F", "secret", "F"},
        {WANT, "F", "have " ID_A " x", "F"},
        {WANT, "F", "done x"},
        {WANT, "F", "D"},
        {"have " ID_A, "F"},
        {"deepen ", "F"},
        {WANT, "deepen 1\x01", "F"},
        {"command=push", "F"},
        {"command=fetch", "x=y", "D", "want " ID_A, "F"},
        {"command=fetch", "server-option=x", "D", "want " ID_A, "F"},
        {"command=fetch", "D", "other", "F"},
        {"command=fetch", "D", "want " ID_A " x", "F"},
        {"command=fetch", "D", "want " ID_A},
        {"command=fetch", "D", "want " ID_A, "F", "F"},
        {"command=fetch", "D", "want " ID_A, "D", "F"},
        {"command=ls-refs", "D", "want " ID_A, "F"},
        {"command=bundle-uri", "D", "x", "F"},
};

static void test_lines(void **state)
{
	struct git_test *t = git_test_new();

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		make(t, good[i]);
		if (!passes(git_test_fetch, t->text, t->n))
			fail_msg("good row %zu", i);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		make(t, bad[i]);
		if (passes(git_test_fetch, t->text, t->n))
			fail_msg("bad row %zu", i);
	}
	free(t);
}

static void test_long_line(void **state)
{
	struct git_test *t = git_test_new();
	char line[GIT_LINE_MAX + 2];

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "want " ID_A " ", 46);
	line[GIT_LINE_MAX + 1] = '\0';
	make(t, (const char *const[LINES_MAX]){line, "F"});
	assert_false(passes(git_test_fetch, t->text, t->n));
	line[GIT_LINE_MAX] = '\0';
	make(t, (const char *const[LINES_MAX]){line, "F"});
	assert_true(passes(git_test_fetch, t->text, t->n));
	free(t);
}

static void test_types(void **state)
{
	static const char *const others[][4] = {
	        {"Content-Type: application/json"},
	        {"Content-Type: application/x-git-receive-pack-request"},
	        {"Content-Type: application/x-git-upload-pack-result"},
	        {"Content-Type: application/x-git-upload-pack-request; charset=utf-8"},
	        {"Content-Type: text/plain"},
	        {NULL},
	        {"Content-Type: application/x-git-upload-pack-request",
	                "Content-Type: application/x-git-upload-pack-request"},
	        {"Content-Type: application/x-git-upload-pack-request", "Content_Type: text/plain"},
	        {"Content-Type: application/x-git-upload-pack-request", "Content-Encoding: br"},
	        {"Content-Type: application/x-git-upload-pack-request", "Content-Encoding: gzip"},
	        {"Content-Type: application/x-git-upload-pack-request",
	                "Content-Encoding: gzip, gzip"},
	        {"Content-Type: application/json", "Content-Encoding: gzip"},
	};
	struct git_test *t = git_test_new();

	(void)state;
	make(t, good[0]);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (passes(others[i], t->text, t->n))
			fail_msg("row %zu", i);
	free(t);
}

/* --- gzip --- */

static size_t pack(const char *p, size_t n, int bits, uint8_t *out, size_t room)
{
	z_stream z = {.next_in = (Bytef *)p,
	        .avail_in = (uInt)n,
	        .next_out = out,
	        .avail_out = (uInt)room};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

static void test_gzip(void **state)
{
	static const char *const gzip[] = {"Content-Type: application/x-git-upload-pack-request",
	        "Content-Encoding: gzip", NULL};
	static const char *const x_gzip[] = {"Content-Encoding: X-GZIP",
	        "Content-Type: application/x-git-upload-pack-request", NULL};
	struct git_test *t = git_test_new();
	uint8_t out[4096];
	size_t n;

	(void)state;
	make(t, good[2]);
	n = pack(t->text, t->n, 15 + 16, out, sizeof(out) / 2);
	assert_true(passes(gzip, (char *)out, n));
	assert_true(passes(x_gzip, (char *)out, n));
	assert_false(passes(git_test_fetch, (char *)out, n));
	for (size_t cut = 0; cut < n; cut++)
		assert_false(passes(gzip, (char *)out, cut));
	memcpy(out + n, out, n); /* a second member, and another byte */
	assert_false(passes(gzip, (char *)out, 2 * n));
	assert_false(passes(gzip, (char *)out, n + 1));
	out[n - 1] ^= 1;
	assert_false(passes(gzip, (char *)out, n));
	n = pack(t->text, t->n, 15, out, sizeof(out)); /* zlib */
	assert_false(passes(gzip, (char *)out, n));
	n = pack(t->text, t->n, -15, out, sizeof(out));
	assert_false(passes(gzip, (char *)out, n));
	free(t);
}

static void test_bomb(void **state)
{
	static const char *const gzip[] = {"Content-Type: application/x-git-upload-pack-request",
	        "Content-Encoding: gzip", NULL};
	size_t large = POLICY_INSPECT_MAX + 1, room = 1u << 20;
	char *zeros = calloc(1, large);
	uint8_t *out = malloc(room);
	struct policy_body body;

	(void)state;
	git_test_read(&body, gzip, slice_of(out, pack(zeros, large, 15 + 16, out, room)));
	assert_int_equal(body.kind, POLICY_BODY_OTHER);
	assert_non_null(strstr(body.fault, "16 MiB"));
	policy_body_fini(&body);
	free(zeros);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_lines),
	        cmocka_unit_test(test_long_line),
	        cmocka_unit_test(test_types),
	        cmocka_unit_test(test_gzip),
	        cmocka_unit_test(test_bomb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
