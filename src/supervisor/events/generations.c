/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/events/generations.h"
#include "supervisor/os/directory.h"

#define NAME_BYTES 40
/* Sets that are examined; more than a few exist only after repeated crashes. */
#define SETS_MAX 64

static void name_of(uint64_t number, char out[NAME_BYTES])
{
	if (number == 0)
		snprintf(out, NAME_BYTES, ".");
	else
		snprintf(out, NAME_BYTES, "upgrade-%" PRIu64, number);
}

static int open_set(int state, uint64_t number)
{
	char name[NAME_BYTES];
	int fd;

	name_of(number, name);
	fd = openat(state, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Lists the sets with their own directory, in any order. */
static size_t list(int state, uint64_t numbers[SETS_MAX])
{
	DIR *dir = directory_list(state);
	const struct dirent *entry;
	char again[NAME_BYTES];
	size_t count = 0;

	while (dir && count < SETS_MAX && (entry = readdir(dir)) != NULL) {
		uint64_t number;

		if (sscanf(entry->d_name, "upgrade-%" SCNu64, &number) != 1 || number == 0)
			continue;
		name_of(number, again);
		if (strcmp(again, entry->d_name) == 0)
			numbers[count++] = number;
	}
	if (dir)
		closedir(dir);
	return count;
}

static uint64_t highest(int state)
{
	uint64_t numbers[SETS_MAX], most = 0;
	size_t count = list(state, numbers);

	for (size_t i = 0; i < count; i++)
		if (numbers[i] > most)
			most = numbers[i];
	return most;
}

int journal_generation_last(int state, uint64_t *number)
{
	*number = highest(state);
	return open_set(state, *number);
}

int journal_generation_new(int state, uint64_t *number)
{
	char name[NAME_BYTES];

	*number = highest(state) + 1;
	name_of(*number, name);
	if (mkdirat(state, name, 0700) < 0)
		return -errno;
	return open_set(state, *number);
}

void journal_generation_adopt(struct supervisor *sv, int state, uint64_t number)
{
	int directory = open_set(state, number), error;
	char name[NAME_BYTES];

	if (directory == -ENOENT)
		return;
	error = directory < 0 ? directory : recording_adopt_from(sv, directory);
	if (directory >= 0)
		close(directory);
	name_of(number, name);
	if (!error && number != 0 && unlinkat(state, name, AT_REMOVEDIR) < 0)
		error = -errno;
	if (error)
		log_error("not all that another daemon had recorded could be taken over: %s",
		        strerror(-error));
}

void journal_generation_adopt_others(struct supervisor *sv, int state, uint64_t own)
{
	uint64_t numbers[SETS_MAX];
	size_t count = list(state, numbers);

	if (own != 0)
		journal_generation_adopt(sv, state, 0);
	for (size_t i = 0; i < count; i++)
		if (numbers[i] != own)
			journal_generation_adopt(sv, state, numbers[i]);
}
