/* SPDX-License-Identifier: Apache-2.0 */
/* The files of prepared namespaces, and the calls to the daemon about them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/prepare/ready.h"
#include "cli/prepare/tap.h"
#include "vethguard/adapter/netns_file.h"
#include "vethguard/netlink/netns.h"

#define INNER_LINK "eth0" /* name of the link inside a namespace that a daemon has linked */

static void path_of(const struct ready *pool, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/%s", pool->directory, name);
}

static int failed(const char *path, int rc)
{
	fprintf(stderr, "vethguard: error: %s: %s%s\n", path, strerror(-rc),
	        rc == -EPERM ? " (making network namespaces needs root)" : "");
	return rc == -EPERM || rc == -EACCES ? CONTROL_UNREACHABLE : CONTROL_REFUSED;
}

int ready_open(struct ready *pool)
{
	if (mkdir(pool->directory, 0755) < 0 && errno != EEXIST)
		return failed(pool->directory, -errno);
	pool->lock = open(pool->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pool->lock < 0 || flock(pool->lock, LOCK_EX) < 0)
		return failed(pool->directory, -errno);
	return 0;
}

void ready_close(struct ready *pool)
{
	if (pool->lock >= 0)
		close(pool->lock);
	pool->lock = -1;
}

bool ready_owns(const struct ready *pool, const char *name)
{
	const size_t n = strlen(pool->prefix);
	uint64_t number;

	return strncmp(name, pool->prefix, n) == 0 && name[n] == '-' &&
	       slice_to_u64(slice_from_string(name + n + 1), READY_NUMBER_MAX, &number);
}

bool ready_owns_path(const struct ready *pool, const char *path, const char **name)
{
	const size_t n = strlen(pool->directory);

	if (strncmp(path, pool->directory, n) != 0 || path[n] != '/')
		return false;
	*name = path + n + 1;
	return ready_owns(pool, *name);
}

int ready_remove(const struct ready *pool, const char *name)
{
	char path[PATH_MAX];
	int rc;

	path_of(pool, name, path);
	rc = netns_file_remove(path);
	return rc ? failed(path, rc) : 0;
}

static int tell_daemon(const struct ready *pool, const char *name, const char *path)
{
	json_t *body = json_pack("{s:s, s:s, s:s}", "name", name, "netns", path, "addresses",
	        pool->same ? "same" : "own");
	struct control_answer answer;
	int rc = body ? control_call(pool->socket, "POST", "/prepared", body, &answer)
	              : CONTROL_REFUSED;

	json_decref(body);
	if (rc == 0)
		control_answer_free(&answer);
	return rc;
}

/* If the tap cannot be made, the namespace is removed, and the daemon notices that. */
static int add_tap(const struct ready *pool, const char *path)
{
	const char *step;
	int rc = pool->tap ? tap_make(path, pool->tap, &step) : 0;

	if (rc)
		fprintf(stderr, "vethguard: error: %s: %s: %s\n", path, step, strerror(-rc));
	return rc ? CONTROL_REFUSED : 0;
}

int ready_make(const struct ready *pool, const char *name)
{
	char path[PATH_MAX];
	int rc = ready_remove(pool, name);

	if (rc)
		return rc;
	path_of(pool, name, path);
	rc = netns_file_make(path);
	if (rc)
		return failed(path, rc);
	rc = tell_daemon(pool, name, path);
	if (!rc)
		rc = add_tap(pool, path);
	if (rc)
		netns_file_remove(path);
	return rc;
}

/* Removing namespaces that are left over. */

static bool is_among(const json_t *list, const char *path)
{
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		const json_t *attachment = json_object_get(one, "attachment");

		if (strcmp(control_text(attachment ? attachment : one, "netns"), path) == 0)
			return true;
	}
	return false;
}

static int look_for_link(void *context)
{
	bool *linked = context;

	*linked = if_nametoindex(INNER_LINK) != 0;
	return 0;
}

/* True if a daemon, perhaps another one, has linked the namespace. A file that holds no namespace
 * has no link either. */
static bool is_linked(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	bool linked = false;

	if (fd < 0)
		return true; /* let it be */
	netns_run(fd, look_for_link, &linked);
	close(fd);
	return linked;
}

void ready_sweep(const struct ready *pool, const json_t *sandboxes, const json_t *prepared)
{
	const json_t *all = json_object_get(sandboxes, "sandboxes");
	DIR *dir = opendir(pool->directory);
	struct dirent *entry;
	char path[PATH_MAX];

	while (dir && (entry = readdir(dir))) {
		if (!ready_owns(pool, entry->d_name))
			continue;
		path_of(pool, entry->d_name, path);
		if (!is_among(all, path) &&
		        !is_among(json_object_get(prepared, "prepared"), path) && !is_linked(path))
			ready_remove(pool, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

bool ready_next_name(const struct ready *pool, unsigned *number, char name[MESSAGE_NAME_MAX + 1])
{
	char path[PATH_MAX];

	while (*number < READY_NUMBER_MAX) {
		++*number;
		snprintf(name, MESSAGE_NAME_MAX + 1, "%s-%u", pool->prefix, *number);
		path_of(pool, name, path);
		if (access(path, F_OK) < 0 && errno == ENOENT)
			return true;
	}
	return false;
}

/* Counting the processes in a namespace. */

static bool is_in(const struct stat *netns, const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.16s/ns/net", pid);
	return stat(path, &st) == 0 && st.st_dev == netns->st_dev && st.st_ino == netns->st_ino;
}

size_t ready_count_processes(const char *path)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	struct stat netns;
	size_t count = 0;

	while (dir && stat(path, &netns) == 0 && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			count += is_in(&netns, entry->d_name);
	if (dir)
		closedir(dir);
	return count;
}
