/* SPDX-License-Identifier: Apache-2.0 */
/* netns: network namespaces by descriptor. */
#ifndef VETHGUARD_NETLINK_NETNS_H
#define VETHGUARD_NETLINK_NETNS_H

/* Makes a new, nameless namespace; the caller stays where it is. Returns the descriptor or -errno. */
int netns_new(void);
/* The caller's own namespace. Returns the descriptor or -errno. */
int netns_current(void);
/* Runs what(context) in the namespace and returns its result, or -errno. The calling thread enters the namespace and
 * returns. If it could not return (setns(2), CAP_SYS_ADMIN), another thread enters instead and ends. If returning
 * fails nevertheless, the process ends. A child that what() forks must not request a signal at its parent's death
 * (PR_SET_PDEATHSIG), because for the kernel the parent is the thread. */
int netns_run(int netns_fd, int (*what)(void *context), void *context);
/* home: the calling thread's own namespace (netns_current()), kept open by the caller. From now on this thread's calls
 * of netns_run() return there without looking for it again: a daemon makes many, and never moves by itself. -1 ends
 * that. Does nothing if the thread could not return. */
void netns_keep_home(int home);
/* Renews what keeps access to the sysctls fast, which takes the kernel a millisecond or more. Call it when nobody
 * waits. Without such calls it happens during other calls, but less often. */
void netns_sysctls_renew(void);
/* Prepares the thread's namespace for a gate: no forwarding, no redirects, no router advertisements, no source
 * routing, no duplicate address detection, ICMP errors without rate limit. Call it before the links are made, because
 * they start from the defaults written here. Returns 0, or the -errno of the first required entry that failed. */
int netns_harden_gate(void);
/* Checks the same entries of a gate in use, and those of its link, and corrects them. Returns 0: all required entries
 * were right; 1: some were not; or -errno. */
int netns_harden_gate_again(const char *link);
/* Enables IPv6 on a link, even if its namespace starts new links without it, and makes the link's own (link-local)
 * IPv6 address final as soon as the link comes up. The kernel would search for a second owner for a second or two
 * first (duplicate address detection, RFC 4862 section 5.4); there can be none on a wire with two ends, and programs
 * inside take the end of the search for a change of the network. Call it while the link is down. Does nothing on a
 * kernel without IPv6. */
void netns_settle_link(const char *link);

#endif
