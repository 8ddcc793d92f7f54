/* SPDX-License-Identifier: Apache-2.0 */
/* mask_vector: finds the few places of a text that need a closer look, comparing 16 or 32 bytes at
 * a time. */
#ifndef VETHGUARD_SRC_CREDENTIAL_MASK_VECTOR_H
#define VETHGUARD_SRC_CREDENTIAL_MASK_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASK_VECTOR_DEPTH 3  /* bytes of each place that are compared */
#define MASK_VECTOR_GROUPS 8 /* one bit each */
#define MASK_VECTOR_TAIL 34  /* bytes at the end of a text that may not be looked at */

/* A byte at a depth may belong to the groups in low[depth][byte & 15] & high[depth][byte >> 4]. It
 * belongs to no other group, but perhaps not to all of these. */
struct mask_vector {
	uint8_t low[MASK_VECTOR_DEPTH][16], high[MASK_VECTOR_DEPTH][16];
};

void mask_vector_add(struct mask_vector *v, unsigned group, unsigned depth, uint8_t byte);
void mask_vector_add_any(struct mask_vector *v, unsigned group, unsigned depth);

/* Searches n bytes of text from *at on, for a place whose first bytes, one for each depth, may all
 * belong to one group. True: the new *at is the first such place. False: there is none before the
 * new *at, which is at most MASK_VECTOR_TAIL bytes before the end. */
bool mask_vector_find(const struct mask_vector *v, const uint8_t *text, size_t n, size_t *at);
/* True if this processor has the instructions. Otherwise mask_vector_find() must not be called. */
bool mask_vector_works(void);

#endif
