/* SPDX-License-Identifier: Apache-2.0 */
/* What packs prove: which commit descends from which. A pack that cannot be read proves nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "git/commits.h"
#include "git/delta.h"
#include "git/pack.h"
#include "git_test.h"

/* Reads a push of `to` over `from`, with the pack of t. Returns what its change is. */
static enum policy_git_change change_of(
        const struct git_test *pack, const char *from, const char *to, const char *shallow)
{
	struct git_test *t = git_test_new();
	enum policy_git_change change;
	struct policy_body body;
	char line[200];

	if (shallow) {
		snprintf(line, sizeof(line), "shallow %s", shallow);
		git_test_line(t, line);
	}
	snprintf(line, sizeof(line), "%s %s refs/heads/x|%s", from, to, CAPS);
	git_test_line(t, line);
	git_test_raw(t, "0000");
	git_test_add(t, pack->text, pack->n);
	git_test_read(&body, git_test_push, slice_of(t->text, t->n));
	assert_int_equal(body.kind, POLICY_BODY_GIT_PUSH);
	change = body.git->commands[0].change;
	policy_body_fini(&body);
	free(t);
	return change;
}

#define PARENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check(const struct git_test *pack, const char *from, const char *to, bool proves)
{
	assert_int_equal(
	        change_of(pack, from, to, NULL), proves ? POLICY_GIT_FORWARDS : POLICY_GIT_UPDATES);
}

static void test_ancestry(void **state)
{
	struct git_test *t = git_test_new();
	char one[65], two[65], merge[65], root[65];

	(void)state;
	git_test_begin_pack(t);
	git_test_object(t, 3, "a blob", 6);
	git_test_commit(t, one, "one", PARENTS(ID_A));
	git_test_object(t, 2, "", 0);
	git_test_commit(t, two, "two", PARENTS(one));
	git_test_commit(t, merge, "merge", PARENTS(ID_B, two));
	git_test_commit(t, root, "root", PARENTS(NULL));
	git_test_object(t, 4, "tag", 3);
	git_test_end_pack(t);
	check(t, ID_A, one, true);
	check(t, ID_A, two, true);
	check(t, one, two, true);
	check(t, ID_A, merge, true);
	check(t, ID_B, merge, true);
	check(t, two, one, false);
	check(t, ID_B, two, false);
	check(t, ID_A, root, false);
	check(t, root, merge, false);
	check(t, ID_A, ID_B, false);
	check(t, one, ID_B, false);
	/* the pusher does not know what came before a commit where its history ends */
	assert_int_equal(change_of(t, ID_A, two, one), POLICY_GIT_UPDATES);
	assert_int_equal(change_of(t, one, two, one), POLICY_GIT_FORWARDS);
	assert_int_equal(change_of(t, ID_A, two, ID_B), POLICY_GIT_FORWARDS);
	free(t);
}

/* Lines that look like parents count only where git reads them. */
static void test_false_parents(void **state)
{
	static const char *const texts[] = {
	        "tree " ID_A "\nauthor A <a@x> 1 +0000\nparent " ID_B "\n\nx\n",
	        "tree " ID_A "\n\nparent " ID_B "\n",
	        "parent " ID_B "\ntree " ID_A "\n\n",
	        "tree " ID_A " \nparent " ID_B "\n\n",
	        "tree " ID_A "\nparent  " ID_B "\n\n",
	        "tree " ID_A "\nparent " ID_B " \n\n",
	        "tree " ID_A "\nPARENT " ID_B "\n\n",
	        "tree " ID_A "\nparent BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\n\n",
	        "tree " ID_A "\nparent " ID_B,
	};
	struct commits c;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		uint8_t b[POLICY_GIT_ID_MAX];

		memset(b, 0xbb, sizeof(b));
		commits_init(&c, 20);
		assert_int_equal(
		        commits_add(&c, 0, (uint8_t *)strdup(texts[i]), strlen(texts[i])), 0);
		assert_false(commits_descends(&c, c.items[0].id, b));
		commits_fini(&c);
	}
}

/* --- differences --- */

static size_t put_size(char *out, size_t n, size_t size)
{
	while (size >= 0x80) {
		out[n++] = (char)(0x80 | (size & 0x7f));
		size >>= 7;
	}
	out[n++] = (char)size;
	return n;
}

/* A delta that copies the first n bytes and inserts the rest of the new text. */
static size_t make_delta(char *out, size_t base_n, size_t copy, const char *text, size_t n)
{
	size_t at = put_size(out, put_size(out, 0, base_n), n), rest = n - copy;

	out[at++] = (char)(0x80 | 0x10 | 0x20);
	out[at++] = (char)copy;
	out[at++] = (char)(copy >> 8);
	while (rest) {
		size_t piece = rest < 127 ? rest : 127;

		out[at++] = (char)piece;
		memcpy(out + at, text + n - rest, piece);
		at += piece;
		rest -= piece;
	}
	return at;
}

/* A pack whose second commit is a difference to the first one. by_id: named by its id. */
static void add_difference(struct git_test *t, bool by_id, char first[65], char second[65])
{
	char one[1024], two[1024], delta[2048];
	size_t one_n, two_n, n, at, begin;
	uint8_t raw[POLICY_GIT_ID_MAX];

	t->n = t->pack = 0;
	t->objects = 0;
	git_test_begin_pack(t);
	one_n = git_test_commit_text(one, sizeof(one), first, "a message", PARENTS(ID_A));
	two_n = git_test_commit_text(two, sizeof(two), second, "a message", PARENTS(first));
	at = git_test_object(t, 1, one, one_n);
	n = make_delta(delta, one_n, 46, two, two_n);
	begin = git_test_object_head(t, by_id ? 7 : 6, n);
	if (by_id) {
		for (size_t i = 0; i < 20; i++) {
			unsigned byte;

			sscanf(first + 2 * i, "%2x", &byte);
			raw[i] = (uint8_t)byte;
		}
		git_test_add(t, raw, 20);
	} else {
		size_t distance = begin - at;
		uint8_t high = (uint8_t)(0x80 | ((distance >> 7) - 1)), low = distance & 0x7f;

		if (distance >= 0x80)
			git_test_add(t, &high, 1);
		git_test_add(t, &low, 1);
	}
	git_test_deflate(t, delta, n);
	git_test_end_pack(t);
}

static void test_differences(void **state)
{
	struct git_test *t = git_test_new();
	char first[65], second[65];

	(void)state;
	for (int by_id = 0; by_id < 2; by_id++) {
		add_difference(t, by_id, first, second);
		check(t, first, second, true);
		check(t, ID_A, second, true);
		check(t, ID_B, second, false);
	}
	free(t);
}

static bool applies(struct slice delta, struct slice base)
{
	size_t n;
	uint8_t *out;
	bool good;

	if (!delta_size(delta, base.n, 65536, &n))
		return false;
	out = malloc(n + 1);
	good = delta_apply(delta, base, out);
	free(out);
	return good;
}

static void test_bad_deltas(void **state)
{
	static const struct slice base = {"abcdef", 6};
	static const struct slice good[] = {
	        {"\6\3\1x\x90\2", 6}, {"\6\6\x90\6", 4}, {"\6\2\x91\4\2", 5}, {"\6\0", 2}};
	static const struct slice bad[] = {{"", 0}, {"\6", 1}, {"\5\1\1x", 4}, {"\6\3\1x\x90", 5},
	        {"\6\3\1x\x90\3", 6}, {"\6\3\1x\x90\1", 6}, {"\6\1\0x", 4}, {"\6\1\2x", 4},
	        {"\6\7\x90\7", 4}, {"\6\2\x91\5\2", 5}, {"\6\1\x91\7\1", 5}, {"\6\2\x80", 3},
	        {"\6\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11}, {"\6\xff\xff\x7f", 4}};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(applies(good[i], base));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (applies(bad[i], base))
			fail_msg("delta %zu", i);
}

/* --- packs that cannot be read --- */

static const char *fault_of(const char *p, size_t n)
{
	struct commits c;
	const char *fault;
	uint8_t *copy = malloc(n); /* a sanitizer sees what is read behind its end */

	memcpy(copy, p, n);
	commits_init(&c, 20);
	fault = pack_read(slice_of(copy, n), &c);
	commits_fini(&c);
	free(copy);
	return fault;
}

static void test_damaged(void **state)
{
	struct git_test *t = git_test_new();
	char first[65], second[65];

	(void)state;
	add_difference(t, false, first, second);
	assert_null(fault_of(t->text, t->n));
	for (size_t n = 0; n < t->n; n++)
		if (!fault_of(t->text, n))
			fail_msg("cut at %zu of %zu", n, t->n);
	git_test_add(t, "x", 1);
	assert_non_null(fault_of(t->text, t->n));
	t->n--;
	t->text[11] = 3;
	assert_non_null(fault_of(t->text, t->n));
	t->text[11] = 1;
	assert_non_null(fault_of(t->text, t->n));
	free(t);
}

/* Objects with a wrong size in each place, or with types that do not exist. */
static void test_wrong_heads(void **state)
{
	struct git_test *t = git_test_new();
	static const size_t sizes[] = {0, 5, 7, 100, GIT_COMMIT_MAX + 1, (size_t)1 << 33};

	(void)state;
	for (unsigned type = 0; type < 8; type++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			t->n = t->pack = 0;
			t->objects = 0;
			git_test_begin_pack(t);
			git_test_object_head(t, type, sizes[i]);
			git_test_deflate(t, "abcdef", 6);
			git_test_end_pack(t);
			assert_non_null(fault_of(t->text, t->n));
		}
	free(t);
}

static void test_bounds(void **state)
{
	struct git_test *t = git_test_new();
	const size_t large = GIT_COMMIT_MAX + 1;
	char *zeros = calloc(1, large);
	struct commits c;

	(void)state;
	/* more objects than are read, and a commit that is larger */
	git_test_begin_pack(t);
	memcpy(t->text + 8, "\0\xff\xff\xff", 4);
	assert_true(strstr(fault_of(t->text, t->n), "more objects") != NULL);
	t->n = t->pack = 0;
	git_test_begin_pack(t);
	git_test_object(t, 1, zeros, large);
	git_test_end_pack(t);
	assert_true(strstr(fault_of(t->text, t->n), "more objects") != NULL);
	/* blobs whose bytes are too many together: 64 KiB hold 1 MiB each */
	t->n = t->pack = 0;
	t->objects = 0;
	git_test_begin_pack(t);
	for (size_t i = 0; i <= GIT_INFLATED_MAX / large; i++)
		git_test_object(t, 3, zeros, large);
	git_test_end_pack(t);
	assert_true(strstr(fault_of(t->text, t->n), "more objects") != NULL);
	/* texts of commits */
	commits_init(&c, 20);
	for (size_t i = 0; i < GIT_COMMITS_BYTES_MAX / GIT_COMMIT_MAX; i++)
		assert_int_equal(commits_add(&c, i, calloc(1, GIT_COMMIT_MAX), GIT_COMMIT_MAX), 0);
	assert_int_equal(commits_add(&c, 99, calloc(1, 1), 1), -ENOBUFS);
	commits_fini(&c);
	free(zeros);
	free(t);
}

static void test_many_commits(void **state)
{
	struct commits c;
	char id[65] = ID_A, text[1024];
	uint8_t a[POLICY_GIT_ID_MAX], last[POLICY_GIT_ID_MAX];

	(void)state;
	memset(a, 0xaa, sizeof(a));
	commits_init(&c, 20);
	for (uint32_t i = 0; i < GIT_COMMITS_MAX; i++) {
		char before[65];
		size_t n;

		memcpy(before, id, sizeof(before));
		n = git_test_commit_text(text, sizeof(text), id, "x", PARENTS(before));
		assert_int_equal(commits_add(&c, i, (uint8_t *)strndup(text, n), n), 0);
	}
	memcpy(last, c.items[c.count - 1].id, sizeof(last));
	assert_true(commits_descends(&c, last, a));
	assert_ptr_equal(commits_find(&c, last), &c.items[c.count - 1]);
	assert_ptr_equal(commits_at(&c, 77), &c.items[77]);
	assert_null(commits_at(&c, GIT_COMMITS_MAX));
	assert_int_equal(commits_add(&c, GIT_COMMITS_MAX, calloc(1, 1), 1), -ENOBUFS);
	/* the steps of all searches together are bounded */
	while (c.steps < GIT_STEPS_MAX)
		commits_descends(&c, last, a);
	assert_false(commits_descends(&c, last, a));
	commits_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_ancestry),
	        cmocka_unit_test(test_false_parents),
	        cmocka_unit_test(test_differences),
	        cmocka_unit_test(test_bad_deltas),
	        cmocka_unit_test(test_damaged),
	        cmocka_unit_test(test_wrong_heads),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_many_commits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
