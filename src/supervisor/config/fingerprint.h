/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint: whether a file is what it was when it was read, told without reading it again. The
 * kernel notes the time of each change of a file's bytes, mode or owner (inode(7)), and nobody can
 * set that time. It is as fine as the file system keeps it: two changes within one of its steps may
 * look like one. So a fingerprint counts only where the last change lay further back when the file
 * was about to be read.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_FINGERPRINT_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_FINGERPRINT_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#define STAMP_STEP_S 2 /* FAT's, the coarsest */

struct fingerprint {
	bool counts;
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed, written;
};

/* Of a file that is about to be read; now is CLOCK_REALTIME. */
struct fingerprint fingerprint_of(const struct stat *file, time_t now);
/* True: it is that file, and nothing of it has changed. */
bool fingerprint_holds(const struct fingerprint *fingerprint, const struct stat *file);

#endif
