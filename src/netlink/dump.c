/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a dump during which the data changed is read to its end and then
 * discarded. */
#include "vethguard/netlink/dump.h"

#include <libmnl/libmnl.h>

bool netlink_dump_overtaken(void *datagram, size_t n)
{
	struct nlmsghdr *message = datagram;
	int left = (int)n;
	bool overtaken = false;

	for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
		overtaken |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		message->nlmsg_flags &= (uint16_t)~NLM_F_DUMP_INTR;
	}
	return overtaken;
}
