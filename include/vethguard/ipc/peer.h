/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer: one end of a SOCK_SEQPACKET pair to another program. Sends and receives whole messages with descriptors. A
 * peer that breaks the protocol is cut off; its owner is told once, through on_end.
 */
#ifndef VETHGUARD_IPC_PEER_H
#define VETHGUARD_IPC_PEER_H

#include "vethguard/loop/loop.h"
#include "vethguard/wire/message.h"

struct ipc_message {
	struct message_head head;
	struct reader body;
	int fds[MESSAGE_FDS_MAX]; /* after on_message those >= 0 are closed; set kept ones to -1 */
	size_t fd_count;
	bool lost; /* it came with descriptors, but this process could open no more; fd_count is then 0 */
};

struct ipc_peer;
/* Returns 0, or -errno: the message was not acceptable and the peer is cut off (on_end follows with that error). */
typedef int (*ipc_on_message)(struct ipc_peer *peer, struct ipc_message *message);
/* The connection is gone. error 0: the other side closed it, else -errno. The peer is already closed. */
typedef void (*ipc_on_end)(struct ipc_peer *peer, int error);

struct ipc_peer {
	struct loop_io io;
	struct loop_task flush;
	struct ipc_queued *first, *last; /* messages the socket had no room for */
	size_t queued_bytes;             /* memory; at most IPC_QUEUE_MAX, then -ENOBUFS and the peer is cut off */
	size_t queued_fds;               /* waiting copies; at most IPC_QUEUE_FDS_MAX, as above */
	ipc_on_message on_message;
	ipc_on_end on_end;
	const char *name; /* for messages: "keeper", "worker of sandbox x" (borrowed) */
	bool open;
	bool may_lose; /* ipc_peer_may_lose() */
	bool unread;   /* the socket may hold more: the task reads on */
	int failure;   /* why it is being cut off; the task does it */
	bool *alive;   /* cleared by ipc_peer_close(): on_message may close, or free, the peer */
};
#define IPC_QUEUE_MAX (1u << 20)
#define IPC_QUEUE_FDS_MAX (2 * MESSAGE_FDS_MAX)

/* Takes ownership of fd (made non-blocking and close-on-exec; closed on failure). Returns 0 or -errno. */
int ipc_peer_open(struct loop *loop, struct ipc_peer *peer, int fd, const char *name, ipc_on_message on_message,
        ipc_on_end on_end);
void ipc_peer_close(struct ipc_peer *peer); /* no callback follows */
/* From now on, on_message also gets messages whose descriptors were lost. Without this, such a message cuts the peer
 * off. */
void ipc_peer_may_lose(struct ipc_peer *peer);
/* Handles what has arrived already, through on_message and, at the end of the stream, on_end. For a peer whose
 * process is known to have exited, so that its last messages are handled whichever sign of its end came first. */
void ipc_peer_drain(struct ipc_peer *peer);
/* Sends one encoded message (size 0, from a failed encoder, is -EMSGSIZE) with copies of fds. Order is kept. Returns
 * 0 or -errno. -EPIPE: the other side has closed; what it sent before is still delivered, then on_end. A size or
 * descriptor count out of bounds changes nothing; any other error cuts the peer off, and on_end follows from the
 * loop. */
int ipc_send(struct ipc_peer *peer, const uint8_t *message, size_t size, const int *fds, size_t fd_count);
/* Returns whether ipc_send() would take one more such message now. */
bool ipc_peer_has_room(const struct ipc_peer *peer, size_t size, size_t fd_count);
/* Waits, at most timeout_ms, until the other side has read enough that nothing is queued any more: for a burst larger
 * than the queue. The loop stands still meanwhile. Returns 0; -ETIMEDOUT; -EPIPE: closed, or about to be cut off. */
int ipc_peer_flush(struct ipc_peer *peer, int timeout_ms);
/* Like ipc_send() for a message that holds a secret: the bytes are wiped, also if they had to be queued, in locked
 * memory. */
int ipc_send_secret(struct ipc_peer *peer, uint8_t *message, size_t size, const int *fds, size_t fd_count);

/* Makes a pair: [0] and [1], close-on-exec, non-blocking, with room for MESSAGE_BYTES_MAX. Returns 0 or -errno. */
int ipc_pair(int fds[2]);
/* Datagrams of types that carry secrets (MESSAGE_CA, MESSAGE_CREDENTIAL, ...) are wiped from the receive buffer after
 * on_message; the caller wipes what the blocking helper received. */
/* Blocking helpers for a program's first steps, before its loop runs: the whole message is in buf
 * (MESSAGE_BYTES_MAX), message points into it. timeout_ms < 0: wait for ever. Return 0; -ETIMEDOUT; -EPIPE: closed;
 * -EBADMSG; -errno. */
int ipc_receive_blocking(int fd, int timeout_ms, uint8_t *buf, struct ipc_message *message);
int ipc_send_blocking(int fd, const uint8_t *message, size_t size, const int *fds, size_t fd_count);
/* The descriptor of a role's socket to the supervisor. */
#define IPC_SUPERVISOR_FD 3

#endif
