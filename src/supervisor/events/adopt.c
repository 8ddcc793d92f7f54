/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adopts what a killed supervisor left, in the order of ids, each file exactly once: the recorder's
 * journal says how far a ring was read, and which of the supervisor's events are in the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/ring.h"
#include "supervisor/os/directory.h"
#include "supervisor/os/fd_limit.h"
#include "supervisor/events/files.h"
#include "supervisor/events/private.h"

#define LEFT_MAX 65536 /* files that are examined */

#define ASIDE ".unreadable" /* no name of an id: the file is not examined again */

/* Resource errors: the file may be readable at the next start. */
static bool may_pass(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EINTR;
}

/* Renames a file whose events cannot be read, so that the next start does not report it again: it
 * is kept for inspection, and the log says what to do. */
static void set_aside(int folder, const char *of, const char *name, int error)
{
	char aside[RECORDING_NAME_BYTES + sizeof(ASIDE)];

	snprintf(aside, sizeof(aside), "%s" ASIDE, name);
	if (may_pass(error))
		log_error("events in %s/%s cannot be read: %s; the next start tries again", of,
		        name, strerror(-error));
	else if (renameat(folder, name, folder, aside) < 0)
		log_error("events in %s/%s cannot be read: %s; move that file away", of, name,
		        strerror(-error));
	else
		log_error("events in %s/%s cannot be read and are missing in the log: %s; the file "
		          "is kept as %s/%s, remove it when it was looked at",
		        of, name, strerror(-error), of, aside);
}

static bool parse_name(const char *name, struct recording_orphan *out)
{
	char again[RECORDING_NAME_BYTES];

	if (sscanf(name, "%16" SCNx64 ".%16" SCNx64, &out->sandbox_id, &out->id) != 2)
		return false;
	recording_file_name(out->sandbox_id, out->id, again);
	return strcmp(again, name) == 0;
}

static int by_id(const void *a, const void *b)
{
	const struct recording_orphan *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Lists the files of a folder made before this start, oldest first (malloc'd). Returns 0 or
 * -errno. */
static int list(int directory, uint64_t before, struct recording_orphan **out, size_t *count)
{
	DIR *d = directory_list(directory);
	const struct dirent *entry;
	struct recording_orphan *all = d ? calloc(LEFT_MAX, sizeof(*all)) : NULL;

	*count = 0;
	*out = all;
	if (!all) {
		int rc = d ? -ENOMEM : -errno;

		if (d)
			closedir(d);
		return rc;
	}
	while (*count < LEFT_MAX && (entry = readdir(d)) != NULL)
		if (parse_name(entry->d_name, &all[*count]) && all[*count].id <= before)
			(*count)++;
	closedir(d);
	qsort(all, *count, sizeof(*all), by_id);
	return 0;
}

/* NULL: no memory. */
static struct recorded *owner_of(struct supervisor *sv, uint64_t id)
{
	struct sandbox *s = supervisor_find(sv, id);
	struct recorded *left = sv->recording.left;

	if (s && s->recorded.open)
		return &s->recorded;
	if (id == sv->recording.daemon.id && sv->recording.daemon.open)
		return &sv->recording.daemon;
	while (left && left->id != id)
		left = left->next;
	return left ? left : recording_open_orphans(sv, id);
}

int recording_adopt_ring(struct supervisor *sv, const struct recording_orphan *file)
{
	struct recorded_ring *ring = calloc(1, sizeof(*ring));
	struct recorded *of;
	char name[RECORDING_NAME_BYTES];
	int rc = ring ? 0 : -ENOMEM;

	recording_file_name(file->sandbox_id, file->id, name);
	if (!rc)
		rc = ring_adopt_at(sv->recording.rings, name, ring->fds);
	if (rc == -EWOULDBLOCK) {
		free(ring);
		return rc;
	}
	if (rc) {
		free(ring);
		set_aside(sv->recording.rings, "rings", name, rc);
		return rc == -ENOMEM ? rc : 0;
	}
	ring->id = file->id;
	of = owner_of(sv, file->sandbox_id);
	if (!of) {
		recording_close_ring(ring);
		free(ring);
		return -ENOMEM;
	}
	ring->next = of->rings;
	of->rings = ring;
	sv->recording.ring_count++;
	recording_ring_ends(sv, of, ring);
	return recording_give_rings(sv, of);
}

/* Adopts a ring now, or when its writer is gone or there are descriptors for it: rings that were
 * read give their descriptors to the next. */
static int adopt_ring(struct supervisor *sv, const struct recording_orphan *file)
{
	int rc = fd_limit_left() ? recording_adopt_ring(sv, file) : -EWOULDBLOCK;

	return rc == -EWOULDBLOCK ? recording_wait_for_ring(sv, file) : rc;
}

/* Returns the number of bytes, or -errno. */
static ssize_t read_file(int directory, const char *name, uint8_t *out, size_t size)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -errno : read(fd, out, size);

	if (fd >= 0 && n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	return n;
}

static int adopt_told(struct supervisor *sv, const struct recording_orphan *file)
{
	static uint8_t encoded[EVENT_BYTES_MAX];
	struct recorded *of = owner_of(sv, file->sandbox_id);
	struct event event;
	char name[RECORDING_NAME_BYTES];
	ssize_t n;

	if (!of)
		return -ENOMEM;
	recording_file_name(file->sandbox_id, file->id, name);
	n = read_file(sv->recording.told, name, encoded, sizeof(encoded));
	if (n < 0) {
		set_aside(sv->recording.told, "told", name, (int)n);
		return 0;
	}
	if (n == 0 || event_decode(encoded, (size_t)n, &event) != 0) {
		/* The supervisor was killed while writing it: the event was not sent either. */
		log_warn("%s is not a whole event", name);
		unlinkat(sv->recording.told, name, 0);
		return 0;
	}
	outbox_restore(sv, of, file->id, encoded, (size_t)n);
	return 0;
}

int recording_adopt_event(struct supervisor *sv, uint64_t id)
{
	struct recording_orphan *files;
	size_t count;
	int rc = sv->recording.kept
	                 ? list(sv->recording.told, sv->recording.first_id, &files, &count)
	                 : -ENOENT;

	if (rc)
		return sv->recording.kept ? rc : 0;
	for (size_t i = 0; i < count && !rc; i++)
		if (files[i].sandbox_id == id)
			rc = adopt_told(sv, &files[i]);
	free(files);
	return rc;
}

static int adopt_all(struct supervisor *sv, int folder,
        int (*adopt)(struct supervisor *sv, const struct recording_orphan *file))
{
	struct recording_orphan *files;
	size_t count;
	int rc = list(folder, sv->recording.first_id, &files, &count);

	if (rc)
		return rc;
	for (size_t i = 0; i < count && !rc; i++)
		rc = adopt(sv, &files[i]);
	free(files);
	return rc;
}

/* The journal does not know how far this ring was read; the ring itself does. */
static int adopt_foreign_ring(struct supervisor *sv, int from, const struct recording_orphan *file)
{
	char name[RECORDING_NAME_BYTES];

	recording_file_name(file->sandbox_id, file->id, name);
	if (renameat(from, name, sv->recording.rings, name) < 0)
		return errno == ENOENT ? 0 : -errno;
	supervisor_id_is_used(sv, file->id);
	return adopt_ring(sv, file);
}

/* Under a new id of this daemon: the recorder takes events in the order of their ids. */
static int adopt_foreign_told(struct supervisor *sv, int from, const struct recording_orphan *file)
{
	const struct recording_orphan here = {file->sandbox_id, supervisor_next_id(sv)};
	char name[RECORDING_NAME_BYTES], name_here[RECORDING_NAME_BYTES];

	recording_file_name(file->sandbox_id, file->id, name);
	recording_file_name(here.sandbox_id, here.id, name_here);
	if (renameat(from, name, sv->recording.told, name_here) < 0)
		return errno == ENOENT ? 0 : -errno;
	return adopt_told(sv, &here);
}

static int adopt_folder(struct supervisor *sv, int directory, const char *folder,
        int (*adopt)(struct supervisor *sv, int from, const struct recording_orphan *file))
{
	int from = openat(directory, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int rc = from < 0 && errno != ENOENT ? -errno : 0;
	struct recording_orphan *files = NULL;
	size_t count = 0;

	if (from < 0)
		return rc;
	rc = list(from, UINT64_MAX, &files, &count);
	for (size_t i = 0; i < count && !rc; i++)
		rc = adopt(sv, from, &files[i]);
	free(files);
	close(from);
	return rc;
}

int recording_adopt_from(struct supervisor *sv, int directory)
{
	int rc = adopt_folder(sv, directory, "rings", adopt_foreign_ring);

	if (!rc)
		rc = adopt_folder(sv, directory, "told", adopt_foreign_told);
	if (rc)
		return rc;
	if (unlinkat(directory, "journal", 0) < 0 && errno != ENOENT)
		return -errno;
	for (size_t i = 0; i < 2; i++)
		if (unlinkat(directory, i ? "told" : "rings", AT_REMOVEDIR) < 0 && errno != ENOENT)
			return -errno;
	return 0;
}

int recording_adopt(struct supervisor *sv)
{
	int rc;

	if (!sv->recording.kept)
		return 0;
	rc = adopt_all(sv, sv->recording.rings, adopt_ring);
	return rc ? rc : adopt_all(sv, sv->recording.told, adopt_told);
}
