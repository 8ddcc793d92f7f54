/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a secret that changes; see supervisor/config/source_store.h. */
#include "supervisor/config/source_store.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FRESH_SUFFIX ".vethguard-next"

/* Makes the file. One that a killed process has left may be removed, because this process has the
 * lock. */
static int make(void *context)
{
	struct source_store *store = context;
	int fd;

	if (unlink(store->fresh) < 0 && errno != ENOENT)
		return -errno;
	fd = open(store->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

int source_store_open(
        struct source_store *store, const struct identity *identity, const char *path, int file)
{
	int fd;

	*store = (struct source_store){.identity = identity, .file = -1, .next = -1};
	if (snprintf(store->path, sizeof(store->path), "%s", path) >= (int)sizeof(store->path))
		return -ENAMETOOLONG;
	snprintf(store->fresh, sizeof(store->fresh), "%s" FRESH_SUFFIX, path);
	store->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
	if (store->file < 0)
		return -errno;
	if (flock(store->file, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	fd = identity_run(identity, make, store);
	store->made = fd >= 0;
	if (fd >= 0)
		store->next = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd;
}

static int put_in_place(void *context)
{
	const struct source_store *store = context;
	char folder[STORE_PATH_MAX];
	int fd, rc;

	if (rename(store->fresh, store->path) < 0)
		return -errno;
	snprintf(folder, sizeof(folder), "%s", store->path);
	fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

int source_store_commit(struct source_store *store)
{
	int rc = store->made && store->next >= 0 ? 0 : -ENOENT;

	if (rc == 0 && fsync(store->next) < 0)
		rc = -errno;
	if (rc == 0)
		rc = identity_run(store->identity, put_in_place, store);
	if (rc == 0)
		store->made = false;
	return rc;
}

static int discard(void *context)
{
	const struct source_store *store = context;

	return unlink(store->fresh) < 0 ? -errno : 0;
}

void source_store_close(struct source_store *store)
{
	if (!store->path[0])
		return;
	if (store->made)
		(void)identity_run(store->identity, discard, store);
	if (store->next >= 0)
		close(store->next);
	if (store->file >= 0)
		close(store->file);
	*store = (struct source_store){.file = -1, .next = -1};
}
