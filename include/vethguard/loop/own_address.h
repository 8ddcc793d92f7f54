/* SPDX-License-Identifier: Apache-2.0 */
/* own_address: tells whether an address is one of this host's own. */
#ifndef VETHGUARD_LOOP_OWN_ADDRESS_H
#define VETHGUARD_LOOP_OWN_ADDRESS_H

#include "vethguard/base/ip.h"

/* Asks the kernel, in the caller's network namespace; sends nothing. Unclear cases count as the host's own. */
bool own_address(const struct ip *address);

#endif
