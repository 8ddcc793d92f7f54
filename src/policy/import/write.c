/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the rules and comments of an import as a policy. Destinations, methods and paths were
 * checked when they were read and have no quotes, so single quotes are enough around each. */
#include <errno.h>
#include <stdio.h>

#include "policy/import/import.h"

static bool has_live(const struct import *im, const struct import_rule *rule)
{
	for (size_t i = 0; i < rule->count; i++)
		if (!((const struct import_to *)vec_at(&im->to, rule->first + i))->apart)
			return true;
	return false;
}

static int write_rule(const struct import *im, const struct import_rule *rule, struct buf *out)
{
	/* A rule of which all destinations are comments is a comment as a whole. */
	const char *mark = has_live(im, rule) ? "" : "# ";
	int rc = 0;

	rc |= buf_printf(out, "%s  - to:\n", mark);
	for (size_t i = 0; i < rule->count; i++) {
		const struct import_to *to = vec_at(&im->to, rule->first + i);

		rc |= buf_printf(out, "%s      - '%.*s'  # line %u\n",
		        *mark || to->apart ? "# " : "", SLICE_ARG(to->text), to->at.line);
	}
	if (rule->any_port)
		rc |= buf_printf(out, "%s    ports: [1-65535]\n", mark);
	for (size_t i = 0; i < rule->method_count; i++)
		rc |= buf_printf(out, "%s%s%.*s%s", i ? "" : mark, i ? ", " : "    methods: [",
		        SLICE_ARG(rule->methods[i]), i + 1 < rule->method_count ? "" : "]\n");
	if (rule->path.n)
		rc |= buf_printf(out, "%s    paths: ['%.*s']\n", mark, SLICE_ARG(rule->path));
	if (rule->passthrough)
		rc |= buf_printf(out, "%s    tls: passthrough\n", mark);
	return rc;
}

static int write_rules(const struct import *im, bool deny, struct buf *out)
{
	bool live = false;
	int rc = 0;

	for (size_t i = 0; i < im->rules.n; i++) {
		const struct import_rule *rule = vec_at(&im->rules, i);

		if (rule->deny == deny && rule->count > 0)
			live |= has_live(im, rule);
	}
	if (live)
		rc |= buf_printf(out, "%s:\n", deny ? "deny" : "allow");
	for (size_t i = 0; i < im->rules.n; i++) {
		const struct import_rule *rule = vec_at(&im->rules, i);

		if (rule->deny == deny && rule->count > 0)
			rc |= write_rule(im, rule, out);
	}
	return rc;
}

int import_write(const struct import *im, const char *format, struct buf *out)
{
	char file[DIAG_FILE_MAX];
	int rc;

	slice_escape_controls(slice_from_string(im->file), file, sizeof(file));
	rc = buf_printf(
	        out, "# Made from %s by 'vethguard policy import --from %s'.\n", file, format);
	if (im->notes.n)
		rc |= buf_printf(out, "# What this policy does not say, or says more narrowly:\n");
	for (size_t i = 0; i < im->notes.n; i++) {
		const struct import_note *note = vec_at(&im->notes, i);

		rc |= buf_printf(out, "# - line %u, column %u: %.*s\n", note->at.line,
		        note->at.column, SLICE_ARG(note->text));
	}
	if (im->dropped)
		rc |= buf_printf(out, "# - and %zu more\n", im->dropped);
	rc |= buf_printf(out, "vethguard: 1\nname: imported\n");
	rc |= write_rules(im, false, out);
	rc |= write_rules(im, true, out);
	if (rc == 0)
		return 0;
	buf_fini(out);
	return -ENOMEM;
}
