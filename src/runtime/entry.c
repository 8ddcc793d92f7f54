/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are made, and dead ones are looked for, under one lock: otherwise a directory without a
 * state could be one whose state is about to be written. A process that does not get the lock does
 * not tidy up: the one that has the lock does it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/adapter/netns_file.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/process.h"
#include "runtime/config.h"
#include "runtime/entry.h"

#define STATE "state.json"
#define LOCK ".lock"
#define SHOWN_BYTES 12 /* of the id, in the key */

void entry_name(struct entry *e, const struct settings *s, const char *root, const char *id)
{
	/* The key only has to be the same in every call. */
	static const struct hash_key key = {0x7665746867756172, 0x6472756e74696d65};
	uint64_t of_root = hash_bytes(&key, root ? root : "", root ? strlen(root) : 0);
	const struct hash_key second = {key.k0 ^ of_root, key.k1};
	char shown[SHOWN_BYTES + 1];
	size_t n;

	for (n = 0; n < SHOWN_BYTES && id[n]; n++)
		shown[n] = strchr("0123456789abcdefghijklmnopqrstuvwxyz", id[n]) ? id[n] : '-';
	shown[n] = '\0';
	*e = (struct entry){.state = NULL};
	snprintf(e->key, sizeof(e->key), "%s-%016llx", shown,
	        (unsigned long long)hash_bytes(&second, id, strlen(id)));
	snprintf(e->path, sizeof(e->path), "%.*s/%s", PATH_MAX - ENTRY_KEY_MAX - 2, s->directory,
	        e->key);
}

/* Makes every missing directory of the path. */
static int make_directories(const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = part + 1;; *slash++ = '/') {
		slash = strchr(slash, '/');
		if (slash)
			*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
		if (!slash)
			return 0;
	}
}

/* Returns the lock's descriptor or -errno. */
static int lock(const struct settings *s, int how)
{
	char path[PATH_MAX + 16];
	int fd, rc = make_directories(s->directory);

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/" LOCK, s->directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, how) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

bool entry_make(struct entry *e, const struct settings *s, json_t *state, struct fault *fault)
{
	int held = lock(s, LOCK_EX);
	bool good = false;

	e->state = state;
	if (held < 0)
		return fault_set(fault, "%s: %s", s->directory, strerror(-held));
	if (mkdir(e->path, 0755) == 0)
		good = entry_save(e, fault);
	else
		fault_set(fault, "%s: %s", e->path,
		        errno == EEXIST ? "there is a container of that id" : strerror(errno));
	close(held);
	return good;
}

bool entry_load(struct entry *e, struct fault *fault)
{
	char path[PATH_MAX + 16];
	json_error_t error;
	struct stat st;

	snprintf(path, sizeof(path), "%s/" STATE, e->path);
	if (stat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return false;
	e->state = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	return json_is_object(e->state) ||
	       fault_set(fault, "%s cannot be read: %s", path, error.text);
}

static bool write_new(const char *path, struct slice bytes, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	ssize_t n = 0;

	if (fd < 0)
		return false;
	fchmod(fd, mode); /* whatever the umask is */
	while (bytes.n > 0 && (n = write(fd, bytes.p, bytes.n)) > 0)
		bytes = slice_of(bytes.p + n, bytes.n - (size_t)n);
	close(fd);
	return bytes.n == 0;
}

bool entry_save(const struct entry *e, struct fault *fault)
{
	char path[PATH_MAX + 16], new[PATH_MAX + 16], *text = json_dumps(e->state, JSON_COMPACT);
	bool good;

	snprintf(path, sizeof(path), "%s/" STATE, e->path);
	snprintf(new, sizeof(new), "%s/." STATE, e->path);
	good = text && strlen(text) <= ENTRY_STATE_MAX &&
	       write_new(new, slice_from_string(text), ENTRY_HIDDEN) && rename(new, path) == 0;
	free(text);
	return good || fault_set(fault, "%s cannot be written: %s", path, strerror(errno));
}

bool entry_set_process(struct entry *e, pid_t pid)
{
	uint64_t start_time;

	return process_start_time(pid, &start_time) == 0 &&
	       json_object_set_new(e->state, ENTRY_PID, json_integer(pid)) == 0 &&
	       json_object_set_new(
	               e->state, ENTRY_START_TIME, json_integer((json_int_t)start_time)) == 0;
}

bool entry_write(const struct entry *e, const char *name, mode_t mode, struct slice bytes,
        char path[PATH_MAX], struct fault *fault)
{
	if (snprintf(path, PATH_MAX, "%s/%s", e->path, name) >= PATH_MAX)
		return fault_set(fault, "%s: the path is too long", e->path);
	return write_new(path, bytes, mode) || fault_set(fault, "%s: %s", path, strerror(errno));
}

const char *entry_text(const struct entry *e, const char *member)
{
	const char *text = json_string_value(json_object_get(e->state, member));

	return text ? text : "";
}

bool entry_is(const struct entry *e, const char *member)
{
	return json_is_true(json_object_get(e->state, member));
}

/* Its files, and then itself. Nothing in it is a directory. */
static void remove_directory(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *file;

	while (directory && (file = readdir(directory)) != NULL)
		if (strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0)
			(void)unlinkat(dirfd(directory), file->d_name, 0);
	if (directory)
		closedir(directory);
	(void)rmdir(path);
}

void entry_remove(struct entry *e)
{
	if (entry_is(e, ENTRY_OWN_NETNS))
		(void)netns_file_remove(entry_text(e, ENTRY_NETNS));
	if (*entry_text(e, ENTRY_BUNDLE))
		config_restore(entry_text(e, ENTRY_BUNDLE));
	remove_directory(e->path);
	entry_free(e);
}

/* A process that cannot be examined counts as alive, a zombie as dead. */
static bool is_over(const struct entry *e)
{
	pid_t pid = (pid_t)json_integer_value(json_object_get(e->state, ENTRY_PID));
	json_int_t began = json_integer_value(json_object_get(e->state, ENTRY_START_TIME));
	struct pollfd end = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	uint64_t now;
	bool over;

	if (end.fd < 0)
		return errno == ESRCH || errno == EINVAL;
	over = (process_start_time(pid, &now) == 0 && (json_int_t)now != began) ||
	       poll(&end, 1, 0) > 0;
	close(end.fd);
	return over;
}

static void tidy_one(const char *directory, const char *name)
{
	struct entry e = {.state = NULL};
	struct fault ignored = {""};

	if (snprintf(e.path, sizeof(e.path), "%s/%s", directory, name) >= PATH_MAX)
		return;
	if (!entry_load(&e, &ignored) || is_over(&e))
		entry_remove(&e);
	entry_free(&e);
}

static unsigned count_entries(DIR *directory)
{
	unsigned count = 0;

	while (readdir(directory))
		count++;
	rewinddir(directory);
	return count;
}

static void tidy(const char *path, DIR *directory)
{
	unsigned count = count_entries(directory), from = 0, at = 0;
	const struct dirent *file;

	if (count > ENTRIES_LOOK_MAX) {
		random_bytes(&from, sizeof(from));
		from %= count - ENTRIES_LOOK_MAX + 1;
	}
	while ((file = readdir(directory)) != NULL && at < from + ENTRIES_LOOK_MAX)
		if (at++ >= from && file->d_name[0] != '.')
			tidy_one(path, file->d_name);
}

void entries_tidy(const struct settings *s)
{
	int held = lock(s, LOCK_EX | LOCK_NB);
	DIR *directory = held < 0 ? NULL : opendir(s->directory);

	if (directory) {
		tidy(s->directory, directory);
		closedir(directory);
	}
	if (held >= 0)
		close(held);
}

void entry_free(struct entry *e)
{
	json_decref(e->state);
	e->state = NULL;
}
