/* SPDX-License-Identifier: Apache-2.0 */
/* Finds placeholders in a text that comes in pieces. */
#include "credential/store_placeholders.h"
#include "vethguard/credential/store.h"

/* True if a placeholder lies across the border between scan->end and p. first: how many bytes of p
 * could belong to it. Joins both in border, which has room for them. */
static bool lies_across(const struct placeholders *set, const struct credential_scan *scan,
        const uint8_t *p, size_t first, uint64_t except, uint8_t *border)
{
	memcpy(border, scan->end, scan->n);
	memcpy(border + scan->n, p, first);
	return placeholders_mentioned(set, slice_of(border, scan->n + first), except);
}

bool placeholders_scan(const struct placeholders *set, struct credential_scan *scan,
        const uint8_t *p, size_t n, uint64_t except)
{
	uint8_t border[2 * sizeof(scan->end)];
	size_t first = n < sizeof(scan->end) ? n : sizeof(scan->end), from;
	struct slice text = slice_of(p, n);

	if (n == 0 || !set->count)
		return false;
	if ((scan->n && lies_across(set, scan, p, first, except, border)) ||
	        placeholders_mentioned(set, text, except))
		return true;
	if (scan->n && first == n)
		text = slice_of(border, scan->n + n);
	from = placeholders_begin(set, text);
	scan->n = text.n - from;
	memcpy(scan->end, text.p + from, scan->n);
	return false;
}
