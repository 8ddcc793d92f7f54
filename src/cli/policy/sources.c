/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a policy may be checked on another machine than the one it is for, or before
 * its secrets exist. So a missing source is a note, worded as a fact about this machine, this user
 * and this moment. Only the names are looked up: no file is opened, no value read, and exec: is
 * never run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/policy/policy.h"

#define SHOWN_MAX 300 /* bytes of a name in a note, escaped */

static const char by_root[] = "; started through sudo, vethguard reads it where root owns it";

/* Says why an existing file is refused, or should be readable by fewer users. NULL: it is all
 * right. */
static const char *rights_fault(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file on this machine now; name a file of one line";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "can be written by its group or by others, and is refused so: 'chmod go-w' "
		       "fixes that";
	if (st->st_mode & S_IROTH)
		return "can be read by everybody: 'chmod o-r' fixes that";
	return NULL;
}

static void note_file(struct diag_list *notes, const struct policy_credential *c, struct slice name,
        const char *file, unsigned line, unsigned column)
{
	char shown[SHOWN_MAX];
	char *path = strndup(name.p, name.n);
	struct stat st;
	int rc = 0;

	if (!path)
		return;
	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
		rc = errno;
	slice_escape(name, shown, sizeof(shown));
	if (rc == ENOENT)
		diag_add(notes, file, line, column,
		        "credential \"%.*s\": file \"%s\" does not exist on this machine now; "
		        "requests that need it are refused until it does",
		        SLICE_ARG(c->name), shown);
	else if (rc)
		diag_add(notes, file, line, column,
		        "credential \"%.*s\": file \"%s\" cannot be read by user %u, who runs this "
		        "check: %s%s",
		        SLICE_ARG(c->name), shown, (unsigned)geteuid(), strerror(rc),
		        rc == EACCES && geteuid() != 0 ? by_root : "");
	else if (stat(path, &st) == 0 && rights_fault(&st))
		diag_add(notes, file, line, column, "credential \"%.*s\": file \"%s\" %s",
		        SLICE_ARG(c->name), shown, rights_fault(&st));
	free(path);
}

void policy_note_source(void *context, const struct policy_credential *credential, const char *file,
        unsigned line, unsigned column)
{
	struct slice path;
	const char *value;
	char name[SHOWN_MAX];

	for (size_t i = 0; policy_credential_file(credential, i, &path); i++)
		note_file(context, credential, path, file, line, column);
	if (credential->source != POLICY_SOURCE_ENV)
		return;
	snprintf(name, sizeof(name), "%.*s", SLICE_ARG(credential->location));
	value = getenv(name);
	if (!value || !*value)
		diag_add(context, file, line, column,
		        "credential \"%.*s\": variable \"%s\" is %s in this environment now; "
		        "export it in the shell that starts the sandbox",
		        SLICE_ARG(credential->name), name, value ? "empty" : "not set");
}
