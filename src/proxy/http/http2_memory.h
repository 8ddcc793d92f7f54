/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_memory: the memory of nghttp2's sessions. Two thirds of a session are one buffer for the
 * frame that is being sent. Most frames need a few hundred bytes of it, and an idle session needs
 * none. So this buffer lies in pages of its own: pages that were never touched take no memory, and
 * the others are given back while the session is idle. Everything else comes from malloc().
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_HTTP2_MEMORY_H
#define VETHGUARD_SRC_PROXY_HTTP_HTTP2_MEMORY_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "vethguard/loop/loop.h"

struct http2_arena;

/* The memory of one session. It must not move while the session lives. */
struct http2_memory {
	nghttp2_mem functions;     /* for nghttp2_session_server_new3() */
	nghttp2_session **session; /* the owner's pointer; *session is NULL after the end */
	uint8_t *frame;            /* the frame buffer; NULL: there is none, or malloc() gave it */
	size_t frame_n;            /* its size; 0: there was no frame buffer yet */
	bool proven;               /* nghttp2 has sent from it, so it is a frame buffer indeed */
	struct http2_arena *arena;
	struct loop_deadline idle;
};

void http2_memory_init(struct http2_memory *memory, nghttp2_session **session);
/* Call this when the session has ended. */
void http2_memory_fini(struct http2_memory *memory);
/* Notes that nghttp2 sends bytes that lie at p. */
void http2_memory_sent(struct http2_memory *memory, const uint8_t *p);
/* Call this when the session may be idle: after the list's delay its frame buffer's memory is given
 * back, unless the session has something to send then. */
void http2_memory_idle(struct http2_memory *memory, struct loop_deadlines *list);
void http2_memory_on_deadline(struct loop_deadline *deadline);
/* Gives back the memory that is kept for further sessions. */
void http2_memory_release(void);

#endif
