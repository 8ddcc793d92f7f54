/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: zlib inflates directly into room reserved at the end of out, and per call
 * never more than the caller's limit leaves, so a decompression bomb costs only as much memory as
 * the caller drains. After a member's trailer the next byte must begin another member (RFC 1952
 * section 2.2). zlib checks each member's CRC and length.
 */
#include "vethguard/credential/decompress.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#define WINDOW_GZIP_ONLY (15 + 16) /* inflateInit2: the largest window, gzip header required */
#define STEP_MAX 16384             /* bytes of room reserved in out at a time */

enum decompress_state {
	DECOMPRESS_FRESH,  /* nothing taken yet */
	DECOMPRESS_MEMBER, /* inside a member */
	DECOMPRESS_ENDED,  /* after a member's trailer */
	DECOMPRESS_BROKEN
};

struct decompress {
	z_stream z;
	enum decompress_state state;
};

struct decompress *decompress_new(void)
{
	struct decompress *u = calloc(1, sizeof(*u));

	if (u && inflateInit2(&u->z, WINDOW_GZIP_ONLY) != Z_OK) {
		free(u);
		u = NULL;
	}
	return u;
}

void decompress_free(struct decompress *u)
{
	if (!u)
		return;
	inflateEnd(&u->z);
	free(u);
}

/* Calls inflate() once. Returns 0 to go on, 1 if there is no progress without more input or room,
 * or -errno. */
static int inflate_step(struct decompress *u, struct buf *out, size_t room_bytes)
{
	uint8_t *room = buf_reserve(out, room_bytes);
	uInt input = u->z.avail_in;
	size_t made;
	int rc;

	if (!room)
		return room_bytes > out->max - out->len ? -ENOBUFS : -ENOMEM;
	u->z.next_out = room;
	u->z.avail_out = (uInt)room_bytes;
	rc = inflate(&u->z, Z_NO_FLUSH);
	made = room_bytes - u->z.avail_out;
	buf_commit(out, made);
	if (u->z.avail_in < input)
		u->state = DECOMPRESS_MEMBER;
	if (rc == Z_STREAM_END) {
		u->state = DECOMPRESS_ENDED;
		return inflateReset(&u->z) == Z_OK ? 0 : -EBADMSG;
	}
	if (rc == Z_MEM_ERROR)
		return -ENOMEM;
	if (rc != Z_OK && rc != Z_BUF_ERROR)
		return -EBADMSG;
	return made == 0 && u->z.avail_in == input;
}

/* Room for the next step, within the limit and out's own bound. */
static size_t step_room(const struct buf *out, size_t out_limit)
{
	size_t left = out->max - out->len;

	if (out_limit - out->len < left)
		left = out_limit - out->len;
	return left < STEP_MAX ? left : STEP_MAX;
}

int decompress_feed(struct decompress *u, const uint8_t *p, size_t n, size_t *used, struct buf *out,
        size_t out_limit)
{
	uInt take = n < UINT_MAX ? (uInt)n : UINT_MAX;
	int rc = 0;

	*used = 0;
	if (u->state == DECOMPRESS_BROKEN)
		return -EBADMSG;
	u->z.next_in = (Bytef *)(uintptr_t)p;
	u->z.avail_in = take;
	while (rc == 0 && out->len < out_limit && out->len < out->max) {
		/* Between members zlib holds nothing back: without input there is nothing to do. */
		if (u->z.avail_in == 0 && u->state != DECOMPRESS_MEMBER)
			break;
		rc = inflate_step(u, out, step_room(out, out_limit));
	}
	*used = take - u->z.avail_in;
	u->z.next_in = NULL;
	u->z.avail_in = 0;
	if (rc == -EBADMSG)
		u->state = DECOMPRESS_BROKEN;
	return rc < 0 ? rc : 0;
}

bool decompress_complete(const struct decompress *u)
{
	return u->state == DECOMPRESS_ENDED;
}
