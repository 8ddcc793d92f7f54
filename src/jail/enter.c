/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a role that does nothing between them. */
#include "vethguard/jail/jail.h"

#include <errno.h>
#include <unistd.h>

int jail_enter(enum jail_role role, const uint16_t *ports, size_t count, const char **step)
{
	struct jail_ids ids = jail_role_ids(role, (uint32_t)getpid());
	int rc;

	*step = "cannot get an empty root";
	rc = jail_empty_root();
	if (rc == 0) {
		*step = "cannot drop privileges";
		rc = jail_drop(ids);
	}
	if (rc == 0) {
		*step = "cannot use Landlock";
		rc = jail_landlock(ports, count, false);
	}
	if (rc == 0 || rc == -EOPNOTSUPP) {
		*step = "cannot filter system calls";
		rc = jail_seccomp(role, false);
	}
	return rc;
}
