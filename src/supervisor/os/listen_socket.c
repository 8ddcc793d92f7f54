/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory is opened once, with the caller's rights and without waiting for a file system that
 * may not answer; everything else happens within that descriptor, so a directory that is exchanged
 * meanwhile changes nothing. bind(2) takes a path only, so it gets one through /proc/self/fd, which
 * also bounds the length of the name and not of the whole path.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vethguard/base/linux.h"
#include "supervisor/os/listen_socket.h"
#include "supervisor/os/listen_vsock.h"
#include "supervisor/os/local_file.h"

#define BACKLOG 1024

#ifndef SIOCUNIXFILE
#define SIOCUNIXFILE (SIOCPROTOPRIVATE + 0) /* linux/un.h */
#endif

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

/* One operation on the file, which runs with the caller's rights. */
struct work {
	struct listen_socket *s;
	int directory; /* O_PATH */
	int fd;        /* the socket; -1: none */
	uid_t asker;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 3, 4))) static int because(
        const struct work *w, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(w->why, w->why_size, format, arguments);
	va_end(arguments);
	return error;
}

const char *listen_path_objection(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (path[0] != '/')
		return "the path of a socket has to be absolute";
	if (strlen(path) > LISTEN_PATH_MAX)
		return "the path of a socket has at most 107 bytes, because no client could name a "
		       "longer one";
	if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return "the path of a socket has to end in a file's name";
	if (strlen(name) > LISTEN_NAME_MAX)
		return "the name of a socket's file has at most 80 bytes";
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return "the path of a socket has no control characters";
	return NULL;
}
_Static_assert(LISTEN_PATH_MAX == 107 && LISTEN_NAME_MAX == 80, "as the texts say");
_Static_assert(sizeof("/proc/self/fd/2147483647/") + LISTEN_NAME_MAX <=
                       sizeof(((struct sockaddr_un *)0)->sun_path),
        "the longest name fits behind a descriptor");

const char *listen_socket_name(struct listen_socket *s, const char *path)
{
	const bool vsock = vsock_name_is(slice_from_string(path));
	const char *objection = vsock ? vsock_name_parse(slice_from_string(path), &s->vsock)
	                              : listen_path_objection(path);

	if (objection)
		return objection;
	snprintf(s->path, sizeof(s->path), "%s", path);
	return NULL;
}

static const char *name_of(const struct listen_socket *s)
{
	return strrchr(s->path, '/') + 1;
}

static int open_directory(void *context)
{
	struct work *w = context;
	char path[LISTEN_PATH_MAX + 1];
	struct stat st;
	int n = (int)(name_of(w->s) - w->s->path);

	snprintf(path, sizeof(path), "%.*s", n > 1 ? n - 1 : 1, w->s->path);
	w->directory = local_file_find(path);
	if (w->directory == LOCAL_FILE_UNKNOWN)
		return because(w, -EREMOTE,
		        "%s: the socket's directory has to be on a local file system", path);
	if (w->directory < 0)
		return because(w, w->directory, "%s: %s", path, strerror(-w->directory));
	if (fstat(w->directory, &st) < 0 || !S_ISDIR(st.st_mode))
		return because(w, -ENOTDIR, "%s is not a directory", path);
	return 0;
}

static struct sockaddr_un address_of(const struct work *w)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/%s", w->directory,
	        name_of(w->s));
	return to;
}

/* True if nothing listens on the socket that lies there. */
static bool is_stale(const struct work *w)
{
	const struct sockaddr_un to = address_of(w);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool stale = fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 &&
	             errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return stale;
}

static uint64_t born_at(int directory, const char *name, int flags)
{
	struct statx st;

	if (statx(directory, name, flags, STATX_BTIME, &st) < 0 || !(st.stx_mask & STATX_BTIME))
		return 0;
	return (uint64_t)st.stx_btime.tv_sec * 1000000000u + st.stx_btime.tv_nsec;
}

/* True if that is the file that was made. */
static bool is_it(const struct work *w, const struct stat *st)
{
	const struct listen_socket *s = w->s;
	uint64_t born = born_at(w->directory, name_of(s), AT_SYMLINK_NOFOLLOW);

	return st->st_ino == s->inode && st->st_dev == s->device &&
	       (!born || !s->born_ns || born == s->born_ns);
}

static int remove_own(void *context)
{
	const struct work *w = context;
	const struct listen_socket *s = w->s;
	struct stat st;

	if (fstatat(w->directory, name_of(s), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode) || (st.st_uid != s->uid && st.st_uid != w->asker))
		return 0;
	if (s->inode ? !is_it(w, &st) : !is_stale(w))
		return 0;
	return unlinkat(w->directory, name_of(s), 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int exists(void *context)
{
	struct work *w = context;
	struct stat st;

	if (fstatat(w->directory, name_of(w->s), &st, AT_SYMLINK_NOFOLLOW) == 0)
		return because(w, -EADDRINUSE,
		        "%s exists already: a socket is made there only if nothing is; remove it "
		        "if nobody uses it, or name another path",
		        w->s->path);
	return errno == ENOENT ? 0 : because(w, -errno, "%s: %s", w->s->path, strerror(errno));
}

/* The file gets the mode of the socket's own inode (unix(7)), so it is never more open than
 * wanted. */
static int bind_here(void *context)
{
	struct work *w = context;
	const struct sockaddr_un to = address_of(w);
	const int none = 0;
	mode_t before;
	int rc = 0;

	w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0 || fchmod(w->fd, w->s->mode) < 0)
		return because(w, -errno, "%s: %s", w->s->path, strerror(errno));
	/* Accepted sockets inherit it. So nobody can send descriptors to the worker, which would
	 * have to close them, and that may take long (SO_LINGER). An older kernel does not know
	 * this option. */
	(void)setsockopt(w->fd, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
	before = umask(0);
	if (bind(w->fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		rc = -errno;
	umask(before);
	if (rc == -EADDRINUSE)
		return because(w, rc, "%s exists already", w->s->path);
	return rc ? because(w, rc, "%s: %s", w->s->path, strerror(-rc)) : 0;
}

/* Finds the file that was bound: by its descriptor, which needs CAP_NET_ADMIN, else by its name.
 * Returns an O_PATH descriptor or -errno. */
static int bound_file(const struct work *w)
{
	int fd = ioctl(w->fd, SIOCUNIXFILE);

	if (fd < 0)
		fd = openat(w->directory, name_of(w->s), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	else
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct owning {
	const struct listen_socket *s;
	int file;
};

static int set_owner(void *context)
{
	const struct owning *o = context;

	return fchownat(o->file, "", o->s->uid, o->s->gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Notes which file it is, and gives it to its owner. */
static int settle_file(struct work *w, const struct identity *id)
{
	struct owning owning = {w->s, bound_file(w)};
	struct stat st;
	int rc = owning.file < 0 ? owning.file : 0;

	if (!rc && fstat(owning.file, &st) < 0)
		rc = -errno;
	if (!rc && !S_ISSOCK(st.st_mode))
		rc = -EADDRINUSE; /* somebody else's, under that name */
	if (!rc) {
		w->s->device = st.st_dev;
		w->s->inode = st.st_ino;
		w->s->born_ns = born_at(owning.file, "", AT_EMPTY_PATH);
	}
	if (!rc && (st.st_uid != w->s->uid || st.st_gid != w->s->gid))
		rc = identity_run(id, set_owner, &owning);
	if (owning.file >= 0)
		close(owning.file);
	if (rc == -EPERM)
		return because(w, rc,
		        "%s cannot belong to user %u and group %u: only root gives files away, and "
		        "others to groups of their own only",
		        w->s->path, (unsigned)w->s->uid, (unsigned)w->s->gid);
	return rc ? because(w, rc, "%s: %s", w->s->path, strerror(-rc)) : 0;
}

static int unlink_bound(void *context)
{
	const struct work *w = context;
	struct stat st;

	if (fstatat(w->directory, name_of(w->s), &st, AT_SYMLINK_NOFOLLOW) == 0 && is_it(w, &st))
		unlinkat(w->directory, name_of(w->s), 0);
	return 0;
}

static void close_work(struct work *w)
{
	if (w->directory >= 0)
		close(w->directory);
	w->directory = -1;
}

/* Opens the directory. close_work() follows, whatever it returns. */
static int open_work(struct work *w, struct listen_socket *s, const struct identity *id, char *why,
        size_t why_size)
{
	*w = (struct work){.s = s, .directory = -1, .fd = -1, .asker = id->uid};
	w->why = why;
	w->why_size = why_size;
	return identity_run(id, open_directory, w);
}

static int check_vsock(
        const struct listen_socket *s, const struct identity *id, char *why, size_t why_size)
{
	int fd = -EPERM;

	if (id->uid != 0 && id->uid != geteuid())
		snprintf(why, why_size, "only root attaches machines by their vsock");
	else
		fd = listen_vsock_open(s, why, why_size);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int listen_socket_check(
        const struct listen_socket *s, const struct identity *id, char *why, size_t why_size)
{
	struct listen_socket copy = *s;
	struct work w;
	int rc;

	if (s->vsock.cid)
		return check_vsock(s, id, why, why_size);
	rc = open_work(&w, &copy, id, why, why_size);
	if (!rc)
		rc = identity_run(id, exists, &w);
	close_work(&w);
	return rc;
}

static int make(struct work *w, const struct identity *id)
{
	int rc = identity_run(id, exists, w);

	if (!rc)
		rc = identity_run(id, bind_here, w);
	if (rc)
		return rc;
	rc = settle_file(w, id);
	if (!rc && listen(w->fd, BACKLOG) < 0)
		rc = because(w, -errno, "%s: %s", w->s->path, strerror(errno));
	if (rc)
		identity_run(id, unlink_bound, w);
	return rc;
}

int listen_socket_open(
        struct listen_socket *s, const struct identity *id, bool again, char *why, size_t why_size)
{
	struct work w;
	int rc;

	if (s->vsock.cid)
		return listen_vsock_open(s, why, why_size);
	rc = open_work(&w, s, id, why, why_size);
	if (!rc && again) {
		rc = identity_run(id, remove_own, &w);
		if (rc)
			because(&w, rc, "%s cannot be replaced: %s", s->path, strerror(-rc));
	}
	s->inode = 0;
	if (!rc)
		rc = make(&w, id);
	close_work(&w);
	if (!rc)
		return w.fd;
	s->inode = 0;
	if (w.fd >= 0)
		close(w.fd);
	return rc;
}

int listen_socket_remove(const struct listen_socket *s, const struct identity *id)
{
	struct listen_socket copy = *s;
	char why[256];
	struct work w;
	int rc;

	if (s->vsock.cid)
		return 0;
	rc = open_work(&w, &copy, id, why, sizeof(why));
	if (!rc)
		rc = identity_run(id, remove_own, &w);
	close_work(&w);
	return rc == -ENOENT ? 0 : rc;
}
