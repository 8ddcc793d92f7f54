/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel: bytes between two sockets, unread but for what an owner looks for. */
#ifndef VETHGUARD_SRC_PROXY_TUNNEL_TUNNEL_H
#define VETHGUARD_SRC_PROXY_TUNNEL_TUNNEL_H

#include "proxy/dial/dial.h"
#include "vethguard/base/buf.h"

struct tunnel;

/* The owner of a tunnel. */
struct tunnel_owner {
	/* Records the connection; called once. */
	void (*record)(void *context, enum event_cause cause, const char *detail,
	        uint64_t from_sandbox, uint64_t to_sandbox);
	/* grant returns how many of n bytes may pass (from the sandbox, or to it), and counts them.
	 * 0: none may, and *why says why (borrowed until the next call). take_back uncounts bytes
	 * that did not pass after all. NULL: all may pass. */
	size_t (*grant)(void *context, bool from_sandbox, size_t n, const char **why);
	void (*take_back)(void *context, bool from_sandbox, size_t n);
	/* Called when both sockets are closed. The owner calls tunnel_free() at the end of the turn
	 * or later. */
	void (*closed)(void *context);
	/* After tunnel_inspect(): looks at bytes of the sandbox before they are sent. Returns NULL,
	 * or why the tunnel ends before them. */
	const char *(*inspect)(void *context, const uint8_t *p, size_t n);
};

/* A connected socket that becomes an end of a tunnel. */
struct tunnel_side {
	int fd;
	struct outer *outer; /* TLS around everything (moved); NULL: none */
	struct loop_io *io;  /* its registration for SOCKET_EVENTS */
	unsigned events;     /* what the loop has reported already */
	bool doubtful;       /* as in struct socket */
	/* Bytes already read from this side, which go to the other side first. If the other side
	 * has an outer TLS, they are sealed already. */
	struct buf first;
};

/* Returns NULL if there is no memory. */
struct tunnel *tunnel_new(struct proxy *proxy, const struct tunnel_owner *owner, void *context);
/* Has the owner look at what the sandbox sends, which is then copied, never spliced. */
void tunnel_inspect(struct tunnel *tunnel);
/* Takes both sides (the sandbox's is the first) with their bytes, and moves bytes between them. May
 * end the tunnel at once. */
void tunnel_run(struct tunnel *tunnel, struct tunnel_side sides[2]);
/* Records the tunnel's event, once. */
void tunnel_record(struct tunnel *tunnel, enum event_cause cause, const char *detail);
/* Ends the tunnel and records why. */
void tunnel_close(struct tunnel *tunnel, enum event_cause cause, const char *detail);
void tunnel_free(struct tunnel *tunnel);
void tunnel_on_deadline(struct loop_deadline *deadline);
void tunnel_on_doubt(struct loop_deadline *deadline);

#endif
