/* SPDX-License-Identifier: Apache-2.0 */
/* vec: a growing array of one type of struct. After the first failure to grow, all later pushes
 * fail as well. */
#ifndef VETHGUARD_SRC_POLICY_VEC_H
#define VETHGUARD_SRC_POLICY_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vec {
	uint8_t *p; /* owned */
	size_t n;   /* items */
	size_t cap;
	size_t size; /* bytes of an item */
	bool failed;
};

void vec_init(struct vec *v, size_t item_size);
void vec_fini(struct vec *v);
/* Adds count zeroed items at the end and returns the first, or NULL. Invalidates earlier pointers
 * into the array. */
void *vec_extend(struct vec *v, size_t count);
/* Copies count items to the end. False: no memory. */
bool vec_append(struct vec *v, const void *items, size_t count);

static inline void *vec_at(const struct vec *v, size_t i)
{
	return v->p + i * v->size;
}

#endif
