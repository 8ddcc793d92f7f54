/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds what one HTTP/2 connection may cost without asking for anything: frames that move nothing
 * (PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA), and streams that are reset ("rapid
 * reset"). Each kind has a purse, which time fills. Requests and content fill the purse for frames,
 * too. An empty purse ends the connection.
 */
#include "gateway/http2.h"

#define FRAMES_PURSE 2000
#define FRAMES_PER_S 100
#define FRAMES_PER_REQUEST 8
#define FRAMES_PER_CONTENT 3
#define RESETS_PURSE 300
#define RESETS_PER_S 30
#define BLOCK_BYTES_MAX (2 * PROXY_HEAD_MAX) /* a head that is a little too large is answered */
#define REFILL_MS 100 /* between refills at least, so that rounding loses little */

void http2_limits_init(struct http2_limits *l, int64_t now_ms)
{
	*l = (struct http2_limits){.at_ms = now_ms, .frames = FRAMES_PURSE, .resets = RESETS_PURSE};
}

static int32_t filled(int32_t coins, int64_t more, int32_t purse)
{
	return more >= purse - coins ? purse : coins + (int32_t)more;
}

static bool pay(struct http2_limits *l, int32_t *purse, int64_t now_ms)
{
	const int64_t passed = now_ms - l->at_ms;

	if (*purse < 1 && passed >= REFILL_MS) {
		l->at_ms = now_ms;
		l->frames = filled(l->frames, passed * FRAMES_PER_S / 1000, FRAMES_PURSE);
		l->resets = filled(l->resets, passed * RESETS_PER_S / 1000, RESETS_PURSE);
	}
	if (*purse < 1)
		return false;
	(*purse)--;
	return true;
}

bool http2_limits_frame(struct http2_limits *l, const nghttp2_frame_hd *hd, int64_t now_ms)
{
	if (hd->type == NGHTTP2_HEADERS) {
		l->block_bytes = hd->length;
		l->frames = filled(l->frames, FRAMES_PER_REQUEST, FRAMES_PURSE);
		return true;
	}
	if (hd->type == NGHTTP2_CONTINUATION) {
		l->block_bytes += hd->length;
		if (l->block_bytes > BLOCK_BYTES_MAX)
			return false;
	}
	return pay(l, &l->frames, now_ms);
}

bool http2_limits_reset(struct http2_limits *l, int64_t now_ms)
{
	return pay(l, &l->resets, now_ms);
}

void http2_limits_progress(struct http2_limits *l)
{
	l->frames = filled(l->frames, FRAMES_PER_CONTENT, FRAMES_PURSE);
}
