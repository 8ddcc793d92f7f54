/* SPDX-License-Identifier: Apache-2.0 */
/* What every step of the compiler writes with: texts and items of the image's sections. */
#include "policy/compile/compile.h"

struct image_text compile_text(struct compiler *c, struct slice text)
{
	bool added;
	uint32_t id = intern_put(&c->strings, text, &added);
	uint32_t at = (uint32_t)c->sections[SECTION_STRINGS].n;

	if (id == UINT32_MAX) {
		c->failed = true;
		return (struct image_text){0};
	}
	if (added)
		if (!vec_append(&c->sections[SECTION_STRINGS], text.p, text.n) ||
		        !vec_append(&c->string_at, &at, 1))
			c->failed = true;
	if (c->failed)
		return (struct image_text){0};
	return (struct image_text){*(uint32_t *)vec_at(&c->string_at, id), (uint32_t)text.n};
}

uint32_t compile_push(struct compiler *c, enum image_section_id id, const void *item)
{
	if (!vec_append(&c->sections[id], item, 1))
		c->failed = true;
	return (uint32_t)c->sections[id].n - 1;
}
