/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_rules: what RFC 9113 wants of a receiver and nghttp2 lets pass, for both sides of the
 * proxy. Each function answers NULL, or with a sentence and the connection error that it is.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_HTTP2_RULES_H
#define VETHGUARD_SRC_PROXY_HTTP_HTTP2_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nghttp2/nghttp2.h>

#define HTTP2_GAPS_MAX                                                             \
	16 /* runs of stream identifiers that a client has left out; the last ones \
	    */

struct http2_gap {
	int32_t first, last;
};

struct http2_rules {
	int32_t highest; /* stream that the peer has opened */
	unsigned gap_count;
	struct http2_gap gaps[HTTP2_GAPS_MAX]; /* a ring by gap_count */
	uint32_t initial_window;               /* SETTINGS_INITIAL_WINDOW_SIZE of the peer */
	int32_t widest;                        /* window of a stream, when SETTINGS began to come */
};

void http2_rules_init(struct http2_rules *rules);
/* A frame begins. The frame size that this proxy takes is the least that there is, 16,384. */
const char *http2_rules_frame(const nghttp2_frame_hd *hd, uint32_t *code);
/* The same, from a client: it opens streams by rising identifiers (section 5.1.1). */
const char *http2_rules_stream(
        struct http2_rules *rules, const nghttp2_frame_hd *hd, uint32_t *code);

/* SETTINGS are lifted in two steps, for nghttp2 applies them in between: as they begin, the window
 * of every open stream is shown (widen); when they are whole, it is told whether one of them would
 * have gone beyond 2^31-1 (section 6.9.2). */
void http2_rules_settings_begin(struct http2_rules *rules);
void http2_rules_widen(struct http2_rules *rules, nghttp2_session *session, int32_t id);
const char *http2_rules_settings(
        struct http2_rules *rules, const nghttp2_settings *settings, uint32_t *code);

#endif
