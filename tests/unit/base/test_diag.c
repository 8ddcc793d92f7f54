/* SPDX-License-Identifier: Apache-2.0 */
/* diag: escaped messages, the bound on their number, and suggestions for slips of the pen. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "vethguard/base/diag.h"

static char *printed(const struct diag_list *list)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	diag_print(list, f);
	fclose(f);
	return text;
}

static void prints_places(void **state)
{
	static struct diag_list list;
	char *text;

	(void)state;
	memset(&list, 0, sizeof(list));
	diag_add(&list, "a.yaml", 3, 7, "unknown key \"%s\"", "alow");
	diag_add(&list, "b.yaml", 0, 0, "no such file");
	text = printed(&list);
	assert_string_equal(
	        text, "a.yaml:3:7: error: unknown key \"alow\"\nb.yaml: error: no such file\n");
	free(text);
}

static void escapes_what_a_terminal_obeys(void **state)
{
	static struct diag_list list;
	char *text;

	(void)state;
	memset(&list, 0, sizeof(list));
	diag_add(&list, "\x1b]0;x.yaml", 1, 1, "bad: %s", "a\nb\x1b[31m\xc2\x9b\\x41");
	text = printed(&list);
	assert_string_equal(
	        text, "\\x1b]0;x.yaml:1:1: error: bad: a\\x0ab\\x1b[31m\\xc2\\x9b\\x41\n");
	free(text);
}

static void bounds_number_and_length(void **state)
{
	static struct diag_list list;
	static char huge[5000];
	char *text;

	(void)state;
	memset(&list, 0, sizeof(list));
	memset(huge, '\n', sizeof(huge) - 1);
	for (int i = 0; i < DIAG_MAX + 5; i++)
		diag_add(&list, huge, 1, 1, "%s", huge);
	assert_int_equal(list.count, DIAG_MAX);
	assert_int_equal(list.dropped, 5);
	for (size_t i = 0; i < DIAG_MAX; i++) {
		assert_string_equal(strrchr(list.items[i].file, 'a'), "a...");
		assert_true(strlen(list.items[i].file) < DIAG_FILE_MAX);
		assert_string_equal(strrchr(list.items[i].message, 'a'), "a...");
		assert_true(strlen(list.items[i].message) < DIAG_MESSAGE_MAX);
		assert_true(strlen(list.items[i].message) >= DIAG_MESSAGE_MAX - 8);
	}
	text = printed(&list);
	assert_non_null(strstr(text, "5 more errors"));
	free(text);
}

static void suggests_the_nearest(void **state)
{
	static const char *const keys[] = {
	        "allow", "deny", "methods", "credential", "credentials", "to", "paths", NULL};
	static const char *const none[] = {NULL};
	static const struct {
		const char *word, *nearest;
	} rows[] = {{"alow", "allow"}, {"allwo", "allow"}, {"alllow", "allow"}, {"dney", "deny"},
	        {"method", "methods"}, {"credentail", "credential"},
	        {"credentialss", "credentials"}, {"path", "paths"}, {"allow", "allow"}, {"", NULL},
	        {"t", NULL}, {"ot", NULL}, {"xyz", NULL}, {"de", NULL}, {"dxxy", NULL},
	        {"aloxx", NULL}, {"mehtosd", "methods"}, {"mxxxods", NULL},
	        {"verylongwordthatisnothing", NULL}, {"met", "methods"}, {"all", "allow"},
	        {"cred", NULL} /* two begin so */, {"mohtesd", "methods"} /* the letters, mixed */,
	        {"nyed", NULL} /* another first letter */, {"pthsa", "paths"}, {"ot", NULL},
	        {"pathss", "paths"}, {"psath", "paths"}, {"psatt", NULL},
	        {"credential", "credential"}, {"me", NULL}};
	static char huge[100];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *got = diag_nearest(slice_from_string(rows[i].word), keys);

		if (!rows[i].nearest)
			assert_null(got);
		else if (!got)
			fail_msg("nothing for %s", rows[i].word);
		else
			assert_string_equal(got, rows[i].nearest);
	}
	assert_null(diag_nearest(SLICE("allow"), none));
	memset(huge, 'a', sizeof(huge));
	for (size_t n = 0; n <= sizeof(huge); n++)
		assert_null(diag_nearest(slice_of(huge, n), keys));
	assert_null(diag_nearest(SLICE("al\0ow??"), keys));
}

static void long_candidates_are_skipped(void **state)
{
	static char long_key[200];
	const char *const keys[] = {long_key, "short", NULL};

	(void)state;
	memset(long_key, 'k', sizeof(long_key) - 1);
	assert_string_equal(diag_nearest(SLICE("shrot"), keys), "short");
	assert_null(diag_nearest(slice_of(long_key, 64), keys));
}

static void lists_words(void **state)
{
	static const char *const three[] = {"a", "bb", "ccc", NULL},
	                         *const two[] = {"a", "b", NULL}, *const one[] = {"a", NULL},
	                         *const none[] = {NULL};
	static const char *many[65];
	char out[DIAG_WORDS_SHORT + 1], small[48];

	(void)state;
	assert_string_equal(diag_words(three, "or", out, sizeof(out)), "a, bb or ccc");
	assert_string_equal(diag_words(two, "and", out, sizeof(out)), "a and b");
	assert_string_equal(diag_words(one, "or", out, sizeof(out)), "a");
	assert_string_equal(diag_words(none, "or", out, sizeof(out)), "");
	for (size_t i = 0; i < 64; i++)
		many[i] = "word";
	assert_string_equal(
	        diag_words(many, "or", small, sizeof(small)), "word, word, word and 61 more");
	diag_words(many, "or", out, sizeof(out));
	assert_true(strlen(out) < sizeof(out));
	assert_non_null(strstr(out, "word and "));
	assert_string_equal(out + strlen(out) - 5, " more");
}

static void hints(void **state)
{
	static const char *const words[] = {"pypi", "npm", "github", NULL},
	                         *const one[] = {"default", NULL}, *const none[] = {NULL};
	static char longest[65], other[65];
	static const char *many[9];
	const struct diag_known presets = {words, "the presets are", "preset:", NULL},
	                        vars = {words, "known here", "${", "}"},
	                        single = {one, "known here", NULL, NULL},
	                        nothing = {none, "known here", NULL, NULL},
	                        huge = {many, "known here", "preset:", "}"};
	char out[DIAG_HINT_MAX];

	(void)state;
	assert_string_equal(diag_hint(SLICE("pipy"), &presets, out),
	        "; did you mean \"preset:pypi\"? (the presets are: pypi, npm and github)");
	assert_string_equal(diag_hint(SLICE("gihub"), &vars, out),
	        "; did you mean \"${github}\"? (known here: pypi, npm and github)");
	assert_string_equal(
	        diag_hint(SLICE("cargo"), &vars, out), "; known here: pypi, npm and github");
	assert_string_equal(
	        diag_hint(SLICE("defalt"), &single, out), "; did you mean \"default\"?");
	assert_string_equal(diag_hint(SLICE("x"), &single, out), "; known here: default");
	assert_string_equal(diag_hint(SLICE("x"), &nothing, out), "");
	/* a long list is cut, and left out beside a suggestion */
	memset(longest, 'a', 64);
	memset(other, 'b', 64);
	for (size_t i = 0; i < 8; i++)
		many[i] = i == 7 ? other : longest;
	diag_hint(SLICE("x"), &huge, out);
	assert_non_null(strstr(out, " more"));
	assert_true(strlen(out) < DIAG_HINT_MAX);
	diag_hint(slice_of(other, 63), &huge, out);
	assert_null(strstr(out, "known here"));
	assert_non_null(strstr(out, "bbb}\"?"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(prints_places),
	        cmocka_unit_test(escapes_what_a_terminal_obeys),
	        cmocka_unit_test(bounds_number_and_length),
	        cmocka_unit_test(suggests_the_nearest),
	        cmocka_unit_test(long_candidates_are_skipped),
	        cmocka_unit_test(lists_words),
	        cmocka_unit_test(hints),
	};

	return cmocka_run_group_tests_name("diag", tests, NULL, NULL);
}
