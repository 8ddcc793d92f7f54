/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec: one description of a message's fields serves both directions. A field function takes the
 * field's value and returns it: when encoding it writes the value, when decoding it ignores the
 * value and returns what it read. The bounds are checked in both directions, so that nothing can be
 * sent that the other side would refuse.
 */
#ifndef VETHGUARD_SRC_WIRE_MESSAGE_MESSAGE_CODEC_H
#define VETHGUARD_SRC_WIRE_MESSAGE_MESSAGE_CODEC_H

#include <errno.h>
#include <stdlib.h>

#include "vethguard/wire/message.h"

struct codec {
	struct writer *w; /* NULL: decoding */
	struct reader *r;
	int error; /* sticky: -EBADMSG or -ENOMEM */
};

uint8_t codec_u8(struct codec *c, uint8_t v);
uint16_t codec_u16(struct codec *c, uint16_t v);
uint32_t codec_u32(struct codec *c, uint32_t v);
uint64_t codec_u64(struct codec *c, uint64_t v);
/* A number that must be at most max, as u32. */
uint32_t codec_upto(struct codec *c, uint64_t v, uint32_t max);
/* Exactly 0 or 1. */
bool codec_bool(struct codec *c, bool v);
/* Any bytes, at least min and at most max. */
struct slice codec_bytes(struct codec *c, struct slice v, size_t min, size_t max);
/* As codec_bytes, without NUL, for what becomes a C string. */
struct slice codec_string(struct codec *c, struct slice v, size_t min, size_t max);
/* The name of an environment variable. */
struct slice codec_variable(struct codec *c, struct slice v);
/* Family 4, 6 or 0 (none); the unused bytes are zero. */
struct ip codec_ip(struct codec *c, struct ip v);
struct ip_prefix codec_prefix(struct codec *c, struct ip_prefix v);
struct config_server codec_server(struct codec *c, struct config_server v);

/* True if the rest of the input could hold count items of at least bytes each. Ask before
 * allocating. */
bool codec_plausible(struct codec *c, size_t count, size_t bytes);
void codec_fail(struct codec *c, int error);

/* What every encoder and decoder calls around its fields. */
struct codec codec_encode(struct writer *w, enum message_type type, uint64_t id);
size_t codec_encoded(const struct codec *c);
struct codec codec_decode(struct reader *r);
int codec_decoded(const struct codec *c);

/* Defines the public pair for struct message_NAME from `static void NAME_fields(struct codec *,
 * struct message_NAME *)`. */
#define CODEC_PAIR(name)                                                                 \
	size_t message_##name##_encode(uint8_t *out, size_t cap, enum message_type type, \
	        uint64_t id, const struct message_##name *m)                             \
	{                                                                                \
		struct message_##name copy = *m;                                         \
		struct writer w = writer_over(out, cap);                                 \
		struct codec c = codec_encode(&w, type, id);                             \
		name##_fields(&c, &copy);                                                \
		return codec_encoded(&c);                                                \
	}                                                                                \
	int message_##name##_decode(struct reader *body, struct message_##name *m)       \
	{                                                                                \
		struct codec c = codec_decode(body);                                     \
		memset(m, 0, sizeof(*m));                                                \
		name##_fields(&c, m);                                                    \
		if (codec_decoded(&c) != 0)                                              \
			memset(m, 0, sizeof(*m));                                        \
		return codec_decoded(&c);                                                \
	}

#endif
