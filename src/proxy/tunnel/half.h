/* SPDX-License-Identifier: Apache-2.0 */
/* half: one direction of a tunnel. What tunnel.c and half.c share. */
#ifndef VETHGUARD_SRC_PROXY_TUNNEL_HALF_H
#define VETHGUARD_SRC_PROXY_TUNNEL_HALF_H

#include "proxy/private.h"
#include "proxy/tunnel/tunnel.h"

enum tunnel_state {
	TUNNEL_OPEN,
	TUNNEL_LIMITED, /* no more may pass: it is about to end */
	TUNNEL_REFUSED, /* it is about to end before bytes that the owner has looked at */
	TUNNEL_CLOSED,
	TUNNEL_STATE_COUNT
};

struct end {
	struct loop_io io;
	struct tunnel *tunnel;
	int fd;
	bool readable, writable;
	bool hung_up; /* the peer has sent FIN: reading goes on to the end */
	bool dead;    /* takes no more bytes; what it has sent is still read */
};

struct half {
	struct end *from, *to;
	struct buf pending; /* copied bytes not yet sent */
	int pipe[2];        /* -1: none borrowed */
	size_t piped;       /* bytes in the pipe */
	uint64_t bytes;
	bool eof;   /* from has ended */
	bool ended; /* ... and `to` was told */
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
	const char *why; /* LIMITED, REFUSED: why it ends */
	/* Facts beside the state. */
	bool doubtful; /* a short read was taken for the end of what is there */
	bool inspects; /* the owner looks at what the sandbox sends */
	bool recorded; /* its event was put, which may be long before its end */
};

/* Moves one direction as far as possible. True: it has used up its turn and could go on. */
bool half_relay(struct tunnel *t, struct half *h);
/* True if the owner ends the tunnel before these bytes of this direction. */
bool half_is_refused(struct tunnel *t, const struct half *h, const uint8_t *p, size_t n);
/* tunnel.c: makes an open tunnel end, for this reason; of an earlier one nothing changes. */
void tunnel_stop(struct tunnel *t, enum tunnel_state state, const char *why);
/* Gives the pipe back, for another tunnel if it is empty. */
void half_return_pipe(struct tunnel *t, struct half *h);

#endif
