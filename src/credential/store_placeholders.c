/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: every placeholder contains the word "vethguard", so a text without that
 * word, which is nearly every text, costs one memmem(). Around each place with the word, the few
 * placeholders are compared. In base64 the word has a different form at each of three alignments,
 * each of which is searched for in the same way. These two searches tell which placeholder it is,
 * and where. The mask of all placeholders tells whether there is any, however its bytes are
 * escaped.
 */
#include "credential/store_placeholders.h"

#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/base64.h"
#include "vethguard/policy/placeholder.h"

_Static_assert(POLICY_CREDENTIALS_MAX <= MASK_VALUES_MAX, "one mask for all");

#define MARK "vethguard"
#define MARK_SIZE (sizeof(MARK) - 1)

/* Compiles the mask of all placeholders and text. */
static int compile(struct placeholders *set, struct slice text)
{
	struct slice texts[POLICY_CREDENTIALS_MAX];
	struct mask *mask;

	for (size_t i = 0; i < set->count; i++)
		texts[i] = slice_of(set->items[i].text, set->items[i].n);
	texts[set->count] = text;
	mask = mask_new(texts, set->count + 1);
	if (!mask)
		return -ENOMEM;
	mask_free(set->mask);
	set->mask = mask;
	return 0;
}

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
	if (!item->text || compile(set, text) < 0) {
		free(item->text);
		return -ENOMEM;
	}
	memcpy(item->text, text.p, text.n);
	item->n = text.n;
	item->mark = (size_t)(mark - text.p);
	item->credential = credential;
	set->count++;
	return 0;
}

void placeholders_renumber(struct placeholders *set, const uint32_t *map, uint32_t count)
{
	for (size_t k = 0; k < set->count; k++) {
		uint32_t before = set->items[k].credential;

		set->items[k].credential = POLICY_CREDENTIALS_MAX;
		for (uint32_t i = 0; i < count; i++)
			if (map[i] == before)
				set->items[k].credential = i;
	}
}

void placeholders_fini(struct placeholders *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->items[i].text);
	free(set->items);
	mask_free(set->mask);
	*set = (struct placeholders){0};
}

/* The longest placeholder whose mark is at p[mark]. */
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

/* The mark in base64, as base64_inner() writes it for each lead. */
static const struct slice encoded_marks[3] = {
        {"dmV0aGd1YXJk", 12}, {"ZldGhndWFyZ", 11}, {"2ZXRoZ3Vhcm", 11}};

/* Characters of the encoding before the first one that a text behind `lead` bytes determines
 * alone. */
static size_t encoded_from(size_t lead)
{
	return (lead * 8 + 5) / 6;
}

/* True if the item is in p such that its mark, which has this lead, begins at p[mark]. */
static bool stands_encoded(const struct placeholder *item, struct slice p, size_t mark, size_t lead)
{
	uint8_t text[BASE64_SIZE(PLACEHOLDER_MAX)];
	unsigned own = (unsigned)((lead + 3 - item->mark % 3) % 3);
	size_t n = base64_inner((const uint8_t *)item->text, item->n, own, base64_standard, text);
	size_t before = encoded_from(own + item->mark) - encoded_from(own);

	return before <= mark && n <= p.n - (mark - before) &&
	       memcmp(p.p + mark - before, text, n) == 0;
}

static uint32_t find_at_lead(const struct placeholders *set, struct slice p, size_t lead)
{
	struct slice mark = encoded_marks[lead];
	const struct placeholder *best;
	size_t from = 0;

	while (p.n - from >= mark.n) {
		const char *found = memmem(p.p + from, p.n - from, mark.p, mark.n);

		if (!found)
			break;
		from = (size_t)(found - p.p);
		best = NULL;
		for (size_t i = 0; i < set->count; i++)
			if ((!best || set->items[i].n > best->n) &&
			        stands_encoded(&set->items[i], p, from, lead))
				best = &set->items[i];
		if (best)
			return best->credential;
		from++;
	}
	return POLICY_NONE;
}

uint32_t placeholders_find_encoded(const struct placeholders *set, struct slice p)
{
	uint32_t found = POLICY_NONE;

	for (size_t lead = 0; set->count > 0 && lead < 3 && found == POLICY_NONE; lead++)
		found = find_at_lead(set, p, lead);
	return found;
}

bool placeholders_mentioned(const struct placeholders *set, struct slice p, uint64_t except)
{
	uint64_t skip = 0;

	for (size_t i = 0; except && i < set->count; i++)
		if (set->items[i].credential < POLICY_CREDENTIALS_MAX)
			skip |= (except >> set->items[i].credential & 1) << i;
	return set->mask && (mask_finds(set->mask, (const uint8_t *)p.p, p.n, skip) ||
	                            placeholders_in_hex(set, p, skip));
}

size_t placeholders_begin(const struct placeholders *set, struct slice p)
{
	size_t of_mask, of_hex;

	if (!set->mask)
		return p.n;
	of_mask = mask_end_begins(set->mask, (const uint8_t *)p.p, p.n);
	of_hex = placeholders_hex_begins(p);
	return of_mask < of_hex ? of_mask : of_hex;
}
