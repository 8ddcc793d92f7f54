/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: large numbers, damaged and hostile texts, and the way to the disk and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/config.h"

static char folder[] = "/tmp/vethguard-config-XXXXXX";

static void path_of(const char *name, char out[256])
{
	snprintf(out, 256, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	path_of(name, path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void assert_file(const char *name, const char *text)
{
	char path[256], found[512] = "";
	FILE *file;

	path_of(name, path);
	file = fopen(path, "r");
	assert_non_null(file);
	found[fread(found, 1, sizeof(found) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(found, text);
}

static bool parse(struct config *c, const char *text, struct fault *fault)
{
	*c = (struct config){.root = NULL};
	fault->text[0] = '\0';
	return config_parse(c, slice_from_string(text), fault);
}

/* Texts come out as they went in. */
static void test_numbers(void **state)
{
	static const char *const texts[] = {
	        "{\"a\":18446744073709551615}",
	        "{\"a\":[18446744073709551615,9223372036854775808,0,-1,1234567890123456789]}",
	        "{\"a\":\"18446744073709551615\"}",
	        "{\"a\":\"x\\\"18446744073709551615\"}",
	        "{\"a\":\"\\\\\",\"b\":18446744073709551615}",
	        "{\"18446744073709551615\":1}",
	};
	struct fault fault;
	struct config c;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *text;

		assert_true(parse(&c, texts[i], &fault));
		text = config_text(&c);
		assert_string_equal(text, texts[i]);
		free(text);
		config_free(&c);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {{"", "not JSON"}, {"{", "not JSON"}, {"[]", "not a JSON object"},
	        {"\"a\"", "not JSON"}, {"{\"linux\":{},\"linux\":{}}", "duplicate"},
	        {"{\"process\":{\"env\":[],\"env\":[]}}", "duplicate"},
	        {"{\"Linux\":{}}", "\"Linux\" is spelled"},
	        {"{\"process\":{\"ENV\":[]}}", "\"ENV\" is spelled"},
	        {"{\"process\":{\"capabilities\":{},\"Capabilities\":{}}}",
	                "\"Capabilities\" is spelled"},
	        {"{\"linux\":{\"namespaces\":[{\"Type\":\"network\"}]}}", "\"Type\" is spelled"},
	        {"{\"proce\xc5\xbf\xc5\xbf\":{}}", "is spelled"}, /* Go takes long s for s */
	        {"{\"lin\xff\":{}}", "not JSON"}, {"{\"a\":\"\\u0000\"}", "not JSON"},
	        {"{\"a\":123456789012345678901234567890}", "not JSON"},
	        {"{\"a\":-9223372036854775809}", "not JSON"}, {"{\"a\":1}{", "not JSON"}};
	struct fault fault;
	struct config c;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_false(parse(&c, cases[i].text, &fault));
		assert_non_null(strstr(fault.text, cases[i].words));
		assert_null(c.root);
	}
}

static void test_deep(void **state)
{
	size_t n = 100000;
	char *text = malloc(n + 1);
	struct fault fault;
	struct config c;

	(void)state;
	memset(text, '[', n);
	text[n] = '\0';
	assert_false(parse(&c, text, &fault));
	free(text);
}

/* The mark that large numbers get cannot be known, and a text like it stays one. */
static void test_forged_mark(void **state)
{
	struct fault fault;
	struct config c;
	char *text;

	(void)state;
	assert_true(parse(
	        &c, "{\"a\":\"0123456789abcdef0123456789abcdef18446744073709551615\"}", &fault));
	assert_int_equal(strlen(c.mark), 32);
	text = config_text(&c);
	assert_string_equal(
	        text, "{\"a\":\"0123456789abcdef0123456789abcdef18446744073709551615\"}");
	free(text);
	config_free(&c);
}

static void test_disk(void **state)
{
	static const char original[] = "{\"a\": 1}",
	                  edited[] = "{\"a\":1,\"annotations\":{\"org.vethguard.edited\":\"x\"}}";
	struct fault fault = {""};
	struct config c;

	(void)state;
	write_file(CONFIG_FILE, original);
	for (int again = 0; again < 2;
	        again++) { /* the second finds the first one's, and reads the original */
		assert_true(config_read(&c, folder, &fault));
		assert_int_equal(c.again, again);
		assert_null(json_object_get(c.root, "annotations"));
		json_object_set_new(c.root, "annotations", json_pack("{s:s}", CONFIG_EDITED, "x"));
		assert_true(config_write(&c, &fault));
		config_free(&c);
		assert_file(CONFIG_FILE, edited);
		assert_file(CONFIG_ORIGINAL, original);
	}
	config_restore(folder);
	assert_file(CONFIG_FILE, original);
	config_restore(folder); /* nothing to put back */
	assert_file(CONFIG_FILE, original);
}

static void test_no_original(void **state)
{
	struct fault fault = {""};
	struct config c;

	(void)state;
	write_file(CONFIG_FILE, "{\"annotations\":{\"org.vethguard.edited\":\"forged\"}}");
	assert_false(config_read(&c, folder, &fault));
	assert_non_null(strstr(fault.text, CONFIG_ORIGINAL));
	config_free(&c);
}

static void test_files(void **state)
{
	struct fault fault = {""};
	struct config c;
	char path[256];

	(void)state;
	path_of(CONFIG_FILE, path);
	write_file(CONFIG_FILE, "{}");
	assert_int_equal(truncate(path, (off_t)64 << 20), 0);
	assert_false(config_read(&c, folder, &fault));
	assert_non_null(strstr(fault.text, "at most"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	fault.text[0] = '\0';
	assert_false(config_read(&c, folder, &fault));
	assert_non_null(strstr(fault.text, "not a regular file"));
	unlink(path);
	fault.text[0] = '\0';
	assert_false(config_read(&c, folder, &fault));
	assert_non_null(strstr(fault.text, "No such file"));
	fault.text[0] = '\0';
	assert_false(config_read(&c, "/nowhere", &fault));
	assert_non_null(strstr(fault.text, "the bundle /nowhere"));
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {CONFIG_FILE, CONFIG_ORIGINAL};
	char path[256];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		path_of(names[i], path);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_numbers),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_deep),
	        cmocka_unit_test(test_forged_mark),
	        cmocka_unit_test(test_disk),
	        cmocka_unit_test(test_no_original),
	        cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
