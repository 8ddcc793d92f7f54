/* SPDX-License-Identifier: Apache-2.0 */
/* linux: calls that glibc 2.36 has and musl 1.2.5 does not have. Files that need one of them include this instead of
 * <malloc.h>, <sys/mount.h> and <sys/pidfd.h>. Each call does what its manual page says. */
#ifndef VETHGUARD_BASE_LINUX_H
#define VETHGUARD_BASE_LINUX_H

#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <sys/pidfd.h>

/* Bytes allocated by malloc(3) and not freed; 0 if the C library cannot tell. */
static inline uint64_t heap_bytes_used(void)
{
	struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
}
#else
#include <linux/close_range.h>
#include <linux/mount.h>
#include <signal.h>
#include <sys/syscall.h>

/* The kernel's struct statx has a mount's number, musl's does not. Macros rename our functions, so that they do not
 * collide with those of a later C library. */
#define statx kernel_statx
#define statx_timestamp kernel_statx_timestamp
#include <linux/stat.h>

static inline int kernel_statx(int fd, const char *path, int flags, unsigned mask, struct kernel_statx *out)
{
	return (int)syscall(SYS_statx, fd, path, flags, mask, out);
}

#define close_range kernel_close_range
static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

#define execveat kernel_execveat
static inline int execveat(int fd, const char *path, char *const argv[], char *const env[], int flags)
{
	return (int)syscall(SYS_execveat, fd, path, argv, env, flags);
}

#define pidfd_open kernel_pidfd_open
static inline int pidfd_open(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

#define pidfd_send_signal kernel_pidfd_send_signal
static inline int pidfd_send_signal(int fd, int number, siginfo_t *info, unsigned flags)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, number, info, flags);
}

#define fsopen kernel_fsopen
static inline int fsopen(const char *name, unsigned flags)
{
	return (int)syscall(SYS_fsopen, name, flags);
}

#define fsconfig kernel_fsconfig
static inline int fsconfig(int fd, unsigned command, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

#define fsmount kernel_fsmount
static inline int fsmount(int fd, unsigned flags, unsigned attributes)
{
	return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

#define open_tree kernel_open_tree
static inline int open_tree(int fd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, fd, path, flags);
}

#define move_mount kernel_move_mount
static inline int move_mount(int from, const char *path, int to, const char *to_path, unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, path, to, to_path, flags);
}

#define mount_setattr kernel_mount_setattr
static inline int mount_setattr(int fd, const char *path, unsigned flags, struct mount_attr *attributes, size_t size)
{
	return (int)syscall(SYS_mount_setattr, fd, path, flags, attributes, size);
}

/* musl's allocator can be neither tuned nor queried. */
#define M_MMAP_THRESHOLD 0
#define M_TRIM_THRESHOLD 0
static inline int mallopt(int option, int value)
{
	(void)option, (void)value;
	return 1;
}

static inline int malloc_trim(size_t kept)
{
	(void)kept;
	return 0;
}

static inline uint64_t heap_bytes_used(void)
{
	return 0;
}
#endif

#endif
