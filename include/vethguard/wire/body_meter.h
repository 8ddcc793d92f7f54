/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body_meter: finds where the body of a request ends (RFC 9112 sections 6 and 7.1), so that the next head on a kept
 * connection can prove itself too. It changes no byte. Strict: chunk extensions and lines without CR are refused.
 */
#ifndef VETHGUARD_WIRE_BODY_METER_H
#define VETHGUARD_WIRE_BODY_METER_H

#include "vethguard/wire/proxy_head.h"

#define BODY_METER_TRAILERS_MAX 8192 /* bytes behind the last chunk */

enum body_meter_state {
	BODY_METER_DONE, /* also before the first body */
	BODY_METER_DATA, /* of a known length */
	BODY_METER_SIZE, /* in the line of a chunk's size */
	BODY_METER_CHUNK,
	BODY_METER_CHUNK_END, /* CR LF behind a chunk */
	BODY_METER_TRAILERS,
	BODY_METER_BAD
};

struct body_meter {
	enum body_meter_state state;
	uint64_t left;   /* DATA, CHUNK: bytes; SIZE: the size so far */
	unsigned digits; /* SIZE: hexadecimal digits so far */
	unsigned line;   /* bytes of the line so far, without CR; TRAILERS: of all lines in all */
	bool line_empty; /* TRAILERS: the line at hand has no byte yet */
	bool cr;         /* the last byte was CR */
};

/* Begins the body of a request whose head was parsed. */
void body_meter_begin(struct body_meter *m, const struct proxy_head *head);
/* Takes bytes from p, at most n, until the body ends. Returns how many belong to the body. m->state is then DONE; BAD
 * (the body is malformed; the bytes taken may hold its beginning); or any other: all n were taken. */
size_t body_meter_take(struct body_meter *m, const uint8_t *p, size_t n);

#endif
