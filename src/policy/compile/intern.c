/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: open addressing over indices into the list of keys. The table is at most
 * half full, so a probe always ends. */
#include <stdlib.h>

#include "policy/compile/intern.h"

#define SLOTS_FIRST 64

void intern_init(struct intern *in)
{
	memset(in, 0, sizeof(*in));
	in->key = hash_random_key();
	vec_init(&in->keys, sizeof(struct slice));
}

void intern_fini(struct intern *in)
{
	vec_fini(&in->keys);
	free(in->slots);
	in->slots = NULL;
	in->slot_count = 0;
}

/* The slot that holds key, or the free slot where key belongs. */
static uint32_t *slot_of(const struct intern *in, struct slice key)
{
	size_t i = hash_bytes(&in->key, key.p, key.n) & (in->slot_count - 1);

	while (in->slots[i] != 0) {
		const struct slice *known = vec_at(&in->keys, in->slots[i] - 1);

		if (slice_equals(*known, key))
			break;
		i = (i + 1) & (in->slot_count - 1);
	}
	return &in->slots[i];
}

static bool grow(struct intern *in)
{
	size_t count = in->slot_count ? in->slot_count * 2 : SLOTS_FIRST;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	free(in->slots);
	in->slots = slots;
	in->slot_count = count;
	for (size_t i = 0; i < in->keys.n; i++)
		*slot_of(in, *(struct slice *)vec_at(&in->keys, i)) = (uint32_t)i + 1;
	return true;
}

uint32_t intern_put(struct intern *in, struct slice key, bool *added)
{
	uint32_t *slot;

	*added = false;
	if (in->keys.n * 2 >= in->slot_count && !grow(in)) {
		in->failed = true;
		return UINT32_MAX;
	}
	slot = slot_of(in, key);
	if (*slot != 0)
		return *slot - 1;
	if (!vec_append(&in->keys, &key, 1)) {
		in->failed = true;
		return UINT32_MAX;
	}
	*added = true;
	*slot = (uint32_t)in->keys.n;
	return *slot - 1;
}

uint32_t intern_find(const struct intern *in, struct slice key)
{
	uint32_t *slot = in->slot_count ? slot_of(in, key) : NULL;

	return slot && *slot != 0 ? *slot - 1 : UINT32_MAX;
}
