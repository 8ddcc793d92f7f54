/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/shared_names.h"
#include "supervisor/sandbox/names_file.h"

#define NAME_BYTES 17 /* an id of 16 hex digits */

static void name_of(uint64_t id, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%016" PRIx64, id);
}

int names_file_open(int directory, uint64_t id, uint32_t limit, bool *damaged)
{
	char name[NAME_BYTES];

	name_of(id, name);
	int fd = shared_names_open_at(directory, name);
	*damaged = fd == -EBADMSG;
	if (*damaged && unlinkat(directory, name, 0) < 0)
		return -errno;
	return *damaged || fd == -ENOENT ? shared_names_create_at(directory, name, limit) : fd;
}

#define COPIED_AT_ONCE (64 << 10)

/* Copies one run of data; holes stay holes. Returns 0 or -errno. */
static int copy_run(int from, int to, off_t at, off_t end)
{
	static char buffer[COPIED_AT_ONCE];

	while (at < end) {
		size_t n = end - at < COPIED_AT_ONCE ? (size_t)(end - at) : COPIED_AT_ONCE;
		ssize_t done = pread(from, buffer, n, at);

		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		if (pwrite(to, buffer, (size_t)done, at) != done)
			return -ENOSPC;
		at += done;
	}
	return 0;
}

/* Most of a table is a hole: what is copied is what the sandbox has used. */
static int copy_content(int from, int to)
{
	struct stat st;
	off_t at = 0;
	int rc = fstat(from, &st) < 0 || ftruncate(to, st.st_size) < 0 ? -errno : 0;

	while (!rc && (at = lseek(from, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(from, at, SEEK_HOLE);

		rc = end < 0 ? -errno : copy_run(from, to, at, end);
		at = end;
	}
	return rc;
}

int names_file_copy(int directory, uint64_t from_id, uint64_t to_id)
{
	char from_name[NAME_BYTES], to_name[NAME_BYTES];
	int from, to, rc;

	name_of(from_id, from_name);
	name_of(to_id, to_name);
	from = shared_names_open_at(directory, from_name);
	if (from < 0)
		return from == -ENOENT || from == -EBADMSG ? 0 : from;
	to = openat(directory, to_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	rc = to < 0 ? -errno : copy_content(from, to);
	close(from);
	if (to < 0)
		return rc;
	close(to);
	if (rc)
		unlinkat(directory, to_name, 0);
	return rc;
}

bool names_file_exists(int directory, uint64_t id)
{
	char name[NAME_BYTES];

	name_of(id, name);
	return faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void names_file_remove(int directory, uint64_t id)
{
	char name[NAME_BYTES];

	name_of(id, name);
	unlinkat(directory, name, 0);
}
