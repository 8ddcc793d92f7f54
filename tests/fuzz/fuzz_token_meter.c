/* SPDX-License-Identifier: Apache-2.0 */
/* The token meter: it reads the same however a response is cut, and more bytes never mean fewer
 * tokens. */
#include <stdlib.h>

#include "vethguard/wire/token_meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct token_meter whole = {0}, cut = {0};
	uint64_t a[TOKEN_KINDS], b[TOKEN_KINDS], before[TOKEN_KINDS] = {0};
	bool some, also;

	for (size_t i = 0; i < size; i++) {
		token_meter_take(&cut, data + i, 1);
		token_meter_read(&cut, b);
		if (b[TOKEN_OUTPUT] < before[TOKEN_OUTPUT] ||
		        b[TOKEN_INPUT] + b[TOKEN_CACHED] <
		                before[TOKEN_INPUT] + before[TOKEN_CACHED])
			abort();
		for (int k = 0; k < TOKEN_KINDS; k++)
			before[k] = b[k];
	}
	token_meter_take(&whole, data, size);
	some = token_meter_read(&whole, a);
	also = token_meter_read(&cut, b);
	if (some != also)
		abort();
	for (int k = 0; k < TOKEN_KINDS; k++)
		if (a[k] != b[k])
			abort();
	return 0;
}
