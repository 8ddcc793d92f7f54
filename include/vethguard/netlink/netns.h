/* SPDX-License-Identifier: Apache-2.0 */
/* netns: network namespaces by descriptor. */
#ifndef VETHGUARD_NETLINK_NETNS_H
#define VETHGUARD_NETLINK_NETNS_H

/* A new, nameless namespace; the caller stays where it is. The descriptor, or -errno. */
int netns_new(void);
/* The caller's own. */
int netns_current(void);
/* Runs what(context) inside the namespace and comes back; what's result, or -errno. Failing to come back is fatal. */
int netns_run(int netns_fd, int (*what)(void *context), void *context);
/* Writes a /proc/sys/net entry ("ipv4/ip_forward") of the namespace the thread is in. 0 or -errno. */
int netns_sysctl(const char *name, const char *value);

#endif
