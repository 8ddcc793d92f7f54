/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/daemon/state_value.h"

#include <string.h>

bool state_hex_of(const char *text, uint8_t *out, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(text) != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *high = strchr(digits, text[2 * i]);
		const char *low = strchr(digits, text[2 * i + 1]);

		if (!high || !low)
			return false;
		out[i] = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return true;
}

bool state_u64_of(const char *text, uint64_t *out)
{
	uint8_t bytes[8];

	if (!state_hex_of(text, bytes, sizeof(bytes)))
		return false;
	*out = 0;
	for (size_t i = 0; i < sizeof(bytes); i++)
		*out = *out << 8 | bytes[i];
	return true;
}

bool state_ip_of(const char *text, uint8_t family, struct ip *out)
{
	*out = (struct ip){0};
	return !text[0] || (ip_parse(slice_from_string(text), out) && out->family == family);
}

bool state_prefix_of(const char *text, uint8_t family, struct ip_prefix *out)
{
	*out = (struct ip_prefix){0};
	return !text[0] ||
	       (ip_prefix_parse(slice_from_string(text), out) && out->base.family == family);
}

bool state_text_of(const char *text, char *out, size_t size)
{
	size_t n = strlen(text);

	if (n >= size)
		return false;
	memcpy(out, text, n + 1);
	return true;
}
