/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket: one end of a relay: a connected TCP socket, with TLS on it or not. Reading gives plain
 * bytes, writing takes plain bytes.
 *
 * Buffers belong to the thread, not to the connection: one run of received bytes, one of bytes to
 * send, one for joining small writes into one TLS record. A socket claims them while it works; what
 * is left when another socket claims them (input not used up, output the socket did not take) moves
 * into memory of its own. So an idle connection holds no buffer, and a busy one costs one recv()
 * and one send() per event.
 *
 * A peer that closes its socket with bytes of ours unread resets the connection, and the reset may
 * be found by a send() before what the peer said last has been read (RFC 9112 section 9.6). Linux
 * keeps that in the receive queue. Who still wants it sets reads_on: the answer of an upstream that
 * did not want all of the request is there to be passed on.
 */
#ifndef VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_H
#define VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_H

#include "vethguard/base/buf.h"
#include "vethguard/base/secret.h"
#include "vethguard/loop/loop.h"
#include "vethguard/tls/tls.h"

#define SOCKET_CHUNK (64u << 10) /* bytes of one read */
#define SOCKET_RECORD 16384      /* plain bytes of one TLS record (RFC 8446 section 5.1) */
#define SOCKET_HIGH (64u << 10)  /* unsent bytes at which the other side stops being read */
#define SOCKET_OUT_MAX                                                                  \
	(512u << 10) /* unsent bytes at which a socket is given up: never reached while \
	                SOCKET_HIGH is obeyed */
#define SOCKET_EVENTS (LOOP_READ | LOOP_WRITE | LOOP_CLOSED)
#define SOCKET_TURN_BYTES (256u << 10) /* read of one connection before others have their turn */

enum socket_status { SOCKET_OK, SOCKET_AGAIN, SOCKET_EOF, SOCKET_ERROR };

struct socket;

/* What all sockets of a thread share. */
struct socket_shared {
	struct loop *loop;
	uint8_t *rx; /* SOCKET_CHUNK bytes received; borrowed by rx_owner's TLS */
	size_t rx_n;
	struct socket *rx_owner;
	struct buf tx; /* bytes to send for tx_owner */
	struct socket *tx_owner;
	struct buf stage;           /* plain bytes to become a TLS record of stage_owner */
	struct secret stage_memory; /* ... locked */
	bool stage_secret;          /* ... some of them are secret: wiped when they are encrypted */
	struct socket *stage_owner;
	struct loop_task flush;
};
int socket_shared_init(struct socket_shared *s, struct loop *loop);
void socket_shared_fini(struct socket_shared *s);

/* Everything below on_event and on_drained is the socket's own. */
struct socket {
	void (*on_event)(struct socket *socket); /* something may be read (or has ended) */
	/* What was unsent has fallen below SOCKET_HIGH; after socket_end(): all of it is sent. */
	void (*on_drained)(struct socket *socket);
	struct socket_shared *shared;
	struct loop_io io;
	struct tls *tls;        /* owned; NULL: plain */
	int fd;                 /* owned; -1: closed */
	bool readable, hung_up; /* epoll's last word; hung_up: the peer has sent FIN */
	bool doubtful; /* the last read was short: with a reset behind it no further event comes */
	bool writable;
	bool congested;       /* on_drained is due */
	bool broken;          /* sending failed; reading reports SOCKET_ERROR */
	bool reads_on;        /* the owner's wish: what came before sending failed is read first */
	bool draining;        /* ... that is going on */
	bool fin_came;        /* ... and at its end is a FIN, not a reset */
	bool truncated;       /* TLS ended without close_notify: a body that lasts until the end is
	                         incomplete */
	bool end_after_flush; /* shut the sending side down once all is sent */
	uint64_t sent;        /* bytes the socket took: tells a slow peer from a dead one */
	uint64_t received; /* bytes the socket gave: what reading costs, however little they hold */
	struct buf parked; /* input of TLS not used up */
	struct buf out;    /* output the socket did not take */
};

/* Takes fd (non-blocking). watched: a registration of fd for SOCKET_EVENTS, which is taken over
 * (and closed then); NULL: there is none yet. 0 or -errno (fd and watched closed). */
int socket_open(struct socket_shared *shared, struct socket *socket, int fd,
        struct loop_io *watched, void (*on_event)(struct socket *),
        void (*on_drained)(struct socket *));
/* Ends the connection of a TCP socket with a reset; what is unsent is lost. The descriptor stays.
 * It is disconnected for that (connect(2), AF_UNSPEC), which does what a close with SO_LINGER of 0
 * would: no worker may set that option. */
void socket_reset_socket(int fd);
/* Closes at once, unsent bytes are lost; no callback follows. reset: with a TCP reset. Harmless
 * when closed. */
void socket_close(struct socket *socket, bool reset);
static inline bool socket_is_open(const struct socket *socket)
{
	return socket->fd >= 0;
}

/* Puts TLS (taken) on the socket; first: bytes already received that belong to it. 0 or -ENOMEM. */
int socket_start_tls(struct socket *socket, struct tls *tls, struct slice first);
/* TLS has failed: what it wrote is kept for sending, what it had not used is dropped, and the
 * socket is plain, for the rest of what comes to be thrown away. */
void socket_drop_tls(struct socket *socket);
/* SOCKET_OK: established; SOCKET_AGAIN; SOCKET_EOF; SOCKET_ERROR. */
enum socket_status socket_handshake(struct socket *socket);
/* Up to cap bytes (at least SOCKET_RECORD). SOCKET_EOF: the peer sends no more (see truncated). */
enum socket_status socket_read(struct socket *socket, uint8_t *out, size_t cap, size_t *n);
/* Whether that was enough for one turn of the loop, which began when so much had been received. Of
 * TLS the records count, not their content: those of a byte each cost as much as full ones. */
static inline bool socket_turn_is_over(const struct socket *socket, uint64_t received_before)
{
	return socket->received - received_before >= SOCKET_TURN_BYTES;
}
/* What was read is complete: no need to look for a reset right behind it. Spares a system call per
 * message. */
static inline void socket_mark_complete(struct socket *socket)
{
	socket->doubtful = false;
}
/* Queues bytes; they leave at the end of the loop's turn or when much has gathered. A failure shows
 * at the next read, with reads_on once all that had come is read. */
void socket_write(struct socket *socket, const void *p, size_t n);
/* The same for bytes that hold a secret: TLS only, plain in locked memory only, and wiped there. */
void socket_write_secret(struct socket *socket, const void *p, size_t n);
/* Sends what is queued now. */
void socket_flush(struct socket *socket);
/* No more will be written: close_notify and FIN follow what is queued. */
void socket_end(struct socket *socket);
/* Unsent bytes. The other side should not be read while it is SOCKET_HIGH or more; on_drained then
 * follows. */
size_t socket_unsent(struct socket *socket);
static inline bool socket_is_congested(struct socket *socket)
{
	return socket->congested;
}
/* Sends what is queued and hands the descriptor over, and its registration for SOCKET_EVENTS to io
 * (a plain socket that becomes a tunnel). The socket is closed. *left: the bytes that could not be
 * sent at once (moved; caller's to free). */
int socket_release(struct socket *socket, struct buf *left, struct loop_io *io,
        void (*on_ready)(struct loop_io *io, unsigned events));

#endif
