/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads everything that is in a bundle, from memory, before any of it is used. The policies' reader
 * knows the files of the bundle and the presets of this machine; every other path "does not exist".
 *
 * A file that other files include need not be a whole policy. So a file that does not load by
 * itself counts as good if a policy that loads includes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/bundle/signed_bundle.h"
#include "vethguard/policy/load.h"
#include "vethguard/tls/signed_token.h"

#define FOLDER "/bundle/" /* where the files seem to be */
#define STAND_IN "x"      /* a variable's value: a label of a host, or a segment of a path */

struct checking {
	const struct signed_bundle *b;
	struct policy_reader presets;
	const char *preset_dir;
	bool loads[SIGNED_BUNDLE_FILES_MAX];
	bool included[SIGNED_BUNDLE_FILES_MAX]; /* by a policy that loads */
	bool seen[SIGNED_BUNDLE_FILES_MAX];     /* by the load under way */
	char objection[SIGNED_BUNDLE_WHY_MAX / 2];
};

/* --- reading --- */

/* Returns the file at this path, or NULL. */
static const struct signed_bundle_file *file_at(const struct signed_bundle *b, const char *path)
{
	return strncmp(path, FOLDER, strlen(FOLDER)) == 0
	               ? signed_bundle_find(b, slice_from_string(path + strlen(FOLDER)))
	               : NULL;
}

static bool is_preset(const struct checking *c, const char *path)
{
	const size_t n = c->preset_dir ? strlen(c->preset_dir) : 0;

	return n && strncmp(path, c->preset_dir, n) == 0 && path[n] == '/' &&
	       !strchr(path + n + 1, '/');
}

static int read_file(void *context, const char *path, char **text, size_t *n)
{
	const struct checking *c = context;
	const struct signed_bundle_file *f = file_at(c->b, path);

	if (is_preset(c, path))
		return c->presets.read(c->presets.context, path, text, n);
	if (!f || !signed_bundle_is_policy(f->name))
		return -ENOENT;
	*text = malloc(f->text.n + 1);
	if (!*text)
		return -ENOMEM;
	memcpy(*text, f->text.p, f->text.n);
	(*text)[f->text.n] = '\0';
	*n = f->text.n;
	return 0;
}

static void on_file(void *context, const char *path)
{
	struct checking *c = context;
	const struct signed_bundle_file *f = file_at(c->b, path);

	if (f)
		c->seen[f - c->b->files] = true;
}

static bool is_relative(const struct policy_credential *credential)
{
	bool relative = slice_starts_with(credential->location, SLICE(FOLDER));
	struct slice path;

	for (size_t i = 0; i < credential->argc; i++)
		relative = relative || slice_starts_with(credential->argv[i], SLICE(FOLDER)) ||
		           (policy_argument_is_file(credential->argv[i], &path) &&
		                   slice_starts_with(path, SLICE(FOLDER)));
	return relative;
}

/* Objects to sources that a gateway cannot read: env:, and relative paths, which would lead to
 * where the gateway unpacks the bundle. */
static void on_source(void *context, const struct policy_credential *credential, const char *file,
        unsigned line, unsigned column)
{
	struct checking *c = context;
	const bool env = credential->source == POLICY_SOURCE_ENV;
	char name[128];

	if (c->objection[0] || (!env && !is_relative(credential)))
		return;
	snprintf(c->objection, sizeof(c->objection), "%s:%u:%u: credential %s: %s",
	        strncmp(file, FOLDER, strlen(FOLDER)) == 0 ? file + strlen(FOLDER) : file, line,
	        column, slice_escape(credential->name, name, sizeof(name)),
	        env ? "no daemon has the environment that an env: source reads: use file: or exec:"
	            : "in a bundle, a file or program is named by its absolute path");
}

/* --- variables --- */

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Adds the name unless it is there. A name beyond a bound is left out; the load then fails. */
static void add_variable(struct policy_variable *out, size_t *count, struct slice name)
{
	for (size_t i = 0; i < *count; i++)
		if (slice_equals(out[i].name, name))
			return;
	if (name.n && name.n <= POLICY_VARIABLE_NAME_MAX && *count < POLICY_VARIABLES_MAX)
		out[(*count)++] = (struct policy_variable){name, SLICE(STAND_IN)};
}

/* Finds every "${name}" in the files that the load has seen. */
static size_t find_variables(const struct checking *c, struct policy_variable *out)
{
	size_t count = 0;

	for (size_t i = 0; i < c->b->file_count; i++) {
		struct slice text = c->b->files[i].text;

		for (size_t at = 0; c->seen[i] && at + 1 < text.n; at++) {
			size_t n = 0;

			if (text.p[at] != '$' || text.p[at + 1] != '{')
				continue;
			while (at + 2 + n < text.n && is_name_byte(text.p[at + 2 + n]))
				n++;
			if (at + 2 + n < text.n && text.p[at + 2 + n] == '}')
				add_variable(out, &count, slice_of(text.p + at + 2, n));
		}
	}
	return count;
}

/* --- a policy --- */

static int load(struct checking *c, struct slice name, const struct policy_variable *variables,
        size_t count, struct diag_list *diags)
{
	const struct policy_reader reader = {
	        .context = c, .read = read_file, .preset_dir = c->preset_dir};
	const struct policy_load_options options = {.variables = variables,
	        .variable_count = count,
	        .each_source = on_source,
	        .each_source_context = c,
	        .each_file = on_file,
	        .each_file_context = c};
	char path[sizeof(FOLDER) + CONFIG_BUNDLE_FILE_MAX];
	uint8_t *image = NULL;
	size_t size;
	int rc;

	memset(c->seen, 0, sizeof(c->seen));
	memset(diags, 0, sizeof(*diags));
	snprintf(path, sizeof(path), FOLDER "%.*s", SLICE_ARG(name));
	rc = policy_load(&reader, path, &options, &image, &size, diags);
	free(image);
	return rc;
}

static int load_either_way(struct checking *c, struct slice name, struct diag_list *diags)
{
	struct policy_variable variables[POLICY_VARIABLES_MAX];
	int rc = load(c, name, NULL, 0, diags);
	size_t count = rc == -EINVAL ? find_variables(c, variables) : 0;

	return count ? load(c, name, variables, count, diags) : rc;
}

static void tell(const struct diag_list *diags, char *out, size_t out_size)
{
	const struct diag *d = &diags->items[0];
	const char *file =
	        strncmp(d->file, FOLDER, strlen(FOLDER)) == 0 ? d->file + strlen(FOLDER) : d->file;

	if (!diags->count)
		snprintf(out, out_size, "it cannot be loaded");
	else
		snprintf(out, out_size, "%s:%u:%u: %s%s", file, d->line, d->column, d->message,
		        diags->count > 1 ? " (and more)" : "");
}

/* Loads the policy with this index, and writes why it does not load to fault if fault is empty.
 * Returns false if there is an objection (c->objection), which makes the whole bundle bad. */
static bool check_policy(
        struct checking *c, size_t i, struct diag_list *diags, char *fault, size_t fault_size)
{
	const int rc = load_either_way(c, c->b->files[i].name, diags);

	if (rc == -ENOMEM)
		snprintf(c->objection, sizeof(c->objection), "no memory");
	c->loads[i] = rc == 0;
	for (size_t k = 0; !rc && k < c->b->file_count; k++)
		c->included[k] = c->included[k] || (c->seen[k] && k != i);
	if (rc && !fault[0])
		tell(diags, fault, fault_size);
	return !c->objection[0];
}

/* Loads all policies. Returns false with an objection, or with the fault of the first file that
 * neither loads nor is included by one that loads. */
static bool check_policies(struct checking *c, char why[SIGNED_BUNDLE_WHY_MAX])
{
	struct diag_list *diags = calloc(1, sizeof(*diags));
	char fault[SIGNED_BUNDLE_WHY_MAX];
	bool good = diags != NULL;

	snprintf(why, SIGNED_BUNDLE_WHY_MAX, "no memory");
	for (size_t i = 0; good && i < c->b->file_count; i++) {
		fault[0] = '\0';
		if (signed_bundle_is_policy(c->b->files[i].name))
			good = check_policy(c, i, diags, fault, sizeof(fault));
		if (!good)
			snprintf(why, SIGNED_BUNDLE_WHY_MAX, "%s", c->objection);
	}
	for (size_t i = 0; good && i < c->b->file_count; i++) {
		if (!signed_bundle_is_policy(c->b->files[i].name) || c->loads[i] || c->included[i])
			continue;
		fault[0] = '\0';
		check_policy(c, i, diags, fault, sizeof(fault));
		snprintf(why, SIGNED_BUNDLE_WHY_MAX, "%s", fault);
		good = false;
	}
	free(diags);
	return good;
}

static bool check_key_sets(const struct signed_bundle *b, char why[SIGNED_BUNDLE_WHY_MAX])
{
	struct key_set *set = calloc(1, sizeof(*set));
	char fault[KEY_SET_WHY_MAX] = "no memory";
	bool good = set != NULL;

	for (size_t i = 0; good && i < b->file_count; i++) {
		const struct signed_bundle_file *f = &b->files[i];

		if (signed_bundle_is_policy(f->name))
			continue;
		good = f->text.n <= KEY_SET_BYTES_MAX && key_set_read(set, f->text, fault) == 0;
		if (!good)
			snprintf(why, SIGNED_BUNDLE_WHY_MAX, "key set %.*s: %s", SLICE_ARG(f->name),
			        f->text.n > KEY_SET_BYTES_MAX ? "it has more than 64 KiB" : fault);
		key_set_fini(set);
	}
	if (!set)
		snprintf(why, SIGNED_BUNDLE_WHY_MAX, "%s", fault);
	free(set);
	return good;
}

bool signed_bundle_check(
        const struct signed_bundle *b, const char *preset_dir, char why[SIGNED_BUNDLE_WHY_MAX])
{
	struct checking *c = calloc(1, sizeof(*c));
	bool good;

	if (!c) {
		snprintf(why, SIGNED_BUNDLE_WHY_MAX, "no memory");
		return false;
	}
	c->b = b;
	c->preset_dir = preset_dir;
	c->presets = policy_reader_files(preset_dir);
	good = check_policies(c, why) && check_key_sets(b, why);
	free(c);
	return good;
}
