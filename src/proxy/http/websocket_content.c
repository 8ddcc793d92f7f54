/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what RFC 6455 requires of a frame's content: text messages are UTF-8, and a close frame
 * has a code that may be sent and a reason that is UTF-8. */
#include "proxy/http/websocket.h"

#define UNMASKED_BYTES 4096

const char websocket_no_text[] = "WebSocket: a text message that is not UTF-8";

static bool feed_unmasked(const struct websocket *w, struct utf8 *text, const uint8_t *p, size_t n)
{
	struct websocket piece = *w; /* the state as it was after each piece */
	uint8_t plain[UNMASKED_BYTES];

	for (piece.at -= n; n;) {
		size_t step = n < sizeof(plain) ? n : sizeof(plain);

		piece.at += step;
		websocket_unmask(&piece, p, step, plain);
		if (!utf8_feed(text, plain, step))
			return false;
		p += step;
		n -= step;
	}
	return true;
}

bool websocket_is_text(const struct websocket *w, struct utf8 *text, const uint8_t *p, size_t n)
{
	if (!w->text || w->compressed || websocket_is_control(w))
		return true;
	if (w->masked ? !feed_unmasked(w, text, p, n) : !utf8_feed(text, p, n))
		return false;
	return w->left || !w->fin || utf8_is_whole(text);
}

/* True for codes that may be in a frame: those of RFC 6455 and IANA's registry, and those for
 * libraries and applications. 1004, 1005, 1006 and 1015 are for use inside a program only. */
static bool may_be_sent(uint16_t code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

const char *websocket_close_is_wrong(const uint8_t *p, size_t n, uint16_t *code)
{
	struct utf8 reason = {0};

	if (n < 2) /* websocket.c refuses a length of one byte before the content comes */
		return NULL;
	*code = WEBSOCKET_PROTOCOL_ERROR;
	if (!may_be_sent((uint16_t)(p[0] << 8 | p[1])))
		return "WebSocket: a close frame with a code that may not be sent";
	*code = WEBSOCKET_BAD_DATA;
	if (!utf8_feed(&reason, p + 2, n - 2) || !utf8_is_whole(&reason))
		return "WebSocket: a close frame whose reason is not UTF-8";
	return NULL;
}
