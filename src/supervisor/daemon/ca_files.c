/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key that others can read is refused, and so is any of the files that others could replace: it
 * decides what all sandboxes trust. Symbolic links are followed, since orchestrators mount secrets
 * as such.
 */
#include "supervisor/daemon/ca_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/wire/message.h"
#include "supervisor/os/local_file.h"

static const char *objection(int fd, bool secret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "cannot be examined";
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return "belongs to somebody else than root";
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return "can be written by others: 'chmod go-w' mends that, where nobody has";
	if (secret && (st.st_mode & (S_IRGRP | S_IROTH)))
		return "is secret, and others can read it: 'chmod 0600' mends that, where "
		       "nobody has";
	return NULL;
}

static int open_one(struct ca_files *files, const char *key, const char *path, bool secret,
        char why[CA_FILES_WHY_MAX])
{
	int fd = local_file_open(path);
	const char *wrong = fd < 0 ? NULL : objection(fd, secret);

	if (fd >= 0 && !wrong) {
		files->fds[files->count++] = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	snprintf(why, CA_FILES_WHY_MAX, "ca.%s: %s %s", key, path,
	        wrong                      ? wrong
	        : fd == LOCAL_FILE_UNKNOWN ? "is on a file system that may not answer"
	        : fd == -EINVAL            ? "is no regular file"
	                                   : strerror(-fd));
	return fd < 0 ? fd : -EPERM;
}

int ca_files_open(
        const struct config_ca *config, struct ca_files *files, char why[CA_FILES_WHY_MAX])
{
	const struct {
		const char *key, *path;
		uint8_t bit;
	} all[CA_FILES_MAX] = {{"root", config->root, MESSAGE_CA_ROOT_FILE},
	        {"certificate", config->certificate, MESSAGE_CA_CERTIFICATE_FILE},
	        {"key", config->key, MESSAGE_CA_KEY_FILE}};
	int rc = 0;

	*files = (struct ca_files){0};
	for (size_t i = 0; i < CA_FILES_MAX; i++)
		if (all[i].path[0])
			files->configured |= all[i].bit;
	if (config->token.uri[0])
		files->configured |= MESSAGE_CA_TOKEN_KEY;
	for (size_t i = 0; i < CA_FILES_MAX && rc == 0; i++)
		if (all[i].path[0])
			rc = open_one(files, all[i].key, all[i].path,
			        all[i].bit == MESSAGE_CA_KEY_FILE, why);
	if (rc)
		ca_files_close(files);
	return rc;
}

int ca_files_open_pin(const char *path, char why[CA_FILES_WHY_MAX])
{
	struct ca_files one = {0};
	int rc = open_one(&one, "token.pin", path, true, why);

	return rc < 0 ? rc : one.fds[0];
}

void ca_files_close(struct ca_files *files)
{
	while (files->count)
		close(files->fds[--files->count]);
}
