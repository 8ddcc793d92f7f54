/* SPDX-License-Identifier: Apache-2.0 */
/* One element of an answer in XML. This is no reader of XML: it finds plain text between a start
 * tag without attributes and its end tag, and refuses whatever else could be meant. */
#include <string.h>

#include "fetch/https.h"

#define NAME_MAX_BYTES 64

static bool matches(struct slice xml, size_t at, struct slice tag)
{
	return tag.n <= xml.n - at && memcmp(xml.p + at, tag.p, tag.n) == 0;
}

bool https_xml_element(struct slice xml, const char *name, struct slice *text)
{
	char begin[NAME_MAX_BYTES], end[NAME_MAX_BYTES + 1];
	struct slice open, close, found = SLICE("");
	size_t count = 0;

	if (snprintf(begin, sizeof(begin), "<%s>", name) >= (int)sizeof(begin))
		return false;
	snprintf(end, sizeof(end), "</%s>", name);
	open = slice_from_string(begin);
	close = slice_from_string(end);
	for (size_t i = 0; i < xml.n; i++) {
		size_t to = i + open.n;

		if (!matches(xml, i, open))
			continue;
		while (to < xml.n && xml.p[to] != '<' && xml.p[to] != '&')
			to++;
		if (++count > 1 || to == xml.n || !matches(xml, to, close))
			return false;
		found = slice_of(xml.p + i + open.n, to - i - open.n);
	}
	*text = found;
	return count == 1;
}
