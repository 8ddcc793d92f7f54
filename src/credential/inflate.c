/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each message lacks the four bytes that end a flushed DEFLATE stream (RFC 7692 section 7.2.1),
 * which are added after its last piece. A sender may also end the stream (section 7.2.3.4); the
 * next stream may still refer to the same window, so the window is carried over.
 */
#include "vethguard/credential/inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define STEP_BYTES 16384
#define WINDOW_BYTES 32768
#define WINDOW_BITS_MIN 9 /* zlib's senders use 9 for 8 */

struct inflater {
	z_stream z;
	bool forgets;
	uint64_t taken, made;
};

struct inflater *inflater_new(uint8_t window_bits, bool forgets)
{
	struct inflater *w = calloc(1, sizeof(*w));

	if (window_bits < WINDOW_BITS_MIN)
		window_bits = WINDOW_BITS_MIN;
	if (w && inflateInit2(&w->z, -window_bits) != Z_OK) {
		free(w);
		return NULL;
	}
	if (w)
		w->forgets = forgets;
	return w;
}

void inflater_free(struct inflater *w)
{
	if (!w)
		return;
	inflateEnd(&w->z);
	free(w);
}

static int next_stream(z_stream *z)
{
	uint8_t window[WINDOW_BYTES];
	uInt n = 0;

	if (inflateGetDictionary(z, window, &n) != Z_OK || inflateReset(z) != Z_OK ||
	        (n && inflateSetDictionary(z, window, n) != Z_OK))
		return -EBADMSG;
	return 0;
}

/* Calls inflate() once. Returns 1 to go on, 0 if all input is used up, or -errno. */
static int step(struct inflater *w, inflater_text text, void *context)
{
	uint8_t plain[STEP_BYTES];
	size_t made;
	int rc;

	w->z.next_out = plain;
	w->z.avail_out = sizeof(plain);
	rc = inflate(&w->z, Z_SYNC_FLUSH);
	made = sizeof(plain) - w->z.avail_out;
	w->made += made;
	if (made)
		text(context, plain, made);
	if (rc == Z_STREAM_END) {
		rc = next_stream(&w->z);
		return rc < 0 ? rc : w->z.avail_in > 0;
	}
	if (rc == Z_MEM_ERROR)
		return -ENOMEM;
	if (rc != Z_OK && rc != Z_BUF_ERROR)
		return -EBADMSG;
	return w->z.avail_in > 0 || w->z.avail_out == 0;
}

static int inflate_all(
        struct inflater *w, const uint8_t *p, size_t n, inflater_text text, void *context)
{
	int rc = 1;

	w->z.next_in = (Bytef *)(uintptr_t)p;
	w->z.avail_in = (uInt)n;
	w->taken += n;
	while (rc > 0) {
		if (w->made > INFLATED_FREE + INFLATED_RATIO * w->taken)
			return -EFBIG;
		rc = step(w, text, context);
	}
	return rc;
}

int inflater_feed(struct inflater *w, const uint8_t *p, size_t n, bool ends, inflater_text text,
        void *context)
{
	static const uint8_t tail[4] = {0, 0, 0xff, 0xff};
	int rc = n ? inflate_all(w, p, n, text, context) : 0;

	if (rc < 0 || !ends)
		return rc;
	rc = inflate_all(w, tail, sizeof(tail), text, context);
	if (rc == 0 && w->forgets && inflateReset(&w->z) != Z_OK)
		rc = -EBADMSG;
	return rc;
}
