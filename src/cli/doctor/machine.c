/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks that read and judge a single thing of the machine. The caller (doctor/checks.c) passes
 * what they look at, so that tests can present a machine that lacks it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define KERNEL_MAJOR 5
#define KERNEL_MINOR 15 /* mount_setattr, pidfds, nft tproxy in a user namespace */
#define MEMLOCK_WANTED (1u << 20)
#define FILES_WANTED 4096

void doctor_tell(struct doctor_finding *f, enum doctor_state state, const char *format, ...)
{
	va_list args;

	f->state = state;
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

void doctor_remedy(struct doctor_finding *f, const char *remedy)
{
	snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
}

void doctor_kernel(struct doctor_finding *f, const char *release)
{
	unsigned major = 0, minor = 0;

	f->subject = "kernel";
	if (!release || sscanf(release, "%u.%u", &major, &minor) != 2) {
		doctor_tell(f, DOCTOR_NOTE, "its version cannot be read");
		return;
	}
	doctor_tell(f, DOCTOR_OK, "Linux %s", release);
	if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR)) {
		f->state = DOCTOR_BROKEN;
		doctor_remedy(f, "Linux 5.15 or later is needed.");
	}
}

/* Returns true if the module is loaded, built in or installed. *known tells whether any of the
 * places to look at exists. */
static bool kernel_has(const char *root, const char *release, const char *module, bool *known)
{
	static const char *const lists[] = {"modules.builtin", "modules.dep"};
	char path[PATH_MAX], line[4096], file[64];
	bool found;

	snprintf(path, sizeof(path), "%s/sys/module/%s", root, module);
	found = access(path, F_OK) == 0;
	*known = found;
	snprintf(file, sizeof(file), "/%s.ko", module);
	for (size_t i = 0; !found && release && i < 2; i++) {
		FILE *list;

		snprintf(path, sizeof(path), "%s/lib/modules/%s/%s", root, release, lists[i]);
		list = fopen(path, "re");
		*known = *known || list;
		while (!found && list && fgets(line, sizeof(line), list))
			found = strstr(line, file) != NULL;
		if (list)
			fclose(list);
	}
	return found;
}

void doctor_modules(struct doctor_finding *f, const char *root, const char *release)
{
	static const char *const modules[] = {
	        "veth", "nf_tables", "nft_tproxy", "nft_log", "nfnetlink_log"};
	char missing[128] = "";
	bool known = false, any = false;

	f->subject = "modules";
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		bool here;

		if (!kernel_has(root, release, modules[i], &here))
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
			        " %s", modules[i]);
		else
			any = true;
		known = known || here;
	}
	if (missing[0] == '\0')
		doctor_tell(f, DOCTOR_OK, "veth, nf_tables, tproxy, NFLOG");
	else if (known && any)
		doctor_tell(f, DOCTOR_NOTE,
		        "not seen:%s; they may be built in, the trial below tells", missing);
	else
		doctor_tell(f, DOCTOR_NOTE,
		        "this kernel does not say what is built in; the trial below tells");
}

void doctor_landlock(struct doctor_finding *f, int abi)
{
	f->subject = "landlock";
	if (abi >= 4)
		doctor_tell(f, DOCTOR_OK, "ABI %d: files and TCP ports", abi);
	else if (abi > 0)
		doctor_tell(f, DOCTOR_NOTE, "ABI %d: files only; ports from Linux 6.7 on", abi);
	else
		doctor_tell(f, DOCTOR_NOTE,
		        "not in this kernel; workers are confined by the empty root and seccomp "
		        "alone");
	if (abi == 0)
		doctor_remedy(
		        f, "Add landlock to the kernel's lsm= list, if Landlock is built in.");
}

void doctor_seccomp(struct doctor_finding *f, const char *path)
{
	char text[256] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	f->subject = "seccomp";
	if (fd >= 0) {
		(void)!read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (strstr(text, "kill_process") && strstr(text, "user_notif")) {
		doctor_tell(f, DOCTOR_OK, "system calls can be filtered and reported (user_notif)");
		return;
	}
	if (strstr(text, "kill_process")) {
		doctor_tell(
		        f, DOCTOR_BROKEN, "this kernel cannot report system calls (user_notif)");
		doctor_remedy(f, "Linux 5.15 or later with CONFIG_SECCOMP_FILTER is needed.");
		return;
	}
	doctor_tell(f, DOCTOR_BROKEN, "this kernel cannot filter system calls");
	doctor_remedy(f, "A kernel with CONFIG_SECCOMP_FILTER is needed.");
}

void doctor_limits(
        struct doctor_finding *f, const struct rlimit *memory, const struct rlimit *files)
{
	f->subject = "limits";
	doctor_tell(f, DOCTOR_OK, "locked memory %llu KiB, open files %llu",
	        (unsigned long long)(memory->rlim_cur / 1024), (unsigned long long)files->rlim_cur);
	if (memory->rlim_cur < MEMLOCK_WANTED) {
		f->state = memory->rlim_cur < DOCTOR_MEMLOCK_LEAST ? DOCTOR_BROKEN : DOCTOR_NOTE;
		doctor_remedy(f,
		        "Keys and credentials live in locked memory: " DOCTOR_MEMLOCK_REMEDY ".");
	} else if (files->rlim_cur < FILES_WANTED) {
		f->state = DOCTOR_NOTE;
		doctor_remedy(f,
		        "Each connection takes two descriptors and more: raise nofile to 4096 or "
		        "more.");
	}
}

/* Every role is a session of its own: if the scheduler shares by session, no worker takes another
 * worker's share. Otherwise a worker's one thread still has the share of a thread. */
void doctor_shares(struct doctor_finding *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char on = 0;

	f->subject = "shares";
	if (fd >= 0) {
		(void)!read(fd, &on, 1);
		close(fd);
	}
	if (on == '1')
		doctor_tell(f, DOCTOR_OK,
		        "the scheduler shares the CPUs out by session: each worker has one");
	else
		doctor_tell(f, DOCTOR_NOTE,
		        "the scheduler shares the CPUs out by thread: a sandbox with many threads "
		        "takes more of them than its neighbors' workers");
	if (on == '0')
		doctor_remedy(f, "sysctl kernel.sched_autogroup_enabled=1, or a cgroup with a CPU "
		                 "weight for each sandbox.");
}

/* vsock(7) belongs to no network namespace, and the daemon puts no filter on processes. */
void doctor_vsock(struct doctor_finding *f, int error)
{
	f->subject = "vsock";
	if (error) {
		doctor_tell(f, DOCTOR_OK, "AF_VSOCK is not available here: %s", strerror(error));
		return;
	}
	doctor_tell(f, DOCTOR_NOTE,
	        "programs may open AF_VSOCK sockets, which belong to no network namespace: "
	        "'vethguard run' refuses them to its command, but attached sandboxes can open "
	        "them");
	doctor_remedy(f, "If that matters, give their engine a seccomp profile that refuses "
	                 "socket(2) for family 40.");
}

void doctor_resolver(struct doctor_finding *f, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512];
	unsigned servers = 0;

	f->subject = "resolver";
	if (!file) {
		doctor_tell(
		        f, DOCTOR_BROKEN, "/etc/resolv.conf cannot be read: %s", strerror(errno));
		doctor_remedy(f, "Make it a file that names your resolver; an empty file will do "
		                 "if the configuration names one.");
		return;
	}
	while (fgets(line, sizeof(line), file))
		servers += strncmp(line, "nameserver", 10) == 0;
	fclose(file);
	if (servers > 0)
		doctor_tell(f, DOCTOR_OK, "%u in /etc/resolv.conf", servers);
	else
		doctor_tell(f, DOCTOR_NOTE,
		        "/etc/resolv.conf names none: names resolve only with resolvers or hosts "
		        "from --config");
}
