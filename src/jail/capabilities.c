/* SPDX-License-Identifier: Apache-2.0 */
/* The capability sets of this process. */
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vethguard/jail/capabilities.h"

int capabilities_get(struct capabilities *out)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) != 0)
		return -errno;
	out->effective = data[0].effective | (uint64_t)data[1].effective << 32;
	out->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	out->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return 0;
}

int capabilities_set(const struct capabilities *wanted)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {
	        {(uint32_t)wanted->effective, (uint32_t)wanted->permitted,
	                (uint32_t)wanted->inheritable},
	        {(uint32_t)(wanted->effective >> 32), (uint32_t)(wanted->permitted >> 32),
	                (uint32_t)(wanted->inheritable >> 32)},
	};

	return syscall(SYS_capset, &head, data) != 0 ? -errno : 0;
}

bool capabilities_have(unsigned capability)
{
	struct capabilities now = {0};

	return capabilities_get(&now) == 0 && (now.effective >> capability & 1) != 0;
}

int capabilities_bound(uint64_t keep)
{
	for (unsigned cap = 0; cap < 64; cap++) {
		int there = prctl(PR_CAPBSET_READ, cap);

		if (there < 0) /* beyond the kernel's last one */
			break;
		if (there == 1 && (keep >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap) != 0)
			return -errno;
	}
	return 0;
}

uint64_t capabilities_bounding_set(void)
{
	uint64_t set = 0;

	for (unsigned cap = 0; cap < 64; cap++) {
		int there = prctl(PR_CAPBSET_READ, cap);

		if (there < 0)
			break;
		set |= (uint64_t)(there == 1) << cap;
	}
	return set;
}
