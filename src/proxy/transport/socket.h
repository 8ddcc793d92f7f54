/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket: one end of a relay: a connected TCP socket, with or without TLS. Reading gives plain
 * bytes, writing takes plain bytes. Around both there may be an outer TLS (outer.h): then the bytes
 * inside of it are what this file calls the bytes of the network.
 *
 * Buffers belong to the thread, not to the connection: one for received bytes, one for bytes to
 * send, one to join small writes into one TLS record. A socket claims them while it works. When
 * another socket claims them, what is left (input not used, output the socket did not take) moves
 * into the first socket's own memory. So an idle connection holds no buffer, and a busy one costs
 * one recv() and one send() per event.
 *
 * A peer that closes its socket with unread bytes of ours resets the connection, and a send() may
 * find the reset before the peer's last bytes were read (RFC 9112 section 9.6). Linux keeps these
 * bytes in the receive queue. An owner that still wants them calls socket_read_on(): for example,
 * an upstream that did not want the whole request may have sent a response.
 */
#ifndef VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_H
#define VETHGUARD_SRC_PROXY_TRANSPORT_SOCKET_H

#include "proxy/transport/outer.h"
#include "vethguard/base/buf.h"
#include "vethguard/base/secret.h"
#include "vethguard/loop/loop.h"
#include "vethguard/tls/tls.h"

#define SOCKET_CHUNK (64u << 10)    /* bytes per read */
#define SOCKET_RX (128u << 10)      /* bytes received at once with TLS */
#define SOCKET_TX (128u << 10)      /* bytes sent at once */
#define SOCKET_RECORD 16384         /* plain bytes per TLS record (RFC 8446 section 5.1) */
#define SOCKET_HIGH (64u << 10)     /* unsent bytes at which the other side is no longer read */
#define SOCKET_OUT_MAX (512u << 10) /* more unsent bytes break the socket; obey SOCKET_HIGH */
#define SOCKET_EVENTS (LOOP_READ | LOOP_WRITE | LOOP_CLOSED)
#define SOCKET_TURN_BYTES (256u << 10) /* bytes read of one connection in one turn */

enum socket_status { SOCKET_OK, SOCKET_AGAIN, SOCKET_EOF, SOCKET_ERROR };

struct socket;

/* Shared by all sockets of a thread. */
struct socket_shared {
	struct loop *loop;
	uint8_t *rx; /* SOCKET_RX bytes received; borrowed by rx_owner's TLS */
	size_t rx_n;
	struct socket *rx_owner;
	struct buf tx; /* bytes to send for tx_owner */
	struct socket *tx_owner;
	struct buf answer;          /* what TLS writes while it reads; empty otherwise */
	struct buf stage;           /* plain bytes that will be a TLS record of stage_owner */
	struct secret stage_memory; /* ... in locked memory */
	bool stage_secret;          /* ... with secrets among them: wiped after encryption */
	struct socket *stage_owner;
	struct loop_task flush;
	bool flushing; /* ... which is running */
	struct outer_shared outer;
};
int socket_shared_init(struct socket_shared *s, struct loop *loop);
void socket_shared_fini(struct socket_shared *s);

/* Everything below on_event and on_drained is private to the socket. */
struct socket {
	void (*on_event)(struct socket *socket); /* something may be readable, or has ended */
	/* After congestion: unsent bytes have fallen below SOCKET_HIGH / 2. After socket_end(): all
	 * are sent. */
	void (*on_drained)(struct socket *socket);
	struct socket_shared *shared;
	struct loop_io io;
	struct tls *tls;        /* owned; NULL: plain */
	struct outer *outer;    /* owned; NULL: none */
	int fd;                 /* owned; -1: closed */
	bool readable, hung_up; /* what epoll reported last; hung_up: the peer has sent FIN */
	bool doubtful; /* the last read was short: if a reset follows, no further event comes */
	bool writable;
	bool congested;       /* on_drained is due */
	bool broken;          /* sending failed; reading returns SOCKET_ERROR */
	bool reads_on;        /* socket_read_on() */
	bool draining;        /* ... which is under way */
	bool fin_came;        /* ... and ends with a FIN, not with a reset */
	bool truncated;       /* TLS ended without close_notify: a body that lasts until the end
	                         is incomplete */
	bool end_after_flush; /* shut down the sending side once everything is sent */
	uint64_t sent;        /* bytes the socket took; tells a slow peer from a dead one */
	uint64_t received;    /* bytes received: the cost of reading, whatever they hold */
	struct buf parked;    /* input that TLS has not used */
	struct buf out;       /* output the socket did not take */
};

/* Makes a socket without a connection; closing it does nothing. */
static inline void socket_init(struct socket *socket)
{
	socket->fd = -1;
}
/* If sending fails, received bytes are still read. */
static inline void socket_read_on(struct socket *socket)
{
	socket->reads_on = true;
}
/* Makes the next read ask the kernel, whatever epoll reported last. */
static inline void socket_ask_kernel(struct socket *socket)
{
	socket->readable = true;
}
/* Opens a socket on fd (non-blocking, taken). watched: a registration of fd for SOCKET_EVENTS,
 * which is taken over and closed; NULL: there is none. Returns 0, or -errno with fd and watched
 * closed. */
int socket_open(struct socket_shared *shared, struct socket *socket, int fd,
        struct loop_io *watched, void (*on_event)(struct socket *),
        void (*on_drained)(struct socket *));
/* Ends the connection of a TCP socket with a reset; unsent bytes are lost. The descriptor stays
 * open. This disconnects the socket (connect(2), AF_UNSPEC), which has the effect of a close with
 * SO_LINGER of 0; no worker may set that option. */
void socket_reset_socket(int fd);
/* Closes at once, if open; unsent bytes are lost; no callback follows. reset: with a TCP reset. */
void socket_close(struct socket *socket, bool reset);
static inline bool socket_is_open(const struct socket *socket)
{
	return socket->fd >= 0;
}

/* Puts TLS (taken) around everything that the socket carries. Call this right after
 * socket_open(). */
void socket_start_outer(struct socket *socket, struct outer *outer);
/* Gives that TLS away after socket_release(). NULL: there is none. */
struct outer *socket_take_outer(struct socket *socket);
/* Puts TLS (taken) on the socket. first: bytes already received that belong to it. Returns 0 or
 * -ENOMEM. */
int socket_start_tls(struct socket *socket, struct tls *tls, struct slice first);
/* Removes TLS that has failed: what it wrote is kept for sending, what it had not used is dropped,
 * and the socket is plain, so that further input can be discarded. */
void socket_drop_tls(struct socket *socket);
/* Returns SOCKET_OK (established), SOCKET_AGAIN, SOCKET_EOF or SOCKET_ERROR. */
enum socket_status socket_handshake(struct socket *socket);
/* Reads up to cap bytes (cap at least SOCKET_RECORD). SOCKET_EOF: the peer sends no more (see
 * truncated). */
enum socket_status socket_read(struct socket *socket, uint8_t *out, size_t cap, size_t *n);
/* True if enough was read for one turn of the loop, at whose beginning received_before had been
 * received. In TLS records count, not their content: records of one byte each cost as much as full
 * ones. */
static inline bool socket_turn_is_over(const struct socket *socket, uint64_t received_before)
{
	return socket->received - received_before >= SOCKET_TURN_BYTES;
}
/* Call when what was read is a complete message: no reset is looked for right after it. Saves a
 * system call per message. */
static inline void socket_mark_complete(struct socket *socket)
{
	socket->doubtful = false;
}
/* Queues bytes, which leave at the end of the loop's turn or when many are queued. A failure shows
 * at the next read; with reads_on, after everything that had come was read. */
void socket_write(struct socket *socket, const void *p, size_t n);
/* The same for bytes that hold a secret: needs TLS, keeps them in locked memory only, and wipes
 * them there. */
void socket_write_secret(struct socket *socket, const void *p, size_t n);
/* Sends what is queued now. */
void socket_flush(struct socket *socket);
/* The same for a socket without TLS whose queued bytes have a secret in them: wipes these bytes
 * from the shared buffer. */
void socket_flush_secret(struct socket *socket);
/* Ends the output: close_notify and FIN follow what is queued. */
void socket_end(struct socket *socket);
/* Returns the number of unsent bytes. Do not read the other side while it is SOCKET_HIGH or more;
 * on_drained then follows. */
size_t socket_unsent(struct socket *socket);
static inline bool socket_is_congested(struct socket *socket)
{
	return socket->congested;
}
/* Sends what is queued, then hands over the descriptor, and its registration for SOCKET_EVENTS to
 * io (a plain socket that becomes a tunnel). The socket is closed. *left: the bytes that could not
 * be sent at once (moved; the caller frees them), as they go over the network. */
int socket_release(struct socket *socket, struct buf *left, struct loop_io *io,
        void (*on_ready)(struct loop_io *io, unsigned events));

#endif
