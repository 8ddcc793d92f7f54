/* SPDX-License-Identifier: Apache-2.0 */
/* sysctl: writes one below net/, of the namespace that the thread is in. */
#ifndef VETHGUARD_TESTS_UNIT_NETLINK_SYSCTL_H
#define VETHGUARD_TESTS_UNIT_NETLINK_SYSCTL_H

#include <unistd.h>

#include "netlink/sysctls.h"

static int write_sysctl(const char *name, const char *value)
{
	int root = netns_sysctls_open(), result;

	if (root < 0)
		return root;
	result = netns_sysctl_at(root, name, value);
	close(root);
	return result;
}

#endif
