/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket's file gets its mode from the umask, so the umask is set around bind(2): nobody else can
 * connect at any moment. Whether an existing file is in use is found out by connecting to it:
 * without a listener the connection is refused.
 *
 * A socket made by the service manager outlives this process, and its queue keeps clients while no
 * daemon runs. It depends on the manager's configuration, so it is checked here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vethguard/base/slice.h"
#include "vethguard/loop/unix_listener.h"

#define PASSED_FIRST 3 /* SD_LISTEN_FDS_START */
#define PASSED_ANY (INT32_MAX - PASSED_FIRST)
#define SOCKET_UMASK 0117 /* leaves 0660 */

static int name_of(const char *path, struct sockaddr_un *name)
{
	size_t n = strlen(path);

	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n == 0)
		return -EINVAL;
	if (n > UNIX_LISTENER_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(name->sun_path, path, n);
	return 0;
}

static int bind_with_mode(int fd, const struct sockaddr_un *name)
{
	mode_t before = umask(SOCKET_UMASK);
	int rc = bind(fd, (const struct sockaddr *)name, sizeof(*name)) < 0 ? -errno : 0;

	umask(before);
	return rc;
}

/* Returns 0 if the path is free: there was no file, or a socket without a listener, which was
 * removed. */
static int remove_stale(const struct sockaddr_un *name)
{
	struct stat st;
	int fd, rc;

	if (lstat(name->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)name, sizeof(*name)) < 0 ? errno : 0;
	close(fd);
	if (rc != ECONNREFUSED && rc != ENOENT)
		return -EADDRINUSE; /* somebody listens, or the backlog is full */
	return unlink(name->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int finish(struct unix_listener *listener, const struct sockaddr_un *name, gid_t gid)
{
	struct stat st;

	if (gid != (gid_t)-1 && lchown(name->sun_path, (uid_t)-1, gid) < 0)
		return -errno;
	if (lstat(name->sun_path, &st) < 0)
		return -errno;
	listener->device = st.st_dev;
	listener->inode = st.st_ino;
	listener->changed = st.st_ctim;
	memcpy(listener->path, name->sun_path, sizeof(listener->path));
	listener->ours = true;
	return listen(listener->fd, UNIX_LISTENER_BACKLOG) < 0 ? -errno : 0;
}

int unix_listener_open(struct unix_listener *listener, const char *path, gid_t gid)
{
	struct sockaddr_un name;
	int rc;

	*listener = (struct unix_listener){.fd = -1};
	rc = name_of(path, &name);
	if (rc)
		return rc;
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0)
		return -errno;
	rc = bind_with_mode(listener->fd, &name);
	if (rc == -EADDRINUSE) {
		rc = remove_stale(&name);
		if (!rc)
			rc = bind_with_mode(listener->fd, &name);
	}
	if (!rc)
		rc = finish(listener, &name, gid);
	if (rc)
		unix_listener_close(listener);
	return rc;
}

static bool option_is(int fd, int option, int wanted)
{
	int value = 0;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

static bool listens(int fd)
{
	return option_is(fd, SO_DOMAIN, AF_UNIX) && option_is(fd, SO_TYPE, SOCK_STREAM) &&
	       option_is(fd, SO_ACCEPTCONN, 1);
}

/* How many descriptors were passed to exactly this process. Negative: the variables are not
 * numbers. */
static int passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	uint64_t number;

	if (!pid || !count)
		return 0;
	if (!slice_to_u64(slice_from_string(pid), INT32_MAX, &number))
		return -1;
	if ((pid_t)number != getpid())
		return 0; /* meant for an earlier process, which did not remove them */
	if (!slice_to_u64(slice_from_string(count), PASSED_ANY, &number) || number == 0)
		return -1;
	return (int)number;
}

static void forget_passed(void)
{
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_PIDFDID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

static bool is_bound_to(int fd, const char *path)
{
	struct sockaddr_un name = {0};
	socklen_t size = sizeof(name) - 1; /* a name may fill its field without a NUL */

	return getsockname(fd, (struct sockaddr *)&name, &size) == 0 &&
	       strcmp(name.sun_path, path) == 0;
}

/* NULL if only those can connect who could connect to a socket made here. */
static const char *objection_to_file(const char *path, gid_t gid)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return "its file is gone";
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return "its file belongs to another user (SocketUser=)";
	if (st.st_mode & S_IWOTH)
		return "its file lets everybody connect (SocketMode=0660)";
	if ((st.st_mode & S_IWGRP) && st.st_gid != 0 && st.st_gid != gid)
		return "its file lets another group connect (SocketGroup=)";
	return NULL;
}

static const char *objection_to(int fd, const char *path, gid_t gid)
{
	if (!listens(fd))
		return "it is not a listening Unix stream socket";
	if (!is_bound_to(fd, path))
		return "it is bound to another path (ListenStream=)";
	return objection_to_file(path, gid);
}

int unix_listener_inherit(
        struct unix_listener *listener, const char *path, gid_t gid, const char **why)
{
	int count = passed();

	*listener = (struct unix_listener){.fd = -1};
	forget_passed();
	if (count == 0)
		return -ENOENT;
	if (count < 0)
		*why = "LISTEN_PID or LISTEN_FDS is not a number above 0";
	else if (count > 1)
		*why = "there is more than one descriptor";
	else
		*why = objection_to(PASSED_FIRST, path, gid);
	if (!*why && (fcntl(PASSED_FIRST, F_SETFD, FD_CLOEXEC) < 0 ||
	                     fcntl(PASSED_FIRST, F_SETFL, O_RDWR | O_NONBLOCK) < 0))
		*why = "its flags cannot be set";
	if (*why)
		return -EINVAL;
	listener->fd = PASSED_FIRST;
	return 0;
}

int unix_listener_adopt(struct unix_listener *listener, int fd, bool ours)
{
	struct sockaddr_un name = {0};
	socklen_t size = sizeof(name) - 1;
	struct stat st;

	*listener = (struct unix_listener){.fd = fd};
	if (!listens(fd))
		return -EINVAL;
	if (!ours || getsockname(fd, (struct sockaddr *)&name, &size) < 0 ||
	        lstat(name.sun_path, &st) < 0)
		return 0; /* nothing to remove later */
	listener->device = st.st_dev;
	listener->inode = st.st_ino;
	listener->changed = st.st_ctim;
	memcpy(listener->path, name.sun_path, sizeof(listener->path));
	listener->ours = true;
	return 0;
}

void unix_listener_give(struct unix_listener *listener)
{
	listener->ours = false;
	unix_listener_close(listener);
}

void unix_listener_close(struct unix_listener *listener)
{
	struct stat st;

	if (listener->ours && lstat(listener->path, &st) == 0 && st.st_dev == listener->device &&
	        st.st_ino == listener->inode && st.st_ctim.tv_sec == listener->changed.tv_sec &&
	        st.st_ctim.tv_nsec == listener->changed.tv_nsec)
		unlink(listener->path);
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	listener->ours = false;
}
