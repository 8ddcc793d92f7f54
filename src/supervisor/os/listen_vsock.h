/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen_vsock: a listening socket that virtual machines of this host reach (vsock(7)). It has no
 * file, so there is nothing to remove. The kernel gives a port to one socket only, for all
 * machines; proxy/accept.c checks for each connection which machine it comes from.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_LISTEN_VSOCK_H
#define VETHGUARD_SRC_SUPERVISOR_OS_LISTEN_VSOCK_H

#include <stddef.h>

#include "supervisor/os/listen_socket.h"

/* Returns a descriptor (close-on-exec, non-blocking), or -errno with why; -EADDRINUSE: the port is
 * taken. */
int listen_vsock_open(const struct listen_socket *s, char *why, size_t why_size);

#endif
