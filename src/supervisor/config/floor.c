/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor bounds every policy, so nobody but root may be able to change it. It is always read
 * with the supervisor's own rights. If there is no floor, that is remembered like a file, so that
 * settings are loaded again once there is one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/config/private.h"
#include "supervisor/os/local_file.h"

#define OVERFLOW_UID_PATH "/proc/sys/kernel/overflowuid"

/* Returns the owner that files of the host's root show in a user namespace without that root. Files
 * of other users without a mapping show it too. */
static uint32_t foreign_uid(void)
{
	FILE *in = fopen(OVERFLOW_UID_PATH, "re");
	unsigned uid = 65534;

	if (in) {
		if (fscanf(in, "%u", &uid) != 1)
			uid = 65534;
		fclose(in);
	}
	return uid;
}

static void find_objection(
        const struct settings_opening *o, char objection[POLICY_WRITERS_TEXT_MAX])
{
	const struct policy_writers *w = &o->facts.writers;
	const uint32_t foreign = o->identity->fixed ? foreign_uid() : 0;
	const bool is_roots = o->facts.owner == 0 || (foreign && o->facts.owner == foreign);

	if (w->who > POLICY_WRITER_OWNER ||
	        (w->who == POLICY_WRITER_OWNER && !(foreign && w->id == foreign)))
		policy_writers_text(w, objection);
	else if (!is_roots)
		snprintf(objection, POLICY_WRITERS_TEXT_MAX,
		        "belongs to user %u, who can change it: 'chown root' fixes that",
		        o->facts.owner);
}

int settings_read_floor(void *context, const char *path, char **text, size_t *n,
        char objection[POLICY_WRITERS_TEXT_MAX])
{
	struct settings_opening *o = context;
	const struct settings_opening was = *o;
	const struct policy_file_facts none = {0};
	const struct fingerprint changes = {0};
	int rc;

	o->identity = settings_own_identity();
	o->whose = SETTINGS_FLOOR;
	o->for_whom = NULL;
	rc = settings_read(o, path, text, n);
	o->identity = was.identity;
	o->whose = was.whose;
	o->for_whom = was.for_whom;
	o->config_remote = was.config_remote;
	if (rc == LOCAL_FILE_UNKNOWN)
		snprintf(objection, POLICY_WRITERS_TEXT_MAX, "%s", SETTINGS_NOT_LOCAL);
	else if (rc == 0)
		find_objection(o, objection);
	if (rc == 0 && o->facts.closed && was.identity->uid != geteuid())
		o->lent = true; /* users who may not read the file are not shown its faults */
	if (o->for_whom && rc == 0)
		settings_cache_remember(o->for_whom, SETTINGS_FLOOR, path, slice_of(*text, *n),
		        &o->facts, &o->fingerprint);
	else if (o->for_whom && rc == -ENOENT)
		settings_cache_remember(
		        o->for_whom, SETTINGS_NO_FLOOR, path, SLICE(""), &none, &changes);
	else if (o->for_whom)
		settings_cache_forget(o->for_whom);
	return rc;
}

void settings_set_floor(const struct config *config, bool is_run, const char *config_path,
        struct policy_load_options *options, struct diag_list *notes)
{
	options->floor = POLICY_FLOOR_PATH;
	options->floor_required = false;
	if (!config->floor[0])
		return;
	if (is_run) {
		diag_add(notes, config_path, 0, 0,
		        "floor: counts for the daemon only, since anybody may write a "
		        "configuration for 'vethguard run', which reads %s",
		        POLICY_FLOOR_PATH);
		return;
	}
	options->floor = config->floor;
	options->floor_required = true;
}

/* A policy that allows nothing. */
static int read_nothing(void *context, const char *path, char **text, size_t *n)
{
	(void)context;
	(void)path;
	*text = strdup("vethguard: 1\n");
	*n = *text ? strlen(*text) : 0;
	return *text ? 0 : -ENOMEM;
}

void settings_check_floor(const struct config *c, const char *config_path, struct diag_list *diags)
{
	struct settings_opening opening = {.identity = settings_own_identity(),
	        .files = policy_reader_files(policy_default_preset_dir()),
	        .given = &settings_no_files};
	const struct policy_reader reader = {
	        .context = &opening, .read = read_nothing, .read_floor = settings_read_floor};
	struct policy_load_options options = {.floor = NULL};
	uint8_t *image = NULL;
	size_t size;

	settings_set_floor(c, false, config_path, &options, diags);
	if (policy_load(&reader, "/nothing.yaml", &options, &image, &size, diags) == -ENOMEM)
		diag_add(diags, config_path, 0, 0, "no memory");
	free(image);
}
