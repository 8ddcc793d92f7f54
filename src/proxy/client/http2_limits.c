/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds what one HTTP/2 connection may cost without asking for anything: frames that move nothing
 * (PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA), streams that are reset, and bytes that are
 * not content (frames that nghttp2 silently ignores: unknown types, closed streams). Each kind has
 * a purse. Time fills it, and so do the useful frames that such frames serve: requests, and
 * content that passes. An empty purse ends the connection. The clock is read only when a purse is
 * empty.
 */
#include "proxy/client/http2.h"

#define FRAMES_PURSE 2000
#define FRAMES_PER_S 100
#define FRAMES_PER_REQUEST 8
#define FRAMES_PER_CONTENT 3
#define RESETS_PURSE 300
#define RESETS_PER_S 30
#define BYTES_PURSE (8 << 20) /* more than sockets hold on their way to a stream just reset */
#define BYTES_PER_S (64 << 10)
/* A head, and content on its way to a stream that was answered and closed meanwhile. */
#define BYTES_PER_REQUEST ((int)CLIENT_HTTP2_STREAM_WINDOW + 16384)
#define BYTES_PER_CONTENT 128
/* A header block as sent (compressed): at most what a head may have at all. */
#define BLOCK_BYTES_MAX HTTP_HEAD_MAX

void client_http2_limits_init(struct client_http2_limits *g, struct loop *loop)
{
	*g = (struct client_http2_limits){.at_ms = loop_now_ms(loop),
	        .frames = FRAMES_PURSE,
	        .resets = RESETS_PURSE,
	        .bytes = BYTES_PURSE};
}

static int32_t filled(int32_t coins, int64_t more, int32_t purse)
{
	return more >= purse - coins ? purse : coins + (int32_t)more;
}

static void refill(struct client_http2_limits *g, struct loop *loop)
{
	int64_t now = loop_now_ms(loop), passed = now - g->at_ms;

	if (passed < 100) /* so that rounding gives nothing away */
		return;
	g->at_ms = now;
	g->frames = filled(g->frames, passed * FRAMES_PER_S / 1000, FRAMES_PURSE);
	g->resets = filled(g->resets, passed * RESETS_PER_S / 1000, RESETS_PURSE);
	g->bytes = filled(g->bytes, passed * BYTES_PER_S / 1000, BYTES_PURSE);
}

static bool pay(struct client_http2_limits *g, int32_t *purse, int32_t price, struct loop *loop)
{
	if (*purse < price)
		refill(g, loop);
	if (*purse < price)
		return false;
	*purse -= price;
	return true;
}

const char *client_http2_limits_frame(
        struct client_http2_limits *g, struct loop *loop, const nghttp2_frame_hd *hd)
{
	switch (hd->type) {
	case NGHTTP2_HEADERS:
		g->block_bytes = hd->length;
		g->frames = filled(g->frames, FRAMES_PER_REQUEST, FRAMES_PURSE);
		g->bytes = filled(g->bytes, BYTES_PER_REQUEST, BYTES_PURSE);
		return NULL;
	case NGHTTP2_CONTINUATION:
		g->block_bytes += hd->length;
		if (g->block_bytes > BLOCK_BYTES_MAX)
			return "HTTP/2: a header block without end";
		break;
	default:
		break;
	}
	return pay(g, &g->frames, 1, loop) ? NULL
	                                   : "HTTP/2: a flood of frames that ask for nothing";
}

const char *client_http2_limits_reset(struct client_http2_limits *g, struct loop *loop)
{
	return pay(g, &g->resets, 1, loop) ? NULL : "HTTP/2: a flood of streams that are reset";
}

const char *client_http2_limits_bytes(struct client_http2_limits *g, struct loop *loop, size_t n)
{
	/* At most SOCKET_CHUNK at a time. */
	return pay(g, &g->bytes, (int32_t)n, loop) ? NULL
	                                           : "HTTP/2: a flood of bytes that nobody reads";
}

void client_http2_limits_progress(struct client_http2_limits *g, size_t received)
{
	g->frames = filled(g->frames, FRAMES_PER_CONTENT, FRAMES_PURSE);
	g->bytes = filled(g->bytes, (int64_t)received + BYTES_PER_CONTENT, BYTES_PURSE);
}
