/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic addresses by number. */
#include "dns/pool.h"

#define LINK_ADDRESSES 256 /* at a pool's start: for gate and sandbox */

/* The last address of an IPv4 pool is its broadcast address and is not counted. */
uint32_t pool_size(const struct ip_prefix *pool)
{
	unsigned host_bits = (pool->base.family == 4 ? 32u : 128u) - pool->bits;

	if (host_bits >= 32)
		return UINT32_MAX - LINK_ADDRESSES;
	return (1u << host_bits) > LINK_ADDRESSES + 1 ? (1u << host_bits) - LINK_ADDRESSES - 1 : 0;
}

/* Base plus offset, in the last four bytes; a pool's host bits are zero, and there are enough of
 * them. */
struct ip pool_address(const struct ip_prefix *pool, uint32_t index)
{
	struct ip ip = pool->base;
	uint32_t offset = index + LINK_ADDRESSES;
	uint8_t *last = ip.bytes + (ip.family == 4 ? 0 : 12);

	for (int i = 3; i >= 0; i--, offset >>= 8)
		last[i] = (uint8_t)(last[i] | (offset & 0xff));
	return ip;
}

bool pool_index(const struct ip_prefix *pool, const struct ip *address, uint32_t *index)
{
	size_t bytes = address->family == 4 ? 4 : 16;
	uint64_t offset = 0;

	if (!ip_in_prefix(address, pool))
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (offset >> 32) /* beyond every index */
			offset = UINT32_MAX;
		offset = offset << 8 | (uint8_t)(address->bytes[i] ^ pool->base.bytes[i]);
	}
	if (offset < LINK_ADDRESSES)
		return false;
	offset -= LINK_ADDRESSES;
	*index = offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset;
	return true;
}
