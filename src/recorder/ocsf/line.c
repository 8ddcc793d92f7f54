/* SPDX-License-Identifier: Apache-2.0 */
/* Most texts are plain ASCII: that is checked eight bytes at a time, and they are copied whole. */
#include "recorder/ocsf/line.h"

#define ONES 0x0101010101010101u
#define HIGHS 0x8080808080808080u

/* Returns false if the word has a byte below 0x20, above 0x7e, a quotation mark or a backslash:
 * then some high bit is set. May also return false for a word without one (0x7f needs no escaping
 * by RFC 8259, but counts as not plain here). */
static bool word_is_plain(uint64_t w)
{
	uint64_t below = w - 0x20 * ONES;
	uint64_t above = w + ONES; /* 0x7f becomes 0x80 */
	uint64_t quote = (w ^ '"' * ONES) - ONES;
	uint64_t slash = (w ^ '\\' * ONES) - ONES;

	return ((w | below | above | quote | slash) & HIGHS) == 0;
}

static bool is_plain(struct slice text)
{
	uint64_t w;
	size_t i = 0;

	for (; text.n - i >= sizeof(w); i += sizeof(w)) {
		memcpy(&w, text.p + i, sizeof(w));
		if (!word_is_plain(w))
			return false;
	}
	if (i == text.n)
		return true;
	w = ' ' * ONES;
	memcpy(&w, text.p + i, text.n - i);
	return word_is_plain(w);
}

void line_text_value(struct json *j, struct slice text, size_t max)
{
	if (text.n <= max && is_plain(text)) {
		line_put(j, "\"", 1);
		if (text.n)
			line_put(j, text.p, text.n);
		line_put(j, "\"", 1);
		return;
	}
	/* The name is written already: no comma before the value. */
	j->comma = false;
	json_string(j, NULL, text, max);
}
