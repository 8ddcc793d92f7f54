/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: every placeholder holds the word "vethguard", so a text without that word,
 * which is nearly every text, costs one memmem(). Around each place where the word stands, the few
 * placeholders are compared.
 */
#include "store_placeholders.h"

#include <errno.h>
#include <stdlib.h>

#include "vethguard/policy/placeholder.h"

#define MARK "vethguard"
#define MARK_SIZE (sizeof(MARK) - 1)

int placeholders_add(struct placeholders *set, uint32_t credential, struct slice text)
{
	const char *mark = text.n ? memmem(text.p, text.n, MARK, MARK_SIZE) : NULL;
	struct placeholder *items, *item;

	if (!mark || text.n > PLACEHOLDER_MAX)
		return -EINVAL;
	if (set->count == POLICY_CREDENTIALS_MAX)
		return -ENOSPC;
	items = realloc(set->items, (set->count + 1) * sizeof(*items));
	if (!items)
		return -ENOMEM;
	set->items = items;
	item = &items[set->count];
	item->text = malloc(text.n);
	if (!item->text)
		return -ENOMEM;
	memcpy(item->text, text.p, text.n);
	item->n = text.n;
	item->mark = (size_t)(mark - text.p);
	item->credential = credential;
	set->count++;
	return 0;
}

void placeholders_fini(struct placeholders *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->items[i].text);
	free(set->items);
	*set = (struct placeholders){0};
}

/* The longest placeholder whose mark stands at p[mark]. */
static const struct placeholder *around(const struct placeholders *set, struct slice p, size_t mark)
{
	const struct placeholder *best = NULL;

	for (size_t i = 0; i < set->count; i++) {
		const struct placeholder *item = &set->items[i];

		if (item->mark > mark || item->n - item->mark > p.n - mark ||
		        (best && item->n <= best->n))
			continue;
		if (memcmp(p.p + mark - item->mark, item->text, item->n) == 0)
			best = item;
	}
	return best;
}

uint32_t placeholders_find(const struct placeholders *set, struct slice p, size_t *at, size_t *n)
{
	size_t from = 0;

	while (set->count > 0 && p.n - from >= MARK_SIZE) {
		const char *found = memmem(p.p + from, p.n - from, MARK, MARK_SIZE);
		const struct placeholder *item;
		size_t mark;

		if (!found)
			break;
		mark = (size_t)(found - p.p);
		item = around(set, p, mark);
		if (item) {
			*at = mark - item->mark;
			*n = item->n;
			return item->credential;
		}
		from = mark + 1;
	}
	return POLICY_NONE;
}
