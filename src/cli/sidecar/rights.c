/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rights: the guard's own, and those of the other processes that it can see.
 *
 * Another container's processes are visible only where the group shares its process ids. There the
 * guard refuses to start beside a process that could undo the fence. Process 1 is exempt: in such a
 * group it is the engine's own, which only waits.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/sidecar/sidecar.h"
#include "vethguard/base/log.h"
#include "vethguard/jail/capabilities.h"

#ifndef CAP_BPF /* Linux 5.8 */
#define CAP_BPF 39
#endif

struct right {
	unsigned capability;
	const char *name, *what;
};

/* Capabilities that can remove the fence, or pass it. */
static const struct right undoing[] = {
        {CAP_NET_ADMIN, "CAP_NET_ADMIN", "change the rules"},
        {CAP_NET_RAW, "CAP_NET_RAW", "send past the rules and read the guard's packets"},
        {CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "enter other namespaces"},
        {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "read and change the guard's memory"},
        {CAP_SYS_MODULE, "CAP_SYS_MODULE", "load code into the kernel"},
        {CAP_BPF, "CAP_BPF", "load programs into the kernel"},
};
/* Counts only if the fence knows the guard by its user id alone. */
static const struct right becoming = {
        CAP_SETUID, "CAP_SETUID", "become the guard's user, whose packets pass"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool has(uint64_t set, const struct right *right)
{
	return (set >> right->capability & 1) != 0;
}

static const struct right *first_of(uint64_t set, bool by_cgroup)
{
	for (size_t i = 0; i < COUNT(undoing); i++)
		if (has(set, &undoing[i]))
			return &undoing[i];
	return !by_cgroup && has(set, &becoming) ? &becoming : NULL;
}

static int check_own(struct failure *failure)
{
	struct capabilities own;
	const struct right *right;
	int rc = capabilities_get(&own);

	if (rc)
		return failure_set(failure, rc, "the guard's own capabilities");
	if (geteuid() == 0)
		return failure_set(failure, 0,
		        "the guard runs as root: run it as the user that 'sidecar init --uid' "
		        "named, "
		        "or with --init --uid");
	right = first_of(own.permitted, false);
	if (right)
		return failure_set(failure, 0,
		        "the guard has %s, which it must not have: drop all capabilities of its "
		        "container",
		        right->name);
	return 0;
}

/* Of one process, from proc_pid_status(5). */
struct process {
	unsigned long uids[4];
	uint64_t permitted, bounding;
	bool no_new_privileges;
};

static bool read_process(const char *pid, struct process *out)
{
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.16s/status", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	memset(out, 0, sizeof(*out));
	while (fgets(line, sizeof(line), file)) {
		unsigned long long set;

		sscanf(line, "Uid: %lu %lu %lu %lu", &out->uids[0], &out->uids[1], &out->uids[2],
		        &out->uids[3]);
		if (sscanf(line, "CapPrm: %llx", &set) == 1)
			out->permitted = set;
		if (sscanf(line, "CapBnd: %llx", &set) == 1)
			out->bounding = set;
		if (strncmp(line, "NoNewPrivs:", 11) == 0)
			out->no_new_privileges = strchr(line, '1') != NULL;
	}
	fclose(file);
	return true;
}

/* In a user namespace of its own, a process has rights over that only. Unreadable counts as the
 * same. */
static bool is_of_another_user_namespace(const char *pid)
{
	char path[64];
	struct stat own, its;

	snprintf(path, sizeof(path), "/proc/%.16s/ns/user", pid);
	return stat("/proc/self/ns/user", &own) == 0 && stat(path, &its) == 0 &&
	       own.st_ino != its.st_ino;
}

static bool has_uid(const struct process *p, uid_t uid)
{
	for (size_t i = 0; i < 4; i++)
		if (p->uids[i] == uid)
			return true;
	return false;
}

static int check_other(const char *pid, bool by_cgroup, bool *warned, struct failure *failure)
{
	const struct right *right;
	struct process p;

	if (!read_process(pid, &p)) /* it has ended */
		return 0;
	if (has_uid(&p, geteuid()))
		return failure_set(failure, 0,
		        "process %.16s runs as the guard's user %u, too: its packets would pass. "
		        "Give "
		        "the guard a user id that nothing else has",
		        pid, (unsigned)geteuid());
	if (is_of_another_user_namespace(pid))
		return 0;
	right = first_of(p.permitted, by_cgroup);
	if (right)
		return failure_set(failure, 0,
		        "process %.16s of this group has %s and could %s: drop it from that "
		        "container's capabilities",
		        pid, right->name, right->what);
	right = p.no_new_privileges ? NULL : first_of(p.bounding, by_cgroup);
	if (right && !*warned)
		log_warn("process %.16s of this group has not %s, but could get it from a "
		         "set-user-id program: start that container with no-new-privileges",
		        pid, right->name);
	*warned |= right != NULL;
	return 0;
}

int sidecar_check_rights(bool by_cgroup, struct failure *failure)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool warned = false;
	int rc = check_own(failure);

	while (rc == 0 && proc && (entry = readdir(proc)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) && strcmp(entry->d_name, "1") != 0 &&
		        strtol(entry->d_name, NULL, 10) != getpid())
			rc = check_other(entry->d_name, by_cgroup, &warned, failure);
	if (proc)
		closedir(proc);
	return rc;
}

int sidecar_become(uid_t uid, struct failure *failure)
{
	const struct capabilities none = {0, 0, 0};
	struct capabilities now;

	if (capabilities_have(CAP_SETPCAP) && capabilities_bound(0) != 0)
		return failure_set(failure, -EPERM, "the capabilities cannot be given up");
	if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 ||
	        setresuid(uid, uid, uid) != 0)
		return failure_set(failure, -errno,
		        "cannot become user %u: --init needs CAP_SETUID and CAP_SETGID besides "
		        "CAP_NET_ADMIN, all of which it then gives up",
		        (unsigned)uid);
	if (capabilities_set(&none) != 0 || capabilities_get(&now) != 0 || now.permitted != 0 ||
	        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 ||
	        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return failure_set(failure, -EPERM, "the capabilities cannot be given up");
	/* The kernel takes this away with the change of ids, and with it /proc/self/uid_map. */
	if (prctl(PR_SET_DUMPABLE, 1) != 0)
		return failure_set(failure, -errno, "cannot go on as user %u", (unsigned)uid);
	return 0;
}
