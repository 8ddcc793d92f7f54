/* SPDX-License-Identifier: Apache-2.0 */
/* half: one direction of a tunnel; shared by tunnel.c and half.c. */
#ifndef VETHGUARD_SRC_PROXY_TUNNEL_HALF_H
#define VETHGUARD_SRC_PROXY_TUNNEL_HALF_H

#include "proxy/private.h"
#include "proxy/tunnel/tunnel.h"

enum tunnel_state {
	TUNNEL_OPEN,
	TUNNEL_LIMITED, /* no more may pass (a limit): the tunnel is about to end */
	TUNNEL_REFUSED, /* the owner has refused bytes: the tunnel is about to end before them */
	TUNNEL_CLOSED,
	TUNNEL_STATE_COUNT
};

struct end {
	struct loop_io io;
	struct tunnel *tunnel;
	struct outer *outer; /* owned; NULL: none */
	int fd;
	bool readable, writable;
	bool hung_up; /* the peer has sent FIN: reading goes on to the end */
	bool dead;    /* the peer takes no more bytes; what it has sent is still read */
};

struct half {
	struct end *from, *to;
	struct buf pending; /* copied bytes not yet sent; sealed if `to` has an outer TLS */
	int pipe[2];        /* -1: none borrowed */
	size_t piped;       /* bytes in the pipe */
	uint64_t bytes;
	bool eof;   /* from has ended */
	bool ended; /* ... and `to` was told so */
};

struct tunnel {
	const struct tunnel_owner *owner;
	void *context;
	struct proxy *proxy;
	struct end ends[2];    /* 0: the sandbox's side, 1: the outside */
	struct half halves[2]; /* from the sandbox, to the sandbox */
	struct loop_deadline deadline, doubt;
	struct loop_task go_on;
	enum tunnel_state state;
	const char *why; /* LIMITED, REFUSED: why the tunnel ends (borrowed) */
	/* Facts beside the state. */
	bool doubtful; /* a short read was taken for "nothing left" */
	bool inspects; /* the owner looks at what the sandbox sends */
	bool recorded; /* the tunnel's event was put, which may be long before its end */
};

/* Moves the bytes of h as far as possible. True: h has used up its turn and could go on. */
bool half_relay(struct tunnel *t, struct half *h);
/* Shows the owner these bytes of h if it inspects h. True: the owner ends the tunnel before them.
 */
bool half_is_refused(struct tunnel *t, const struct half *h, const uint8_t *p, size_t n);
/* tunnel.c: makes an open tunnel end soon, in this state and for this reason. Later calls do
 * nothing. */
void tunnel_stop(struct tunnel *t, enum tunnel_state state, const char *why);
/* Gives the pipe back: an empty one is kept for other tunnels. */
void half_return_pipe(struct tunnel *t, struct half *h);

#endif
