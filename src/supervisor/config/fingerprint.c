/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/config/fingerprint.h"

struct stamp stamp_of(const struct stat *file, time_t now)
{
	return (struct stamp){.counts = file->st_ctim.tv_sec < now - STAMP_STEP_S,
	        .device = file->st_dev,
	        .inode = file->st_ino,
	        .size = file->st_size,
	        .changed = file->st_ctim,
	        .written = file->st_mtim};
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool stamp_holds(const struct stamp *stamp, const struct stat *file)
{
	return stamp->counts && stamp->device == file->st_dev && stamp->inode == file->st_ino &&
	       stamp->size == file->st_size && same_time(&stamp->changed, &file->st_ctim) &&
	       same_time(&stamp->written, &file->st_mtim);
}
