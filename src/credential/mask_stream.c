/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the bytes held back and the new bytes are joined in room reserved at the end
 * of out, searched and masked there, and committed up to where a value may have begun. The rest
 * goes, unmasked, into secret memory and is wiped from the room. Kinds of bytes decide where a
 * value may have begun, not the value (mask_class.c). An occurrence that starts in the rest waits
 * with it, because a longer one may begin before it. The part of the rest that is already in a
 * masked stretch is remembered, so that values that overlap across chunks are masked as in one
 * text.
 *
 * Bytes that were passed on although a value may begin in them are remembered as far as they are a
 * true beginning of one; only what comes after them can still be masked. Nothing waits because of
 * remembered bytes: they are before the bytes that the decision concerns.
 *
 * Most chunks are never copied: mask_stream_take() searches the border between held and new bytes,
 * and the new bytes, each by itself, and leaves the bytes where they are.
 */
#include <errno.h>

#include "credential/mask_private.h"

#define TAIL_FIRST_BYTES 512 /* enough for what ends of chunks usually hold back */

int mask_stream_init(struct mask_stream *s, const struct mask *mask)
{
	*s = (struct mask_stream){.mask = mask};
	return 0;
}

void mask_stream_fini(struct mask_stream *s)
{
	if (s->tail.p && !s->mask->spare->p && s->tail.cap == TAIL_FIRST_BYTES) {
		secret_wipe(s->tail.p, s->tail.n);
		*s->mask->spare = s->tail;
	} else {
		secret_free(&s->tail);
	}
	*s = (struct mask_stream){0};
}

/* Makes a tail with room for n bytes, at most two of the longest occurrence. */
static int make_tail(struct mask_stream *s, size_t n)
{
	struct secret larger = {0};
	size_t most = MASK_EXPANSION * s->mask->longest;
	int rc;

	if (n <= s->tail.cap)
		return 0;
	if (n <= TAIL_FIRST_BYTES && s->mask->spare->p) {
		s->tail = *s->mask->spare;
		*s->mask->spare = larger;
		return 0;
	}
	rc = secret_alloc(&larger, n <= TAIL_FIRST_BYTES ? TAIL_FIRST_BYTES
	                           : n <= most           ? most
	                                                 : 2 * most);
	if (rc < 0)
		return rc;
	if (s->tail.n > 0)
		memcpy(larger.p, s->tail.p, s->tail.n);
	larger.n = s->tail.n;
	secret_free(&s->tail);
	s->tail = larger;
	return 0;
}

/* Sets the tail, which has room for it; p may be inside it. */
static void set_tail(struct mask_stream *s, const uint8_t *p, size_t n)
{
	if (n > 0)
		memmove(s->tail.p, p, n);
	if (n < s->tail.n)
		secret_wipe(s->tail.p + n, s->tail.n - n);
	s->tail.n = n;
}

/* Commits the first n bytes of room, which are certain, without those passed on before. */
static void commit_unshown(struct mask_stream *s, uint8_t *room, size_t n, struct buf *out)
{
	size_t again = s->shown < n ? s->shown : n;

	s->shown -= again;
	if (again)
		memmove(room, room + again, n - again);
	buf_commit(out, n - again);
}

/* How many bytes of a value's beginning reveal so little that they may be shown. */
static size_t shown_most(const struct mask *mask)
{
	size_t most = mask->window / 8;

	return most > MASK_SHOWN_MAX ? MASK_SHOWN_MAX : most ? most : 1;
}

/* Counts n open bytes that were passed on after those counted so far. */
static void count_passed(struct mask_stream *s, size_t n)
{
	s->passed += n < MASK_SHOWN_MAX ? n : MASK_SHOWN_MAX;
	if (s->passed > MASK_SHOWN_MAX)
		s->passed = MASK_SHOWN_MAX + 1;
}

/* Where the part of text to be kept starts; text begins with the held bytes. Remembered bytes have
 * no influence. */
static size_t keep_from(struct mask_stream *s, const uint8_t *text, size_t n)
{
	size_t most = MASK_EXPANSION * s->mask->longest,
	       from = mask_scan_open(s->mask, text + s->shown, n - s->shown);

	if (from > 0) {
		s->passed = 0;
		return s->shown + from;
	}
	return n > most ? n - most : 0;
}

int mask_stream_feed(struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out)
{
	size_t total = s->held + n, from, covered = s->covered, first;
	uint8_t *room;
	int rc;

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
	from = keep_from(s, room, total);
	rc = make_tail(s, total - from);
	if (rc < 0) {
		secret_wipe(room, total);
		return rc;
	}
	set_tail(s, room + from, total - from);
	s->found += mask_redact(s->mask, room, total, from, &covered, &first);
	s->held = total - from;
	s->covered = covered > from ? covered - from : 0;
	secret_wipe(room + from, s->held);
	commit_unshown(s, room, from, out);
	return 0;
}

/* All held bytes were passed on: forgets those that can no longer become a value. */
static void forget_certain(struct mask_stream *s)
{
	size_t from = mask_scan_prefix(s->mask, s->tail.p, s->held);

	set_tail(s, s->tail.p + from, s->held - from);
	s->held = s->shown = s->held - from;
	s->covered = s->covered > from ? s->covered - from : 0;
}

int mask_stream_pause(struct mask_stream *s, struct buf *out)
{
	size_t n = s->held - s->shown;
	int rc;

	if (n == 0 || s->covered || s->passed + n > shown_most(s->mask))
		return 0;
	rc = buf_append(out, s->tail.p + s->shown, n);
	if (rc < 0)
		return rc;
	count_passed(s, n);
	forget_certain(s);
	return 0;
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
	s->found += mask_redact(s->mask, room, s->held, s->held, &s->covered, &first);
	commit_unshown(s, room, s->held, out);
	secret_wipe(s->tail.p, s->tail.n);
	s->tail.n = s->held = s->covered = 0;
	return 0;
}

static int show(struct mask_stream *s, struct buf *out)
{
	size_t covered = s->covered, from = s->shown, first;
	uint8_t *room;

	if (s->held <= from)
		return 0;
	room = buf_reserve(out, s->held);
	if (!room)
		return s->held > out->max - out->len ? -ENOBUFS : -ENOMEM;
	memcpy(room, s->tail.p, s->held);
	s->found += mask_redact(s->mask, room, s->held, s->held, &covered, &first);
	s->covered = covered;
	memmove(room, room + from, s->held - from);
	secret_wipe(room + s->held - from, from);
	buf_commit(out, s->held - from);
	forget_certain(s);
	return 0;
}

int mask_stream_show(struct mask_stream *s, struct buf *out)
{
	s->passed = 0;
	return show(s, out);
}

int mask_stream_release(struct mask_stream *s, struct buf *out)
{
	size_t from = s->covered < s->held ? s->covered : s->held;

	if (mask_scan_reached(s->mask, s->tail.p + from, s->held - from) > shown_most(s->mask)) {
		s->waited++;
		return -EACCES;
	}
	count_passed(s, s->held - s->shown);
	return show(s, out);
}

uint64_t mask_in_place(const struct mask *mask, uint8_t *p, size_t n)
{
	size_t covered = 0, first;

	return n > 0 ? mask_redact(mask, p, n, n, &covered, &first) : 0;
}

/* How to treat the end of p[n], if no occurrence touches it. */
struct ending {
	size_t open; /* bytes that could be the beginning of a value */
	bool show;   /* ... and are so few that they may be passed on */
	size_t keep; /* bytes to be held or remembered */
};

static struct ending ending_of(const struct mask_stream *s, const uint8_t *p, size_t n)
{
	struct ending e = {.open = n - mask_scan_open(s->mask, p, n)};

	e.keep = e.open;
	e.show = e.open + (e.open == n ? s->passed : 0) <= shown_most(s->mask);
	if (e.show)
		e.keep -= mask_scan_prefix(s->mask, p + n - e.open, e.open);
	return e;
}

static void pass_ending(struct mask_stream *s, const struct ending *e, size_t n)
{
	if (e->open < n)
		s->passed = 0;
	if (e->show)
		count_passed(s, e->open);
}

bool mask_stream_clean(struct mask_stream *s, const uint8_t *p, size_t n)
{
	struct ending e;

	if (s->held > 0)
		return false;
	if (n == 0)
		return true;
	e = ending_of(s, p, n);
	if (e.keep > 0 || !e.show || !mask_scan_nothing(s->mask, p, n))
		return false;
	pass_ending(s, &e, n);
	return true;
}

bool mask_stream_search(struct mask_stream *s, const uint8_t *p, size_t n)
{
	size_t most = MASK_EXPANSION * s->mask->longest, more = n < most ? n : most, from;
	bool found = n > 0 && !mask_scan_nothing(s->mask, p, n);

	if (s->held > 0 && make_tail(s, s->held + more) == 0) {
		memcpy(s->tail.p + s->held, p, more);
		s->tail.n = s->held + more;
		found |= !mask_scan_nothing(s->mask, s->tail.p, s->tail.n);
		if (n < most) {
			p = s->tail.p;
			n = s->tail.n;
		}
	}
	from = mask_scan_prefix(s->mask, p, n);
	if (make_tail(s, n - from) < 0)
		from = n; /* only complete occurrences can be found */
	set_tail(s, p + from, n - from);
	s->held = s->shown = n - from;
	return found;
}

/* True if an occurrence begins in the held bytes and continues in p, or if there is no memory to
 * find out. */
static bool straddles(const struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out)
{
	size_t most = MASK_EXPANSION * s->mask->longest, more = n < most ? n : most;
	uint8_t *room;
	bool nothing;

	if (s->held == 0)
		return false;
	room = buf_reserve(out, s->held + more);
	if (!room)
		return true;
	memcpy(room, s->tail.p, s->held);
	memcpy(room + s->held, p, more);
	nothing = mask_scan_nothing(s->mask, room, s->held + more);
	secret_wipe(room, s->held);
	return !nothing;
}

/* True if the bytes need not be copied: no occurrence touches the held bytes or p, and the held
 * bytes end before p's open end. */
static bool passes(const struct mask_stream *s, const uint8_t *p, size_t n, const struct ending *e,
        struct buf *out)
{
	if (s->covered || (s->held > 0 && e->open == n))
		return false;
	return mask_scan_nothing(s->mask, p, n) && !straddles(s, p, n, out);
}

int mask_stream_take(
        struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out, struct slice *rest)
{
	struct ending e = ending_of(s, p, n);
	int rc = make_tail(s, e.keep);

	*rest = SLICE("");
	if (rc < 0)
		return rc;
	if (!passes(s, p, n, &e, out)) {
		rc = mask_stream_feed(s, p, n, out);
		return rc == 0 ? mask_stream_pause(s, out) : rc;
	}
	if (s->held > s->shown) {
		rc = buf_append(out, s->tail.p + s->shown, s->held - s->shown);
		if (rc < 0)
			return rc;
	}
	set_tail(s, p + n - e.keep, e.keep);
	pass_ending(s, &e, n);
	s->held = e.keep;
	s->shown = e.show ? e.keep : 0;
	*rest = slice_of(p, e.show ? n : n - e.keep);
	return 0;
}
