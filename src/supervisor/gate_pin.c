/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps a gate when its supervisor is gone: its namespace bound to a file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "supervisor/gate.h"

const char *gate_failure(const struct gate *gate, int error, char out[GATE_WHY_MAX])
{
	if (gate->why[0])
		snprintf(out, GATE_WHY_MAX, "%s", gate->why);
	else
		snprintf(out, GATE_WHY_MAX, "%s: %s", gate->step ? gate->step : "the gate",
		        strerror(-error));
	return out;
}

int gate_pin(const struct gate *gate, const char *path)
{
	char from[64];
	int fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	snprintf(from, sizeof from, "/proc/self/fd/%d", gate->netns);
	if (mount(from, path, NULL, MS_BIND, NULL) == 0)
		return 0;
	int error = -errno;
	unlink(path);
	return error;
}

int gate_remove(struct gate *gate, struct gate_host *host, const char *path, bool closed)
{
	int error = 0;

	(void)host;
	(void)closed;
	gate_close(gate);
	if (!path)
		return 0;
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		error = -errno;
	if (unlink(path) < 0 && errno != ENOENT)
		error = -errno;
	return error;
}
