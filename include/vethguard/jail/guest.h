/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest: what the guarded command may not do, whoever it is inside. It is no confinement of files
 * or processes: it closes the ways around the network namespace that are not packets, and keeps
 * root inside from undoing its mounts.
 */
#ifndef VETHGUARD_JAIL_GUEST_H
#define VETHGUARD_JAIL_GUEST_H

/* Bounding set and all sets of the caller cut down to what root inside the sandbox may have at most: capabilities over
 * its own files, processes and network; ambient set emptied. 0 or -errno. */
int jail_guest_bound(void);
/* Socket families that do not live in the network namespace (AF_VSOCK reaches the hypervisor) fail with EAFNOSUPPORT,
 * io_uring (whose sockets no filter sees) and the kernel's keys (which it fetches by programs outside) with ENOSYS,
 * typing into the terminal (TIOCSTI) with EPERM. Needs CAP_SYS_ADMIN in its user namespace or no_new_privs. 0 or
 * -errno. */
int jail_guest_seccomp(void);

#endif
