/* SPDX-License-Identifier: Apache-2.0 */
/* sysctls: those below net/ of the namespace that the calling thread is in. */
#ifndef VETHGUARD_SRC_NETLINK_SYSCTLS_H
#define VETHGUARD_SRC_NETLINK_SYSCTLS_H

/* Their directory, for this thread and this namespace only; the caller closes it. The descriptor or
 * -errno. */
int netns_sysctls_open(void);
/* Writes an entry below it ("ipv4/ip_forward"), whose path has neither ".." nor a slash in front.
 * 0, or -errno: -ENOENT no such entry, -EINVAL or what the kernel says of the value. */
int netns_sysctl_at(int root, const char *name, const char *value);

#endif
