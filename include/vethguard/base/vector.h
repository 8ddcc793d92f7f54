/* SPDX-License-Identifier: Apache-2.0 */
/* vector: finds the few places of a text that need a closer look, comparing 16 or 32 bytes at
 * a time. */
#ifndef VETHGUARD_BASE_VECTOR_H
#define VETHGUARD_BASE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_DEPTH 3  /* bytes of each place that are compared */
#define VECTOR_GROUPS 8 /* one bit each */
#define VECTOR_TAIL 34  /* bytes at the end of a text that may not be looked at */

/* A byte at a depth may belong to the groups in low[depth][byte & 15] & high[depth][byte >> 4]. It
 * belongs to no other group, but perhaps not to all of these. */
struct vector_groups {
	uint8_t low[VECTOR_DEPTH][16], high[VECTOR_DEPTH][16];
};

void vector_add(struct vector_groups *v, unsigned group, unsigned depth, uint8_t byte);
void vector_add_any(struct vector_groups *v, unsigned group, unsigned depth);

/* Searches n bytes of text from *at on, for a place whose first bytes, one for each depth, may all
 * belong to one group. True: the new *at is the first such place. False: there is none before the
 * new *at, which is at most VECTOR_TAIL bytes before the end. */
bool vector_find(const struct vector_groups *v, const uint8_t *text, size_t n, size_t *at);
/* True if this processor has the instructions. Otherwise vector_find() must not be called. */
bool vector_works(void);

/* Searches n bytes of text from *at on in blocks of 64 bytes, for VECTOR_RUN bytes in a row in one block that each
 * belong to some group at depth 0. Any run of 2 * VECTOR_RUN - 1 bytes has such a part. True: the new *at is in the
 * first such run. False: there is none before the new *at, which is less than 64 bytes before the end. */
#define VECTOR_RUN 12
bool vector_find_run(const struct vector_groups *v, const uint8_t *text, size_t n, size_t *at);
/* True if this processor has the instructions for that. Otherwise vector_find_run() must not be called. */
bool vector_finds_runs(void);

#endif
