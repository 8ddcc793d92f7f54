/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_graphql: reads any bytes as a GraphQL document. If a document is accepted, it is read again
 * between comments and with a mutation appended: if that is accepted too, the mutation and its
 * field are reported as well. Each reported field name is a valid name and lies within the text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/graphql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct slice text;
	size_t operations, fields, marks;
};

static void must(bool good)
{
	if (!good)
		abort();
}

static void on_operation(void *context, enum graphql_operation operation)
{
	struct seen *s = context;

	must(operation < GRAPHQL_OPERATION_COUNT);
	s->operations++;
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
	s->marks += slice_equals(name, SLICE("zzMark"));
}

static bool read_text(struct slice text, struct seen *s)
{
	const struct graphql_sink sink = {s, on_operation, on_field};

	*s = (struct seen){.text = text};
	return graphql_read(text, &sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "# x\r\n ,", after[] = "\n# y\nmutation zzName { a: zzMark }";
	struct seen once, again;
	char *text;
	size_t n;

	if (!read_text(slice_of(data, size), &once) || size > 1u << 16)
		return 0;
	must(once.operations > 0 && once.fields > 0);
	n = sizeof(before) - 1 + size + sizeof(after) - 1;
	text = malloc(n);
	must(text != NULL);
	memcpy(text, before, sizeof(before) - 1);
	memcpy(text + sizeof(before) - 1, data, size);
	memcpy(text + n - sizeof(after) + 1, after, sizeof(after) - 1);
	/* Refused: an operation has no name, or a bound is exceeded. */
	if (read_text(slice_of(text, n), &again))
		must(again.operations == once.operations + 1 && again.marks > once.marks &&
		        again.fields > once.fields);
	else
		must(memchr(data, '{', size) != NULL);
	free(text);
	return 0;
}
