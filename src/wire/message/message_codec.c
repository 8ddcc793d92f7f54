/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that messages consist of. Every function is total: after the first error all of them
 * return zero and touch nothing, so a message's description needs no checks between its fields.
 * Loops are bounded by counts that were checked when they were read.
 */
#include "wire/message/message_codec.h"

void codec_fail(struct codec *c, int error)
{
	if (!c->error)
		c->error = error;
}

static bool decoding(const struct codec *c)
{
	return !c->w;
}

/* Makes the cursor's error the codec's error. */
static void settle(struct codec *c)
{
	if (decoding(c) ? c->r->failed : c->w->failed)
		codec_fail(c, -EBADMSG);
}

#define CODEC_NUMBER(type, name)                   \
	type codec_##name(struct codec *c, type v) \
	{                                          \
		if (c->error)                      \
			return 0;                  \
		if (decoding(c))                   \
			v = reader_##name(c->r);   \
		else                               \
			writer_##name(c->w, v);    \
		settle(c);                         \
		return c->error ? 0 : v;           \
	}
CODEC_NUMBER(uint8_t, u8)
CODEC_NUMBER(uint16_t, u16)
CODEC_NUMBER(uint32_t, u32)
CODEC_NUMBER(uint64_t, u64)

uint32_t codec_upto(struct codec *c, uint64_t v, uint32_t max)
{
	if (!decoding(c) && v > max)
		codec_fail(c, -EBADMSG);
	uint32_t out = codec_u32(c, (uint32_t)v);
	if (out > max)
		codec_fail(c, -EBADMSG);
	return c->error ? 0 : out;
}

bool codec_bool(struct codec *c, bool v)
{
	uint8_t byte = codec_u8(c, v);

	if (byte > 1)
		codec_fail(c, -EBADMSG);
	return !c->error && byte;
}

struct slice codec_bytes(struct codec *c, struct slice v, size_t min, size_t max)
{
	struct slice none = {NULL, 0};

	if (c->error)
		return none;
	if (decoding(c))
		v = reader_vector(c->r, 4, max);
	else if (v.n <= max)
		writer_vector(c->w, 4, v);
	settle(c);
	if (v.n < min || v.n > max)
		codec_fail(c, -EBADMSG);
	return c->error ? none : v;
}

struct slice codec_string(struct codec *c, struct slice v, size_t min, size_t max)
{
	v = codec_bytes(c, v, min, max);
	if (v.n && memchr(v.p, 0, v.n)) {
		codec_fail(c, -EBADMSG);
		v = (struct slice){NULL, 0};
	}
	return v;
}

struct slice codec_variable(struct codec *c, struct slice v)
{
	v = codec_string(c, v, 1, MESSAGE_VARIABLE_MAX);
	if (v.n && memchr(v.p, '=', v.n)) {
		codec_fail(c, -EBADMSG);
		v = (struct slice){NULL, 0};
	}
	return v;
}

struct ip codec_ip(struct codec *c, struct ip v)
{
	struct ip out = {0};

	out.family = codec_u8(c, v.family);
	size_t n = out.family == 6 ? 16 : out.family == 4 ? 4 : 0;
	if (n == 0 && out.family != 0)
		codec_fail(c, -EBADMSG);
	if (c->error)
		return (struct ip){0};
	if (decoding(c))
		reader_copy(c->r, out.bytes, n);
	else
		writer_bytes(c->w, v.bytes, n);
	settle(c);
	if (!decoding(c))
		return v;
	return c->error ? (struct ip){0} : out;
}

static bool host_bits_are_zero(const struct ip_prefix *p)
{
	size_t bits = p->base.family == 6 ? 128 : p->base.family == 4 ? 32 : 0;

	if (p->bits > bits)
		return false;
	for (size_t i = p->bits; i < bits; i++)
		if (p->base.bytes[i / 8] & (0x80u >> (i % 8)))
			return false;
	return true;
}

struct ip_prefix codec_prefix(struct codec *c, struct ip_prefix v)
{
	v.base = codec_ip(c, v.base);
	v.bits = codec_u8(c, v.bits);
	if (!host_bits_are_zero(&v))
		codec_fail(c, -EBADMSG);
	return c->error ? (struct ip_prefix){0} : v;
}

bool codec_plausible(struct codec *c, size_t count, size_t bytes)
{
	if (!c->error && decoding(c) && count > c->r->left / bytes)
		codec_fail(c, -EBADMSG);
	return !c->error;
}

struct codec codec_encode(struct writer *w, enum message_type type, uint64_t id)
{
	struct codec c = {.w = w};

	codec_u16(&c, (uint16_t)type);
	codec_u64(&c, id);
	return c;
}

size_t codec_encoded(const struct codec *c)
{
	return c->error || c->w->len > MESSAGE_BYTES_MAX ? 0 : c->w->len;
}

struct codec codec_decode(struct reader *r)
{
	return (struct codec){.r = r};
}

int codec_decoded(const struct codec *c)
{
	if (c->error)
		return c->error;
	return reader_done(c->r) ? 0 : -EBADMSG;
}
