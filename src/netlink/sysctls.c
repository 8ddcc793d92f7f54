/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to a namespace's sysctls. A procfs keeps an entry in memory for each name that was looked
 * up, once for each network namespace it was looked up in, and looks through all those of one name
 * one after the other: with a thousand gates one sysctl takes longer than all of them with one
 * gate. So they are reached through a procfs that nobody else has, and that is thrown away after
 * some uses. Where none can be mounted (without root), /proc serves as well.
 */
#include "vethguard/netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "sysctls.h"

#define USES_MAX 32
#define NAME_BYTES_MAX 160

static int mount_proc(void)
{
	int fs = fsopen("proc", FSOPEN_CLOEXEC), mounted = -1;

	if (fs < 0)
		return -1;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mounted = fsmount(fs, FSMOUNT_CLOEXEC,
		        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	close(fs);
	return mounted;
}

/* Reached from no directory: it is gone with its descriptor. -1: there is none. Namespaces are
 * visited one after the other, so nobody else is here. */
static int own_proc(void)
{
	static int own = -1;
	static unsigned uses;
	static bool never;

	if (own >= 0 && uses++ < USES_MAX)
		return own;
	if (own >= 0)
		close(own);
	own = never ? -1 : mount_proc();
	never = own < 0;
	uses = 1;
	return own;
}

int netns_sysctls_open(void)
{
	int own = own_proc(), fd;

	fd = own >= 0 ? openat(own, "sys/net", O_PATH | O_DIRECTORY | O_CLOEXEC)
	              : open("/proc/sys/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int netns_sysctl(const char *name, const char *value)
{
	int root, fd, result = 0;

	if (strlen(name) > NAME_BYTES_MAX)
		return -ENAMETOOLONG;
	if (strstr(name, "..") || name[0] == '/')
		return -EINVAL;
	root = netns_sysctls_open();
	if (root < 0)
		return root;
	fd = openat(root, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		result = -errno;
	if (fd >= 0)
		close(fd);
	close(root);
	return result;
}
