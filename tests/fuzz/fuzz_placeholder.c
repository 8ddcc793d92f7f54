/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text that the sandbox sends, searched for placeholders. A placeholder that the search
 * reports stands where it says. A placeholder put into the text, at the place that the first byte
 * names, is found, also when the whole text is base64, as a user and a password are, and when any
 * of its bytes are escaped. If the text ends inside a placeholder, no part that may be its
 * beginning is lost.
 */
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/base64.h"
#include "credential/store_placeholders.h"
#include "vethguard/policy/policy.h"

#define TEXT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct slice known[] = {{"vethguard-one-0123456789abcdef", 30},
        {"vethguard-one-0123456789abcdef0", 31}, {"sk-vethguard-vethguard-a0", 25}};
static struct placeholders set;

static void require(bool fact)
{
	if (!fact)
		abort();
}

static uint32_t find(struct slice text)
{
	size_t at, n;
	uint32_t found = placeholders_find(&set, text, &at, &n);

	if (found != POLICY_NONE) {
		require(found < sizeof(known) / sizeof(*known) && at <= text.n && n <= text.n - at);
		require(slice_equals(known[found], slice_of(text.p + at, n)));
	}
	return found;
}

/* The first `at` bytes of the data and then the placeholder, bytes of it escaped as the data say.
 */
static void require_escaped(const uint8_t *data, size_t size, size_t at, struct slice put)
{
	static char text[TEXT_MAX + 6 * 64];
	size_t n = at, half;

	memcpy(text, data + 1, at);
	for (size_t i = 0; i < put.n; i++) {
		unsigned way = data[i % size] / 5 % 4, c = (unsigned char)put.p[i];

		if (way == 1)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%%%02x", c);
		else if (way == 2)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "\\u%04X", c);
		else
			text[n++] = (char)c;
	}
	require(placeholders_mentioned(&set, slice_of(text, n), 0));
	half = at + (n - at) / 2;
	require(placeholders_begin(&set, slice_of(text, half)) <= at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t text[TEXT_MAX + 64], encoded[BASE64_SIZE(sizeof(text))];
	struct slice put;
	size_t at;

	for (uint32_t i = 0; set.count < sizeof(known) / sizeof(*known); i++)
		require(placeholders_add(&set, i, known[i]) == 0);
	if (size < 1 || size > TEXT_MAX)
		return 0;
	find(slice_of(data + 1, size - 1));
	placeholders_find_encoded(&set, slice_of(data + 1, size - 1));
	put = known[data[0] % 3];
	at = data[0] / 3 < size - 1 ? data[0] / 3u : size - 1;
	memcpy(text, data + 1, at);
	memcpy(text + at, put.p, put.n);
	memcpy(text + at + put.n, data + 1 + at, size - 1 - at);
	require(find(slice_of(text, size - 1 + put.n)) != POLICY_NONE);
	require(placeholders_mentioned(&set, slice_of(text, size - 1 + put.n), 0));
	require_escaped(data, size, at, put);
	require(placeholders_find_encoded(
	                &set, slice_of(encoded, base64_encode(text, size - 1 + put.n,
	                                                base64_standard, encoded))) != POLICY_NONE);
	return 0;
}
