/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hides what programs outside act on without a packet. Directories in which services keep sockets,
 * pipes and queues, and spools, are covered as a whole, so that later entries are hidden too. Which
 * Unix sockets can be reached is decided for each connection (guest/sockets.c), not here; the
 * sandbox's /dev decides about devices (guest/devices.c).
 *
 * Also hides the files that credentials come from, since the command often runs as the user who may
 * read them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/guest/mounts.h"

/* Directories and files that are covered if they exist. */
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
        /* name services */
        "/run/nscd",
        "/var/run/nscd",
        "/run/systemd/resolve/io.systemd.Resolve",
        "/run/systemd/resolve/io.systemd.Resolve.Monitor",
        "/run/avahi-daemon",
        "/run/sssd",
        "/var/lib/sss/pipes",
        "/run/unbound.ctl",
        /* services that start processes for others */
        "/run/dbus",
        "/run/user",
        "/run/systemd/private",
        "/run/snapd.socket",
        "/run/snapd-snap.socket",
        "/run/screen",
        "/run/cups",
        "/run/tailscale",
        "/run/acpid.socket",
        /* what daemons outside pick up and act on: mail they send, jobs they start */
        "/var/spool",
        "/var/qmail/queue",
        "/run/initctl",
};

/* Displays and their sessions: programs outside would take a socket of the sandbox for theirs and
 * connect to it. These are empty and writable, so that a display inside has its usual place. */
static const char *const fresh[] = {"/tmp/.X11-unix", "/tmp/.ICE-unix"};

/* Makes an empty directory that the user owns, for programs that insist on XDG_RUNTIME_DIR. */
static int hide_run_user(struct mounts *m, const char *scratch)
{
	const struct run_user *user = m->plan->user;
	char path[128];

	snprintf(path, sizeof(path), "%s/%u", scratch, (unsigned)user->uid);
	if (mkdir(path, 0700) != 0)
		return -errno;
	/* Rootless, the only user owns it already. */
	if (!m->plan->rootless && chown(path, user->uid, user->gid) != 0)
		return -errno;
	return 0;
}

/* Covers path with an empty file or directory. */
static int hide_one(
        struct mounts *m, const char *path, const char *empty_file, const char *empty_directory)
{
	char scratch[64];
	struct stat st;
	int rc;

	if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode))
		return 0; /* missing, or its target is covered under its own name */
	if (!S_ISDIR(st.st_mode))
		return mounts_attach(empty_file, path, true);
	if (strcmp(path, "/run/user") != 0)
		return mounts_attach(empty_directory, path, true);
	rc = mounts_scratch(m, true, 0755, scratch, sizeof(scratch));
	if (rc == 0)
		rc = hide_run_user(m, scratch);
	return rc == 0 ? mounts_attach(scratch, path, false) : rc;
}

static int hide_fresh(struct mounts *m, const char *path)
{
	char scratch[64];
	struct stat st;
	int rc;

	if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return 0;
	rc = mounts_scratch(m, true, 01777, scratch, sizeof(scratch));
	return rc == 0 ? mounts_attach(scratch, path, false) : rc;
}

/* A missing file is not covered. Rootless, a file that this process may not reach is out of the
 * command's reach too. */
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

int hide_mounts(struct mounts *m, struct failure *failure)
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
	for (size_t i = 0; rc == 0 && i < sizeof(fresh) / sizeof(fresh[0]); i++) {
		rc = hide_fresh(m, fresh[i]);
		if (rc != 0)
			failure_set(failure, rc, "cannot hide %s from the sandbox", fresh[i]);
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
