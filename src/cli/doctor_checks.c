/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks. Those at the top look at single things and say how to mend them; the last one is the
 * proof: it runs `vethguard run -- true` as a child and passes on what that said. So doctor's
 * verdict cannot differ from what `run` does.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "mounts.h"
#include "privilege.h"
#include "vethguard/base/clock.h"
#include "vethguard/jail/jail.h"
#include "vethguard/jail/spawn.h"
#include "commands.h"

#define KERNEL_MAJOR 5
#define KERNEL_MINOR 15 /* mount_setattr, pidfds, nft tproxy in a user namespace */
#define MEMLOCK_WANTED (1u << 20)
#define FILES_WANTED 4096

static void tell(struct doctor_finding *f, enum doctor_state state, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
static void tell(struct doctor_finding *f, enum doctor_state state, const char *format, ...)
{
	va_list args;

	f->state = state;
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

static void mend(struct doctor_finding *f, const char *remedy)
{
	snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
}

static void check_kernel(struct doctor_finding *f)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	f->subject = "kernel";
	if (uname(&u) != 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2) {
		tell(f, DOCTOR_NOTE, "its version cannot be read");
		return;
	}
	tell(f, DOCTOR_OK, "%s %s", u.sysname, u.release);
	if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR)) {
		f->state = DOCTOR_BROKEN;
		mend(f, "Linux 5.15 or later is needed.");
	}
}

/* In a child, since entering a namespace cannot be undone; its words come back through a pipe. */
static void check_user(struct doctor_finding *f)
{
	struct failure failure = {""};
	int fds[2], status = 0;
	pid_t pid;

	f->subject = "user";
	if (privilege_is_root()) {
		tell(f, DOCTOR_OK, "root: any --user can be had inside");
		return;
	}
	if (pipe2(fds, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
		tell(f, DOCTOR_BROKEN, "cannot fork: %s", strerror(errno));
		return;
	}
	if (pid == 0) {
		struct privilege p;
		int rc = privilege_enter(&p, &failure);

		(void)!write(fds[1], failure.text, strlen(failure.text));
		_exit(rc == 0 ? 0 : 1);
	}
	close(fds[1]);
	(void)!read(fds[0], failure.text, sizeof(failure.text) - 1);
	close(fds[0]);
	waitpid(pid, &status, 0);
	if (status == 0) {
		tell(f, DOCTOR_OK,
		        "uid %u without root, by user namespaces: yourself or --user root inside",
		        (unsigned)getuid());
		return;
	}
	tell(f, DOCTOR_BROKEN, "%.400s", failure.text);
	mend(f, "Permit user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 "
	        "user.max_user_namespaces=15000 "
	        "kernel.apparmor_restrict_unprivileged_userns=0 (those that exist here); or use "
	        "sudo.");
}

/* True where the module is loaded, built in or installed; *known: whether any of the places to look
 * at exists. */
static bool kernel_has(const char *module, bool *known)
{
	static const char *const lists[] = {"modules.builtin", "modules.dep"};
	char path[PATH_MAX], line[4096], file[64];
	struct utsname u;
	bool found;

	snprintf(path, sizeof(path), "/sys/module/%s", module);
	found = access(path, F_OK) == 0;
	*known = found;
	snprintf(file, sizeof(file), "/%s.ko", module);
	for (size_t i = 0; !found && uname(&u) == 0 && i < 2; i++) {
		FILE *list;

		snprintf(path, sizeof(path), "/lib/modules/%s/%s", u.release, lists[i]);
		list = fopen(path, "re");
		*known = *known || list != NULL;
		while (!found && list != NULL && fgets(line, sizeof(line), list) != NULL)
			found = strstr(line, file) != NULL;
		if (list != NULL)
			fclose(list);
	}
	return found;
}

static void check_modules(struct doctor_finding *f)
{
	static const char *const modules[] = {
	        "veth", "nf_tables", "nft_tproxy", "nft_log", "nfnetlink_log"};
	char missing[128] = "";
	bool known = false, any = false;

	f->subject = "modules";
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		bool here;

		if (!kernel_has(modules[i], &here))
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
			        " %s", modules[i]);
		else
			any = true;
		known = known || here;
	}
	if (missing[0] == '\0')
		tell(f, DOCTOR_OK, "veth, nf_tables, tproxy, NFLOG");
	else if (known && any)
		tell(f, DOCTOR_NOTE, "not seen:%s; they may be built in, the trial below tells",
		        missing);
	else
		tell(f, DOCTOR_NOTE,
		        "this kernel does not say what is built in; the trial below tells");
}

static void check_landlock(struct doctor_finding *f)
{
	int abi = landlock_abi();

	f->subject = "landlock";
	if (abi >= 4)
		tell(f, DOCTOR_OK, "ABI %d: files and TCP ports", abi);
	else if (abi > 0)
		tell(f, DOCTOR_NOTE, "ABI %d: files only; ports from Linux 6.7 on", abi);
	else
		tell(f, DOCTOR_NOTE,
		        "not in this kernel; workers are confined by the empty root and seccomp "
		        "alone");
	if (abi == 0)
		mend(f, "Add landlock to the kernel's lsm= list, where it was built in.");
}

static void check_seccomp(struct doctor_finding *f)
{
	char text[256] = "";
	int fd = open("/proc/sys/kernel/seccomp/actions_avail", O_RDONLY | O_CLOEXEC);

	f->subject = "seccomp";
	if (fd >= 0) {
		(void)!read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (strstr(text, "kill_process") != NULL) {
		tell(f, DOCTOR_OK, "system calls can be filtered");
		return;
	}
	tell(f, DOCTOR_BROKEN, "this kernel cannot filter system calls");
	mend(f, "A kernel with CONFIG_SECCOMP_FILTER is needed.");
}

static void check_limits(struct doctor_finding *f)
{
	struct rlimit memory, files;

	f->subject = "limits";
	if (getrlimit(RLIMIT_MEMLOCK, &memory) != 0 || getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	tell(f, DOCTOR_OK, "locked memory %llu KiB, open files %llu",
	        (unsigned long long)(memory.rlim_cur / 1024), (unsigned long long)files.rlim_cur);
	if (memory.rlim_cur < MEMLOCK_WANTED) {
		f->state = DOCTOR_NOTE;
		mend(f, "Credentials live in locked memory: raise memlock to 1024 KiB or more in "
		        "/etc/security/limits.conf.");
	} else if (files.rlim_cur < FILES_WANTED) {
		f->state = DOCTOR_NOTE;
		mend(f, "Each connection takes two descriptors and more: raise nofile to 4096 or "
		        "more.");
	}
}

static void check_programs(struct doctor_finding *f)
{
	static const char *const programs[] = {
	        "vethguardd", "vethguard-keeper", "vethguard-worker", "vethguard-recorder"};
	char path[PATH_MAX];

	f->subject = "programs";
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (spawn_find(programs[i], path, sizeof(path)) != 0) {
			tell(f, DOCTOR_BROKEN, "%s was not found beside vethguard", programs[i]);
			mend(f, "Build all of them (make) or install them together (make "
			        "install).");
			return;
		}
	tell(f, DOCTOR_OK, "all four are there");
}

static void check_trust(struct doctor_finding *f)
{
	f->subject = "ca bundle";
	if (access(TRUST_BUNDLE, R_OK) == 0) {
		tell(f, DOCTOR_OK, "%s", TRUST_BUNDLE);
		return;
	}
	tell(f, DOCTOR_NOTE,
	        "%s is missing: no upstream can be verified and no program will trust the "
	        "sandbox's CA",
	        TRUST_BUNDLE);
	mend(f, "Install ca-certificates (apt install ca-certificates).");
}

static void check_resolver(struct doctor_finding *f)
{
	FILE *file = fopen("/etc/resolv.conf", "re");
	char line[512];
	unsigned servers = 0;

	f->subject = "resolver";
	if (file == NULL) {
		tell(f, DOCTOR_BROKEN, "/etc/resolv.conf cannot be read: %s", strerror(errno));
		mend(f, "Make it a file that names your resolver; an empty one will do where the "
		        "configuration does.");
		return;
	}
	while (fgets(line, sizeof(line), file) != NULL)
		servers += strncmp(line, "nameserver", 10) == 0;
	fclose(file);
	if (servers > 0)
		tell(f, DOCTOR_OK, "%u in /etc/resolv.conf", servers);
	else
		tell(f, DOCTOR_NOTE,
		        "/etc/resolv.conf names none: names resolve only with resolvers or hosts "
		        "from --config");
}

static unsigned count_presets(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned n = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		size_t length = strlen(entry->d_name);

		n += length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

static void check_presets(struct doctor_finding *f)
{
	char self[PATH_MAX], beside[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned count;

	f->subject = "presets";
	self[n > 0 ? n : 0] = '\0';
	if (strrchr(self, '/') != NULL)
		*strrchr(self, '/') = '\0';
	snprintf(beside, sizeof(beside), "%s/../../policies/presets", self);
	count = count_presets(beside);
	if (count == 0)
		count = count_presets(VETHGUARD_DATADIR "/presets");
	if (count > 0)
		tell(f, DOCTOR_OK, "%u found", count);
	else
		tell(f, DOCTOR_NOTE, "none found: policies that include preset:NAME will not load");
	if (count == 0)
		mend(f, "Install them with make install, into " VETHGUARD_DATADIR "/presets.");
}

static void check_stores(struct doctor_finding *f)
{
	char database[PATH_MAX];
	const char *home = getenv("HOME");
	bool java = access(TRUST_DIRECTORY "/java/cacerts", F_OK) == 0;
	bool nss;

	f->subject = "stores";
	snprintf(database, sizeof(database), "%s/.pki/nssdb", home ? home : "");
	nss = access(database, F_OK) == 0;
	tell(f, DOCTOR_OK, "Java keystore: %s; NSS database: %s", java ? "yes" : "none",
	        nss ? "yes" : "none");
	if (nss && access("/usr/bin/certutil", X_OK) != 0) {
		f->state = DOCTOR_NOTE;
		mend(f, "Chromium and Firefox trust the CA only with certutil: apt install "
		        "libnss3-tools.");
	}
}

/* The child of the trial: everything it says goes into the pipe. */
static void trial_child(int out)
{
	char path[] = "/tmp/vethguard-doctor-XXXXXX", policy[sizeof(path) + 16], true_[] = "true";
	char name[] = "run", option[] = "--policy", end[] = "--", label[] = "--name=doctor";
	char *argv[] = {name, option, policy, label, end, true_, NULL};
	int status = CLI_FAILED;

	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (mkdtemp(path) != NULL) {
		snprintf(policy, sizeof(policy), "%s/policy.yaml", path);
		if (mounts_write(policy, SLICE("vethguard: 1\n"), 0600) == 0)
			status = cli_run(6, argv);
		unlink(policy);
		rmdir(path);
	}
	_exit(status);
}

static void check_trial(struct doctor_finding *f)
{
	int64_t start = clock_monotonic_ms();
	char said[400] = "";
	size_t n = 0;
	int fds[2], status = -1;
	ssize_t got = 1;
	pid_t pid;

	f->subject = "trial";
	if (pipe2(fds, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
		tell(f, DOCTOR_BROKEN, "cannot fork: %s", strerror(errno));
		return;
	}
	if (pid == 0)
		trial_child(fds[1]);
	close(fds[1]);
	while (got > 0 && n < sizeof(said) - 1) {
		got = read(fds[0], said + n, sizeof(said) - 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	close(fds[0]);
	waitpid(pid, &status, 0);
	while (n > 0 && said[n - 1] == '\n')
		said[--n] = '\0';
	if (status == 0) {
		tell(f, DOCTOR_OK, "'vethguard run -- true' took %lld ms",
		        (long long)(clock_monotonic_ms() - start));
		return;
	}
	tell(f, DOCTOR_BROKEN, "'vethguard run -- true' failed: %s",
	        n > 0 ? said : "without a word");
	mend(f, "The findings above say what is missing; the kernel needs CONFIG_VETH, "
	        "CONFIG_NF_TABLES, "
	        "CONFIG_NFT_TPROXY, CONFIG_NFT_LOG and CONFIG_NETFILTER_NETLINK_LOG.");
}

const doctor_check doctor_checks[] = {check_kernel, check_user, check_modules, check_landlock,
        check_seccomp, check_limits, check_programs, check_trust, check_resolver, check_presets,
        check_stores, check_trial, NULL};
