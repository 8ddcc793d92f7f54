/* SPDX-License-Identifier: Apache-2.0 */
/* Named network namespaces; see vethguard/adapter/netns_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/adapter/netns_file.h"
#include "vethguard/netlink/netns.h"

static int make_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];

	if (!slash || slash == path || (size_t)(slash - path) >= sizeof(directory))
		return -ENAMETOOLONG;
	memcpy(directory, path, (size_t)(slash - path));
	directory[slash - path] = '\0';
	return mkdir(directory, 0755) == 0 || errno == EEXIST ? 0 : -errno;
}

static int raise_loopback(void *context)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	(void)context;
	if (fd < 0)
		return -errno;
	rc = ioctl(fd, SIOCSIFFLAGS, &request) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

static int bind_to(int netns, const char *path)
{
	char source[64];

	snprintf(source, sizeof(source), "/proc/self/fd/%d", netns);
	return mount(source, path, NULL, MS_BIND, NULL) == 0 ? 0 : -errno;
}

int netns_file_make(const char *path)
{
	int rc = make_directory(path), file, netns;

	if (rc)
		return rc;
	file = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (file < 0)
		return -errno;
	close(file);
	netns = netns_new();
	rc = netns < 0 ? netns : netns_run(netns, raise_loopback, NULL);
	if (!rc)
		rc = bind_to(netns, path);
	if (netns >= 0)
		close(netns);
	if (rc)
		unlink(path);
	return rc;
}

int netns_file_remove(const char *path)
{
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return -errno;
	return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}
