/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest: what the guarded command may not do, whoever it is inside. It is no confinement of files
 * or processes: it closes the ways around the network namespace that are not packets, and keeps
 * root inside from undoing its mounts.
 */
#ifndef VETHGUARD_JAIL_GUEST_H
#define VETHGUARD_JAIL_GUEST_H

#include <stdbool.h>
#include <stdint.h>

/* Bounding set and all sets of the caller cut down to what root inside the sandbox may have at most: capabilities over
 * its own files, processes and network; ambient set emptied. 0 or -errno. */
int jail_guest_bound(void);
/* Socket families that do not live in the network namespace (AF_VSOCK reaches the hypervisor) fail with EAFNOSUPPORT,
 * io_uring (whose sockets no filter sees) and the kernel's keys (which it fetches by programs outside) with ENOSYS,
 * typing into the terminal (TIOCSTI) with EPERM. Needs CAP_SYS_ADMIN in its user namespace or no_new_privs. 0 or
 * -errno. */
int jail_guest_seccomp(void);

/* From now on the calls below are asked about before they are carried out, those of all children too. Returns the
 * descriptor at which they are (close-on-exec): who reads it must not be under the filter. When it is closed, they fail
 * with ENOSYS. Needs what jail_guest_seccomp() needs, and Linux 5.5; -EBUSY: a filter of somebody else's has a
 * listener, and the kernel permits one; -errno. */
int jail_guest_ask(void);

enum jail_call {
	JAIL_CALL_OTHER,
	JAIL_CALL_CONNECT,
	JAIL_CALL_SENDTO, /* with an address */
	JAIL_CALL_SENDMSG,
	JAIL_CALL_SENDMMSG,
	JAIL_CALL_CLONE, /* of a process that shares its descriptors */
};

/* Which call it is that is asked about. native: its structures are laid out as this program's. */
enum jail_call jail_call_find(uint32_t arch, uint32_t number, bool *native);

#endif
