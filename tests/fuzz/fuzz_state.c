/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A state file of a sandbox. One that loads must be written again to what loads as the same: the
 * second text is the third.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/daemon/state_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/dev/shm/vethguard-fuzz-XXXXXX";
static int dir = -1;

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void tidy(void)
{
	unlinkat(dir, "one.json", 0);
	rmdir(folder);
}

static void prepare(void)
{
	require(mkdtemp(folder) != NULL);
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(dir >= 0 && atexit(tidy) == 0);
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static size_t read_file(const char *name, char *text)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, STATE_FILE_MAX);

	require(fd >= 0 && n > 0);
	close(fd);
	return (size_t)n;
}

/* Loads the file and writes it again, under the name that it holds. Returns the size of the text,
 * or 0: it does not load. */
static size_t again(const char *from, char *text, char name[MESSAGE_NAME_MAX + 8])
{
	struct attach_record record;
	struct gate gate;
	char error[STATE_ERROR_MAX] = "";
	size_t n = 0;

	gate_init(&gate);
	if (state_load(dir, from, &record, &gate, error) == 0) {
		snprintf(name, MESSAGE_NAME_MAX + 8, "%s" STATE_SUFFIX, record.name);
		require(state_save(dir, &record, &gate) == 0);
		n = read_file(name, text);
	} else {
		require(error[0]);
	}
	attach_record_fini(&record);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char first[STATE_FILE_MAX], second[STATE_FILE_MAX];
	char name[MESSAGE_NAME_MAX + 8], same[MESSAGE_NAME_MAX + 8];
	size_t n;

	if (dir < 0)
		prepare();
	write_file("one.json", data, size);
	n = again("one.json", first, name);
	if (n) {
		require(again(name, second, same) == n && memcmp(first, second, n) == 0);
		require(strcmp(name, same) == 0);
		unlinkat(dir, name, 0);
	}
	return 0;
}
