/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/config/fingerprint.h"

struct fingerprint fingerprint_of(const struct stat *file, time_t now)
{
	return (struct fingerprint){.counts = file->st_ctim.tv_sec < now - FINGERPRINT_STEP_S,
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

bool fingerprint_holds(const struct fingerprint *fingerprint, const struct stat *file)
{
	return fingerprint->counts && fingerprint->device == file->st_dev &&
	       fingerprint->inode == file->st_ino && fingerprint->size == file->st_size &&
	       same_time(&fingerprint->changed, &file->st_ctim) &&
	       same_time(&fingerprint->written, &file->st_mtim);
}
