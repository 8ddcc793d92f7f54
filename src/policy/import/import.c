/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: JSON is read by the YAML reader, so that every value knows its line and
 * column; JSON is YAML once its tabs are spaces. Each format has a reader that adds rules and
 * comments. Where a reader does not understand the source, it adds a comment if the policy gets
 * narrower by that; if the policy would get wider, it leaves the rule out.
 */
#include "policy/import/import.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static const char *const names[] = {
        [POLICY_IMPORT_E2B] = "e2b",
        [POLICY_IMPORT_VERCEL] = "vercel",
        [POLICY_IMPORT_OPENSHELL] = "openshell",
        [POLICY_IMPORT_SRT] = "srt",
        [POLICY_IMPORT_SBX] = "docker-sbx",
        [POLICY_IMPORT_SQUID] = "squid",
};
static_assert(sizeof(names) / sizeof(names[0]) == POLICY_IMPORT_COUNT, "one name per format");

const char *policy_import_name(enum policy_import_format format)
{
	return (unsigned)format < POLICY_IMPORT_COUNT ? names[format] : "unknown";
}

bool policy_import_find(const char *name, enum policy_import_format *out)
{
	for (int i = 0; i < POLICY_IMPORT_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*out = (enum policy_import_format)i;
			return true;
		}
	return false;
}

static bool is_text(enum policy_import_format format)
{
	return format == POLICY_IMPORT_SBX || format == POLICY_IMPORT_SQUID;
}

static int parse(struct import *im, enum policy_import_format format, struct slice text)
{
	char *copy = malloc(text.n + 1);
	int rc;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	for (size_t i = 0; format != POLICY_IMPORT_OPENSHELL && i < text.n; i++)
		if (copy[i] == '\t')
			copy[i] = ' ';
	rc = tree_parse(&im->tree, copy, text.n);
	free(copy);
	return rc;
}

static void read_source(struct import *im, enum policy_import_format format, struct slice text)
{
	static void (*const readers[])(struct import * im) = {
	        [POLICY_IMPORT_E2B] = import_e2b,
	        [POLICY_IMPORT_VERCEL] = import_vercel,
	        [POLICY_IMPORT_OPENSHELL] = import_openshell,
	        [POLICY_IMPORT_SRT] = import_srt,
	};

	if (format == POLICY_IMPORT_SBX)
		import_sbx(im, text);
	else if (format == POLICY_IMPORT_SQUID)
		import_squid(im, text);
	else
		readers[format](im);
}

int policy_import(enum policy_import_format format, const char *file, struct slice text,
        struct buf *out, struct diag_list *diags)
{
	struct import im = {.file = file,
	        .diags = diags,
	        .tree = {.arena = &im.arena, .diags = diags, .file = file}};
	int rc = 0;

	arena_init(&im.arena);
	vec_init(&im.rules, sizeof(struct import_rule));
	vec_init(&im.to, sizeof(struct import_to));
	vec_init(&im.notes, sizeof(struct import_note));
	if (text.n > POLICY_IMPORT_FILE_MAX || memchr(text.p, 0, text.n)) {
		import_fault(&im, (struct import_place){0, 0},
		        "the file has more than %u bytes, or a NUL, so it is no such source",
		        POLICY_IMPORT_FILE_MAX);
		rc = -EINVAL;
	} else if (!is_text(format)) {
		rc = parse(&im, format, text);
	}
	if (rc == 0)
		read_source(&im, format, text);
	if (rc == 0 && (im.wrong || im.tree.wrong))
		rc = -EINVAL;
	if (im.arena.failed || im.no_memory)
		rc = -ENOMEM;
	if (rc == 0)
		rc = import_write(&im, policy_import_name(format), out);
	vec_fini(&im.rules);
	vec_fini(&im.to);
	vec_fini(&im.notes);
	arena_fini(&im.arena);
	return rc;
}
