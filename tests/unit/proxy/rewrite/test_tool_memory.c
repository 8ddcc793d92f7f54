/* SPDX-License-Identifier: Apache-2.0 */
/* What servers said of their tools: a change is seen once, whoever remembers; the room is bounded;
 * the table of another worker is read without trust. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/rewrite/tool_memory.h"
#include "vethguard/wire/message.h"

static struct tool_digest digest_of(const char *text)
{
	char *json = strdup(text);
	struct tool_digest out;
	struct json_tree tree;

	for (char *p = json; *p; p++)
		if (*p == '\'')
			*p = '"';
	assert_int_equal(json_read(&tree, slice_from_string(json)), 0);
	assert_true(tool_digest_of(&tree, json_at(&tree, 0), &out));
	json_fini(&tree);
	free(json);
	return out;
}

static bool is_same(const char *a, const char *b)
{
	struct tool_digest x = digest_of(a), y = digest_of(b);

	return memcmp(&x, &y, sizeof(x)) == 0;
}

static void test_digests(void **state)
{
	static const char first[] = "{'name':'a','inputSchema':{'x':[1,2],'y':true}}";

	(void)state;
	/* Spelling and the order of members do not count. */
	assert_true(is_same(first, "{ 'inputSchema' : {'y':true,'x':[1,2]}, 'n\\u0061me':'a'}"));
	/* Everything else does. */
	assert_false(is_same(first, "{'name':'a','inputSchema':{'x':[2,1],'y':true}}"));
	assert_false(is_same(first, "{'name':'a','inputSchema':{'x':[1,2],'y':'true'}}"));
	assert_false(is_same(first, "{'name':'a','inputSchema':{'x':[1,2],'y':false}}"));
	assert_false(is_same(first, "{'name':'a','inputSchema':{'x':[1,2]},'y':true}"));
	assert_false(is_same(first, "{'name':'a','inputSchema':{'x':[1,2],'y':true},'z':null}"));
	assert_false(is_same("{'a':'bc'}", "{'ab':'c'}"));
	assert_false(is_same("['ab']", "['a','b']"));
	assert_false(is_same("[]", "{}"));
	assert_false(is_same("[[]]", "[]"));
	assert_false(is_same("['1']", "[1]"));
	assert_false(is_same("{'a':{'b':1}}", "{'a':['b',1]}"));
}

static void test_texts(void **state)
{
	const struct slice a[] = {SLICE("ab"), SLICE("c")}, b[] = {SLICE("a"), SLICE("bc")};
	struct slice many[9] = {{0}};
	struct tool_digest x, y;

	(void)state;
	assert_true(tool_digest_of_texts(a, 2, &x) && tool_digest_of_texts(b, 2, &y));
	assert_memory_not_equal(&x, &y, sizeof(x));
	assert_false(tool_digest_of_texts(many, 9, &x));
}

/* One tool: what is said of it first, then something else, and back. */
static void follow(struct tool_memory *m)
{
	struct tool_digest key = digest_of("['key']"), a = digest_of("['a']"),
	                   b = digest_of("['b']");
	struct tool_digest c = digest_of("['c']"), other = digest_of("['other']");

	assert_int_equal(tool_memory_look(m, &key, &a, TOOL_KEEP), TOOL_FIRST);
	assert_int_equal(tool_memory_look(m, &key, &a, TOOL_KEEP), TOOL_SAME);
	assert_int_equal(tool_memory_look(m, &key, &b, TOOL_KEEP), TOOL_CHANGED);
	assert_int_equal(tool_memory_look(m, &key, &b, TOOL_KEEP), TOOL_OTHER);
	assert_int_equal(tool_memory_look(m, &key, &c, TOOL_KEEP), TOOL_CHANGED);
	assert_int_equal(tool_memory_look(m, &key, &a, TOOL_KEEP), TOOL_SAME);
	assert_int_equal(tool_memory_look(m, &other, &b, TOOL_KEEP), TOOL_FIRST);
	/* Accepted: it is what is known from then on. */
	assert_int_equal(tool_memory_look(m, &key, &b, TOOL_ACCEPT), TOOL_CHANGED);
	assert_int_equal(tool_memory_look(m, &key, &b, TOOL_KEEP), TOOL_SAME);
	assert_int_equal(tool_memory_look(m, &key, &a, TOOL_KEEP), TOOL_CHANGED);
}

/* What was refused is told once and never becomes what is known. */
static void test_refused(void **state)
{
	struct tool_digest key = digest_of("['key']"), a = digest_of("['a']"),
	                   b = digest_of("['b']");
	struct tool_memory m = {.shared = NULL};

	(void)state;
	assert_int_equal(tool_memory_look(&m, &key, &a, TOOL_REFUSE), TOOL_FIRST);
	assert_int_equal(tool_memory_look(&m, &key, &a, TOOL_REFUSE), TOOL_OTHER);
	assert_int_equal(tool_memory_look(&m, &key, &b, TOOL_KEEP), TOOL_FIRST);
	assert_int_equal(tool_memory_look(&m, &key, &a, TOOL_REFUSE), TOOL_CHANGED);
	assert_int_equal(tool_memory_look(&m, &key, &a, TOOL_KEEP), TOOL_OTHER);
	assert_int_equal(tool_memory_look(&m, &key, &b, TOOL_KEEP), TOOL_SAME);
	tool_memory_fini(&m);
}

static void test_alone(void **state)
{
	struct tool_memory m = {.shared = NULL};

	(void)state;
	follow(&m);
	tool_memory_fini(&m);
}

static void open_table(struct shared_names *table, int fd)
{
	assert_true(fd >= 0);
	assert_int_equal(shared_names_open(table, dup(fd)), 0);
}

/* The next worker knows what the one before it knew, and two at a time know what the other does. */
static void test_shared(void **state)
{
	int fd = shared_names_create(MESSAGE_TOOLS_MAX);
	struct tool_digest key = digest_of("['key']"), a = digest_of("['a']"),
	                   b = digest_of("['b']");
	struct tool_digest late = digest_of("['late']");
	struct shared_names one, two;
	struct tool_memory first = {.shared = &one}, second = {.shared = &two};

	(void)state;
	open_table(&one, fd);
	follow(&first);
	open_table(&two, fd);
	assert_int_equal(tool_memory_look(&second, &key, &b, TOOL_KEEP), TOOL_SAME);
	assert_int_equal(tool_memory_look(&second, &key, &a, TOOL_KEEP), TOOL_OTHER);
	assert_int_equal(tool_memory_look(&second, &late, &a, TOOL_KEEP), TOOL_FIRST);
	assert_int_equal(tool_memory_look(&first, &late, &a, TOOL_KEEP), TOOL_SAME);
	assert_int_equal(tool_memory_look(&first, &late, &b, TOOL_ACCEPT), TOOL_CHANGED);
	assert_int_equal(tool_memory_look(&second, &late, &b, TOOL_KEEP), TOOL_SAME);
	tool_memory_fini(&first);
	tool_memory_fini(&second);
	shared_names_close(&one);
	shared_names_close(&two);
	close(fd);
}

static void fill(struct tool_memory *m)
{
	struct tool_digest a = digest_of("['a']"), b = digest_of("['b']"), key = {{0}};

	for (uint32_t i = 0; i <= MESSAGE_TOOLS_MAX; i++) {
		uint32_t number = i + 1;

		memcpy(key.bytes, &number, sizeof(number));
		assert_int_equal(tool_memory_look(m, &key, &a, TOOL_KEEP),
		        i < MESSAGE_TOOLS_MAX ? TOOL_FIRST : TOOL_NO_ROOM);
	}
	assert_int_equal(tool_memory_look(m, &key, &b, TOOL_KEEP), TOOL_NO_ROOM);
	memcpy(key.bytes, &(uint32_t){1}, sizeof(uint32_t));
	assert_int_equal(tool_memory_look(m, &key, &b, TOOL_KEEP), TOOL_CHANGED);
	tool_memory_fini(m);
}

static void test_room(void **state)
{
	int fd = shared_names_create(MESSAGE_TOOLS_MAX);
	struct shared_names table;
	struct tool_memory alone = {.shared = NULL}, shared = {.shared = &table};

	(void)state;
	fill(&alone);
	open_table(&table, fd);
	fill(&shared);
	shared_names_close(&table);
	close(fd);
}

/* Entries of another size, and claimed ones that were never written, are tools that nobody knows.
 */
static void test_a_hostile_table(void **state)
{
	int fd = shared_names_create(MESSAGE_TOOLS_MAX);
	struct tool_digest key = digest_of("['key']"), a = digest_of("['a']");
	struct shared_names table;
	struct tool_memory m = {.shared = &table};
	uint32_t index;

	(void)state;
	open_table(&table, fd);
	for (int i = 0; i < 3; i++)
		assert_int_equal(shared_names_claim(&table, &index), 0);
	shared_names_put(&table, 0, SLICE("short"), 0);
	shared_names_put(&table, 1,
	        slice_of(memset((char[SHARED_NAME_MAX]){0}, 'x', SHARED_NAME_MAX), SHARED_NAME_MAX),
	        0);
	assert_int_equal(tool_memory_look(&m, &key, &a, TOOL_KEEP), TOOL_FIRST);
	assert_int_equal(tool_memory_look(&m, &key, &a, TOOL_KEEP), TOOL_SAME);
	tool_memory_fini(&m);
	shared_names_close(&table);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_digests),
	        cmocka_unit_test(test_texts),
	        cmocka_unit_test(test_alone),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_shared),
	        cmocka_unit_test(test_room),
	        cmocka_unit_test(test_a_hostile_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
