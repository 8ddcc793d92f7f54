/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent reads the child's report from a pipe and learns of its end from a pidfd; it waits for
 * nothing but these two and a timer, even if the child hangs. A child that cannot be killed (a file
 * system in the sandbox that never answers) is left behind (os/helper_child.h), and the report says
 * so.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/process.h"
#include "vethguard/jail/capabilities.h"
#include "supervisor/os/helper_child.h"
#include "supervisor/attach/guest_files.h"

#define CAPABILITY(name) (1ull << (name))
#define CHILD_CAPABILITIES                                                                        \
	(CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_DAC_READ_SEARCH) | CAPABILITY(CAP_CHOWN) | \
	        CAPABILITY(CAP_FOWNER) | CAPABILITY(CAP_SYS_PTRACE))
#define REAP_MS 1000 /* for a killed child to exit */
#define REPORT_FD 3

struct guest_files {
	struct loop *loop;
	pid_t pid; /* 0: reaped, or left behind */
	int pidfd, pipe;
	struct loop_io exit;
	struct loop_timer timer;
	struct buf report;
	bool killed;
	void (*done)(void *context, const struct guest_files_report *report);
	void *context;
};

/* The child. */

static void say(int report, const char *text)
{
	(void)!write(report, text, strlen(text));
}

static void say_fault(int report, const char *fault)
{
	say(report, "-the file system: ");
	say(report, fault);
	say(report, "\n");
}

static bool is_same_process(const struct guest_files_plan *plan)
{
	uint64_t started;

	return !plan->start_time ||
	       (process_start_time(plan->pid, &started) == 0 && started == plan->start_time);
}

static bool is_own_root(int root)
{
	struct stat theirs, ours;

	return fstat(root, &theirs) < 0 || stat("/", &ours) < 0 ||
	       (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
}

/* Root in its own user namespace chooses its root directory and what is mounted there: a directory
 * of the host's, for example. So for such a process everything is done as the root of that
 * namespace, which may write the files of the ids it maps (user_namespaces(7)). Call this after the
 * directory was opened: a process cannot leave a user namespace. Returns NULL, or why not. */
static const char *become_its_root(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &theirs) < 0 || stat("/proc/self/ns/user", &ours) < 0)
		return "the process is gone";
	if (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino) {
		close(fd);
		return NULL;
	}
	if (setgroups(0, NULL) < 0 || setns(fd, CLONE_NEWUSER) < 0)
		return "this daemon may not enter the process's user namespace";
	close(fd);
	return setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0
	               ? "the process has a user namespace that nobody is root in"
	               : NULL;
}

/* Call after each change of ids or namespaces, which gives capabilities and clears the signal. */
static bool keep_few_rights(void)
{
	struct capabilities have;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (capabilities_get(&have) != 0)
		return false;
	have.permitted &= CHILD_CAPABILITIES;
	have.effective = have.permitted;
	have.inheritable = 0;
	return capabilities_set(&have) == 0;
}

static void child_run(const struct guest_files_plan *plan, int report)
{
	struct pollfd alive = {.fd = pidfd_open(plan->pid, 0), .events = POLLIN};
	const char *fault;
	char path[64];
	int root;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)plan->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (alive.fd < 0 || root < 0) {
		say_fault(report, errno == EACCES || errno == EPERM
		                          ? "this daemon may not look into the process"
		                          : "the process is gone");
		return;
	}
	fault = plan->caller.uid == 0 ? become_its_root(plan->pid) : NULL;
	if (!keep_few_rights())
		fault = "this daemon cannot give up its rights first";
	/* The pidfd stands for the process; it lives, so the pid was its own all the time. */
	if (!is_same_process(plan) || poll(&alive, 1, 0) != 0)
		say_fault(report, "the process is gone");
	else if (is_own_root(root))
		say_fault(report, "it is the host's own, which is left alone");
	else if (fault)
		say_fault(report, fault);
	else
		guest_files_install(root, plan, report);
}

static void child(const struct guest_files_plan *plan, int report)
{
	struct rlimit bytes = {GUEST_FILE_MAX * 2, GUEST_FILE_MAX * 2},
	              time = {GUEST_FILES_MS / 1000, GUEST_FILES_MS / 1000};
	sigset_t none;

	/* A child that hangs for ever keeps its descriptors open: it must hold none of the
	 * daemon's, whose lock and sockets others may take over. */
	if ((report != REPORT_FD && dup2(report, REPORT_FD) < 0) ||
	        close_range(REPORT_FD + 1, ~0u, 0) < 0)
		_exit(1);
	report = REPORT_FD;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &bytes);
	setrlimit(RLIMIT_CPU, &time);
	if (plan->caller.uid != 0 && identity_become(&plan->caller) != 0)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_run(plan, report);
	_exit(0);
}

/* The parent. */

/* Appends to out the lines that begin with sign, without it, escaped. */
static void pick(struct slice report, char sign, struct buf *out)
{
	char line[1024];

	while (report.n > 0) {
		ptrdiff_t end = slice_find_byte(report, '\n');
		size_t n = end < 0 ? report.n : (size_t)end;

		if (n > 1 && report.p[0] == sign) {
			slice_escape_controls(slice_of(report.p + 1, n - 1), line, sizeof(line));
			(void)buf_printf(out, "%s\n", line);
		}
		n += end >= 0;
		report = slice_of(report.p + n, report.n - n);
	}
}

static const char *as_string(struct buf *b)
{
	return buf_append(b, "", 1) == 0 ? (const char *)buf_bytes(b) : "";
}

static void finish(struct guest_files *files, const char *fault)
{
	struct buf written, faults;

	loop_io_close(&files->exit);
	loop_timer_cancel(&files->timer);
	buf_init(&written, GUEST_REPORT_MAX * 2);
	buf_init(&faults, GUEST_REPORT_MAX * 2);
	pick(buf_slice(&files->report), '+', &written);
	pick(buf_slice(&files->report), '-', &faults);
	if (fault)
		(void)buf_printf(&faults, "%s\n", fault);
	struct guest_files_report report = {as_string(&written), as_string(&faults)};
	files->done(files->context, &report); /* may free files */
	buf_fini(&written);
	buf_fini(&faults);
}

/* The pipe holds the whole report: it is larger than the limit, and the child never waits. */
static void read_report(struct guest_files *files)
{
	uint8_t *room = buf_reserve(&files->report, GUEST_REPORT_MAX);
	ssize_t n = room ? read(files->pipe, room, GUEST_REPORT_MAX) : -1;

	if (n > 0)
		buf_commit(&files->report, (size_t)n);
}

static bool reap(struct guest_files *files)
{
	if (files->pid && waitpid(files->pid, NULL, WNOHANG) == files->pid)
		files->pid = 0;
	return files->pid == 0;
}

/* The helper_child module reaps it when it is dead. */
static void leave(struct guest_files *files)
{
	loop_io_close(&files->exit);
	helper_child_leave(files->loop, files->pid, files->pidfd, HELPER_CHILD_NOBODY);
	files->pid = 0;
	files->pidfd = -1;
}

static void on_exit_of_child(struct loop_io *io, unsigned events)
{
	struct guest_files *files = container_of(io, struct guest_files, exit);

	(void)events;
	if (!reap(files))
		return;
	read_report(files);
	finish(files, files->killed ? "the file system: it does not answer" : NULL);
}

static void on_time(struct loop_timer *timer)
{
	struct guest_files *files = container_of(timer, struct guest_files, timer);

	if (!files->killed) {
		files->killed = true;
		kill(files->pid, SIGKILL);
		loop_timer_set(timer, REAP_MS);
		return;
	}
	leave(files);
	read_report(files);
	finish(files, "the file system: it does not answer");
}

static int start(struct guest_files *files, const struct guest_files_plan *plan)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	files->pipe = fds[0];
	files->pid = fork();
	if (files->pid == 0)
		child(plan, fds[1]);
	close(fds[1]);
	if (files->pid < 0) {
		files->pid = 0;
		return -errno;
	}
	files->pidfd = pidfd_open(files->pid, 0);
	return files->pidfd < 0 ? -errno : 0;
}

int guest_files_write(struct loop *loop, const struct guest_files_plan *plan,
        void (*done)(void *context, const struct guest_files_report *report), void *context,
        struct guest_files **out)
{
	struct guest_files *files = calloc(1, sizeof(*files));
	int rc;

	if (!files)
		return -ENOMEM;
	files->loop = loop;
	files->pidfd = files->pipe = -1;
	files->done = done;
	files->context = context;
	buf_init(&files->report, GUEST_REPORT_MAX);
	rc = loop_timer_open(loop, &files->timer, on_time);
	if (!rc)
		rc = start(files, plan);
	if (!rc)
		rc = loop_io_open_level(
		        loop, &files->exit, files->pidfd, LOOP_READ, on_exit_of_child);
	if (rc) {
		guest_files_free(files);
		return rc;
	}
	loop_timer_set(&files->timer, GUEST_FILES_MS);
	*out = files;
	return 0;
}

void guest_files_free(struct guest_files *files)
{
	if (!files)
		return;
	loop_io_close(&files->exit);
	loop_timer_close(&files->timer);
	if (files->pid) {
		kill(files->pid, SIGKILL);
		if (!reap(files) && files->pidfd >= 0)
			leave(files);
	}
	if (files->pidfd >= 0)
		close(files->pidfd);
	if (files->pipe >= 0)
		close(files->pipe);
	buf_fini(&files->report);
	free(files);
}
