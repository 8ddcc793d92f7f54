/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says about this process while it may still be asked; kept for jail_describe(). */
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/jail_state.h"

#define FILES_MAX 65536 /* descriptors examined */

struct jail_state jail_state;

static const char *const namespace_names[JAIL_NAMESPACES] = {
        "user", "mnt", "net", "pid", "ipc", "uts"};

const char *jail_namespace_name(size_t i)
{
	return namespace_names[i];
}

static void jail_read_file(const char *path, char *out, size_t out_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, out_size - 1);

	out[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

void jail_state_read_ids(void)
{
	char text[256];
	unsigned inside, outside, count;

	jail_read_file("/proc/self/uid_map", text, sizeof(text));
	jail_state.single_id = sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 &&
	                       count == 1 && strchr(text, '\n') == strrchr(text, '\n');
	jail_read_file("/proc/self/setgroups", text, sizeof(text));
	jail_state.groups_fixed = strncmp(text, "deny", 4) == 0;
}

static uint64_t ambient_set(void)
{
	uint64_t set = 0;

	for (unsigned cap = 0; cap < 64; cap++) {
		int there = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0);

		if (there < 0)
			break;
		set |= (uint64_t)(there == 1) << cap;
	}
	return set;
}

static uint64_t limit(int which)
{
	struct rlimit l = {0, 0};

	return getrlimit(which, &l) == 0 ? (uint64_t)l.rlim_cur : 0;
}

/* The number behind key in proc_pid_status(5); 0 if it is missing. */
static unsigned status_number(const char *key)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *at;

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
	at = strstr(text, key);
	return at ? (unsigned)strtoul(at + strlen(key), NULL, 10) : 0;
}

void jail_read_filters(void)
{
	jail_state.facts.filters = status_number("\nSeccomp_filters:");
	jail_state.facts.files_max = (unsigned)limit(RLIMIT_NOFILE);
	if (jail_state.facts.files_max > FILES_MAX)
		jail_state.facts.files_max = FILES_MAX;
}

void jail_read_namespaces(void)
{
	for (size_t i = 0; i < JAIL_NAMESPACES; i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", jail_namespace_name(i));
		jail_state.facts.namespaces[i] = stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
	}
}

void jail_read_ids_and_sets(void)
{
	struct jail_facts *f = &jail_state.facts;

	f->ids = (struct jail_ids){geteuid(), getegid()};
	f->groups = getgroups(0, NULL);
	capabilities_get(&f->capabilities);
	f->bounding = capabilities_bounding_set();
	f->ambient = ambient_set();
	f->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	f->dumpable = prctl(PR_GET_DUMPABLE);
	f->core_limit = limit(RLIMIT_CORE);
}

void jail_read_facts(void)
{
	jail_read_filters();
	jail_read_namespaces();
	jail_read_ids_and_sets();
}
