/* SPDX-License-Identifier: Apache-2.0 */
/* pool: the addresses of a network that names may have, numbered from 0. */
#ifndef VETHGUARD_SRC_DNS_POOL_H
#define VETHGUARD_SRC_DNS_POOL_H

#include "vethguard/base/ip.h"

/* The number of addresses. */
uint32_t pool_size(const struct ip_prefix *pool);
/* The address with a number below pool_size(). */
struct ip pool_address(const struct ip_prefix *pool, uint32_t index);
/* Gets the number of an address; one beyond every pool_size() becomes UINT32_MAX. False: no name
 * may have this address. */
bool pool_index(const struct ip_prefix *pool, const struct ip *address, uint32_t *index);

#endif
