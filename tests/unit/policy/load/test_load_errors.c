/* SPDX-License-Identifier: Apache-2.0 */
/* Every policy under bad/ is refused with exactly the text of its .expected file, and leaves no
 * image. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/policy/load.h"

#define FOLDER "tests/unit/policy/bad/"

/* Removes every occurrence of what from text. */
static void strip(char *text, const char *what)
{
	size_t n = strlen(what);

	for (char *at = strstr(text, what); n > 0 && at; at = strstr(at, what))
		memmove(at, at + n, strlen(at + n) + 1);
}

static char *messages_of(const struct diag_list *diags)
{
	char directory[4096], *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	diag_print(diags, f);
	fclose(f);
	assert_non_null(getcwd(directory, sizeof(directory) - 1));
	strcat(directory, "/");
	strip(text, directory);
	strip(text, FOLDER);
	return text;
}

static void check_file(const struct policy_reader *reader, const char *path)
{
	struct diag_list diags = {.count = 0};
	char expected_path[512], *expected, *messages;
	uint8_t *image = (uint8_t *)expected_path;
	size_t size = 1, n;

	snprintf(
	        expected_path, sizeof(expected_path), "%.*s.expected", (int)strlen(path) - 5, path);
	assert_int_equal(reader->read(NULL, expected_path, &expected, &n), 0);
	assert_true(n > 0);
	assert_int_equal(policy_load(reader, path, NULL, &image, &size, &diags), -EINVAL);
	assert_null(image);
	assert_int_equal(size, 0);
	messages = messages_of(&diags);
	assert_string_equal(messages, expected);
	free(messages);
	free(expected);
}

/* So that a new preset changes no expected text. */
static void few_presets(const char *directory, struct policy_presets *out)
{
	assert_string_equal(directory, "policies/presets");
	*out = (struct policy_presets){.count = 3, .names = {"github", "npm", "pypi"}};
}

static void test_bad_policies(void **state)
{
	struct policy_reader reader = policy_reader_files("policies/presets");
	glob_t files;

	(void)state;
	reader.presets = few_presets;
	assert_int_equal(glob(FOLDER "*.yaml", 0, NULL, &files), 0);
	assert_true(files.gl_pathc > 70);
	for (size_t i = 0; i < files.gl_pathc; i++)
		check_file(&reader, files.gl_pathv[i]);
	globfree(&files);
}

/* Files that cannot be read at all: one message for the whole file. */
static void test_unreadable(void **state)
{
	static const char *const paths[] = {"tests/unit/policy/bad/no-such-file.yaml",
	        "tests/unit/policy/bad", "/dev/null", "/dev/zero", ""};
	struct policy_reader reader = policy_reader_files(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct diag_list diags = {.count = 0};
		uint8_t *image;
		size_t size;

		assert_int_equal(
		        policy_load(&reader, paths[i], NULL, &image, &size, &diags), -EINVAL);
		assert_int_equal(diags.count, 1);
		assert_int_equal(diags.items[0].line, 0);
	}
}

static void refuse(const struct policy_reader *reader, const char *path, struct diag_list *diags)
{
	uint8_t *image;
	size_t size;

	diags->count = 0;
	assert_int_equal(policy_load(reader, path, NULL, &image, &size, diags), -EINVAL);
	assert_int_equal(diags->count, 1);
}

/* A loader that may not wait for a directory names the presets of this version; a missing preset is
 * another fault than a slip. */
static void test_presets_of_the_program(void **state)
{
	static char none[] = "/tmp/vethguard-no-presets-XXXXXX";
	struct policy_reader reader = policy_reader_files("policies/presets");
	static struct policy_presets found;
	static struct diag_list diags;
	char path[64];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(none));
	snprintf(path, sizeof(path), "%s/p.yaml", none);
	assert_non_null(f = fopen(path, "w"));
	fputs("vethguard: 1\ninclude: preset:pipy\n", f);
	fclose(f);
	reader.presets = NULL;
	refuse(&reader, path, &diags);
	assert_non_null(strstr(diags.items[0].message,
	        "there is no preset:pipy; did you mean \"preset:pypi\"? (the presets are: "));
	assert_non_null(strstr(diags.items[0].message, "anthropic"));
	assert_non_null(f = fopen(path, "w"));
	fputs("vethguard: 1\ninclude: preset:pypi\n", f);
	fclose(f);
	reader = policy_reader_files(none);
	refuse(&reader, path, &diags);
	assert_non_null(strstr(
	        diags.items[0].message, "preset:pypi is not in the directory of presets, /tmp/"));
	unlink(path);
	policy_list_presets(none, &found);
	assert_int_equal(found.count, 0);
	rmdir(none);
	policy_list_presets(none, &found);
	assert_int_equal(found.count, 0);
	policy_list_presets(NULL, &found);
	assert_int_equal(found.count, 0);
	policy_list_presets("policies/presets", &found);
	assert_true(found.count >= 10);
	for (size_t i = 1; i < found.count; i++)
		assert_true(strcmp(found.names[i - 1], found.names[i]) < 0);
}

struct chain {
	unsigned depth; /* file N includes file N + 1 up to this one */
};

static int read_chain(void *context, const char *path, char **text, size_t *n)
{
	const struct chain *chain = context;
	unsigned at = (unsigned)strtoul(path + 1, NULL, 10);
	int len = at < chain->depth ? asprintf(text, "vethguard: 1\ninclude: [\"%u\"]\n", at + 1)
	                            : asprintf(text, "vethguard: 1\n");

	*n = (size_t)len;
	return len < 0 ? -ENOMEM : 0;
}

static void test_include_depth(void **state)
{
	struct chain chain = {POLICY_INCLUDE_DEPTH_MAX};
	struct policy_reader reader = {&chain, read_chain, NULL};
	struct diag_list diags = {.count = 0};
	uint8_t *image;
	size_t size;

	(void)state;
	assert_int_equal(policy_load(&reader, "/0", NULL, &image, &size, &diags), 0);
	free(image);
	chain.depth++;
	assert_int_equal(policy_load(&reader, "/0", NULL, &image, &size, &diags), -EINVAL);
	assert_non_null(strstr(diags.items[0].message, "more than 16 deep"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_bad_policies),
	        cmocka_unit_test(test_unreadable),
	        cmocka_unit_test(test_presets_of_the_program),
	        cmocka_unit_test(test_include_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
