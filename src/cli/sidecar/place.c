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
#define CGROUP_ROOT_ID 1

static bool is_gvisor(void)
{
	struct utsname name;

	return uname(&name) == 0 &&
	       (strstr(name.release, GVISOR_RELEASE) || strcmp(name.version, GVISOR_VERSION) == 0);
}

int sidecar_place(bool fencing, struct failure *failure)
{
	if (is_gvisor())
		return failure_set(failure, 0,
		        "this is gVisor (runsc): its network stack does not know who owns a "
		        "socket, "
		        "so no fence can tell guard and agent apart in here. Guard the sandbox "
		        "from "
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
		found = strncmp(line, "0::/", 4) == 0 && !strstr(line, "/..");
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

/* The id of a cgroup is the number of its directory. Returns 0 if there is none. */
static uint64_t id_of(const char *path)
{
	/* where version 2 stands alone, and beside version 1 */
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char full[PATH_MAX + 32];
	struct statfs fs;
	struct stat st;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(full, sizeof(full), "%s%s", places[i], path);
		if (statfs(full, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC &&
		        stat(full, &st) == 0)
			return st.st_ino;
	}
	return 0;
}

void sidecar_own_cgroup(struct fence_shared_spec *spec)
{
	char path[PATH_MAX];
	uint64_t id = own_path(path) ? id_of(path) : 0;

	spec->cgroup = spec->cgroup_level = 0;
	if (id == 0 || id == CGROUP_ROOT_ID) /* the root cgroup is shared by all processes */
		return;
	spec->cgroup = id;
	spec->cgroup_level = depth(path);
}
