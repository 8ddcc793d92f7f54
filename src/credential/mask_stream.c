/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what was held back and the new bytes are laid one behind the other in the
 * room reserved at the end of out, searched and covered there, and committed up to where a value
 * may have begun; that rest goes, uncovered, into secret memory and is wiped from the room. An
 * occurrence that starts in the rest waits with it, because a longer one may begin before it. How
 * much of the rest already lies in a covered stretch is remembered, so that values that overlap
 * across chunks are covered as in one text. A rest too short to tell anything may be shown at a
 * pause: then it stays in mind, and only what comes after it can still be covered. Most chunks
 * never come here: the caller asks mask_stream_clean() first and passes them on.
 */
#include <errno.h>

#include "mask_internal.h"

#define TAIL_FIRST_BYTES 256 /* enough for what chunk ends usually hold back */

int mask_stream_init(struct mask_stream *s, const struct mask *mask)
{
	*s = (struct mask_stream){.mask = mask};
	return 0;
}

void mask_stream_fini(struct mask_stream *s)
{
	secret_free(&s->tail);
	*s = (struct mask_stream){0};
}

static int hold(struct mask_stream *s, const uint8_t *p, size_t n)
{
	if (n > s->tail.cap) {
		struct secret larger;
		size_t most = MASK_EXPANSION * s->mask->longest,
		       cap = n < TAIL_FIRST_BYTES ? TAIL_FIRST_BYTES : most;
		int rc = secret_alloc(&larger, cap);

		if (rc < 0)
			return rc;
		secret_free(&s->tail);
		s->tail = larger;
	}
	if (n < s->tail.n)
		secret_wipe(s->tail.p + n, s->tail.n - n);
	if (n > 0)
		memcpy(s->tail.p, p, n);
	s->tail.n = n;
	return 0;
}

/* The first n bytes of room are certain; what of them was passed on before is left out. */
static void commit_unshown(struct mask_stream *s, uint8_t *room, size_t n, struct buf *out)
{
	size_t again = s->shown < n ? s->shown : n;

	s->shown -= again;
	if (again)
		memmove(room, room + again, n - again);
	buf_commit(out, n - again);
}

/* Shorter ends look like a value's beginning by chance too often to be counted. released: something
 * that was kept back is certain now; became: it was a value's beginning. A value that only comes
 * later in the same text, as whoever guesses could make it come, forgives nothing; nor does one
 * before whose end the kept back bytes happen to go on. */
static void count_waits(struct mask_stream *s, bool released, bool became)
{
	bool waits = s->held - s->covered > MASK_SHOWN_MAX;

	if (s->waits && became)
		s->waited--;
	s->unseen = waits && (!s->waits || released);
	s->waited += s->unseen;
	s->waits = waits;
}

int mask_stream_feed(struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out)
{
	size_t total = s->held + n, keep_from, covered = s->covered, first;
	bool became;
	uint8_t *room;
	int rc;

	s->unseen = false;
	if (n == 0)
		return 0;
	if (total < n || n > out->max)
		return -ENOBUFS;
	room = buf_reserve(out, total);
	if (!room)
		return total > out->max - out->len ? -ENOBUFS : -ENOMEM;
	if (s->held > 0)
		memcpy(room, s->tail.p, s->held);
	memcpy(room + s->held, p, n);
	keep_from = mask_scan_prefix(s->mask, room, total);
	rc = hold(s, room + keep_from, total - keep_from);
	if (rc < 0) {
		secret_wipe(room, total);
		return rc;
	}
	s->found += mask_cover(s->mask, room, total, keep_from, &covered, &first);
	became = first < s->held;
	s->held = total - keep_from;
	s->covered = covered > keep_from ? covered - keep_from : 0;
	secret_wipe(room + keep_from, s->held);
	count_waits(s, keep_from > 0, became);
	commit_unshown(s, room, keep_from, out);
	return 0;
}

/* How much of a value's beginning tells so little that it may be seen. */
static size_t shown_most(const struct mask *mask)
{
	size_t most = mask->window / 8;

	return most > MASK_SHOWN_MAX ? MASK_SHOWN_MAX : most ? most : 1;
}

int mask_stream_pause(struct mask_stream *s, struct buf *out)
{
	size_t n = s->held - s->shown;
	int rc;

	if (n == 0 || s->covered || s->held > shown_most(s->mask))
		return 0;
	rc = buf_append(out, s->tail.p + s->shown, n);
	if (rc == 0)
		s->shown = s->held;
	return rc;
}

int mask_stream_end(struct mask_stream *s, struct buf *out)
{
	uint8_t *room;
	size_t first;

	if (s->held == 0)
		return 0;
	room = buf_reserve(out, s->held);
	if (!room)
		return s->held > out->max - out->len ? -ENOBUFS : -ENOMEM;
	memcpy(room, s->tail.p, s->held);
	s->found += mask_cover(s->mask, room, s->held, s->held, &s->covered, &first);
	s->waited -= s->waits && first < s->held;
	s->waits = false;
	commit_unshown(s, room, s->held, out);
	secret_wipe(s->tail.p, s->tail.n);
	s->tail.n = s->held = s->covered = 0;
	return 0;
}

int mask_stream_show(struct mask_stream *s, struct buf *out)
{
	size_t covered = s->covered, from = s->shown, first;
	uint8_t *room;

	if (s->held <= from)
		return 0;
	room = buf_reserve(out, s->held);
	if (!room)
		return s->held > out->max - out->len ? -ENOBUFS : -ENOMEM;
	memcpy(room, s->tail.p, s->held);
	mask_cover(s->mask, room, s->held, s->held, &covered, &first);
	memmove(room, room + from, s->held - from);
	secret_wipe(room + s->held - from, from);
	buf_commit(out, s->held - from);
	s->shown = s->held;
	s->waited -= s->unseen;
	s->waits = s->unseen = false;
	return 0;
}

uint64_t mask_in_place(const struct mask *mask, uint8_t *p, size_t n)
{
	size_t covered = 0, first;

	return n > 0 ? mask_cover(mask, p, n, n, &covered, &first) : 0;
}

bool mask_stream_clean(struct mask_stream *s, const uint8_t *p, size_t n)
{
	if (s->held > 0)
		return false;
	return n == 0 || (mask_scan_prefix(s->mask, p, n) == n && mask_scan_nothing(s->mask, p, n));
}
