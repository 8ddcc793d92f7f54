/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The presets to choose from are those in the directory of presets that load by themselves. A
 * preset that needs variables has a fault, because a policy that includes it could not be used
 * before they are given.
 *
 * A preset is for an agent or a model's API if it has a credential or if its first comment has the
 * line "# kind: agent". Any other preset is for packages and the like.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/policy/new.h"

#define PATH_BYTES 4352

/* Takes the description from a line of the file's first comment: printable ASCII, without a part of
 * a word. */
static void describe(struct slice line, char out[NEW_DESCRIPTION_MAX + 1])
{
	size_t n = 0;

	while (n < line.n && n < NEW_DESCRIPTION_MAX && line.p[n] != ':' &&
	        !(line.p[n] == '.' && (n + 1 == line.n || line.p[n + 1] == ' '))) {
		out[n] = line.p[n] < ' ' || line.p[n] > '~' ? '?' : line.p[n];
		n++;
	}
	if (n == NEW_DESCRIPTION_MAX)
		while (n > 0 && out[n - 1] != ' ')
			n--;
	out[n] = '\0';
}

/* The file's first comment is for people; its last line may say what the preset is for. */
static void read_comment(const char *path, struct new_preset *p)
{
	struct policy_reader reader = policy_reader_files(NULL);
	struct slice rest;
	char *text;
	size_t n;

	if (reader.read(NULL, path, &text, &n) != 0)
		return;
	rest = slice_of(text, n);
	while (rest.n > 0 && rest.p[0] == '#') {
		const char *end = memchr(rest.p, '\n', rest.n);
		struct slice line = slice_of(rest.p, end ? (size_t)(end - rest.p) : rest.n);

		rest = end ? slice_of(end + 1, rest.n - line.n - 1) : SLICE("");
		if (slice_equals(line, SLICE("# kind: agent")))
			p->for_agents = true;
		else if (!p->description[0] && line.n > 2)
			describe(slice_of(line.p + 2, line.n - 2), p->description);
	}
	free(text);
}

struct first_key {
	struct new_preset *preset;
	const char *directory;
};

/* An each_source callback: takes the first credential. */
static void take_key(void *context, const struct policy_credential *credential, const char *file,
        unsigned line, unsigned column)
{
	struct first_key *first = context;
	struct new_preset *p = first->preset;
	struct slice name = slice_from_string(file);
	size_t n = strlen(first->directory);

	(void)line;
	(void)column;
	if (p->has_key)
		return;
	p->has_key = p->for_agents = true;
	snprintf(p->key, sizeof(p->key), "%.*s", SLICE_ARG(credential->name));
	policy_source_text(credential, p->source);
	if (strncmp(file, first->directory, n) != 0 || file[n] != '/' ||
	        !slice_ends_with(name, SLICE(".yaml")))
		return;
	name = slice_of(file + n + 1, name.n - n - 1 - strlen(".yaml"));
	if (policy_is_preset_name(name))
		snprintf(p->key_preset, sizeof(p->key_preset), "%.*s", SLICE_ARG(name));
}

static void look_at(const char *directory, const char *name, struct new_preset *out)
{
	struct policy_reader reader = policy_reader_files(directory);
	struct first_key first = {out, directory};
	struct policy_load_options options = {
	        .each_source = take_key, .each_source_context = &first};
	static struct diag_list diags;
	char path[PATH_BYTES];
	uint8_t *image;
	size_t size;

	snprintf(out->name, sizeof(out->name), "%s", name);
	snprintf(path, sizeof(path), "%s/%s.yaml", directory, name);
	diags.count = diags.dropped = 0;
	if (policy_load(&reader, path, &options, &image, &size, &diags) != 0)
		snprintf(out->fault, sizeof(out->fault), "%s",
		        diags.count ? diags.items[0].message : "not enough memory");
	free(image);
	read_comment(path, out);
}

bool new_presets_find(struct new_presets *presets)
{
	static struct policy_presets found;

	presets->directory = policy_default_preset_dir();
	presets->count = 0;
	policy_list_presets(presets->directory, &found);
	presets->items = calloc(found.count + 1, sizeof(*presets->items));
	if (!presets->items)
		return false;
	for (size_t i = 0; i < found.count; i++)
		look_at(presets->directory, found.names[i], &presets->items[presets->count++]);
	return true;
}

void new_presets_free(struct new_presets *presets)
{
	free(presets->items);
	presets->items = NULL;
	presets->count = 0;
}

const struct new_preset *new_presets_get(const struct new_presets *presets, struct slice name)
{
	for (size_t i = 0; i < presets->count; i++)
		if (slice_equals(name, slice_from_string(presets->items[i].name)))
			return &presets->items[i];
	return NULL;
}

size_t new_presets_names(
        const struct new_presets *presets, bool keys, const char *names[POLICY_PRESETS_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < presets->count; i++)
		if (presets->items[i].for_agents == keys && !presets->items[i].fault[0])
			names[n++] = presets->items[i].name;
	names[n] = NULL;
	return n;
}

const char *new_presets_hint(
        const struct new_presets *presets, struct slice name, bool keys, char out[DIAG_HINT_MAX])
{
	const char *names[POLICY_PRESETS_MAX + 1];
	const struct diag_known known = {names, "there are", NULL, NULL};

	new_presets_names(presets, keys, names);
	return diag_hint(name, &known, out);
}
