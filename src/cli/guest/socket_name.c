/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the socket that a caller names and judges whether it was made inside.
 *
 * A path is resolved once, as the caller would resolve it (its root, its directory, its ids), to a
 * file that stays open. The call is then made to that file and not to a name, so renames, links and
 * mounts meanwhile change nothing. bind(2) always makes a new file, so a file leads to one socket
 * as long as the file exists.
 *
 * A socket was made inside if a process of the sandbox holds it and it belongs to a network
 * namespace of the sandbox. SIOCUNIXFILE opens the file that a socket is bound to, but only with
 * CAP_NET_ADMIN over the socket's network namespace. Init has that capability over the sandbox's
 * namespace and those made in it, and over no other.
 *
 * The two files are compared while both are open, by device, number and handle: the numbers alone
 * are not unique on file systems with snapshots. Only a socket that others may connect or send to
 * counts: a socket that a program outside has accepted and handed in has the path of that program's
 * listening socket.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sockios.h>
#include <linux/un.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/guest/sockets.h"
#include "vethguard/base/linux.h"

#ifndef SIOCUNIXFILE
#define SIOCUNIXFILE (SIOCPROTOPRIVATE + 0)
#endif

#define PATH_AT offsetof(struct sockaddr_un, sun_path)
#define KNOWN_MAX 64           /* files found to belong to sockets made inside */
#define DESCRIPTORS_MAX 262144 /* looked at for one socket */
#define NUMBERS_MAX 1024       /* tried of a process that does not show its numbers */

/* Identity of an open file. Unused bytes are zero, so that it can be compared as a whole. */
struct identity {
	uint64_t dev, ino;
	uint32_t handle_bytes;
	int32_t handle_type;
	uint8_t handle[MAX_HANDLE_SZ];
};

/* Kept open, so that no other file gets their identities. */
static struct {
	int fd;
	struct identity identity;
} known[KNOWN_MAX];
static size_t known_count, known_next;

static int identify(int fd, struct identity *out)
{
	union {
		struct file_handle head;
		uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} h = {.room = {0}};
	struct stat st;
	int mount;

	memset(out, 0, sizeof(*out));
	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ECONNREFUSED;
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	h.head.handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(fd, "", &h.head, &mount, AT_EMPTY_PATH) != 0)
		return 0; /* a file system without handles */
	out->handle_bytes = h.head.handle_bytes;
	out->handle_type = h.head.handle_type;
	memcpy(out->handle, h.head.f_handle, h.head.handle_bytes);
	return 0;
}

static bool is_known(const struct identity *wanted)
{
	for (size_t i = 0; i < known_count; i++)
		if (memcmp(&known[i].identity, wanted, sizeof(*wanted)) == 0)
			return true;
	return false;
}

static void remember(int pin, const struct identity *identity)
{
	int fd = fcntl(pin, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return;
	if (known_count < KNOWN_MAX)
		known_count++;
	else
		close(known[known_next].fd);
	known[known_next].fd = fd;
	known[known_next].identity = *identity;
	known_next = (known_next + 1) % KNOWN_MAX;
}

static bool takes_peers(int fd)
{
	int value = 0;
	socklen_t n = sizeof(value);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &n) != 0 || value != AF_UNIX)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &n) != 0)
		return false;
	if (value == SOCK_DGRAM)
		return true;
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &n) == 0 && value != 0;
}

/* socket is a copy of a socket of a process of the sandbox. */
static bool is_bound_to(int socket, const struct identity *wanted)
{
	struct identity identity;
	bool same;
	int fd;

	if (!takes_peers(socket))
		return false;
	fd = ioctl(socket, SIOCUNIXFILE);
	if (fd < 0)
		return false;
	same = identify(fd, &identity) == 0 && memcmp(&identity, wanted, sizeof(identity)) == 0;
	close(fd);
	return same;
}

static bool is_this_one(int pidfd, int number, const struct identity *wanted)
{
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	bool found = fd >= 0 && is_bound_to(fd, wanted);

	if (fd >= 0)
		close(fd);
	return found;
}

static bool is_in_folder(DIR *dir, int pidfd, const struct identity *wanted, unsigned *left)
{
	const struct dirent *e;
	char target[16];

	while (*left > 0 && (e = readdir(dir)) != NULL) {
		(*left)--;
		if (readlinkat(dirfd(dir), e->d_name, target, sizeof(target)) >= 8 &&
		        memcmp(target, "socket:[", 8) == 0 &&
		        is_this_one(pidfd, atoi(e->d_name), wanted))
			return true;
	}
	return false;
}

/* The fd directory of a process that is not dumpable (ssh-agent) belongs to root; without root
 * outside, that is nobody here. Its descriptors can be taken by number all the same. */
static bool holds(const char *pid, const struct identity *wanted, unsigned *left)
{
	char path[64];
	int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)atoi(pid), 0);
	bool found = false;
	DIR *dir;

	if (pidfd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	if (dir)
		found = is_in_folder(dir, pidfd, wanted, left);
	for (int i = 0; !dir && !found && *left > 0 && i < NUMBERS_MAX; i++, (*left)--)
		found = is_this_one(pidfd, i, wanted);
	if (dir)
		closedir(dir);
	close(pidfd);
	return found;
}

/* The sandbox's /proc has only the sandbox's processes, including those of namespaces below. */
static bool somebody_holds(const struct identity *wanted)
{
	unsigned left = DESCRIPTORS_MAX;
	const struct dirent *e;
	DIR *dir = opendir("/proc");
	bool found = false;

	while (!found && dir && (e = readdir(dir)) != NULL)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && strcmp(e->d_name, "1") != 0)
			found = holds(e->d_name, wanted, &left);
	if (dir)
		closedir(dir);
	return found;
}

/* keep: the file may stay open. Do not set it for a file on a mount of the caller's own, which the
 * caller could not unmount any more. */
static int decide(int pin, bool keep)
{
	struct identity identity;
	int rc = identify(pin, &identity);

	if (rc != 0 || is_known(&identity))
		return rc;
	if (!somebody_holds(&identity))
		return -ECONNREFUSED;
	if (keep)
		remember(pin, &identity);
	return 0;
}

/* Socket names that are not paths belong to the network namespace of the caller's own socket. A
 * socket that the caller was started with may belong to the host's. */
static int decide_abstract(const struct caller *c)
{
	int fd = ioctl(c->socket, SIOCGSKNS);

	if (fd < 0)
		return -ECONNREFUSED;
	close(fd);
	return 0;
}

static bool same_root(int root)
{
	struct statx a, b;

	return statx(root, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &a) == 0 &&
	       statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &b) == 0 &&
	       (a.stx_mask & b.stx_mask & STATX_MNT_ID) != 0 && a.stx_mnt_id == b.stx_mnt_id &&
	       a.stx_ino == b.stx_ino;
}

/* "self" means the process that resolves the path: here it has to be the caller. Returns true if
 * out names the caller now; the name is then looked up in init's /proc. */
static bool name_caller(const struct caller *c, const char *path, char *out, size_t out_size)
{
	static const char *const selves[] = {"/proc/self/", "/proc/thread-self/", "/dev/fd/"};
	static const char *const for_whom[] = {"", "", "fd/"};

	for (size_t i = 0; i < sizeof(selves) / sizeof(selves[0]); i++) {
		size_t n = strlen(selves[i]);

		if (strncmp(path, selves[i], n) != 0)
			continue;
		snprintf(out, out_size, "/proc/%d/%s%s", (int)c->tid, for_whom[i], path + n);
		return true;
	}
	snprintf(out, out_size, "%s", path);
	return false;
}

static int open_folder(const struct caller *c, const char *which)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)c->tid, which);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the file at the path as the caller sees it. The file is judged afterwards. So if the
 * caller's view cannot be reproduced exactly (symbolic links to "/" in a root of its own, by a
 * relative path), only the name is wrong. */
static int open_path(
        const struct caller *c, const char *path, const struct caller_ids *ids, bool *own_mounts)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC};
	char name[UNIX_PATH_MAX + 64];
	int root = open_folder(c, "root"), from, fd, rc;

	*own_mounts = root < 0 || !same_root(root);
	from = path[0] == '/' || root < 0 ? root : open_folder(c, "cwd");
	if (from != root)
		close(root);
	if (from < 0)
		return -EACCES;
	if (!name_caller(c, path, name, sizeof(name)) && path[0] == '/' && *own_mounts)
		how.resolve = RESOLVE_IN_ROOT;
	rc = caller_lend(ids);
	fd = rc != 0 ? -1 : (int)syscall(SYS_openat2, from, name, &how, sizeof(how));
	if (rc == 0 && fd < 0)
		rc = errno == EXDEV ? -EACCES : -errno; /* through /proc, out of a root of its
		                                           own */
	caller_return();
	close(from);
	return rc == 0 ? fd : rc;
}

static int decide_path(const struct caller *c, struct socket_name *out)
{
	char path[UNIX_PATH_MAX + 1] = "";
	struct sockaddr_un pinned = {.sun_family = AF_UNIX};
	struct caller_ids ids;
	int rc = caller_ids(c, &ids);
	bool own_mounts;

	memcpy(path, out->address.bytes + PATH_AT, out->n - PATH_AT);
	if (rc != 0)
		return rc;
	out->pin = open_path(c, path, &ids, &own_mounts);
	if (out->pin < 0)
		return out->pin;
	rc = decide(out->pin, !own_mounts);
	if (rc != 0) {
		socket_name_close(out);
		return rc;
	}
	snprintf(pinned.sun_path, sizeof(pinned.sun_path), "/proc/self/fd/%d", out->pin);
	memcpy(out->address.bytes, &pinned, sizeof(pinned));
	out->n = sizeof(pinned);
	return 0;
}

int socket_name_take(const struct caller *c, uint64_t address, uint64_t n, struct socket_name *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	out->pin = -1;
	if ((int)n < 0 || (int)n > (int)sizeof(out->address))
		return -EINVAL;
	out->n = (socklen_t)n;
	rc = caller_read(c, address, out->address.bytes, out->n);
	if (rc != 0 || c->domain != AF_UNIX)
		return rc;
	/* Of another family, too short or too long: the kernel refuses it without looking anything
	 * up. */
	if (out->n <= PATH_AT || out->n > sizeof(struct sockaddr_un) ||
	        out->address.any.sa_family != AF_UNIX)
		return 0;
	if (out->address.bytes[PATH_AT] == '\0')
		return decide_abstract(c);
	return decide_path(c, out);
}

void socket_name_close(struct socket_name *name)
{
	if (name->pin >= 0)
		close(name->pin);
	name->pin = -1;
}
