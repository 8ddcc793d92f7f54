/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's NSS database (Chromium, Firefox's tools): certutil(1) adds the CA to a copy in memory,
 * which is mounted over the original. The guarded command may write the database, and certutil
 * loads the modules that its pkcs11.txt names. So certutil is as hostile as the command and is
 * confined in the same way: in the sandbox's namespaces, as its user, under its filter and bounds.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guest/mounts.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "vethguard/jail/guest.h"

#define CERTUTIL "/usr/bin/certutil"
#define NSS_SECONDS_MAX 5 /* for certutil; then the sandbox starts without the CA in it */

static const char *const files[] = {"cert9.db", "key4.db", "pkcs11.txt"};

/* Becomes what the command will be before the first step, so that the user's files and links are
 * read with the user's rights, and code that they name gains nothing here. */
static void become_guest(const struct mounts *m)
{
	const struct run_user *user = m->plan->user;
	const struct namespaces *ns = &m->plan->ns;
	sigset_t none;
	int listener;

	if (setns(ns->net, CLONE_NEWNET) != 0 || setns(ns->ipc, CLONE_NEWIPC) != 0 ||
	        setns(ns->user, CLONE_NEWUSER) != 0)
		_exit(1);
	if (jail_guest_seccomp() != 0)
		_exit(1);
	listener = jail_guest_ask(); /* nobody answers here: no socket can be reached by a name */
	if (listener < 0 || close(listener) != 0 || jail_guest_bound() != 0)
		_exit(1);
	if ((user->group_count >= 0 && setgroups(0, NULL) != 0) ||
	        setresgid(user->gid, user->gid, user->gid) != 0 ||
	        setresuid(user->uid, user->uid, user->uid) != 0)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* init blocks all signals; SIGALRM has to arrive */
	alarm(NSS_SECONDS_MAX);
}

static void copy_files(const char *from, const char *to)
{
	char source[PATH_MAX + 64], copy[128];
	struct buf bytes;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(source, sizeof(source), "%s/%s", from, files[i]);
		snprintf(copy, sizeof(copy), "%s/%s", to, files[i]);
		buf_init(&bytes, MOUNTS_FILE_MAX);
		if (mounts_read(source, &bytes) == 0 &&
		        mounts_write(copy, buf_slice(&bytes), 0600) != 0)
			_exit(1);
		buf_fini(&bytes);
	}
}

static void run_certutil(const char *database, const char *ca)
{
	char where[160], name[] = "certutil", d[] = "-d", add[] = "-A", n[] = "-n",
	                 nick[] = "vethguard";
	char t[] = "-t", trust[] = "C,,", ascii[] = "-a", i[] = "-i", input[128];
	char *const argv[] = {name, d, where, add, n, nick, t, trust, ascii, i, input, NULL};
	char *const env[] = {NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(where, sizeof(where), "sql:%s", database);
	snprintf(input, sizeof(input), "%s", ca);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	execve(CERTUTIL, argv, env);
	_exit(1);
}

static int make_copy(
        const struct mounts *m, const char *database, const char *scratch, const char *ca)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		become_guest(m);
		copy_files(database, scratch);
		run_certutil(scratch, ca);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 ? -EIO : 0;
}

/* Opens the directory itself, from the home directory on, without following any link that the user
 * may have made. */
static int open_database(const struct mounts *m)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
	int home = open(m->plan->user->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = home < 0 ? -1 : (int)syscall(SYS_openat2, home, ".pki/nssdb", &how, sizeof(how));

	if (home >= 0)
		close(home);
	return fd;
}

int nss_store_mount(struct mounts *m)
{
	char database[PATH_MAX + 16], scratch[64], ca[64];
	int target, rc;

	target = open_database(m);
	if (target < 0)
		return 0;
	if (access(CERTUTIL, X_OK) != 0) {
		log_info("the user's NSS database stays without the CA: there is no " CERTUTIL
		         " (package libnss3-tools)");
		close(target);
		return 0;
	}
	snprintf(database, sizeof(database), "%s/.pki/nssdb", m->plan->user->home);
	rc = mounts_scratch(m, true, 0700, scratch, sizeof(scratch));
	if (rc == 0 && !m->plan->rootless &&
	        chown(scratch, m->plan->user->uid, m->plan->user->gid) != 0)
		rc = -errno;
	if (rc == 0)
		rc = mounts_scratch(m, false, 0644, ca, sizeof(ca));
	if (rc == 0)
		rc = mounts_write(ca, m->plan->root_pem, 0644);
	if (rc == 0)
		rc = make_copy(m, database, scratch, ca);
	if (rc == 0)
		rc = mounts_attach_at(scratch, target, false);
	close(target);
	return rc;
}
