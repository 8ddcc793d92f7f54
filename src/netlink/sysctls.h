/* SPDX-License-Identifier: Apache-2.0 */
/* sysctls: the sysctls below net/ of the calling thread's namespace. */
#ifndef VETHGUARD_SRC_NETLINK_SYSCTLS_H
#define VETHGUARD_SRC_NETLINK_SYSCTLS_H

/* Opens their directory, for this thread and this namespace only; the caller closes it. Returns the
 * descriptor or -errno. */
int netns_sysctls_open(void);
/* Writes an entry below the directory ("ipv4/ip_forward"); name has neither ".." nor a leading
 * slash. Returns 0 or -errno: -ENOENT: no such entry; -EINVAL or another: the kernel refuses the
 * value. */
int netns_sysctl_at(int root, const char *name, const char *value);

#endif
