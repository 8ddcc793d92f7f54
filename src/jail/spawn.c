/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a role: a fresh executable instead of a fork that goes on, so that no role inherits memory
 * of another. The child gets a session of its own, because the terminal's Ctrl-C is meant for the
 * guarded command and not for the guard.
 *
 * A supervisor of a thousand sandboxes has some hundred megabytes and thirteen thousand
 * descriptors; copying the kernel's records of them took longer than the program's own start. So
 * until it executes, the child runs in the caller's memory while the caller waits (as with
 * vfork(2)). Its table of descriptors consists of the caller's first few only (close_range(2),
 * CLOSE_RANGE_UNSHARE); what the child needs is put among those before. If the child cannot
 * execute, it leaves the reason in that memory.
 *
 * A held program is executed through its descriptor. The kernel cannot give an interpreter a
 * descriptor that closes on execve, so a script in place of a program is executed by its path.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/barrier.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/process.h"
#include "vethguard/jail/spawn.h"

#ifndef VETHGUARD_LIBEXECDIR
#define VETHGUARD_LIBEXECDIR "/usr/local/libexec/vethguard"
#endif
#define SPAWN_CONTROL_FD 3
#define SPAWN_PROGRAM_FD 4
#define SPAWN_HELD_MAX 8
#define SPAWN_STACK_BYTES (64 * 1024)
#define SPAWN_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* -EACCES: it may exist, but this process is kept out. */
static int spawn_join(char *out, size_t out_size, const char *dir, size_t dir_n, const char *name)
{
	int n = snprintf(out, out_size, "%.*s/%s", (int)dir_n, dir, name);
	struct stat st;

	if (n < 0 || (size_t)n >= out_size)
		return -ENOENT;
	if (stat(out, &st) != 0)
		return errno == EACCES ? -EACCES : -ENOENT;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	return access(out, X_OK) == 0 ? 0 : -EACCES;
}

/* The path of this executable, as it was at the first call; empty: it could not be read. */
static char spawn_self[PATH_MAX];

void spawn_remember_self(void)
{
	ssize_t n = 0;

	if (spawn_self[0] == '\0')
		n = readlink("/proc/self/exe", spawn_self, sizeof(spawn_self) - 1);
	if (n > 0)
		spawn_self[n] = '\0';
}

int spawn_find(const char *name, char *out, size_t out_size)
{
	const char *self = spawn_self, *slash;
	int rc;

	spawn_remember_self();
	if (name[0] == '\0' || strchr(name, '/'))
		return -ENOENT;
	if (self[0] != '\0') {
		slash = strrchr(self, '/');
		rc = !slash ? -ENOENT
		            : spawn_join(out, out_size, self, (size_t)(slash - self), name);
		if (rc != -ENOENT)
			return rc; /* one that is closed to us is not replaced by another build's */
	}
	return spawn_join(out, out_size, VETHGUARD_LIBEXECDIR, strlen(VETHGUARD_LIBEXECDIR), name);
}

void spawn_explain(const char *name, int error, uid_t uid, char *out, size_t out_size)
{
	char path[PATH_MAX], closed[PATH_MAX];
	struct stat st = {0};

	if (error == -ENOENT)
		snprintf(out, out_size,
		        "the program %s was not found beside this one; was vethguard moved away "
		        "from the others?",
		        name);
	else if (error != -EACCES || spawn_find(name, path, sizeof(path)) != -EACCES)
		snprintf(out, out_size, "the program %s cannot be started: %s", name,
		        strerror(-error));
	else if (barrier_find(path, closed, sizeof(closed), &st))
		snprintf(out, out_size,
		        "the program %s is out of reach: user id %u may not enter the directory "
		        "%s (mode %04o)",
		        name, (unsigned)uid, closed, (unsigned)(st.st_mode & 07777));
	else
		snprintf(out, out_size, "user id %u may not execute the program %s (%s)",
		        (unsigned)uid, path, strerror(EACCES));
}

static struct {
	const char *name;
	int fd;
} spawn_held[SPAWN_HELD_MAX];

/* -1: it is not held. */
static int spawn_held_fd(const char *name)
{
	for (size_t i = 0; i < SPAWN_HELD_MAX; i++)
		if (spawn_held[i].name && strcmp(spawn_held[i].name, name) == 0)
			return spawn_held[i].fd;
	return -1;
}

int spawn_hold(const char *name)
{
	char path[PATH_MAX];
	size_t i = 0;
	int fd, rc;

	if (spawn_held_fd(name) >= 0)
		return 0;
	while (i < SPAWN_HELD_MAX && spawn_held[i].name)
		i++;
	if (i == SPAWN_HELD_MAX)
		return -ENOSPC;
	rc = spawn_find(name, path, sizeof(path));
	if (rc != 0)
		return rc;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	spawn_held[i].fd = fd;
	spawn_held[i].name = name;
	return 0;
}

/* Fills env with PATH and the caller's LANG and TERM. */
static void spawn_environment(char store[2][256], char *env[4])
{
	static const char *const names[] = {"LANG", "TERM"};
	static char path[] = SPAWN_PATH;
	size_t count = 0;

	env[count++] = path;
	for (size_t i = 0; i < 2; i++) {
		const char *value = getenv(names[i]);
		int n = !value ? -1 : snprintf(store[i], 256, "%s=%s", names[i], value);

		if (n > 0 && n < 256)
			env[count++] = store[i];
	}
	env[count] = NULL;
}

/* Low descriptors of this process; they refer to /dev/null between two starts. */
enum { LOW_NULL, LOW_CONTROL, LOW_ERRORS, LOW_MOUNTS, LOW_PROGRAM, LOW_COUNT };

struct spawn {
	const char *path;
	char *const *argv, *const *env;
	bool has_errors, has_mounts, has_program;
	int error; /* why it was not executed; 0: it was */
};

static int low[LOW_COUNT];
static unsigned low_end; /* one beyond them; 0: they do not exist yet */

static int spawn_keep_low(void)
{
	int null, rc = 0;
	size_t n = 0;

	if (low_end)
		return 0;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	for (; n < LOW_COUNT && !rc; n++) {
		low[n] = fcntl(null, F_DUPFD_CLOEXEC, SPAWN_CONTROL_FD + 1);
		rc = low[n] < 0 ? -errno : 0;
	}
	close(null);
	if (!rc)
		low_end = (unsigned)low[LOW_COUNT - 1] + 1;
	while (rc && n--)
		close(low[n]);
	return rc;
}

/* fd -1: puts /dev/null there. */
static int spawn_put_low(int fd, size_t where)
{
	return dup3(fd < 0 ? low[LOW_NULL] : fd, low[where], O_CLOEXEC) < 0 ? -errno : 0;
}

/* The following functions run in the child, on a stack that AddressSanitizer does not know. */
#define IN_CHILD __attribute__((no_sanitize_address))

/* A terminal is usually open for reading too, and a role is in no session that the terminal would
 * keep from reading; but a role must not read what a person types. */
IN_CHILD static void spawn_write_only_terminal(void)
{
	int fd = isatty(STDERR_FILENO) == 1
	                 ? open("/proc/self/fd/2", O_WRONLY | O_NOCTTY | O_CLOEXEC)
	                 : -1;

	if (fd >= 0) {
		dup2(fd, STDERR_FILENO);
		close(fd);
	}
}

/* Call this after the other low descriptors were used, because its place may be that of another. */
IN_CHILD static bool spawn_place_program(const struct spawn *s)
{
	return !s->has_program || low[LOW_PROGRAM] == SPAWN_PROGRAM_FD ||
	       dup3(low[LOW_PROGRAM], SPAWN_PROGRAM_FD, O_CLOEXEC) == SPAWN_PROGRAM_FD;
}

/* stdout belongs to the guarded command: a role writes nothing there, and would keep its reader
 * waiting. */
IN_CHILD static bool spawn_descriptors(const struct spawn *s)
{
	if (s->has_errors && dup2(low[LOW_ERRORS], STDERR_FILENO) < 0)
		return false;
	/* works without it, only slower: a role copies the mounts it finds */
	if (s->has_mounts)
		(void)setns(low[LOW_MOUNTS], CLONE_NEWNS);
	spawn_write_only_terminal();
	return dup2(low[LOW_NULL], STDIN_FILENO) == STDIN_FILENO &&
	       dup2(low[LOW_NULL], STDOUT_FILENO) == STDOUT_FILENO &&
	       dup2(low[LOW_CONTROL], SPAWN_CONTROL_FD) == SPAWN_CONTROL_FD &&
	       spawn_place_program(s) &&
	       close_range(SPAWN_CONTROL_FD + 1 + s->has_program, ~0U, 0) == 0;
}

/* Returns only if it fails. */
IN_CHILD static void spawn_execute(const struct spawn *s)
{
	if (s->has_program)
		execveat(SPAWN_PROGRAM_FD, "", s->argv, s->env, AT_EMPTY_PATH);
	if (!s->has_program || errno == ENOENT)
		execve(s->path, s->argv, s->env);
}

/* Changes nothing before the table of descriptors is the child's own. */
IN_CHILD static int spawn_child(void *context)
{
	struct spawn *s = context;

	if (close_range(low_end, ~0U, CLOSE_RANGE_UNSHARE) == 0) {
		process_reset_signals();
		setsid();
		if (spawn_descriptors(s))
			spawn_execute(s);
	}
	s->error = errno;
	return 127;
}

/* Returns the pid of the child, which has executed or ended by then, or -errno. Signals are
 * blocked, so that none finds the child with the caller's handlers. */
static pid_t spawn_clone(struct spawn *s, int *pidfd)
{
	static _Alignas(64) char stack[SPAWN_STACK_BYTES];
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(spawn_child, stack + sizeof(stack),
	        CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PIDFD | SIGCHLD, s, pidfd);
	if (pid < 0)
		pid = -errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

pid_t spawn_program(
        const char *name, char *const argv[], int control, int errors, int mounts, int *pidfd)
{
	char path[PATH_MAX], store[2][256], *env[4];
	struct spawn s = {.path = path,
	        .argv = argv,
	        .env = env,
	        .has_errors = errors >= 0,
	        .has_mounts = mounts >= 0};
	int rc, made = -1, program = spawn_held_fd(name);
	pid_t pid;

	s.has_program = program >= 0;
	rc = spawn_find(name, path, sizeof(path));
	if (rc) {
		if (!s.has_program)
			return rc;
		path[0] = '\0'; /* a held program needs none */
	}
	spawn_environment(store, env);
	rc = spawn_keep_low();
	if (!rc)
		rc = spawn_put_low(control, LOW_CONTROL);
	if (!rc)
		rc = spawn_put_low(errors, LOW_ERRORS);
	if (!rc)
		rc = spawn_put_low(mounts, LOW_MOUNTS);
	if (!rc)
		rc = spawn_put_low(program, LOW_PROGRAM);
	pid = rc ? rc : spawn_clone(&s, &made);
	if (low_end) {
		spawn_put_low(-1, LOW_CONTROL);
		spawn_put_low(-1, LOW_ERRORS);
		spawn_put_low(-1, LOW_MOUNTS);
		spawn_put_low(-1, LOW_PROGRAM);
	}
	if (pid > 0 && s.error) {
		waitpid(pid, NULL, 0);
		close(made);
		return -s.error;
	}
	if (pid > 0)
		*pidfd = made;
	return pid;
}
