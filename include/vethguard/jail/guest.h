/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest: what the guarded command may not do, whatever user it is inside. This does not confine files or processes:
 * it closes the ways around the network namespace that are not packets, and keeps root inside from undoing its
 * mounts.
 */
#ifndef VETHGUARD_JAIL_GUEST_H
#define VETHGUARD_JAIL_GUEST_H

#include <stdbool.h>
#include <stdint.h>

/* Cuts the caller's bounding set and all other sets down to what root inside the sandbox may have at most:
 * capabilities over its own files, processes and network. Empties the ambient set. Returns 0 or -errno. */
int jail_guest_bound(void);
/* Makes calls fail that bypass the network namespace: socket families that are not part of it (AF_VSOCK reaches the
 * hypervisor) with EAFNOSUPPORT; io_uring (no filter sees its sockets) and the kernel's keys (which programs outside
 * fetch for it) with ENOSYS; typing into the terminal (TIOCSTI) with EPERM. Needs CAP_SYS_ADMIN in its user namespace
 * or no_new_privs. Returns 0 or -errno. */
int jail_guest_seccomp(void);

/* From now on the kernel asks before it carries out the calls below, also those of all children. Returns the
 * descriptor that receives the questions (close-on-exec); its reader must not be under the filter. When it is closed,
 * the calls fail with ENOSYS. Needs what jail_guest_seccomp() needs. Returns -EBUSY if another filter has a
 * listener (the kernel permits one), or another -errno. */
int jail_guest_ask(void);

enum jail_call {
	JAIL_CALL_OTHER,
	JAIL_CALL_CONNECT,
	JAIL_CALL_SENDTO, /* with an address */
	JAIL_CALL_SENDMSG,
	JAIL_CALL_SENDMMSG,
	JAIL_CALL_CLONE, /* of a process that shares its descriptors */
};

/* Which call a question is about. native: its structures have this program's layout. */
enum jail_call jail_call_find(uint32_t arch, uint32_t number, bool *native);

#endif
