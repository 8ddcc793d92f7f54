/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds placeholders in hex digits, and in names of hosts. "vethguard", which every placeholder
 * contains, has only decimal digits in hex (HEX_MARK), so the letter case of hex digits does not
 * matter to the search for it, and a text without it costs one memmem(). Names have no letter case.
 * Their labels are joined for the search, because a placeholder may be longer than one label.
 */
#include "credential/store_placeholders.h"

#include "vethguard/policy/placeholder.h"
#include "vethguard/policy/policy.h"

#define HEX_MARK "766574686775617264"
#define HEX_MARK_SIZE (sizeof(HEX_MARK) - 1)

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* The value of a hex digit, or -1. */
static int digit(uint8_t c)
{
	c = lower(c);
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* True if p begins with the item's bytes in hex digits; folded: or with those of the same bytes in
 * lower case. */
static bool begins_with(const struct placeholder *item, const char *p, bool folded)
{
	for (size_t i = 0; i < item->n; i++) {
		int high = digit((uint8_t)p[2 * i]), low = digit((uint8_t)p[2 * i + 1]);
		uint8_t c = (uint8_t)item->text[i];

		if (high < 0 || low < 0)
			return false;
		if ((high << 4 | low) != c && !(folded && (high << 4 | low) == lower(c)))
			return false;
	}
	return true;
}

static bool stands_at(
        const struct placeholders *set, struct slice p, size_t mark, uint64_t skip, bool folded)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct placeholder *item = &set->items[i];

		if (skip >> i & 1 || 2 * item->mark > mark ||
		        2 * (item->n - item->mark) > p.n - mark)
			continue;
		if (begins_with(item, p.p + mark - 2 * item->mark, folded))
			return true;
	}
	return false;
}

static bool find(const struct placeholders *set, struct slice p, uint64_t skip, bool folded)
{
	size_t from = 0;

	while (p.n - from >= HEX_MARK_SIZE) {
		const char *found = memmem(p.p + from, p.n - from, HEX_MARK, HEX_MARK_SIZE);

		if (!found)
			return false;
		from = (size_t)(found - p.p);
		if (stands_at(set, p, from, skip, folded))
			return true;
		from++;
	}
	return false;
}

bool placeholders_in_hex(const struct placeholders *set, struct slice p, uint64_t skip)
{
	return find(set, p, skip, false);
}

size_t placeholders_hex_begins(struct slice p)
{
	size_t n = 0;

	while (n < p.n && n < 2 * PLACEHOLDER_MAX && digit((uint8_t)p.p[p.n - n - 1]) >= 0)
		n++;
	return p.n - n;
}

/* True if joined (a name in lower case, without dots) contains the item's text in lower case and
 * without dots. */
static bool has_plain(const struct placeholder *item, struct slice joined)
{
	char text[PLACEHOLDER_MAX];
	size_t n = 0;

	for (size_t i = 0; i < item->n; i++)
		if (item->text[i] != '.')
			text[n++] = (char)lower((uint8_t)item->text[i]);
	return memmem(joined.p, joined.n, text, n) != NULL;
}

bool placeholders_in_name(const struct placeholders *set, struct slice name)
{
	char joined[POLICY_HOST_MAX];
	size_t n = 0;

	if (!set->count)
		return false;
	for (size_t i = 0; i < name.n && n < sizeof(joined); i++)
		if (name.p[i] != '.')
			joined[n++] = (char)lower((uint8_t)name.p[i]);
	for (size_t i = 0; i < set->count; i++)
		if (has_plain(&set->items[i], slice_of(joined, n)))
			return true;
	return find(set, slice_of(joined, n), 0, true);
}
