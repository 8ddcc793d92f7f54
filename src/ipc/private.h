/* SPDX-License-Identifier: Apache-2.0 */
/* One datagram in, one datagram out: what the looping and the blocking side of ipc share; and the
 * memory of rings and journals. */
#ifndef VETHGUARD_SRC_IPC_PRIVATE_H
#define VETHGUARD_SRC_IPC_PRIVATE_H

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

/* memory.c */
/* A memfd of sealed size, all zeros. A descriptor that the caller owns, or -errno. */
int ipc_memory_new(const char *name, size_t size);
/* The same as a new file, locked, with its space taken: -EEXIST, -ENOSPC, -errno. */
int ipc_memory_new_at(int directory, const char *name, size_t size);
/* For that: a file that has no name yet and goes with its last descriptor (open(2), O_TMPFILE),
 * -EOPNOTSUPP: not on that file system; its name in a directory of the same one, -EEXIST; and the
 * way without either. */
int ipc_memory_nameless(int directory, size_t size);
int ipc_memory_name(int fd, int directory, const char *name);
int ipc_memory_new_renamed(int directory, const char *name, size_t size);
/* One that is there, locked: -EWOULDBLOCK: somebody has it open; -EBADMSG: no file of this size. */
int ipc_memory_open_at(int directory, const char *name, size_t size);
/* NULL with *error: -EBADMSG: another size, or its size is not sealed and it is no file. */
void *ipc_memory_map(int fd, size_t size, int *error);
/* Of a mapping: whoever has it can go on without it, and shared_names_guard() is enough. */
void ipc_memory_spare(const void *start);
void ipc_memory_unmap(void *start, size_t size);
/* It has vanished under the mapping: zeros are in its place (ring_guard). */
bool ipc_memory_lost(const void *start);

#endif
