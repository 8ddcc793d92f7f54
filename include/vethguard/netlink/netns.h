/* SPDX-License-Identifier: Apache-2.0 */
/* netns: network namespaces by descriptor. */
#ifndef VETHGUARD_NETLINK_NETNS_H
#define VETHGUARD_NETLINK_NETNS_H

/* A new, nameless namespace; the caller stays where it is. The descriptor, or -errno. */
int netns_new(void);
/* The caller's own. */
int netns_current(void);
/* Runs what(context) in a thread of its own that joins the namespace and ends with it; the caller never leaves its
 * place. what's result, or -errno. A child that what() forks must not ask for a signal at its parent's death
 * (PR_SET_PDEATHSIG): the kernel means the thread. */
int netns_run(int netns_fd, int (*what)(void *context), void *context);
/* Writes a /proc/sys/net entry ("ipv4/ip_forward") of the namespace the thread is in. 0 or -errno. */
int netns_sysctl(const char *name, const char *value);
/* Makes the namespace the thread is in fit for a gate: no forwarding, no redirects, no router advertisements, no
 * source routing, no duplicate address detection, ICMP errors without rate limit. Call before its links are made:
 * they start from the defaults written here. 0 or -errno of the first entry that matters. */
int netns_harden_gate(void);

#endif
