/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what exists once per interface, and whether an interface of a name exists. */
#include "fence/plan.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

char *fence_name(char out[FENCE_NAME_MAX], const char *prefix, const char *interface)
{
	snprintf(out, FENCE_NAME_MAX, "%s%.*s", prefix, IFNAMSIZ - 1, interface);
	return out;
}

int fence_look_for(const char *interface)
{
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	rc = ioctl(fd, SIOCGIFINDEX, &request) < 0 ? -errno : 0;
	close(fd);
	return rc;
}
