/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one file of the settings, with the rights of the user who named it. */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/config/private.h"
#include "supervisor/os/local_file.h"

static int read_local(struct settings_opening *o)
{
	int fd = local_file_open(o->path), rc;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0)
		o->fingerprint = fingerprint_of(&st, time(NULL));
	rc = policy_read_open_file(fd, o->text, o->n, &o->facts);
	if (!rc)
		settings_add_path_writers(fd, o->path, false, o->looks, &o->facts.writers);
	close(fd);
	return rc;
}

static int read_now(void *context)
{
	struct settings_opening *o = context;

	if (o->given)
		return read_local(o);
	return o->files.read(o->files.context, o->path, o->text, o->n);
}

/* The operator may keep a file from the user who is allowed to run it: then it is read with the
 * supervisor's rights. */
static int read_as_user(struct settings_opening *o)
{
	int rc = LOCAL_FILE_UNKNOWN;

	if (o->given && o->whose == SETTINGS_CALLERS)
		rc = settings_files_get(o->given, o->path, o->text, o->n, &o->facts);
	if (rc == LOCAL_FILE_UNKNOWN)
		rc = identity_run(o->identity, read_now, o);
	if (rc == LOCAL_FILE_UNKNOWN && o->whose == SETTINGS_CALLERS)
		o->remote = true;
	else if (rc == LOCAL_FILE_UNKNOWN)
		o->config_remote = true;

	if (rc != -EACCES || !o->identity->lends || o->identity->uid == geteuid())
		return rc;
	o->lent = true;
	return read_now(o);
}

int settings_read(void *context, const char *path, char **text, size_t *n)
{
	struct settings_opening *o = context;

	o->path = path;
	o->text = text;
	o->n = n;
	o->fingerprint = (struct fingerprint){0};
	int rc = read_as_user(o);
	if (!o->for_whom)
		return rc;
	if (rc)
		settings_cache_forget(o->for_whom);
	else
		settings_cache_remember(o->for_whom, o->whose, path, slice_of(*text, *n), &o->facts,
		        &o->fingerprint);
	return rc;
}
