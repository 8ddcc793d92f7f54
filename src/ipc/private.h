/* SPDX-License-Identifier: Apache-2.0 */
/* Sending and receiving one datagram, for the looping and the blocking side of ipc; and the memory
 * of rings, journals and shared names. */
#ifndef VETHGUARD_SRC_IPC_PRIVATE_H
#define VETHGUARD_SRC_IPC_PRIVATE_H

#include <sys/types.h>

#include "vethguard/ipc/peer.h"

/* One sendmsg(2), never SIGPIPE. Returns 0 or -errno. */
int ipc_datagram_send(
        int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count, int flags);
/* One recvmsg(2) into buf (MESSAGE_BYTES_MAX); fills in the whole message. Returns the size; 0:
 * closed; -EAGAIN; -EBADMSG (descriptors that came are closed); -errno. */
ssize_t ipc_datagram_receive(int fd, uint8_t *buf, struct ipc_message *message, int flags);
/* Closes the descriptors that are still in the message. */
void ipc_message_close_fds(struct ipc_message *message);

/* memory.c */
/* Makes a memfd of sealed size, all zeros. Returns a descriptor that the caller owns, or -errno. */
int ipc_memory_new(const char *name, size_t size);
/* The same as a new file, locked, with its space allocated: -EEXIST, -ENOSPC, -errno. */
int ipc_memory_new_at(int directory, const char *name, size_t size);
/* The steps of that: make a file without a name, which ends with its last descriptor (open(2),
 * O_TMPFILE; -EOPNOTSUPP: not on that file system); give it a name in a directory of the same file
 * system (-EEXIST); and the alternative without O_TMPFILE. */
int ipc_memory_nameless(int directory, size_t size);
int ipc_memory_name(int fd, int directory, const char *name);
int ipc_memory_new_renamed(int directory, const char *name, size_t size);
/* Opens an existing file, locked. -EWOULDBLOCK: a process has it open; -EBADMSG: no file of this
 * size. */
int ipc_memory_open_at(int directory, const char *name, size_t size);
/* Opens an existing file that nobody but this user may write to, and that look_at() takes: it gets
 * the file's size, and returns 0 or -errno. -EBADMSG: it is no such file. */
int ipc_memory_open_own(int directory, const char *name, int (*look_at)(int fd, off_t size));
/* Returns NULL with *error; -EBADMSG: another size, or its size is not sealed and it is no file. */
void *ipc_memory_map(int fd, size_t size, int *error);
/* Marks a mapping whose holder can go on without it, so that shared_names_guard() suffices. */
void ipc_memory_spare(const void *start);
void ipc_memory_unmap(void *start, size_t size);
/* Returns true if it has vanished under the mapping: zeros are in its place (ring_guard()). */
bool ipc_memory_lost(const void *start);

#endif
