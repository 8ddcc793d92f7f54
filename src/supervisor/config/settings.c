/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading settings. All errors of one file are gathered into one text, so that the operator can fix
 * them in one go. The configuration is read before the policy, and both are read completely before
 * anything is started: a run that cannot be set up leaves nothing to undo.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/os/local_file.h"
#include "supervisor/config/private.h"

/* Returns the diagnostics, as diag_print() shows them, in memory. */
static char *diagnostics_text(const struct diag_list *diags)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	diag_print(diags, out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	while (n && text[n - 1] == '\n')
		text[--n] = 0;
	return text;
}

/* True for a file that only root or the invoking user can read or write. */
static bool is_private(void *context)
{
	const struct settings_opening *o = context;
	uint32_t owner = o->facts.owner;

	return o->facts.closed && (owner == 0 || owner == o->identity->uid || owner == geteuid());
}

/* In a user namespace (rootless), unmapped owners all look alike, and root is among them. A file
 * that was read with the supervisor's rights may still be in a folder of the user who named it. */
static const struct policy_writers *writers(void *context)
{
	const struct settings_opening *o = context;
	const struct policy_writers *w = &o->facts.writers;
	const bool known =
	        w->who == POLICY_WRITER_OWNER && (o->identity->fixed || w->id == o->identity->uid);

	return w->who == POLICY_WRITER_NONE || known ? NULL : w;
}

/* Diagnostics quote the text they complain about. A user who may run this program as root, but may
 * not read every file, could read any file that way. */
static void withhold(struct diag_list *diags, const char *path, const char *check)
{
	memset(diags, 0, sizeof(*diags));
	diag_add(diags, path, 0, 0,
	        "cannot be used (or a file that belongs to it). You may not read it, so its fault "
	        "is not shown: ask somebody who may read it to run '%s'",
	        check);
}

/* A file that cannot be recorded is not watched; that is no reason to refuse the policy. */
static void remember_file(void *context, const char *path)
{
	struct settings *s = context;
	char **files = realloc(s->files, (s->file_count + 1) * sizeof(*files));

	if (!files)
		return;
	s->files = files;
	files[s->file_count] = strdup(path);
	if (files[s->file_count])
		s->file_count++;
}

/* Copies the location. attach/load.c finds an env: source even if its location is unknown. */
static void remember_env_source(void *context, const struct policy_credential *credential,
        const char *file, unsigned line, unsigned column)
{
	struct settings *s = context;

	if (credential->source == POLICY_SOURCE_ENV && !s->env_source &&
	        asprintf(&s->env_source, "%s:%u:%u", file, line, column) < 0)
		s->env_source = NULL;
}

const struct identity *settings_own_identity(void)
{
	static struct identity own;

	own = (struct identity){.uid = geteuid(), .gid = getegid()};
	return &own;
}

/* In a run the configuration is the invoking user's, otherwise the daemon's own. */
const struct identity *settings_config_identity(const struct identity *caller)
{
	return caller->lends || caller->fixed ? caller : settings_own_identity();
}

static void say_not_local(
        const struct settings_opening *opening, const char *path, struct diag_list *diags)
{
	if (!opening->config_remote)
		return;
	memset(diags, 0, sizeof(*diags));
	diag_add(diags, path, 0, 0, SETTINGS_NOT_LOCAL);
}

static void log_config_notes(const struct config *config, const char *path)
{
	struct diag_list *notes = calloc(1, sizeof(*notes));

	if (!notes)
		return;
	settings_note_config(config, path, true, notes);
	for (size_t i = 0; i < notes->count; i++)
		log_warn("%s: %s", notes->items[i].file, notes->items[i].message);
	free(notes);
}

int settings_load_config(const char *path, struct config *config, struct diag_list *diags)
{
	const struct identity own = {.uid = geteuid(), .gid = getegid()};
	struct settings_opening opening = {
	        .identity = &own, .whose = SETTINGS_OWN, .given = &settings_no_files};
	struct policy_reader reader = {.context = &opening,
	        .read = settings_read,
	        .preset_dir = policy_default_preset_dir(),
	        .is_private = is_private};
	int rc = path[0] ? config_load(&reader, path, config, diags) : 0;
	const struct policy_writers *others = path[0] && !rc ? writers(&opening) : NULL;
	char text[POLICY_WRITERS_TEXT_MAX];

	say_not_local(&opening, path, diags);
	if (others)
		log_warn("%s: %s", path, policy_writers_text(others, text));
	if (!rc)
		log_config_notes(config, path);
	return rc;
}

/* A user who may not read it is not told what is wrong with it. */
static int load_config(struct settings *s, struct settings_opening *opening,
        struct policy_reader *reader, const char *path, struct diag_list *notes,
        struct diag_list *diags)
{
	const struct identity *caller = opening->identity;
	const struct policy_writers *others;
	char text[POLICY_WRITERS_TEXT_MAX];
	int rc;

	if (!path[0])
		return 0;
	opening->identity = settings_config_identity(caller);
	opening->whose = SETTINGS_OWN;
	rc = config_load(reader, path, &s->config, diags);
	say_not_local(opening, path, diags);
	others = rc ? NULL : writers(opening);
	if (others)
		diag_add(notes, path, 0, 0, "%s", policy_writers_text(others, text));
	if (!rc)
		settings_note_config(&s->config, path, opening->given != NULL, notes);
	if (rc && opening->identity != caller && caller->uid != geteuid())
		opening->lent = true;
	opening->identity = caller;
	opening->whose = SETTINGS_CALLERS;
	return rc;
}

/* Marks faults of the configuration, to distinguish them from the policy's. */
static int of_config(int error)
{
	return error && error != -ENOMEM ? -ECANCELED : error;
}

/* For the operator's log, and for the caller. */
static int take_notes(struct settings *s, const struct diag_list *notes)
{
	FILE *out;
	size_t n;

	if (!notes->count)
		return 0;
	out = open_memstream(&s->notes, &n);
	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < notes->count; i++) {
		const struct diag *note = &notes->items[i];
		char target[DIAG_FILE_MAX + 32];

		if (note->line)
			snprintf(target, sizeof(target), "%s:%u:%u: ", note->file, note->line,
			        note->column);
		else
			snprintf(target, sizeof(target), "%s: ", note->file);
		log_warn("%s%s", target, note->message);
		fprintf(out, "%s%s\n", target, note->message);
	}
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

static int load_files(struct settings *s, struct settings_opening *opening, const char *policy_path,
        const char *config_path, const struct policy_load_options *wanted, struct diag_list *diags)
{
	struct policy_reader reader = {.context = opening,
	        .read = settings_read,
	        .preset_dir = opening->files.preset_dir,
	        .is_private = is_private,
	        .writers = writers,
	        .read_floor = settings_read_floor};
	struct policy_load_options options = *wanted;
	struct diag_list *notes = calloc(1, sizeof(*notes));
	int rc = notes ? 0 : -ENOMEM;

	options.notes = notes;
	options.each_file = remember_file;
	options.each_file_context = s;
	options.each_source = remember_env_source;
	options.each_source_context = s;

	if (!rc)
		rc = of_config(load_config(s, opening, &reader, config_path, notes, diags));
	settings_set_floor(&s->config,
	        settings_config_identity(opening->identity) == opening->identity, config_path,
	        &options, notes);
	if (!rc)
		rc = policy_load(&reader, policy_path, &options, &s->image, &s->image_size, diags);
	if (!rc)
		rc = policy_open(&s->policy, s->image, s->image_size);
	if (!rc)
		rc = of_config(settings_check_egress_address(&s->config, config_path, diags));
	if (!rc)
		rc = settings_check_egress(s, policy_path, diags);
	if (!rc)
		rc = of_config(settings_read_egress_pair(
		        s, settings_config_identity(opening->identity), !opening->given, diags));
	if (!rc)
		rc = take_notes(s, notes);
	free(notes);
	return rc;
}

static int load(struct settings *s, struct settings_opening *opening, const char *policy_path,
        const char *config_path, const struct policy_load_options *options, struct diag_list *diags)
{
	int rc = load_files(s, opening, policy_path, config_path, options, diags);

	if (!rc) {
		settings_find_servers(s);
		rc = settings_find_hosts(s);
	}
	if (rc && diags->count && opening->lent && rc == -ECANCELED)
		withhold(diags, config_path, "vethguardd --check-config");
	else if (rc && diags->count && opening->lent)
		withhold(diags, policy_path, "vethguard policy check");
	return rc;
}

static struct settings *load_new(const struct identity *identity, const char *policy_path,
        const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files, bool remembers, char **error)
{
	struct diag_list *diags = calloc(1, sizeof(*diags));
	struct settings *s = calloc(1, sizeof(*s));
	struct settings_opening opening = {.identity = identity,
	        .files = policy_reader_files(policy_default_preset_dir()),
	        .for_whom = remembers ? s : NULL,
	        .given = files};

	opening.files.context = &opening.facts;
	if (!diags || !s) {
		free(diags);
		free(s);
		errno = ENOMEM;
		return NULL;
	}
	s->refs = 1;
	s->image_file = -1;
	s->remembers = remembers;
	config_init(&s->config);
	int rc = load(s, &opening, policy_path, config_path, options, diags);
	if (rc) {
		if (opening.remote && rc != -ENOMEM)
			rc =
			        /* The diagnostics so far are incomplete. */
			        LOCAL_FILE_UNKNOWN;
		else if (diags->count)
			*error = diagnostics_text(diags);
		settings_put(s);
		s = NULL;
	}
	free(diags);
	errno = -rc;
	return s;
}

struct settings *settings_load(struct settings **registry, const struct identity *identity,
        const char *policy_path, const char *config_path, const struct policy_load_options *options,
        const struct settings_files *files, char **error)
{
	struct settings *s = NULL;

	*error = NULL;
	if (registry)
		s = settings_cache_find(
		        *registry, identity, policy_path, config_path, options, files);
	if (s)
		return s;
	s = load_new(identity, policy_path, config_path, options, files, registry != NULL, error);
	if (s && registry)
		settings_cache_offer(registry, s, identity, policy_path, config_path, options);
	return s;
}

void settings_keep_image(struct settings *settings, int fd)
{
	settings->image_file = fd;
}

void settings_put(struct settings *s)
{
	if (!s || --s->refs)
		return;
	if (s->registry)
		HASH_DEL(*s->registry, s);
	settings_cache_forget(s);
	free(s->key);
	config_fini(&s->config);
	secret_free(&s->egress_pair);
	if (s->image_file >= 0)
		close(s->image_file);
	free(s->image);
	free(s->notes);
	free(s->env_source);
	free(s->hosts);
	for (size_t i = 0; i < s->file_count; i++)
		free(s->files[i]);
	free(s->files);
	free(s);
}
