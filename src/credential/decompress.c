/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a library decompresses directly into room reserved at the end of out, and
 * per call never more than the caller's limit leaves, so a decompression bomb costs only as much
 * memory as the caller drains. The input's length bounds the length of the whole output as well
 * (INFLATED_RATIO). After the end of a gzip member or a zstd frame the next byte must begin another
 * one (RFC 1952 section 2.2, RFC 8878 section 3); after the end of another stream nothing may
 * follow.
 */
#include "vethguard/credential/decompress.h"

#include <errno.h>
#include <stdlib.h>

#include "credential/decompress_private.h"
#include "vethguard/credential/inflate.h"

#define STEP_MAX 16384 /* bytes of room reserved in out at a time */

enum decompress_state {
	DECOMPRESS_FRESH,  /* nothing taken yet */
	DECOMPRESS_MEMBER, /* inside a member, frame or stream */
	DECOMPRESS_ENDED,  /* after the end of one */
	DECOMPRESS_BROKEN
};

struct decompress {
	const struct decompress_format *format;
	struct decompress_heap heap;
	void *decoder;
	enum decompress_state state;
	int failure; /* BROKEN: what every call returns */
	bool full;   /* the last step filled its room: the decoder may hold more */
	uint64_t taken, made;
};

static const struct decompress_format *const formats[] = {
        [DECOMPRESS_GZIP] = &decompress_gzip,
        [DECOMPRESS_DEFLATE] = &decompress_deflate,
        [DECOMPRESS_BROTLI] = &decompress_brotli,
        [DECOMPRESS_ZSTD] = &decompress_zstd,
};
_Static_assert(sizeof(formats) / sizeof(formats[0]) == DECOMPRESS_CODING_COUNT, "each coding");

struct decompress *decompress_new(enum decompress_coding coding, struct decompress_memory *memory)
{
	struct decompress *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->format = formats[coding];
	u->heap.memory = memory;
	u->decoder = u->format->new (&u->heap);
	if (!u->decoder) {
		free(u);
		return NULL;
	}
	return u;
}

void decompress_free(struct decompress *u)
{
	if (!u)
		return;
	u->format->free(u->decoder);
	free(u);
}

/* Takes one step. Returns 0 to go on, 1 if there is no progress without more input or room, or
 * -errno. */
static int take_step(
        struct decompress *u, struct decompress_io *io, struct buf *out, size_t room_bytes)
{
	uint8_t *room = buf_reserve(out, room_bytes);
	size_t input = io->in_n, made, took;
	int rc;

	if (!room)
		return room_bytes > out->max - out->len ? -ENOBUFS : -ENOMEM;
	io->out = room;
	io->out_n = room_bytes;
	rc = u->format->step(u->decoder, io);
	made = room_bytes - io->out_n;
	took = input - io->in_n;
	buf_commit(out, made);
	u->full = made == room_bytes;
	u->taken += took;
	u->made += made;
	if (took)
		u->state = DECOMPRESS_MEMBER;
	if (u->heap.starved)
		return -ENOMEM;
	if (rc < 0)
		return rc;
	if (u->made > INFLATED_FREE + INFLATED_RATIO * u->taken)
		return -EFBIG;
	if (rc > 0) {
		u->state = DECOMPRESS_ENDED;
		return 0;
	}
	return !made && !took;
}

/* Room for the next step, within the limit and out's own bound. */
static size_t step_room(const struct buf *out, size_t out_limit)
{
	size_t left = out->max - out->len;

	if (out_limit - out->len < left)
		left = out_limit - out->len;
	return left < STEP_MAX ? left : STEP_MAX;
}

/* True if a step could take input, or give output that the decoder still holds. */
static bool can_go_on(const struct decompress *u, const struct decompress_io *io)
{
	return io->in_n || (u->state == DECOMPRESS_MEMBER && u->full);
}

int decompress_feed(struct decompress *u, const uint8_t *p, size_t n, size_t *used, struct buf *out,
        size_t out_limit)
{
	struct decompress_io io = {.in = p, .in_n = n};
	int rc = 0;

	*used = 0;
	if (u->state == DECOMPRESS_BROKEN)
		return u->failure;
	while (rc == 0 && out->len < out_limit && out->len < out->max && can_go_on(u, &io)) {
		if (u->state == DECOMPRESS_ENDED && !u->format->repeats)
			rc = -EBADMSG; /* bytes after the stream's end */
		else
			rc = take_step(u, &io, out, step_room(out, out_limit));
	}
	*used = n - io.in_n;
	if (rc < 0) {
		u->state = DECOMPRESS_BROKEN;
		u->failure = rc;
	}
	return rc < 0 ? rc : 0;
}

bool decompress_complete(const struct decompress *u)
{
	return u->state == DECOMPRESS_ENDED;
}
