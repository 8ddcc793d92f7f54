/* SPDX-License-Identifier: Apache-2.0 */
/* pool: the addresses of a network that names may have, counted from 0. */
#ifndef VETHGUARD_SRC_DNS_POOL_H
#define VETHGUARD_SRC_DNS_POOL_H

#include "vethguard/base/ip.h"

/* How many there are. */
uint32_t pool_size(const struct ip_prefix *pool);
/* The address of a number below pool_size(). */
struct ip pool_address(const struct ip_prefix *pool, uint32_t index);
/* The number of an address. False: none that a name may have. Numbers beyond every pool_size() are
 * UINT32_MAX. */
bool pool_index(const struct ip_prefix *pool, const struct ip *address, uint32_t *index);

#endif
