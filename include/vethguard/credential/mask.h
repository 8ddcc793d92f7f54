/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask: finds a credential's bytes in a stream and covers them with '*', also where a value lies across two chunks.
 * Looked for: the value itself, its base64 at all three alignments (standard and URL alphabets), its percent-encoding
 * (upper and lower case hex, full and minimal), its JSON string escape; for basic also "user:password" and its base64.
 * The output is exactly as long as the input.
 */
#ifndef VETHGUARD_CREDENTIAL_MASK_H
#define VETHGUARD_CREDENTIAL_MASK_H

#include "vethguard/base/secret.h"
#include "vethguard/base/buf.h"

#define MASK_VALUE_MIN 6 /* bytes: shorter values cannot be told from ordinary text; the loader of values refuses them */

struct mask; /* the patterns of one credential, in secret memory */

/* Compiles the patterns of n values (a value and, for basic, the pair). NULL: no memory. */
struct mask *mask_new(const struct slice *values, size_t n);
void mask_free(struct mask *mask);

/* One stream under a mask. */
struct mask_stream {
	const struct mask *mask;
	uint64_t found;      /* occurrences covered so far */
	size_t held;         /* bytes kept back because they may begin a value; at most the longest pattern */
	struct secret tail;  /* those bytes */
};
int mask_stream_init(struct mask_stream *s, const struct mask *mask); /* 0 or -errno */
void mask_stream_fini(struct mask_stream *s);
/* Appends to out what is certain of p; keeps back only a true prefix of a pattern. 0 or -errno (out's bound). */
int mask_stream_feed(struct mask_stream *s, const uint8_t *p, size_t n, struct buf *out);
/* At the stream's end: appends what was kept back (no longer a danger: it never became the whole value). */
int mask_stream_end(struct mask_stream *s, struct buf *out);
/* The same for bytes that are all there: covers in place; returns occurrences. */
uint64_t mask_in_place(const struct mask *mask, uint8_t *p, size_t n);
/* Fast path of a stream that holds nothing back: true when p holds no pattern and no prefix of one at its end, so that
 * the bytes may be passed on as they are. */
bool mask_stream_clean(struct mask_stream *s, const uint8_t *p, size_t n);

#endif
