/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an answer of AWS's STS. Beyond memory safety: what is refused has a reason; keys lie
 * within the text, do not overlap, and have nothing in them that XML would read otherwise; an
 * answer that is read has no document type, comment or instruction.
 */
#include <stdlib.h>

#include "vethguard/wire/sts_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(size ? data : (const uint8_t *)"", size);
	struct sts_xml xml;
	const char *why = sts_xml_read(text, &xml);

	if (why) {
		require(*why != '\0');
		return 0;
	}
	require(!memmem(text.p, text.n, "<!", 2) && !memmem(text.p, text.n, "&#", 2));
	for (size_t i = 0; i < STS_KEY_COUNT; i++) {
		struct slice key = xml.keys[i];

		require((key.n > 0) == xml.found);
		if (!key.n)
			continue;
		require(key.p > text.p && key.p + key.n < text.p + text.n);
		require(key.p[-1] == '>' && key.p[key.n] == '<');
		require(!memchr(key.p, '<', key.n) && !memchr(key.p, '&', key.n));
		for (size_t k = 0; k < i; k++)
			require(key.p + key.n <= xml.keys[k].p ||
			        xml.keys[k].p + xml.keys[k].n <= key.p);
	}
	return 0;
}
