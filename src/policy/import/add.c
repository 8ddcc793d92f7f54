/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by which every reader of a format adds rules, destinations, comments and faults. */
#include <stdarg.h>
#include <stdio.h>

#include "policy/import/import.h"

#define NOTE_MAX 600

void import_fault(struct import *im, struct import_place at, const char *format, ...)
{
	char message[DIAG_MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	diag_add(im->diags, im->file, at.line, at.column, "%s", message);
	im->wrong = true;
}

void import_note(struct import *im, struct import_place at, const char *format, ...)
{
	char text[NOTE_MAX], escaped[2 * NOTE_MAX];
	struct import_note note = {.at = at};
	va_list args;

	if (im->notes.n == POLICY_IMPORT_LINES_MAX) {
		im->dropped++;
		return;
	}
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	slice_escape_controls(slice_from_string(text), escaped, sizeof(escaped));
	note.text = arena_copy(&im->arena, slice_from_string(escaped));
	if (!vec_append(&im->notes, &note, 1))
		im->no_memory = true;
}

struct import_rule *import_begin(struct import *im, bool deny)
{
	static struct import_rule nowhere; /* given out without memory; the import then fails */
	struct import_rule rule = {.deny = deny, .first = im->to.n};

	if (!vec_append(&im->rules, &rule, 1)) {
		im->no_memory = true;
		return &nowhere;
	}
	return vec_at(&im->rules, im->rules.n - 1);
}

static void add(struct import *im, const struct import_to *to)
{
	struct import_rule *rule = im->rules.n ? vec_at(&im->rules, im->rules.n - 1) : NULL;

	if (im->to.n >= POLICY_IMPORT_LINES_MAX) {
		if (im->to.n == POLICY_IMPORT_LINES_MAX && !im->wrong)
			import_fault(im, to->at, "more than %d destinations: split the file",
			        POLICY_IMPORT_LINES_MAX);
		return;
	}
	if (!rule || !vec_append(&im->to, to, 1))
		im->no_memory = true;
	else
		rule->count++;
}

static void add_text(struct import *im, struct import_place at, enum policy_scheme scheme,
        const struct import_host *host, uint16_t port, bool apart)
{
	bool below = host->kind == IMPORT_BELOW || host->kind == IMPORT_DEEP;
	struct import_to to = {.at = at, .apart = apart};
	char suffix[8] = "";

	if (port && port != policy_scheme_default_port(scheme))
		snprintf(suffix, sizeof(suffix), ":%u", port);
	to.text = arena_printf(&im->arena, "%s://%s%.*s%s", policy_scheme_name(scheme),
	        below ? "*." : "", SLICE_ARG(host->text), suffix);
	add(im, &to);
}

void import_add(struct import *im, struct import_place at, enum policy_scheme scheme,
        const struct import_host *host, uint16_t port)
{
	add_text(im, at, scheme, host, port, false);
}

void import_add_web(
        struct import *im, struct import_place at, const struct import_host *host, bool one_label)
{
	const struct import_rule *rule = im->rules.n ? vec_at(&im->rules, im->rules.n - 1) : NULL;
	bool apart = host->kind == IMPORT_BELOW && one_label && rule && !rule->deny;
	uint16_t port = host->port;

	if (apart)
		import_note(im, at,
		        "\"*.%.*s\" means one label there, and one or more in a policy: its lines "
		        "are comments below; name the hosts, or take \"# \" away",
		        SLICE_ARG(host->text));
	if (port != 0 && port != 80 && port != 443) {
		add_text(im, at, POLICY_TCP, host, port, apart);
		return;
	}
	if (port != 80)
		add_text(im, at, POLICY_HTTPS, host, 0, apart);
	if (port != 443)
		add_text(im, at, POLICY_HTTP, host, 0, apart);
}

bool import_text(
        struct import *im, const struct tree_node *node, const char *what, struct slice *out)
{
	return tree_text(&im->tree, node, what, POLICY_PATH_MAX, out);
}

void import_note_others(struct import *im, const struct tree_node *map, const char *const known[])
{
	char quoted[TREE_QUOTE_MAX];

	for (const struct tree_item *item = map->first; item; item = item->next) {
		bool is_known = false;

		for (size_t i = 0; known[i] && !is_known; i++)
			is_known = slice_equals(item->key->text, slice_from_string(known[i]));
		if (!is_known)
			import_note(im, import_at(item->key),
			        "%s is not a network rule, or one "
			        "that is not known here; left out",
			        tree_quote(item->key->text, quoted));
	}
}
