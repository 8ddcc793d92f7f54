/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_graphql: reads any bytes as a GraphQL document. Each reported field name is a valid name and
 * lies within the text. An accepted document is read three times more:
 * - between commas, blanks and comments: it is accepted again, and the same things are reported in
 *   the same order;
 * - followed by a fragment that nobody spreads: the same;
 * - followed by a mutation: that operation and its field are reported too, and all else as before.
 *   It may be refused for a bound, or because the first operation has no name.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/graphql/graphql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAME "zzName"
#define MARK "zzMark"

struct seen {
	struct slice text;
	size_t at; /* where the document begins in it */
	size_t operations, fields, marks;
	uint64_t order; /* of all that was told */
};

static void must(bool good)
{
	if (!good)
		abort();
}

static void note(struct seen *s, uint64_t what)
{
	s->order = (s->order ^ what) * UINT64_C(0x100000001b3) + 1;
}

static void on_operation(void *context, enum graphql_operation operation)
{
	struct seen *s = context;

	must(operation < GRAPHQL_OPERATION_COUNT);
	s->operations++;
	note(s, (uint64_t)operation);
}

static void on_field(void *context, enum graphql_operation operation, struct slice name)
{
	struct seen *s = context;

	must(operation < GRAPHQL_OPERATION_COUNT && name.n > 0);
	must(name.p >= s->text.p && name.p + name.n <= s->text.p + s->text.n);
	for (size_t i = 0; i < name.n; i++)
		must(name.p[i] == '_' || (name.p[i] >= '0' && name.p[i] <= '9') ||
		        ((name.p[i] | 0x20) >= 'a' && (name.p[i] | 0x20) <= 'z'));
	s->fields++;
	s->marks += slice_equals(name, SLICE(MARK));
	note(s, (uint64_t)operation + 8);
	note(s, (uint64_t)(name.p - s->text.p) - s->at);
	note(s, name.n);
}

static bool read_text(struct slice text, size_t at, struct seen *s)
{
	const struct graphql_sink sink = {s, on_operation, on_field};

	*s = (struct seen){.text = text, .at = at};
	return graphql_read(text, &sink);
}

/* Reads the document between two texts. */
static bool read_between(const char *before, struct slice text, const char *after, struct seen *s)
{
	size_t first = strlen(before), n = first + text.n + strlen(after);
	char *whole = malloc(n);
	bool good;

	must(whole != NULL);
	memcpy(whole, before, first);
	memcpy(whole + first, text.p, text.n);
	memcpy(whole + first + text.n, after, n - first - text.n);
	good = read_text(slice_of(whole, n), first, s);
	free(whole);
	return good;
}

static bool is_same(const struct seen *a, const struct seen *b)
{
	return a->operations == b->operations && a->fields == b->fields && a->marks == b->marks &&
	       a->order == b->order;
}

static size_t count(struct slice text, const char *word)
{
	const char *at = text.p, *end = text.p + text.n;
	size_t found = 0;

	while ((at = memmem(at, (size_t)(end - at), word, strlen(word)))) {
		found++;
		at++;
	}
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(data, size);
	struct seen once, again;

	/* A token has at least a byte: what is added stays within the bound of tokens. */
	if (!read_text(text, 0, &once) || size > GRAPHQL_TOKENS_MAX - 64)
		return 0;
	must(once.operations > 0 && once.fields > 0);
	must(read_between("# x\r\n ,", text, "\n\t,# y", &again) && is_same(&once, &again));
	if (count(text, NAME))
		return 0;
	if (count(text, "fragment") < GRAPHQL_FRAGMENTS_MAX)
		must(read_between("", text, "\nfragment " NAME " on T { a: " MARK " }", &again) &&
		        is_same(&once, &again));
	if (read_between("", text, "\nmutation " NAME " { a: " MARK " }", &again))
		must(again.operations == once.operations + 1 && again.marks == once.marks + 1 &&
		        again.fields == once.fields + 1);
	else
		must(once.operations == 1 || once.operations == GRAPHQL_OPERATIONS_MAX);
	return 0;
}
