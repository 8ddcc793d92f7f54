/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/http/basic.h"

struct slice basic_credentials(struct slice value)
{
	struct slice scheme = SLICE("basic ");

	if (value.n <= scheme.n || !slice_equals_ignoring_case(slice_of(value.p, scheme.n), scheme))
		return SLICE("");
	return slice_trim(slice_of(value.p + scheme.n, value.n - scheme.n));
}
