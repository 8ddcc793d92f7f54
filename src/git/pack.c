/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a pack has no index, and only the compressed stream of an object tells where
 * the object ends. So each object is inflated, in the order of the pack, and the content of all but
 * commits is dropped. The hash at the pack's end is not checked: the server checks it, and the ids
 * of the commits are computed from their texts (commits.c).
 *
 * A commit may be written as the difference to another one: to an earlier one of this pack by its
 * distance, or to any one by its id. A difference to anything but an earlier commit of this pack is
 * inflated and dropped.
 */
#include "git/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "git/delta.h"
#include "vethguard/base/cursor.h"
#include "vethguard/git/body.h"

#define HEAD_BYTES 12u
#define PIECE_BYTES 65536u
#define SIZE_SHIFT_MAX 32u /* the largest shift in an object's size, which has at most 39 bits */
#define DISTANCE_MAX ((size_t)1 << 48)

enum object { OBJECT_COMMIT = 1, OBJECT_TAG = 4, OBJECT_BY_DISTANCE = 6, OBJECT_BY_ID = 7 };

static const char damaged[] = "the pack is damaged, or of a kind that vethguard does not know";
static const char too_much[] =
        "the pack has more objects, commits or bytes than vethguard reads for a proof";
static const char no_memory[] = "no memory to read the pack";

struct pack {
	struct reader r;
	size_t whole; /* bytes of the pack */
	struct commits *commits;
	z_stream z;
	size_t inflated;
	uint8_t *piece; /* content that is dropped */
	const char *fault;
};

/* Sets the fault and returns false. */
static bool fail(struct pack *p, const char *fault)
{
	p->fault = fault;
	return false;
}

bool pack_begins(struct slice pack)
{
	struct reader r = reader_over(pack.p, pack.n);
	bool good = slice_equals(reader_bytes(&r, 4), SLICE("PACK"));
	uint32_t version = reader_u32(&r);

	reader_u32(&r);
	return good && !r.failed && (version == 2 || version == 3);
}

/* Inflates the next object, which has to have that size. out: room for it, or NULL to drop it. */
static bool inflate_object(struct pack *p, size_t size, uint8_t *out)
{
	size_t left = size;
	int rc = Z_OK;

	if (size > GIT_INFLATED_MAX - p->inflated)
		return fail(p, too_much);
	p->inflated += size;
	if (inflateReset(&p->z) != Z_OK)
		return fail(p, damaged);
	p->z.next_in = (Bytef *)p->r.p;
	p->z.avail_in = (uInt)p->r.left;
	while (rc == Z_OK) {
		size_t room = out || left < PIECE_BYTES ? left : PIECE_BYTES;

		p->z.next_out = out ? out + (size - left) : p->piece;
		p->z.avail_out = (uInt)room;
		rc = inflate(&p->z, Z_NO_FLUSH);
		left -= room - p->z.avail_out;
	}
	if (rc != Z_STREAM_END || left)
		return fail(p, rc == Z_MEM_ERROR ? no_memory : damaged);
	p->r.p += p->r.left - p->z.avail_in;
	p->r.left = p->z.avail_in;
	return true;
}

/* Reads an object's type and size. The first byte has the type and four bits of the size, each
 * further byte seven bits. */
static bool read_head(struct pack *p, unsigned *type, size_t *size)
{
	uint8_t byte = reader_u8(&p->r);
	unsigned shift = 4;

	*type = byte >> 4 & 7;
	*size = byte & 15;
	while (byte & 0x80) {
		byte = reader_u8(&p->r);
		if (shift > SIZE_SHIFT_MAX)
			return fail(p, too_much);
		*size |= (size_t)(byte & 0x7f) << shift;
		shift += 7;
	}
	return !p->r.failed || fail(p, damaged);
}

/* Finds where the base of a difference begins: at `at` less the distance that is read here. Each
 * byte of the distance has seven bits, and one is added for each byte that follows. */
static bool read_distance(struct pack *p, size_t at, size_t *base)
{
	uint8_t byte = reader_u8(&p->r);
	size_t distance = byte & 0x7f;

	while (byte & 0x80) {
		byte = reader_u8(&p->r);
		if (p->r.failed || distance > DISTANCE_MAX)
			return fail(p, damaged);
		distance = (distance + 1) << 7 | (byte & 0x7f);
	}
	if (p->r.failed || distance == 0 || distance > at)
		return fail(p, damaged);
	*base = at - distance;
	return true;
}

static bool add(struct pack *p, size_t at, uint8_t *text, size_t n)
{
	int rc = commits_add(p->commits, at, text, n);

	return rc == 0 || fail(p, rc == -ENOBUFS ? too_much : no_memory);
}

static bool read_commit(struct pack *p, size_t at, size_t size)
{
	uint8_t *text;

	if (size > GIT_COMMIT_MAX)
		return fail(p, too_much);
	text = malloc(size + 1);
	if (!text)
		return fail(p, no_memory);
	if (inflate_object(p, size, text))
		return add(p, at, text, size);
	free(text);
	return false;
}

/* Makes a commit from the base and the delta, and adds it. */
static bool apply(struct pack *p, size_t at, struct slice delta, const struct commit *base)
{
	uint8_t *text;
	size_t n;

	if (!delta_size(delta, base->n, GIT_COMMIT_MAX, &n))
		return fail(p, damaged);
	text = malloc(n + 1);
	if (!text)
		return fail(p, no_memory);
	if (delta_apply(delta, slice_of(base->text, base->n), text))
		return add(p, at, text, n);
	free(text);
	return fail(p, damaged);
}

static bool read_difference(struct pack *p, size_t at, size_t size, const struct commit *base)
{
	uint8_t *delta;
	bool good;

	if (!base)
		return inflate_object(p, size, NULL);
	if (size > GIT_COMMIT_MAX)
		return fail(p, too_much);
	delta = malloc(size + 1);
	if (!delta)
		return fail(p, no_memory);
	good = inflate_object(p, size, delta) && apply(p, at, slice_of(delta, size), base);
	free(delta);
	return good;
}

static bool read_object(struct pack *p)
{
	size_t at = p->whole - p->r.left, size, base;
	struct slice id;
	unsigned type;

	if (!read_head(p, &type, &size))
		return false;
	if (type == OBJECT_COMMIT)
		return read_commit(p, at, size);
	if (type > OBJECT_COMMIT && type <= OBJECT_TAG)
		return inflate_object(p, size, NULL);
	if (type == OBJECT_BY_DISTANCE)
		return read_distance(p, at, &base) &&
		       read_difference(p, at, size, commits_at(p->commits, base));
	if (type != OBJECT_BY_ID)
		return fail(p, damaged);
	id = reader_bytes(&p->r, p->commits->id_n);
	if (p->r.failed)
		return fail(p, damaged);
	return read_difference(p, at, size, commits_find(p->commits, (const uint8_t *)id.p));
}

static void read_objects(struct pack *p)
{
	uint32_t count;

	reader_bytes(&p->r, HEAD_BYTES - 4);
	count = reader_u32(&p->r);
	if (count > GIT_OBJECTS_MAX)
		p->fault = too_much;
	for (uint32_t i = 0; i < count && !p->fault; i++)
		read_object(p);
	reader_bytes(&p->r, p->commits->id_n);
	if (!p->fault && !reader_done(&p->r))
		p->fault = damaged;
}

const char *pack_read(struct slice pack, struct commits *commits)
{
	struct pack p = {.r = reader_over(pack.p, pack.n), .whole = pack.n, .commits = commits};

	if (!pack_begins(pack))
		return damaged;
	p.piece = malloc(PIECE_BYTES);
	if (!p.piece || inflateInit(&p.z) != Z_OK) {
		free(p.piece);
		return no_memory;
	}
	read_objects(&p);
	inflateEnd(&p.z);
	free(p.piece);
	return p.fault;
}
