/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a load balancer's header. Beyond memory safety: how the bytes are cut does not
 * matter, and a header that is taken tells a client's address, or is the balancer's own. */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/balancer_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct balancer_header header, shorter;
	const enum balancer_header_status status = balancer_header_parse(data, size, &header);
	const enum balancer_header_status half = balancer_header_parse(data, size / 2, &shorter);

	require(half == BALANCER_HEADER_MORE || half == status);
	require(status != BALANCER_HEADER_MORE || size < BALANCER_HEADER_MAX);
	require((status == BALANCER_HEADER_DONE) == (header.used != 0));
	require(header.used <= size && header.used <= BALANCER_HEADER_MAX);
	if (status != BALANCER_HEADER_DONE)
		return 0;
	require(header.local == (header.source.family == 0));
	for (size_t n = 0; n < header.used; n++)
		require(balancer_header_parse(data, n, &shorter) == BALANCER_HEADER_MORE);
	require(balancer_header_parse(data, header.used, &shorter) == BALANCER_HEADER_DONE);
	return 0;
}
