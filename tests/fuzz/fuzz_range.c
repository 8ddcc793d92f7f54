/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of Range and Content-Range. What is read keeps its bounds, and reads as the same after
 * it was written.
 */
#include <stdlib.h>

#include "proxy/http/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void try_range(struct slice value)
{
	struct http_range r, again;
	char text[HTTP_RANGE_TEXT_MAX];

	if (!http_range_read(value, &r))
		return;
	require(r.first <= HTTP_POSITION_MAX && r.suffix <= HTTP_POSITION_MAX);
	require(r.suffix || r.open || (r.last >= r.first && r.last <= HTTP_POSITION_MAX));
	require(http_range_read(http_range_text(&r, text), &again));
	require(r.first == again.first && r.last == again.last && r.open == again.open &&
	        r.suffix == again.suffix);
}

static void try_content_range(struct slice value)
{
	struct http_content_range r, again;
	char text[HTTP_RANGE_TEXT_MAX];

	if (!http_content_range_read(value, &r))
		return;
	require(r.first <= r.last && r.last <= HTTP_POSITION_MAX);
	require(!r.has_total || (r.last < r.total && r.total <= HTTP_POSITION_MAX));
	require(http_content_range_read(http_content_range_text(&r, text), &again));
	require(r.first == again.first && r.last == again.last && r.total == again.total &&
	        r.has_total == again.has_total);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_range(slice_of(data, size));
	try_content_range(slice_of(data, size));
	return 0;
}
