/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks. The checks of single things (some are in doctor/machine.c) say how to mend them. The
 * last one is the proof: it runs `vethguard run -- true` as a child and passes on what that prints,
 * so doctor's verdict cannot differ from what `run` does.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/guest/mounts.h"
#include "cli/run/privilege.h"
#include "vethguard/base/clock.h"
#include "vethguard/policy/load.h"
#include "vethguard/tls/bundle.h"
#include "vethguard/jail/jail.h"
#include "vethguard/jail/spawn.h"
#include "cli/commands.h"

static const char *kernel_release(void)
{
	static struct utsname u;

	return uname(&u) == 0 ? u.release : NULL;
}

static void check_kernel(struct doctor_finding *f)
{
	doctor_kernel(f, kernel_release());
}

static void check_modules(struct doctor_finding *f)
{
	doctor_modules(f, "", kernel_release());
}

static void check_landlock(struct doctor_finding *f)
{
	doctor_landlock(f, landlock_abi());
}

static void check_seccomp(struct doctor_finding *f)
{
	doctor_seccomp(f, "/proc/sys/kernel/seccomp/actions_avail");
}

static void check_limits(struct doctor_finding *f)
{
	struct rlimit memory, files;

	if (getrlimit(RLIMIT_MEMLOCK, &memory) == 0 && getrlimit(RLIMIT_NOFILE, &files) == 0)
		doctor_limits(f, &memory, &files);
}

static void check_shares(struct doctor_finding *f)
{
	doctor_shares(f, "/proc/sys/kernel/sched_autogroup_enabled");
}

static void check_vsock(struct doctor_finding *f)
{
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	doctor_vsock(f, fd < 0 ? errno : 0);
	if (fd >= 0)
		close(fd);
}

static void check_resolver(struct doctor_finding *f)
{
	doctor_resolver(f, "/etc/resolv.conf");
}

/* Done in a child, since entering a namespace cannot be undone. The child's failure text comes back
 * through a pipe. */
static void check_user(struct doctor_finding *f)
{
	struct failure failure = {""};
	int fds[2], status = 0;
	pid_t pid;

	f->subject = "user";
	if (privilege_is_root()) {
		doctor_tell(f, DOCTOR_OK, "root: the command can run as any --user");
		return;
	}
	if (pipe2(fds, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
		doctor_tell(f, DOCTOR_BROKEN, "cannot fork: %s", strerror(errno));
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
		doctor_tell(f, DOCTOR_OK,
		        "uid %u, by user namespaces: the command can run as yourself or with "
		        "--user root",
		        (unsigned)getuid());
		return;
	}
	doctor_tell(f, DOCTOR_BROKEN, "%.400s", failure.text);
	doctor_remedy(f,
	        "Permit user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 "
	        "user.max_user_namespaces=15000 kernel.apparmor_restrict_unprivileged_userns=0 "
	        "(those that exist here); or use sudo.");
}

static void check_programs(struct doctor_finding *f)
{
	static const char *const programs[] = {"vethguardd", "vethguard-keeper", "vethguard-worker",
	        "vethguard-recorder", "vethguard-fetch", "vethguard-token", "vethguard-gateway",
	        "vethguard-quota"};
	char path[PATH_MAX], why[FAILURE_TEXT_MAX];

	f->subject = "programs";
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		int rc = spawn_find(programs[i], path, sizeof(path));

		if (rc != 0) {
			spawn_explain(programs[i], rc, geteuid(), why, sizeof(why));
			doctor_tell(f, DOCTOR_BROKEN, "%.400s", why);
			doctor_remedy(f,
			        rc == -EACCES ? "Let this user enter the directory, or install "
			                        "vethguard (make install)."
			                      : "Build all of them (make) or install them together "
			                        "(make install).");
			return;
		}
	}
	doctor_tell(f, DOCTOR_OK, "all are there");
}

static void check_trust(struct doctor_finding *f)
{
	const char *path = bundle_system_path();

	f->subject = "ca bundle";
	if (path) {
		doctor_tell(f, DOCTOR_OK, "%s", path);
		return;
	}
	doctor_tell(f, DOCTOR_NOTE,
	        "none (the first place is %s): only CAs in ca_files of --config can verify "
	        "upstreams",
	        bundle_paths[0]);
	doctor_remedy(f, "Install ca-certificates (apt install ca-certificates).");
}

static unsigned count_presets(const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir)) != NULL) {
		size_t length = strlen(entry->d_name);

		n += length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0;
	}
	if (dir)
		closedir(dir);
	return n;
}

static void check_presets(struct doctor_finding *f)
{
	const char *directory = policy_default_preset_dir();
	unsigned count = count_presets(directory);

	f->subject = "presets";
	if (count > 0)
		doctor_tell(f, DOCTOR_OK, "%u found", count);
	else
		doctor_tell(f, DOCTOR_NOTE,
		        "none in %.300s: policies that include preset:NAME will not load",
		        directory);
	if (count == 0)
		doctor_remedy(
		        f, "Install them with make install, into " VETHGUARD_DATADIR "/presets.");
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
	doctor_tell(f, DOCTOR_OK, "Java keystore: %s; NSS database: %s", java ? "yes" : "none",
	        nss ? "yes" : "none");
	if (nss && access("/usr/bin/certutil", X_OK) != 0) {
		f->state = DOCTOR_NOTE;
		doctor_remedy(f,
		        "Chromium and Firefox trust the CA only with certutil: apt install "
		        "libnss3-tools.");
	}
}

/* The child of the trial: all its output goes into the pipe. */
static void trial_child(int out)
{
	char path[] = "/tmp/vethguard-doctor-XXXXXX", policy[sizeof(path) + 16], true_[] = "true";
	char name[] = "run", option[] = "--policy", end[] = "--", label[] = "--name=doctor";
	char *argv[] = {name, option, policy, label, end, true_, NULL};
	int status = CLI_FAILED;

	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	if (mkdtemp(path)) {
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
		doctor_tell(f, DOCTOR_BROKEN, "cannot fork: %s", strerror(errno));
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
		doctor_tell(f, DOCTOR_OK, "'vethguard run -- true' took %lld ms",
		        (long long)(clock_monotonic_ms() - start));
		return;
	}
	doctor_tell(f, DOCTOR_BROKEN, "'vethguard run -- true' failed: %s",
	        n > 0 ? said : "it printed no error");
	doctor_remedy(f, "The findings above say what is missing; the kernel needs CONFIG_VETH, "
	                 "CONFIG_NF_TABLES, CONFIG_NFT_TPROXY, CONFIG_NFT_LOG and "
	                 "CONFIG_NETFILTER_NETLINK_LOG.");
}

const doctor_check doctor_checks[] = {check_kernel, check_user, check_modules, check_landlock,
        check_seccomp, check_limits, check_shares, check_vsock, check_programs, check_trust,
        check_resolver, check_presets, check_stores, check_trial, NULL};
