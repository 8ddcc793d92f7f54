/* SPDX-License-Identifier: Apache-2.0 */
/* dump: netlink's answers to NLM_F_DUMP, which come in several datagrams while others may change the data. */
#ifndef VETHGUARD_NETLINK_DUMP_H
#define VETHGUARD_NETLINK_DUMP_H

#include <stdbool.h>
#include <stddef.h>

/* True if a datagram from the kernel says that the data changed during the dump (NLM_F_DUMP_INTR, netlink(7)). Clears
 * the flag, because mnl_cb_run() would stop at it and leave the rest of the dump unread, and the next query over the
 * same socket would take that for its answer. */
bool netlink_dump_overtaken(void *datagram, size_t n);

#endif
