/* SPDX-License-Identifier: Apache-2.0 */
/* netns: network namespaces by descriptor. */
#ifndef VETHGUARD_NETLINK_NETNS_H
#define VETHGUARD_NETLINK_NETNS_H

/* A new, nameless namespace; the caller stays where it is. The descriptor, or -errno. */
int netns_new(void);
/* The caller's own. */
int netns_current(void);
/* Runs what(context) in the namespace: the caller goes there and comes back, or where it could not come back (setns(2),
 * CAP_SYS_ADMIN), a thread that ends. what's result, or -errno. A process that is in the namespace and cannot come back
 * ends. A child that what() forks must not ask for a signal at its parent's death (PR_SET_PDEATHSIG): the kernel means
 * the thread. */
int netns_run(int netns_fd, int (*what)(void *context), void *context);
/* For a time when nobody waits: what makes the entries quick to reach is made anew now and then, which takes the kernel
 * a millisecond or more. Without this it happens in between, but less often. */
void netns_sysctls_renew(void);
/* Makes the namespace the thread is in fit for a gate: no forwarding, no redirects, no router advertisements, no
 * source routing, no duplicate address detection, ICMP errors without rate limit. Call before its links are made:
 * they start from the defaults written here. 0 or -errno of the first entry that matters. */
int netns_harden_gate(void);
/* Reads the same entries of a gate that is in use, and those of its link, and writes those that differ. 0: none of
 * those that matter did; 1; or -errno. */
int netns_harden_gate_again(const char *link);
/* Gives a link IPv6, also where its namespace starts new links without, and makes its own (link-local) IPv6 address
 * final as soon as the link comes up, where the kernel would look out for a
 * second owner for a second or two first (duplicate address detection, RFC 4862 section 5.4): there can be none on the
 * wire of two ends, and programs inside take the change that ends it for a change of the network. The link is down yet.
 * A kernel without IPv6 is none the worse. */
void netns_settle_link(const char *link);

#endif
