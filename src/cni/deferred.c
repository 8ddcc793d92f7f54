/* SPDX-License-Identifier: Apache-2.0 */
/* Noted DELs; see cni/deferred.h. A file's name is that of the sandbox, its content the container's
 * key as JSON. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cni/deferred.h"
#include "cni/sandbox.h"

/* Writes the path of the folder, or with name of a file in it. False: it is too long. */
static bool path_of(const struct cni_request *request, const char *name, char out[PATH_MAX])
{
	const char *slash = strrchr(request->socket, '/');
	const int n = snprintf(out, PATH_MAX, "%.*s" CNI_DEFERRED_FOLDER "%s%s",
	        (int)(slash - request->socket) + 1, request->socket, *name ? "/" : "", name);

	return n > 0 && n < PATH_MAX;
}

/* Writes the key to a new file of this path. Returns 0 or -errno, and then nothing is left. */
static int write_key(const char *path, const json_t *key)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return -errno;
	rc = json_dumpfd(key, fd, JSON_COMPACT) == 0 ? 0 : -EIO;
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (rc)
		unlink(path);
	return rc;
}

/* Writes it beside its place, under a name that cni_deferred_do() skips, because a half-written
 * note would be taken for a damaged one. */
static int put_note(const struct cni_request *request, const char *name, const json_t *key)
{
	char folder[PATH_MAX], path[PATH_MAX], part[PATH_MAX], beside[CNI_SANDBOX_NAME_MAX + 16];
	int rc;

	snprintf(beside, sizeof(beside), ".%s.%d", name, (int)getpid());
	if (!path_of(request, "", folder) || !path_of(request, name, path) ||
	        !path_of(request, beside, part))
		return -ENAMETOOLONG;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	rc = write_key(part, key);
	if (rc || rename(part, path) == 0)
		return rc;
	rc = -errno;
	unlink(part);
	return rc;
}

bool cni_deferred_note(const struct cni_request *request)
{
	char name[CNI_SANDBOX_NAME_MAX + 1];
	json_t *key = json_pack("{s:s, s:s, s:s}", "network", request->network, "container",
	        request->container, "interface", request->interface);
	int rc;

	cni_sandbox_name(request, name);
	rc = key ? put_note(request, name, key) : -ENOMEM;
	json_decref(key);
	return rc == 0 || rc == -ENOENT;
}

/* Returns the key that was noted, which the caller owns, or NULL. */
static json_t *read_key(const char *path)
{
	char text[CNI_DEFERRED_BYTES_MAX];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 ? json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

/* Returns true if the noted DEL is done, or the file has no usable note. */
static bool do_one(const struct cni_request *request, const json_t *key)
{
	struct cni_request one = {.command = CNI_DEL,
	        .version = request->version,
	        .netns = "",
	        .socket = request->socket,
	        .network = control_text(key, "network"),
	        .container = control_text(key, "container"),
	        .interface = control_text(key, "interface")};
	struct cni_fault fault;
	json_t *sandbox;
	bool done;

	if (!cni_is_name(one.network, CNI_NAME_MAX) || !cni_is_name(one.container, CNI_NAME_MAX) ||
	        strlen(one.interface) >= IFNAMSIZ)
		return true;
	if (!cni_sandbox_find(&one, &sandbox, &fault))
		return false;
	done = !sandbox || cni_sandbox_detach(&one, sandbox, &fault);
	json_decref(sandbox);
	return done;
}

/* True if the file is a note that was being written (put_note()) when its writer died. */
static bool is_abandoned(const char *name)
{
	const char *dot = strrchr(name, '.');
	char *end;
	long pid;

	if (!dot || dot == name || dot[1] < '1' || dot[1] > '9')
		return false;
	errno = 0;
	pid = strtol(dot + 1, &end, 10);
	return !errno && !*end && pid <= INT_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* Does what a note says, and removes the note if nothing is left to do. */
static void do_note(const struct cni_request *request, const char *path)
{
	json_t *key = read_key(path);

	if (do_one(request, key))
		unlink(path);
	json_decref(key);
}

void cni_deferred_do(const struct cni_request *request)
{
	char path[PATH_MAX];
	DIR *folder = path_of(request, "", path) ? opendir(path) : NULL;
	const struct dirent *entry;

	if (!folder)
		return;
	for (int i = 0; i < CNI_DEFERRED_MAX && (entry = readdir(folder)); i++) {
		if (!path_of(request, entry->d_name, path))
			continue;
		if (entry->d_name[0] != '.')
			do_note(request, path);
		else if (is_abandoned(entry->d_name))
			unlink(path);
	}
	closedir(folder);
}
