/* SPDX-License-Identifier: Apache-2.0 */
/* GraphQL documents: vethguard accepts and refuses what the reference implementation does
 * (graphql/cases, made by graphql/make.mjs), and keeps its bounds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/graphql/graphql.h"
#include "policy/graphql/graphql_lexer.h"

#define CASES "tests/unit/policy/graphql/cases"
#define FOUND_MAX 256

struct found {
	size_t operation_count, field_count;
	char operations[GRAPHQL_OPERATIONS_MAX + 1];
	char fields[FOUND_MAX][80];
};

static void on_operation(void *context, enum graphql_operation operation)
{
	struct found *f = context;

	if (f->operation_count < GRAPHQL_OPERATIONS_MAX)
		f->operations[f->operation_count++] = "qms"[operation];
}

static void on_field(void *context, enum graphql_operation operation, struct slice name)
{
	struct found *f = context;
	char text[80];

	snprintf(text, sizeof(text), "%c:%.*s", "qms"[operation], SLICE_ARG(name));
	for (size_t i = 0; i < f->field_count; i++)
		if (strcmp(f->fields[i], text) == 0)
			return;
	if (f->field_count < FOUND_MAX)
		strcpy(f->fields[f->field_count++], text);
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Writes "refuse", or "accept" with the operations and fields, to out. */
static void read_document(struct slice text, char *out, size_t size)
{
	static struct found f;
	const struct graphql_sink sink = {&f, on_operation, on_field};
	size_t n;

	memset(&f, 0, sizeof(f));
	if (!graphql_read(text, &sink)) {
		snprintf(out, size, "refuse");
		return;
	}
	qsort(f.fields, f.field_count, sizeof(f.fields[0]), compare);
	n = (size_t)snprintf(out, size, "accept %s", f.operations);
	for (size_t i = 0; i < f.field_count && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, " %s", f.fields[i]);
}

static void check(const char *text, const char *want)
{
	char got[4096];

	read_document(slice_from_string(text), got, sizeof(got));
	if (strcmp(got, want) != 0)
		fail_msg("%s: %s, not %s", text, got, want);
}

/* VETHGUARD_GRAPHQL_CASES names another file of cases. */
static void test_cases(void **state)
{
	const char *path = getenv("VETHGUARD_GRAPHQL_CASES");
	FILE *in = fopen(path ? path : CASES, "rb");
	size_t length, accepted = 0, refused = 0;
	static char want[8192], text[65536], got[8192];

	(void)state;
	assert_non_null(in);
	while (fscanf(in, "%zu ", &length) == 1 && fgets(want, sizeof(want), in)) {
		want[strcspn(want, "\n")] = '\0';
		assert_true(length < sizeof(text) && fread(text, 1, length, in) == length);
		assert_int_equal(fgetc(in), '\n');
		read_document(slice_of(text, length), got, sizeof(got));
		if (strcmp(got, want) != 0)
			fail_msg("%.*s\nis %s, not %s", (int)length, text, got, want);
		accepted += want[0] == 'a';
		refused += want[0] == 'r';
	}
	assert_true(feof(in));
	fclose(in);
	assert_true(accepted > 200 && refused > 200);
}

static void test_documents(void **state)
{
	(void)state;
	check("{a}", "accept q q:a");
	check("query { x: a(b: \"}\") { c } ...{d} ...F } fragment F on Q { e f: g ...G } fragment "
	      "G on Q { h ...F }",
	        "accept q q:a q:d q:e q:g q:h");
	check("mutation A {a} query B {b}", "accept mq m:a q:b");
	check("subscription($a: [Int!]! = [1] @d) @e(f: $a) {a}", "accept s s:a");
	check("\"told\" query Q(\"of it\" $a: Int) {a} \"\"\"and\"\"\" fragment F on Q {b}",
	        "accept q q:a");
	check("{a}#x", "accept q q:a");
	check("{a # x\r\n b}", "accept q q:a q:b");
	check("\"told\" {a}", "refuse");
	check("{a # x\r mutation}", "refuse");
	check("{a # \xe2\x80\xa8 b\n}", "refuse");
	check("\xef\xbb\xbf{a}", "refuse");
	check("{a(b: \"\x01\")}", "refuse");
	check("", "refuse");
	check("#", "refuse");
	check("{}", "refuse");
	check("{a", "refuse");
	check("{a}}", "refuse");
	check("query {a} {b}", "refuse");
	check("query A {a} query A {b}", "refuse");
	check("type T {a: Int}", "refuse");
	check("{a} type T {a: Int}", "refuse");
	check("extend type T {a: Int} {a}", "refuse");
	check("fragment F on Q {a}", "refuse");
	check("{...F}", "refuse");
	check("{...F} fragment F on Q {a} fragment F on Q {b}", "refuse");
	check("{...F} fragment F($a: Int) on Q {a}", "refuse");
	check("{...F} fragment F on Q {...F}", "refuse");
	check("{...F} fragment F on Q {...G} fragment G on Q {... on Q {...F}}", "refuse");
	check("{a(b: $)}", "refuse");
	check("query($a: Int = $b) {a}", "refuse");
	check("{a()}", "refuse");
	check("query() {a}", "refuse");
	check("{a: }", "refuse");
	check("{... on}", "refuse");
	check("{a(b: 00)}", "refuse");
	check("{a(b: 1x)}", "refuse");
	check("{a(b: 1.)}", "refuse");
	check("{a(b: \"\\q\")}", "refuse");
	check("{a(b: \"\\uD800\")}", "refuse");
	check("{a(b: \"\\u{110000}\")}", "refuse");
	check("{a(b: \"\n\")}", "refuse");
	check("{a(b: \"\"\"x\"\")}", "refuse");
	check("{a..b}", "refuse");
	check("{a?}", "refuse");
}

/* Reads begin, middle n times, last, and end n times. Returns true if that is accepted. */
static bool accepts(
        const char *begin, const char *middle, const char *end, size_t n, const char *last)
{
	size_t size = strlen(begin) + strlen(last) + n * (strlen(middle) + strlen(end)) + 1;
	char *text = malloc(size), *p = text, got[8192];
	bool good;

	p += sprintf(p, "%s", begin);
	for (size_t i = 0; i < n; i++)
		p += sprintf(p, "%s", middle);
	p += sprintf(p, "%s", last);
	for (size_t i = 0; i < n; i++)
		p += sprintf(p, "%s", end);
	read_document(slice_of(text, (size_t)(p - text)), got, sizeof(got));
	good = strncmp(got, "accept", 6) == 0;
	free(text);
	return good;
}

static void test_bounds(void **state)
{
	char text[16384], *p;

	(void)state;
	assert_true(accepts("", "{a", "}", GRAPHQL_DEPTH_MAX, ""));
	assert_false(accepts("", "{a", "}", GRAPHQL_DEPTH_MAX + 1, ""));
	assert_true(accepts("", "{...", "}", GRAPHQL_DEPTH_MAX, " on X {a}") == false);
	assert_true(accepts("", "{...", "}", GRAPHQL_DEPTH_MAX - 1, "{a}"));
	assert_true(accepts("query($a: Int = ", "[", "]", GRAPHQL_DEPTH_MAX - 1, "1") == false);
	assert_false(accepts("{a(b:", "[", "]", 100000, ""));
	assert_true(accepts("{", "a ", "", GRAPHQL_TOKENS_MAX - 4, "a}"));
	assert_false(accepts("{", "a ", "", GRAPHQL_TOKENS_MAX, "a}"));
	for (size_t n = GRAPHQL_FRAGMENTS_MAX; n <= GRAPHQL_FRAGMENTS_MAX + 1; n++) {
		p = text + sprintf(text, "{a}");
		for (size_t i = 0; i < n; i++)
			p += sprintf(p, "fragment f%zu on X {a}", i);
		check(text, n == GRAPHQL_FRAGMENTS_MAX ? "accept q q:a" : "refuse");
	}
	for (size_t n = GRAPHQL_OPERATIONS_MAX; n <= GRAPHQL_OPERATIONS_MAX + 1; n++) {
		p = text;
		for (size_t i = 0; i < n; i++)
			p += sprintf(p, "query f%zu {a}", i);
		assert_int_equal(accepts(text, "", "", 0, ""), n == GRAPHQL_OPERATIONS_MAX);
	}
	for (size_t n = GRAPHQL_SPREADS_MAX; n <= GRAPHQL_SPREADS_MAX + 2; n += 2) {
		p = text + sprintf(text, "query a { ...f0 } mutation b { ...f0 }");
		for (size_t i = 0; i < n / 2; i++)
			p += sprintf(
			        p, "fragment f%zu on X {a ...f%zu}", i, i + 1 < n / 2 ? i + 1 : i);
		assert_int_equal(accepts(text, "", "", 0, ""), n == GRAPHQL_SPREADS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_cases),
	        cmocka_unit_test(test_documents),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
