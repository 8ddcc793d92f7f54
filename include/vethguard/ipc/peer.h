/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer: one end of a SOCK_SEQPACKET pair to another program. Whole messages in, whole messages out, descriptors
 * beside them. A peer that sends what it must not is cut off; its owner hears of it once, through on_end.
 */
#ifndef VETHGUARD_IPC_PEER_H
#define VETHGUARD_IPC_PEER_H

#include "vethguard/loop/loop.h"
#include "vethguard/wire/message.h"

struct ipc_message {
	struct message_head head;
	struct reader body;
	int fds[MESSAGE_FDS_MAX]; /* those left >= 0 after on_message are closed; set to -1 what is kept */
	size_t fd_count;
};

struct ipc_peer;
/* 0, or -errno: the message was not acceptable and the peer is cut off (on_end follows with that error). */
typedef int (*ipc_on_message)(struct ipc_peer *peer, struct ipc_message *message);
/* The connection is gone: error 0: the other side closed it, else -errno. The peer is already closed. */
typedef void (*ipc_on_end)(struct ipc_peer *peer, int error);

struct ipc_peer {
	struct loop_io io;
	struct loop_task flush;
	struct ipc_queued *first, *last; /* messages the socket had no room for */
	size_t queued_bytes;             /* memory; at most IPC_QUEUE_MAX, then -ENOBUFS and the peer is cut off */
	size_t queued_fds;               /* copies that wait; at most IPC_QUEUE_FDS_MAX, as above */
	ipc_on_message on_message;
	ipc_on_end on_end;
	const char *name;                /* for messages: "keeper", "worker of sandbox x" (borrowed) */
	bool open;
	bool unread;                     /* the socket may hold more: the task goes on reading */
	int failure;                     /* why it is being cut off; the task does it */
	bool *alive;                     /* cleared by ipc_peer_close: on_message may close, or free, the peer */
};
#define IPC_QUEUE_MAX (1u << 20)
#define IPC_QUEUE_FDS_MAX (2 * MESSAGE_FDS_MAX)

/* Takes fd (made non-blocking and close-on-exec; closed where this fails). 0 or -errno. */
int ipc_peer_open(struct loop *loop, struct ipc_peer *peer, int fd, const char *name, ipc_on_message on_message,
	ipc_on_end on_end);
void ipc_peer_close(struct ipc_peer *peer); /* no callback follows */
/* Handles what has arrived already, through on_message and, where it is there, on_end: for a peer whose process is
 * known to have ended, so that its last words are heard whichever sign of its end came first. */
void ipc_peer_drain(struct ipc_peer *peer);
/* Sends one encoded message (size 0, from a failed encoder, is -EMSGSIZE) with copies of fds. Order is kept. 0 or
 * -errno. -EPIPE: the other side has closed; what it sent before is still delivered, then on_end. A size or descriptor
 * count out of bounds harms nobody; any other error cuts the peer off, on_end follows from the loop. */
int ipc_send(struct ipc_peer *peer, const uint8_t *message, size_t size, const int *fds, size_t fd_count);
/* Whether ipc_send would take one more such message now. */
bool ipc_peer_has_room(const struct ipc_peer *peer, size_t size, size_t fd_count);
/* Waits until the other side has read so much that nothing is queued any more, for at most timeout_ms: for a burst
 * that is larger than the queue may be. The loop stands still meanwhile. 0; -ETIMEDOUT; -EPIPE: closed, or about to
 * be cut off. */
int ipc_peer_flush(struct ipc_peer *peer, int timeout_ms);
/* As ipc_send for a message that holds a secret: the bytes are wiped, also where they had to be queued, which is in
 * locked memory. */
int ipc_send_secret(struct ipc_peer *peer, uint8_t *message, size_t size);

/* A pair: [0] and [1], close-on-exec, non-blocking, with room for MESSAGE_BYTES_MAX. 0 or -errno. */
int ipc_pair(int fds[2]);
/* Datagrams of types that carry secrets (MESSAGE_CA, MESSAGE_CREDENTIAL) are wiped from the receive buffer after
 * on_message; what the blocking helper received is the caller's to wipe. */
/* Blocking helpers for a program's first steps, before its loop runs: the whole message is in buf (MESSAGE_BYTES_MAX),
 * message points into it. timeout_ms < 0: wait for ever. 0; -ETIMEDOUT; -EPIPE: closed; -EBADMSG; -errno. */
int ipc_receive_blocking(int fd, int timeout_ms, uint8_t *buf, struct ipc_message *message);
int ipc_send_blocking(int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count);
/* Which descriptor a role finds its supervisor on. */
#define IPC_SUPERVISOR_FD 3

#endif
