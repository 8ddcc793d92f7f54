/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways out that are not packets: a Unix socket with a path works across network namespaces, and
 * behind it may be a program that fetches URLs, resolves names or starts processes outside (a
 * container engine, a resolver, a message bus, a terminal multiplexer). Every socket that has a
 * path now is covered by an empty file; directories in which such sockets come and go are covered
 * whole, so that a later one is not seen either. A few devices are alike.
 *
 * And the files that credentials come from: the command often runs as the user who may read them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mounts.h"

#define HIDE_PATHS_MAX 4096
#define HIDE_LINE_MAX 512

struct hide_list {
	size_t count;
	char *paths[HIDE_PATHS_MAX]; /* owned */
};

/* Directories, files and devices that are covered where they exist. */
static const char *const known[] = {
        /* container engines */
        "/run/docker.sock",
        "/run/docker",
        "/run/containerd",
        "/run/podman",
        "/run/crio",
        "/run/k3s",
        "/run/buildkit",
        "/run/cri-dockerd.sock",
        "/var/lib/lxd/unix.socket",
        "/var/snap/lxd/common/lxd/unix.socket",
        "/var/lib/incus/unix.socket",
        "/run/libvirt",
        "/run/multipass_socket",
        /* names */
        "/run/nscd",
        "/var/run/nscd",
        "/run/systemd/resolve/io.systemd.Resolve",
        "/run/systemd/resolve/io.systemd.Resolve.Monitor",
        "/run/avahi-daemon",
        "/run/sssd",
        "/var/lib/sss/pipes",
        "/run/unbound.ctl",
        /* those who start processes for others */
        "/run/dbus",
        "/run/user",
        "/run/systemd/private",
        "/run/snapd.socket",
        "/run/snapd-snap.socket",
        "/run/screen",
        "/run/cups",
        "/run/tailscale",
        "/run/acpid.socket",
        /* what daemons outside pick up and act on: mail that they send, jobs that they start */
        "/var/spool",
        "/var/qmail/queue",
        "/run/initctl",
        "/dev/initctl",
        /* queues of the outer IPC namespace; the sandbox's own need no directory */
        "/dev/mqueue",
        /* the display: whoever may use it types into other windows */
        "/tmp/.X11-unix",
        "/tmp/.ICE-unix",
        /* the hypervisor's sockets bypass every network namespace */
        "/dev/vsock",
        "/dev/vhost-vsock",
        "/dev/vhost-net",
};

/* A line of /proc/net/unix ends in the path, where the socket has one; the kernel writes no quotes.
 */
static char *hide_path_of(char *line)
{
	char *path = strchr(line, '/');
	size_t n;

	if (path == NULL || path == line || path[-1] != ' ')
		return NULL;
	n = strlen(path);
	if (n > 0 && path[n - 1] == '\n')
		path[n - 1] = '\0';
	return path;
}

int hide_find(struct hide_list **out)
{
	struct hide_list *list = calloc(1, sizeof(*list));
	FILE *file = fopen("/proc/net/unix", "re");
	char line[HIDE_LINE_MAX], *path;

	*out = list;
	if (list == NULL || file == NULL) {
		if (file != NULL)
			fclose(file);
		return list == NULL ? -ENOMEM : 0;
	}
	while (list->count < HIDE_PATHS_MAX && fgets(line, sizeof(line), file) != NULL) {
		path = hide_path_of(line);
		if (path == NULL)
			continue;
		list->paths[list->count] = strdup(path);
		if (list->paths[list->count] != NULL)
			list->count++;
	}
	fclose(file);
	return 0;
}

void hide_free(struct hide_list *list)
{
	if (list == NULL)
		return;
	for (size_t i = 0; i < list->count; i++)
		free(list->paths[i]);
	free(list);
}

/* An empty directory of the user's own, for programs that insist on XDG_RUNTIME_DIR. */
static int hide_run_user(struct mounts *m, const char *scratch)
{
	const struct run_user *user = m->plan->user;
	char path[128];

	snprintf(path, sizeof(path), "%s/%u", scratch, (unsigned)user->uid);
	if (mkdir(path, 0700) != 0)
		return -errno;
	/* Rootless, the one user there is owns it already. */
	if (!m->plan->rootless && chown(path, user->uid, user->gid) != 0)
		return -errno;
	return 0;
}

/* Covers path with something empty of its kind. */
static int hide_one(
        struct mounts *m, const char *path, const char *empty_file, const char *empty_directory)
{
	char scratch[64];
	struct stat st;
	int rc;

	if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode))
		return 0; /* gone, or its target is covered under its own name */
	if (!S_ISDIR(st.st_mode))
		return mounts_attach(empty_file, path, true);
	if (strcmp(path, "/run/user") != 0)
		return mounts_attach(empty_directory, path, true);
	rc = mounts_scratch(m, true, 0755, scratch, sizeof(scratch));
	if (rc == 0)
		rc = hide_run_user(m, scratch);
	return rc == 0 ? mounts_attach(scratch, path, false) : rc;
}

/* Anyone may have bound it and may be moving names about: what is covered is what was seen to be a
 * socket. */
static int hide_socket(const char *path, const char *empty_file)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	struct stat st;

	if (fd < 0) /* already covered, removed, or the path is relative to another root */
		return 0;
	if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
		rc = mounts_attach_at(empty_file, fd, true);
	close(fd);
	return rc;
}

/* One that is not there is not covered. Rootless, one that we may not reach is out of the command's
 * reach as well. */
static int hide_file(const struct mounts *m, struct slice name, const char *empty_file)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, rc = 0;

	if (snprintf(path, sizeof(path), "%.*s", SLICE_ARG(name)) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (fd < 0)
		return m->plan->rootless && errno == EACCES ? 0 : -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		rc = mounts_attach_at(empty_file, fd, true);
	close(fd);
	return rc;
}

int hide_mounts(struct mounts *m, const struct hide_list *list, struct failure *failure)
{
	char file[64], directory[64];
	int rc = mounts_scratch(m, false, 0444, file, sizeof(file));

	if (rc == 0)
		rc = mounts_scratch(m, true, 0555, directory, sizeof(directory));
	if (rc != 0)
		return failure_set(failure, rc, "cannot write to the scratch tmpfs");
	for (size_t i = 0; rc == 0 && i < sizeof(known) / sizeof(known[0]); i++) {
		rc = hide_one(m, known[i], file, directory);
		if (rc != 0)
			failure_set(failure, rc, "cannot hide %s from the sandbox", known[i]);
	}
	for (size_t i = 0; rc == 0 && i < list->count; i++) {
		rc = hide_socket(list->paths[i], file);
		if (rc != 0)
			failure_set(failure, rc, "cannot hide the socket %.200s from the sandbox",
			        list->paths[i]);
	}
	for (size_t i = 0; rc == 0 && i < m->plan->file_count; i++) {
		rc = hide_file(m, m->plan->files[i], file);
		if (rc != 0)
			failure_set(failure, rc,
			        "cannot hide the credential's file %.*s from the sandbox",
			        SLICE_ARG(m->plan->files[i]));
	}
	return rc;
}
