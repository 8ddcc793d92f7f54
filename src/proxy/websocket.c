/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a frame is gathered byte by byte, as it may come; its content is only counted. */
#include <string.h>

#include "proxy/websocket.h"

static size_t head_size(const struct websocket *w)
{
	size_t n = 2;

	if (w->head_n < 2)
		return n;
	if ((w->head[1] & 0x7f) == 126)
		n += 2;
	else if ((w->head[1] & 0x7f) == 127)
		n += 8;
	return w->head[1] & 0x80 ? n + 4 : n;
}

static void begin_content(struct websocket *w)
{
	uint8_t length = w->head[1] & 0x7f;
	size_t extended = length == 126 ? 2 : length == 127 ? 8 : 0;

	w->left = extended ? 0 : length;
	for (size_t i = 0; i < extended; i++)
		w->left = w->left << 8 | w->head[2 + i];
	memset(w->key, 0, sizeof w->key);
	if (w->head[1] & 0x80)
		memcpy(w->key, w->head + 2 + extended, sizeof w->key);
	w->at = 0;
	w->head_n = 0;
}

size_t websocket_next(struct websocket *w, const uint8_t *p, size_t n, bool *content)
{
	size_t i = 0;

	*content = w->left > 0;
	if (w->left) {
		i = n < w->left ? n : (size_t)w->left;
		w->left -= i;
		w->at += i;
		return i;
	}
	while (i < n) {
		w->head[w->head_n++] = p[i++];
		if (w->head_n == head_size(w)) {
			begin_content(w);
			break;
		}
	}
	return i;
}

void websocket_unmask(const struct websocket *w, const uint8_t *p, size_t n, uint8_t *out)
{
	uint64_t first = w->at - n;

	for (size_t i = 0; i < n; i++)
		out[i] = p[i] ^ w->key[(first + i) & 3];
}
