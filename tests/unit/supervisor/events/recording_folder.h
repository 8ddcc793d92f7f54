/* SPDX-License-Identifier: Apache-2.0 */
/* A directory as recording_keep_at() gets it, and what is logged meanwhile. cmocka.h and what it
 * needs is included before. */
#ifndef VETHGUARD_TESTS_UNIT_SUPERVISOR_EVENTS_RECORDING_FOLDER_H
#define VETHGUARD_TESTS_UNIT_SUPERVISOR_EVENTS_RECORDING_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "supervisor/events/files.h"

#define SANDBOX 4242

static char folder[64], log_path[96];
static int folder_fd;

static inline int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_recording.XXXXXX");
	assert_non_null(mkdtemp(folder));
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(log_path, sizeof(log_path), "%s/audit.jsonl", folder);
	assert_true(folder_fd >= 0);
	return 0;
}

static inline unsigned count_files(const char *name)
{
	char path[128];
	unsigned n = 0;
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	DIR *d = opendir(path);
	assert_non_null(d);
	while ((entry = readdir(d)) != NULL)
		n += entry->d_name[0] != '.';
	closedir(d);
	return n;
}

static inline int tear_down(void **state)
{
	(void)state;
	unlink(log_path);
	unlinkat(folder_fd, "journal", 0);
	unlinkat(folder_fd, "rings", AT_REMOVEDIR);
	unlinkat(folder_fd, "told", AT_REMOVEDIR);
	close(folder_fd);
	return rmdir(folder);
}

/* What is logged from here on (an open memfd), until it is read. */
static inline int begin_log(int *stderr_fd)
{
	int log = memfd_create("log", MFD_CLOEXEC);

	*stderr_fd = dup(STDERR_FILENO);
	assert_true(log >= 0 && *stderr_fd >= 0);
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	return log;
}

static inline void end_log(int log, int stderr_fd, char *out, size_t size)
{
	ssize_t n = pread(log, out, size - 1, 0);

	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	close(log);
	assert_true(n >= 0);
	out[n] = 0;
}

#endif
