/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of an audit log that anybody may have written, as `audit show`, `verify` and `suggest` read
 * them. What a person gets to see has nothing in it that a terminal obeys.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/audit/audit.h"
#include "cli/audit/suggest.h"
#include "vethguard/wire/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_line(struct slice line, struct suggest *suggest, struct audit_table *table)
{
	const struct audit_pick pick = {
	        .event = "0ef28f6900000006", .sandbox = "agent", .since_ms = 1};
	json_t *event = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
	struct audit_row row;
	struct seal seal;

	if (seal_parse(line, &seal) == 0)
		require(seal.covered.n < line.n);
	if (json_is_object(event)) {
		audit_pick_wants(&pick, event);
		if (audit_row_read(event, &row))
			audit_table_print(table, &row);
		require(suggest_read(suggest, event, true) == 0);
	}
	json_decref(event);
}

static void check_text(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		require(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_of(data, size);
	struct suggest suggest;
	struct suggest_rules rules;
	struct audit_table table;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	require(out && suggest_init(&suggest) == 0);
	audit_table_init(&table, out, 100, false);
	while (rest.n) {
		ptrdiff_t end = slice_find_byte(rest, '\n');
		struct slice line = slice_of(rest.p, end < 0 ? rest.n : (size_t)end);

		check_line(line, &suggest, &table);
		rest = slice_of(line.p + line.n + (end >= 0), rest.n - line.n - (end >= 0));
	}
	require(suggest_make(&suggest, NULL, &rules) == 0);
	suggest_print(&suggest, &rules, out);
	require(suggest_print_json(&suggest, &rules, out) == 0);
	fclose(out);
	check_text(text, n);
	free(text);
	suggest_rules_free(&rules);
	suggest_fini(&suggest);
	return 0;
}
