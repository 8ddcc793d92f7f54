/* SPDX-License-Identifier: Apache-2.0 */
/* dump: what netlink answers to NLM_F_DUMP, in several datagrams, while others may change what is told. */
#ifndef VETHGUARD_NETLINK_DUMP_H
#define VETHGUARD_NETLINK_DUMP_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a datagram of the kernel's says that what it tells of was changed meanwhile (NLM_F_DUMP_INTR, netlink(7)). The
 * mark is taken off: for mnl_cb_run() it would be the end, with the rest of the dump unread, which whoever asks next over
 * the same socket would take for an answer. */
bool netlink_dump_overtaken(void *datagram, size_t n);

#endif
