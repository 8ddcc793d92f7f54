/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second stage: an empty file system. A read-only tmpfs without room for a single further inode
 * becomes the root of a new mount namespace, and the old tree is detached. New IPC and UTS
 * namespaces leave System V and POSIX queues and the host name behind.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/jail_state.h"

/* any directory that always exists serves as the mount point */
#define JAIL_ROOT_AT "/proc"

int jail_empty_root(void)
{
	unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;

	if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) != 0)
		return -errno;
	jail_read_namespaces(); /* while /proc exists */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -errno;
	if (mount("none", JAIL_ROOT_AT, "tmpfs", flags, "size=4k,nr_inodes=2,mode=555") != 0)
		return -errno;
	if (chdir(JAIL_ROOT_AT) != 0)
		return -errno;
	/* the old root lands on top of the new one, at the same place; detaching it uncovers the
	 * new one */
	if (syscall(SYS_pivot_root, ".", ".") != 0)
		return -errno;
	if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
		return -errno;
	jail_state.empty_root = true;
	return 0;
}
