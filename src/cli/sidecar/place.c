/* SPDX-License-Identifier: Apache-2.0 */
/* Where a sidecar cannot work: under gVisor, whose network stack has no such rules, and in the
 * machine's own network namespace, where the fence would cut off the machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <linux/magic.h>

#include "cli/sidecar/sidecar.h"

/* What gVisor tells of itself: the release since 2026, the version always. */
#define GVISOR_RELEASE "gvisor"
#define GVISOR_VERSION "#1 SMP Sun Jan 10 15:06:54 PST 2016"
/* A sysctl that only the first network namespace has. */
#define FIRST_NAMESPACE "/proc/sys/net/core/netdev_budget"
#define CGROUPS "/sys/fs/cgroup"
#define CGROUP_ROOT_ID 1

static bool is_gvisor(void)
{
	struct utsname name;

	return uname(&name) == 0 && (strstr(name.release, GVISOR_RELEASE) != NULL ||
	                                    strcmp(name.version, GVISOR_VERSION) == 0);
}

int sidecar_place(bool fencing, struct failure *failure)
{
	if (is_gvisor())
		return failure_set(failure, 0,
		        "this is gVisor (runsc): its network stack does not know who owns a socket, "
		        "so no fence can tell guard and agent apart in here. Guard the sandbox from "
		        "outside: by the runtime (see docs/attach.md) or 'vethguard attach "
		        "--container'");
	if (fencing && access(FIRST_NAMESPACE, F_OK) == 0)
		return failure_set(failure, 0,
		        "this is the machine's own network namespace, and the fence would cut off "
		        "everything on this machine: start it in the pod or group to be guarded");
	return 0;
}

/* Returns the rest of the line "0::PATH" of cgroups(7) in out. */
static bool own_path(char out[PATH_MAX])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	bool found = false;
	char line[PATH_MAX];

	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, "0::/", 4) == 0 && strstr(line, "/..") == NULL;
		if (found)
			snprintf(out, PATH_MAX, "%s", line + 3);
	}
	if (file)
		fclose(file);
	return found;
}

/* "/": 0; "/a/b": 2. */
static unsigned depth(const char *path)
{
	unsigned n = 0;

	for (size_t i = 0; path[i]; i++)
		n += path[i] == '/' && path[i + 1] != '\0';
	return n;
}

void sidecar_own_cgroup(struct fence_shared_spec *spec)
{
	char path[PATH_MAX], full[PATH_MAX + sizeof(CGROUPS)];
	struct statfs fs;
	struct stat st;

	spec->cgroup = spec->cgroup_level = 0;
	if (!own_path(path))
		return;
	snprintf(full, sizeof(full), CGROUPS "%s", path);
	if (statfs(full, &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC || stat(full, &st) != 0)
		return;
	if (st.st_ino == CGROUP_ROOT_ID) /* everybody's */
		return;
	spec->cgroup = st.st_ino;
	spec->cgroup_level = depth(path);
}
