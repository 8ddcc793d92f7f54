/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to a namespace's sysctls. A procfs keeps an entry in memory for each name that was looked
 * up, once for each network namespace it was looked up in, and looks through all those of one name
 * one after the other: with a thousand gates one sysctl takes longer than all of them with one
 * gate. So they are reached through a procfs that nobody else has, and that is thrown away after
 * some uses: at a time when nobody waits, because the kernel takes a millisecond or more for that.
 * Where none can be mounted (without root), /proc serves as well.
 */
#include "vethguard/netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "netlink/sysctls.h"
#include "vethguard/base/linux.h"

#define USES_RENEW 16 /* then it is time for another one */
#define USES_MAX 128  /* then it cannot be put off */
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

/* Namespaces are visited one after the other, so nobody else is here. */
static struct {
	int root; /* reached from no directory: it is gone with its descriptor; -1: none yet */
	unsigned uses;
	bool never; /* none can be had */
} own = {.root = -1};

static void renew(unsigned uses_max)
{
	if (own.never || (own.root >= 0 && own.uses < uses_max))
		return;
	if (own.root >= 0)
		close(own.root);
	own.root = mount_proc();
	own.never = own.root < 0;
	own.uses = 0;
}

void netns_sysctls_renew(void)
{
	renew(USES_RENEW);
}

int netns_sysctls_open(void)
{
	int fd;

	renew(USES_MAX);
	own.uses++;
	fd = own.root >= 0 ? openat(own.root, "sys/net", O_PATH | O_DIRECTORY | O_CLOEXEC)
	                   : open("/proc/sys/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int netns_sysctl_at(int root, const char *name, const char *value)
{
	int fd, result = 0;

	if (strlen(name) > NAME_BYTES_MAX)
		return -ENAMETOOLONG;
	if (strstr(name, "..") || name[0] == '/')
		return -EINVAL;
	fd = openat(root, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		result = -errno;
	if (fd >= 0)
		close(fd);
	return result;
}
