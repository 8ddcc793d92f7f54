/* SPDX-License-Identifier: Apache-2.0 */
/* One datagram in, one datagram out: what the looping and the blocking side of ipc share. */
#ifndef IPC_PRIVATE_H
#define IPC_PRIVATE_H

#include <sys/types.h>

#include "vethguard/ipc/peer.h"

/* One sendmsg, never SIGPIPE. 0 or -errno. */
int ipc_datagram_send(
        int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count, int flags);
/* One recvmsg into buf (MESSAGE_BYTES_MAX); fills message whole. Size; 0: closed; -EAGAIN; -EBADMSG
 * (descriptors that came are closed); -errno. */
ssize_t ipc_datagram_receive(int fd, uint8_t *buf, struct ipc_message *message, int flags);
/* Closes the descriptors that are still there. */
void ipc_message_close_fds(struct ipc_message *message);

#endif
