/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds for every message: it is decoded as it was encoded; no shorter prefix and no longer
 * run of bytes is accepted; it does not fit a buffer one byte too small.
 */
#ifndef VETHGUARD_TESTS_UNIT_WIRE_MESSAGE_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_WIRE_MESSAGE_FIXTURE_H

#include <errno.h>
#include <stdlib.h>

#include "vethguard/wire/message.h"

#define ID 0x1122334455667788u
#define HEAD_BYTES 10

static uint8_t wire_bytes[MESSAGE_BYTES_MAX + 1], again[MESSAGE_BYTES_MAX + 1];
static char long_text[MESSAGE_VALUE_MAX + 2];

static inline struct ip ip4(uint8_t last)
{
	return (struct ip){4, {198, 18, 0, last}};
}

static inline struct ip ip6(uint8_t last)
{
	return (struct ip){6, {0xfd, 0x76, [15] = last}};
}

static inline struct slice longer(size_t n)
{
	return slice_of(long_text, n);
}

static inline void open_body(size_t n, struct reader *body)
{
	struct message_head head;

	assert_int_equal(message_open(wire_bytes, n, &head, body), 0);
	assert_int_equal(head.type, MESSAGE_STOP);
	assert_true(head.id == ID);
}

/* Encodes *m, decodes it, encodes what came out: the same bytes. Then all that must be refused. */
#define ROUNDTRIP(name, m, fini)                                                              \
	do {                                                                                  \
		struct message_##name back;                                                   \
		struct reader rest;                                                           \
		size_t size = message_##name##_encode(                                        \
		        wire_bytes, sizeof(wire_bytes), MESSAGE_STOP, ID, m);                 \
		assert_true(size > HEAD_BYTES);                                               \
		open_body(size, &rest);                                                       \
		assert_int_equal(message_##name##_decode(&rest, &back), 0);                   \
		assert_int_equal(                                                             \
		        message_##name##_encode(again, size, MESSAGE_STOP, ID, &back), size); \
		assert_memory_equal(wire_bytes, again, size);                                 \
		fini(&back);                                                                  \
		assert_int_equal(                                                             \
		        message_##name##_encode(again, size - 1, MESSAGE_STOP, ID, m), 0);    \
		for (size_t cut = HEAD_BYTES; cut < size; cut++) {                            \
			uint8_t *exact = malloc(cut);                                         \
			struct message_head head;                                             \
			assert_non_null(exact);                                               \
			memcpy(exact, wire_bytes, cut);                                       \
			assert_int_equal(message_open(exact, cut, &head, &rest), 0);          \
			assert_int_equal(message_##name##_decode(&rest, &back), -EBADMSG);    \
			free(exact);                                                          \
		}                                                                             \
		wire_bytes[size] = 0;                                                         \
		open_body(size + 1, &rest);                                                   \
		assert_int_equal(message_##name##_decode(&rest, &back), -EBADMSG);            \
	} while (0)
#define NOTHING(m) (void)(m)

#define REFUSES_TO_ENCODE(name, m) \
	assert_int_equal(message_##name##_encode(again, sizeof(again), MESSAGE_STOP, ID, m), 0)

/* Bytes that the encoder would not make: decode after changing one byte of a good message. */
#define REFUSES_BYTE(name, m, at, value)                                           \
	do {                                                                       \
		struct message_##name back;                                        \
		struct reader rest;                                                \
		size_t size = message_##name##_encode(                             \
		        wire_bytes, sizeof(wire_bytes), MESSAGE_STOP, ID, m);      \
		assert_true(size > (at));                                          \
		wire_bytes[at] = (value);                                          \
		open_body(size, &rest);                                            \
		assert_int_equal(message_##name##_decode(&rest, &back), -EBADMSG); \
	} while (0)

#endif
