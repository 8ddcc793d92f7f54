/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint: tells whether a file is unchanged since it was read, without reading it again. The
 * kernel sets the time of each change of a file's bytes, mode or owner (ctime, inode(7)), and no
 * program can set it. Its resolution is the file system's: two changes within one step may have the
 * same time. So a fingerprint counts only if the last change was more than FINGERPRINT_STEP_S
 * before the reading.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_FINGERPRINT_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_FINGERPRINT_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#define FINGERPRINT_STEP_S 2 /* FAT's, the coarsest */

struct fingerprint {
	bool counts;
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed, written;
};

/* Returns the fingerprint of a file that is about to be read; now is CLOCK_REALTIME. */
struct fingerprint fingerprint_of(const struct stat *file, time_t now);
/* Returns true if it is the same file and unchanged. */
bool fingerprint_holds(const struct fingerprint *fingerprint, const struct stat *file);

#endif
