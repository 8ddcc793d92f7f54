/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: doubling, with every multiplication checked. */
#include <stdlib.h>
#include <string.h>

#include "policy/vec.h"

#define VEC_BYTES_MAX ((size_t)1 << 30)

void vec_init(struct vec *v, size_t item_size)
{
	memset(v, 0, sizeof(*v));
	v->size = item_size;
}

void vec_fini(struct vec *v)
{
	free(v->p);
	vec_init(v, v->size);
}

static bool grow(struct vec *v, size_t count)
{
	size_t max = VEC_BYTES_MAX / v->size;
	size_t cap = v->cap ? v->cap : 16;
	uint8_t *p;

	if (count > max || v->n > max - count)
		return false;
	while (cap < v->n + count)
		cap *= 2;
	p = realloc(v->p, cap * v->size);
	if (!p)
		return false;
	v->p = p;
	v->cap = cap;
	return true;
}

void *vec_extend(struct vec *v, size_t count)
{
	uint8_t *p;

	if (v->failed || ((!v->p || count > v->cap - v->n) && !grow(v, count))) {
		v->failed = true;
		return NULL;
	}
	p = v->p + v->n * v->size;
	if (count > 0)
		memset(p, 0, count * v->size);
	v->n += count;
	return p;
}

bool vec_append(struct vec *v, const void *items, size_t count)
{
	void *p;

	if (count == 0)
		return !v->failed;
	p = vec_extend(v, count);
	if (!p)
		return false;
	memcpy(p, items, count * v->size);
	return true;
}
