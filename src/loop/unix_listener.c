/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket's file has the mode that the umask leaves, so that is set around bind(2): at no moment
 * can somebody else connect. Whether a file that is there already is in use is asked by connecting
 * to it: a listener that is gone refuses.
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
#define PASSED_MAX 64
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
	int error = bind(fd, (const struct sockaddr *)name, sizeof *name) < 0 ? -errno : 0;

	umask(before);
	return error;
}

/* 0: the file is a socket without a listener and has been removed. */
static int remove_stale(const struct sockaddr_un *name)
{
	struct stat st;
	int fd, error;

	if (lstat(name->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	error = connect(fd, (const struct sockaddr *)name, sizeof *name) < 0 ? errno : 0;
	close(fd);
	if (error != ECONNREFUSED && error != ENOENT)
		return -EADDRINUSE; /* it answers, or its backlog is full */
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
	memcpy(listener->path, name->sun_path, sizeof listener->path);
	listener->ours = true;
	return listen(listener->fd, UNIX_LISTENER_BACKLOG) < 0 ? -errno : 0;
}

int unix_listener_open(struct unix_listener *listener, const char *path, gid_t gid)
{
	struct sockaddr_un name;
	int error;

	*listener = (struct unix_listener){.fd = -1};
	error = name_of(path, &name);
	if (error)
		return error;
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0)
		return -errno;
	error = bind_with_mode(listener->fd, &name);
	if (error == -EADDRINUSE) {
		error = remove_stale(&name);
		if (!error)
			error = bind_with_mode(listener->fd, &name);
	}
	if (!error)
		error = finish(listener, &name, gid);
	if (error)
		unix_listener_close(listener);
	return error;
}

static bool option_is(int fd, int option, int wanted)
{
	int value = 0;
	socklen_t size = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

static bool listens(int fd)
{
	return option_is(fd, SO_DOMAIN, AF_UNIX) && option_is(fd, SO_TYPE, SOCK_STREAM) &&
	       option_is(fd, SO_ACCEPTCONN, 1);
}

/* How many descriptors were passed to this very process. */
static unsigned passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	uint64_t number;

	if (!pid || !count || !slice_to_u64(slice_from_string(pid), INT32_MAX, &number) ||
	        (pid_t)number != getpid() ||
	        !slice_to_u64(slice_from_string(count), PASSED_MAX, &number))
		return 0;
	return (unsigned)number;
}

int unix_listener_inherit(struct unix_listener *listener)
{
	unsigned count = passed();

	*listener = (struct unix_listener){.fd = -1};
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (unsigned i = 0; i < count; i++) {
		int fd = PASSED_FIRST + (int)i;

		if (listener->fd < 0 && listens(fd))
			listener->fd = fd;
		else
			close(fd);
	}
	if (listener->fd < 0)
		return count ? -EINVAL : -ENOENT;
	if (fcntl(listener->fd, F_SETFD, FD_CLOEXEC) < 0 ||
	        fcntl(listener->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0) {
		int error = -errno;

		unix_listener_close(listener);
		return error;
	}
	return 0;
}

int unix_listener_adopt(struct unix_listener *listener, int fd, bool ours)
{
	struct sockaddr_un name = {0};
	socklen_t size = sizeof name - 1;
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
	memcpy(listener->path, name.sun_path, sizeof listener->path);
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
