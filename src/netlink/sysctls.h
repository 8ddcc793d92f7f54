/* SPDX-License-Identifier: Apache-2.0 */
/* sysctls: those below net/ of the namespace that the calling thread is in. */
#ifndef NETLINK_SYSCTLS_H
#define NETLINK_SYSCTLS_H

/* Their directory, for this thread and this namespace only; the caller closes it. The descriptor or
 * -errno. */
int netns_sysctls_open(void);
/* netns_sysctl() below it. */
int netns_sysctl_at(int root, const char *name, const char *value);

#endif
