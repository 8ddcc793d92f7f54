/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_rules: what RFC 9113 requires of a receiver and nghttp2 does not check, for both sides of
 * the proxy. Each function returns NULL, or a sentence with the connection error in *code.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_HTTP2_RULES_H
#define VETHGUARD_SRC_PROXY_HTTP_HTTP2_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <nghttp2/nghttp2.h>

#define HTTP2_GAPS_MAX 16 /* the last runs of stream identifiers that a client has skipped */

struct http2_gap {
	int32_t first, last;
};

struct http2_rules {
	int32_t highest; /* highest stream that the peer has opened */
	unsigned gap_count;
	struct http2_gap gaps[HTTP2_GAPS_MAX]; /* a ring, indexed by gap_count */
	uint32_t initial_window;               /* SETTINGS_INITIAL_WINDOW_SIZE of the peer */
	int32_t widest;                        /* widest window when SETTINGS began to come */
};

void http2_rules_init(struct http2_rules *rules);
/* Checks a frame that begins. This proxy accepts the smallest maximum frame size, 16,384. */
const char *http2_rules_frame(const nghttp2_frame_hd *hd, uint32_t *code);
/* The same for a client, which has to open streams by rising identifiers (section 5.1.1). */
const char *http2_rules_stream(
        struct http2_rules *rules, const nghttp2_frame_hd *hd, uint32_t *code);

/* Checks SETTINGS in two steps, because nghttp2 applies them in between. When they begin,
 * http2_rules_widen() takes the window of each open stream. When they are complete,
 * http2_rules_settings() tells whether a window would have exceeded 2^31-1 (section 6.9.2). */
void http2_rules_settings_begin(struct http2_rules *rules);
void http2_rules_widen(struct http2_rules *rules, nghttp2_session *session, int32_t id);
const char *http2_rules_settings(
        struct http2_rules *rules, const nghttp2_settings *settings, uint32_t *code);

#endif
