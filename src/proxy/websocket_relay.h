/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket_relay: both directions of an exchange after a 101. Every frame is checked before its
 * first byte is passed on. What the sandbox sends is looked at (inflated where need be), what comes
 * back on a connection with a credential is covered.
 */
#ifndef VETHGUARD_SRC_PROXY_WEBSOCKET_RELAY_H
#define VETHGUARD_SRC_PROXY_WEBSOCKET_RELAY_H

#include "proxy/websocket.h"
#include "vethguard/credential/inflate.h"
#include "vethguard/credential/store.h"

#define WEBSOCKET_VALUES_MAX 16    /* credentials looked for in what the sandbox sends */
#define WEBSOCKET_LOOK_BYTES 16384 /* unmasked at a time */

struct exchange;

struct websocket_relay {
	struct websocket out, in; /* from the sandbox, from the upstream */
	/* Out. */
	struct inflater *inflate; /* NULL: compression was not agreed on */
	struct credential_value *values[WEBSOCKET_VALUES_MAX];
	struct mask_stream streams[WEBSOCKET_VALUES_MAX]; /* of these values */
	size_t value_count;
	bool value_seen;
	uint8_t out_control[WEBSOCKET_CONTROL_MAX];
	/* In, where a credential has to be covered. */
	uint8_t in_control[WEBSOCKET_CONTROL_MAX];
	bool verbatim; /* the frame goes out with its own head */
	bool begun;    /* a fragment of the message has gone out */
	uint8_t kind;  /* of the message in fragments: text or binary */
};

/* The relay of an exchange that goes over to frames. NULL: no memory. */
struct websocket_relay *websocket_relay_new(
        struct exchange *ex, const struct websocket_deflate *deflate);
void websocket_relay_free(struct websocket_relay *r);
/* Bytes as they come. The exchange may be over and gone afterwards: a frame was wrong, and both
 * sides were told so with a close frame where one could be put. */
void websocket_from_sandbox(struct exchange *ex, const uint8_t *p, size_t n);
void websocket_from_upstream(struct exchange *ex, const uint8_t *p, size_t n);
/* The upstream has ended: what is still kept back belongs to a message that never becomes whole. */
void websocket_upstream_ended(struct exchange *ex);
void websocket_to_sandbox(struct exchange *ex, const uint8_t *p, size_t n);

/* --- websocket_look.c --- */

/* Unmasked content that waits to be looked at together: many small frames cost one search. */
struct websocket_looked {
	size_t n;
	uint8_t p[WEBSOCKET_LOOK_BYTES];
};

/* Content of the sandbox's frame that websocket_next() has just told of; n 0 at the end of a
 * compressed message whose last frame is empty. 0 or an error of inflater_feed(). */
int websocket_look(struct exchange *ex, struct websocket_looked *l, const uint8_t *p, size_t n);
void websocket_look_gathered(struct exchange *ex, struct websocket_looked *l);

/* --- websocket_cover.c --- */

/* A head, or content, of the upstream's frame that websocket_next() has just told of. 0 or
 * -errno: no memory. */
int websocket_cover_head(struct exchange *ex);
int websocket_cover(struct exchange *ex, const uint8_t *p, size_t n);
/* What was kept back of a message goes out before more of it comes: exchange_release_held(). */
void websocket_pass_released(struct exchange *ex, const uint8_t *p, size_t n);

#endif
