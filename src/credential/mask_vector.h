/* SPDX-License-Identifier: Apache-2.0 */
/* mask_vector: finds, 16 or 32 bytes at a time, the few places of a text that deserve a closer
 * look. */
#ifndef VETHGUARD_SRC_CREDENTIAL_MASK_VECTOR_H
#define VETHGUARD_SRC_CREDENTIAL_MASK_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASK_VECTOR_DEPTH 3  /* bytes of each place that are compared */
#define MASK_VECTOR_GROUPS 8 /* one bit each */
#define MASK_VECTOR_TAIL 34  /* bytes at the end of a text that may not be looked at */

/* The groups that have a byte at a depth: those in low[depth][byte & 15] & high[depth][byte >> 4],
 * which may be more. */
struct mask_vector {
	uint8_t low[MASK_VECTOR_DEPTH][16], high[MASK_VECTOR_DEPTH][16];
};

void mask_vector_add(struct mask_vector *v, unsigned group, unsigned depth, uint8_t byte);
void mask_vector_add_any(struct mask_vector *v, unsigned group, unsigned depth);

/* Searches n bytes of text from *at on. True: at the new *at stand bytes that one group has at each
 * depth, one after the other. False: no such place is before the new *at, which is at most
 * MASK_VECTOR_TAIL bytes before the end. */
bool mask_vector_find(const struct mask_vector *v, const uint8_t *text, size_t n, size_t *at);
/* True if this processor has the instructions. Otherwise mask_vector_find() must not be called. */
bool mask_vector_works(void);

#endif
