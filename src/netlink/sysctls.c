/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to a namespace's sysctls. A procfs keeps an entry in memory for each name that was looked
 * up, once per network namespace, and searches all entries of one name linearly: with a thousand
 * gates, one sysctl takes longer than all sysctls do with one gate. So a private procfs is used and
 * replaced after some uses, at a time when nobody waits, because that takes the kernel a
 * millisecond or more. If none can be mounted (without root), /proc is used.
 */
#include "vethguard/netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "netlink/sysctls.h"
#include "vethguard/base/linux.h"

#define USES_RENEW 16 /* from here on a replacement is due */
#define USES_MAX 128  /* from here on it cannot be put off */
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

/* Namespaces are visited one after the other, so there is no concurrent use. */
static struct {
	int root; /* mounted on no directory, so it vanishes with its descriptor; -1: none yet */
	unsigned uses;
	bool never; /* mounting is impossible */
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
	int fd, rc = 0;

	if (strlen(name) > NAME_BYTES_MAX)
		return -ENAMETOOLONG;
	if (strstr(name, "..") || name[0] == '/')
		return -EINVAL;
	fd = openat(root, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}
