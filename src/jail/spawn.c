/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a role: a fresh executable instead of a fork that goes on, so that no role inherits
 * memory of another. The child is made a session of its own, because the terminal's Ctrl-C is meant
 * for the guarded command and not for the guard. Failure to execute comes back through a pipe that
 * a successful execve closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/jail/spawn.h"

#ifndef VETHGUARD_LIBEXECDIR
#define VETHGUARD_LIBEXECDIR "/usr/local/libexec/vethguard"
#endif
#define SPAWN_CONTROL_FD 3
#define SPAWN_REPORT_FD 4
#define SPAWN_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static int spawn_join(char *out, size_t out_size, const char *dir, size_t dir_n, const char *name)
{
	int n = snprintf(out, out_size, "%.*s/%s", (int)dir_n, dir, name);
	struct stat st;

	if (n < 0 || (size_t)n >= out_size)
		return -ENOENT;
	return stat(out, &st) == 0 && S_ISREG(st.st_mode) && access(out, X_OK) == 0 ? 0 : -ENOENT;
}

int spawn_find(const char *name, char *out, size_t out_size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *slash;

	if (name[0] == '\0' || strchr(name, '/') != NULL)
		return -ENOENT;
	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		if (slash != NULL &&
		        spawn_join(out, out_size, self, (size_t)(slash - self), name) == 0)
			return 0;
	}
	return spawn_join(out, out_size, VETHGUARD_LIBEXECDIR, strlen(VETHGUARD_LIBEXECDIR), name);
}

/* name=value for LANG and TERM of the caller, into env from *count on. */
static void spawn_environment(char store[2][256], char *env[4])
{
	static const char *const names[] = {"LANG", "TERM"};
	static char path[] = SPAWN_PATH;
	size_t count = 0;

	env[count++] = path;
	for (size_t i = 0; i < 2; i++) {
		const char *value = getenv(names[i]);
		int n = value == NULL ? -1 : snprintf(store[i], 256, "%s=%s", names[i], value);

		if (n > 0 && n < 256)
			env[count++] = store[i];
	}
	env[count] = NULL;
}

static void spawn_reset_signals(void)
{
	struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP)
			sigaction(s, &normal, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves fd away from the numbers that are about to be taken. */
static int spawn_lift(int fd)
{
	return fd > SPAWN_REPORT_FD ? fd : fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_REPORT_FD + 1);
}

/* A terminal is commonly open for reading too, and a role is in no session that the terminal would
 * keep from it: what a person types is not the role's to read. */
static void spawn_write_only_terminal(void)
{
	int fd = isatty(STDERR_FILENO) == 1
	                 ? open("/proc/self/fd/2", O_WRONLY | O_NOCTTY | O_CLOEXEC)
	                 : -1;

	if (fd >= 0) {
		dup2(fd, STDERR_FILENO);
		close(fd);
	}
}

static void spawn_child(const char *path, char *const argv[], int control, int errors, int report)
{
	char store[2][256];
	char *env[4];
	int null, error;

	spawn_environment(store, env);
	spawn_reset_signals();
	setsid();
	if (errors >= 0 && dup2(spawn_lift(errors), STDERR_FILENO) < 0)
		_exit(127);
	spawn_write_only_terminal();
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	control = spawn_lift(control);
	report = spawn_lift(report);
	null = null < 0 ? null : spawn_lift(null);
	/* The output is the guarded command's: a role has nothing to write there, and would keep
	 * whoever reads it waiting. Only control loses close-on-exec: dup2 clears it on the new
	 * number. */
	if (null >= 0 && control >= 0 && report >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO &&
	        dup2(null, STDOUT_FILENO) == STDOUT_FILENO &&
	        dup2(control, SPAWN_CONTROL_FD) == SPAWN_CONTROL_FD &&
	        dup3(report, SPAWN_REPORT_FD, O_CLOEXEC) == SPAWN_REPORT_FD) {
		close_range(SPAWN_REPORT_FD + 1, ~0U, 0);
		report = SPAWN_REPORT_FD;
		execve(path, argv, env);
	}
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

pid_t spawn_program(const char *name, char *const argv[], int control, int errors, int *pidfd)
{
	char path[PATH_MAX];
	int report[2], error = 0;
	ssize_t n;
	pid_t pid;

	if (spawn_find(name, path, sizeof(path)) != 0)
		return -ENOENT;
	if (pipe2(report, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		spawn_child(path, argv, control, errors, report[1]);
	error = pid < 0 ? errno : 0;
	close(report[1]);
	if (pid > 0) {
		do
			n = read(report[0], &error, sizeof(error));
		while (n < 0 && errno == EINTR);
		if (n == 0)
			error = 0;
		if (error == 0 && (*pidfd = pidfd_open(pid, 0)) < 0)
			error = errno;
	}
	close(report[0]);
	if (error != 0 && pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return error != 0 ? -error : pid;
}
