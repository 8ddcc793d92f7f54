/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel resolves a path within one mount only (openat2(2), RESOLVE_NO_XDEV), so it meets no
 * other file system; links that lead elsewhere fail as well. Usually that resolves the whole path
 * in one call. Otherwise the walk goes component by component to the next mount, opens its root,
 * which asks no server for anything, and looks up its type in /proc before the next step. statfs(2)
 * and statx(2) would ask the server.
 *
 * The descriptor holds what was found: a link or mount that is exchanged meanwhile changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/os/local_file.h"

#define LINKS_MAX 40 /* the kernel's limit, path_resolution(7) */
#define MOUNTS_BUFFER 16384
#define WITHIN (RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS)

static const char *const local_types[] = {"bcachefs", "btrfs", "devtmpfs", "erofs", "exfat", "ext2",
        "ext3", "ext4", "f2fs", "iso9660", "jfs", "nsfs", "ntfs3", "ramfs", "squashfs", "tmpfs",
        "udf", "vfat", "xfs", "zfs", NULL};

struct walk {
	int at; /* a directory that is local */
	const char *rest;
	char text[PATH_MAX]; /* holds rest once a link was followed */
	unsigned links;
};

static int open_path(int at, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags), .resolve = resolve};
	long fd = syscall(SYS_openat2, at, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static bool is_local_type(const char *line)
{
	const char *type = strstr(line, " - "); /* proc(5): after the optional fields */
	size_t n;

	if (!type)
		return false;
	type += 3;
	n = strcspn(type, " ");
	for (const char *const *t = local_types; *t; t++)
		if (strlen(*t) == n && memcmp(*t, type, n) == 0)
			return true;
	return false;
}

/* Only mounts of this process's namespace are listed, the oldest first. */
static bool mount_is_local(long id)
{
	FILE *in = fopen("/proc/self/mountinfo", "re");
	char buffer[MOUNTS_BUFFER], *line = NULL;
	size_t size = 0;
	bool local = false;

	if (!in)
		return false;
	setvbuf(in, buffer, _IOFBF, sizeof(buffer));
	while (getline(&line, &size, in) > 0)
		if (strtol(line, NULL, 10) == id) {
			local = is_local_type(line);
			break;
		}
	free(line);
	fclose(in);
	return local;
}

/* Returns the id of the mount that an open file is on; negative: unknown. */
static long mount_of(int fd)
{
	char path[64], text[512];
	const char *at;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return -1;
	n = read(info, text, sizeof(text) - 1);
	close(info);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, "mnt_id:");
	return at ? strtol(at + strlen("mnt_id:"), NULL, 10) : -1;
}

/* Takes the first component of rest, without its slashes. Returns false if it is too long. */
static bool take_component(struct walk *w, char out[NAME_MAX + 1])
{
	size_t n;

	w->rest += strspn(w->rest, "/");
	n = strcspn(w->rest, "/");
	if (n == 0 || n > NAME_MAX)
		return false;
	memcpy(out, w->rest, n);
	out[n] = 0;
	w->rest += n;
	return true;
}

static void go_to(struct walk *w, int fd)
{
	close(w->at);
	w->at = fd;
}

/* Follows a link that leads to another mount, unless it is one of the kernel's magic links. Other
 * users' links in folders where everybody may create some are not followed (proc(5),
 * protected_symlinks): the kernel decides about these, in the child. */
static int follow(struct walk *w, int link, const struct stat *st)
{
	char target[PATH_MAX], next[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target));
	struct stat folder;
	int fd;

	if (n <= 0 || n >= (ssize_t)sizeof(target) || ++w->links > LINKS_MAX ||
	        fstat(w->at, &folder) < 0)
		return LOCAL_FILE_UNKNOWN;
	if ((folder.st_mode & S_ISVTX) && (folder.st_mode & S_IWOTH) && st->st_uid != geteuid())
		return LOCAL_FILE_UNKNOWN;
	if (snprintf(next, sizeof(next), "%.*s%s", (int)n, target, w->rest) >= (int)sizeof(next))
		return -ENAMETOOLONG;
	memcpy(w->text, next, sizeof(next));
	w->rest = w->text;
	if (w->rest[0] != '/')
		return 0;
	fd = open_path(AT_FDCWD, "/", O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	go_to(w, fd);
	return 0;
}

/* Goes on by one component. Negative: the end. */
static int step(struct walk *w)
{
	char name[NAME_MAX + 1];
	struct stat st;
	int fd, rc;

	if (!take_component(w, name) || strcmp(name, "..") == 0)
		return LOCAL_FILE_UNKNOWN;
	fd = open_path(w->at, name, O_NOFOLLOW, WITHIN);
	if (fd == -EXDEV) {
		fd = open_path(w->at, name, O_NOFOLLOW, RESOLVE_NO_MAGICLINKS);
		if (fd >= 0 && !mount_is_local(mount_of(fd))) {
			close(fd);
			fd = LOCAL_FILE_UNKNOWN;
		}
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode)) {
		go_to(w, fd);
		return 0;
	}
	rc = follow(w, fd, &st);
	close(fd);
	return rc;
}

static int walk(struct walk *w)
{
	for (;;) {
		int rc, fd;

		w->rest += strspn(w->rest, "/");
		if (!w->rest[0])
			return fcntl(w->at, F_DUPFD_CLOEXEC, 0);
		fd = open_path(w->at, w->rest, 0, WITHIN);
		/* A magic link of proc(5), or a loop: the kernel decides which, in the child. */
		if (fd == -ELOOP)
			return LOCAL_FILE_UNKNOWN;
		if (fd != -EXDEV)
			return fd;
		rc = step(w);
		if (rc)
			return rc;
	}
}

static int walk_from_root(const char *path)
{
	struct walk w = {.at = open_path(AT_FDCWD, "/", O_DIRECTORY, 0), .rest = path};
	int fd;

	if (w.at < 0)
		return w.at;
	fd = walk(&w);
	close(w.at);
	return fd;
}

int local_file_find(const char *path)
{
	int fd = path[0] == '/' ? open_path(AT_FDCWD, path, 0, WITHIN) : LOCAL_FILE_UNKNOWN;

	return fd == -EXDEV ? walk_from_root(path) : fd == -ELOOP ? LOCAL_FILE_UNKNOWN : fd;
}

/* No component is empty, "." or "..". */
static bool is_normal(const char *path)
{
	while (*path == '/') {
		const size_t n = strcspn(++path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && !memcmp(path, "..", 2)))
			return false;
		path += n;
	}
	return *path == 0;
}

int local_file_find_real(const char *path, bool *real)
{
	int fd = path[0] == '/' && is_normal(path)
	                 ? open_path(AT_FDCWD, path, 0, WITHIN | RESOLVE_NO_SYMLINKS)
	                 : LOCAL_FILE_UNKNOWN;

	*real = fd >= 0;
	return fd >= 0 ? fd : local_file_find(path);
}

int local_file_open(const char *path)
{
	int fd = local_file_find(path), file;
	char again[64];
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	file = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file < 0)
		file = -errno;
	close(fd);
	return file;
}

int local_file_look(const char *path, struct stat *st)
{
	int fd = open_path(AT_FDCWD, path, 0, WITHIN), error;

	if (fd < 0)
		return fd;
	error = fstat(fd, st) < 0 ? -errno : 0;
	close(fd);
	return error;
}

int local_file_above(int directory)
{
	return open_path(directory, "..", O_DIRECTORY, WITHIN);
}
