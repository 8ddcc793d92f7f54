/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a program of this build: this test starts itself, as a child that looks at what it was
 * given. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail_child.h"
#include "vethguard/jail/spawn.h"

#define MANY 600 /* descriptors */

extern char **environ;

static const char *self_name(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(n > 0);
	path[n] = '\0';
	return strrchr(path, '/') + 1;
}

/* The started side: its findings as the exit status, 0 when all is as promised. */
static int child_main(void)
{
	struct stat out, null;
	sigset_t blocked;
	char byte;

	if (fcntl(3, F_GETFD) != 0) /* there, and stays over an exec */
		return 1;
	for (int fd = 4; fd < 2 * MANY; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			return 2;
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (int s = 1; s < SIGRTMIN; s++)
		if (sigismember(&blocked, s))
			return 11;
	if (getenv("SPAWN_SECRET") != NULL || getenv("PATH") == NULL)
		return 3;
	for (char **e = environ; *e != NULL; e++)
		if (strncmp(*e, "PATH=", 5) != 0 && strncmp(*e, "LANG=", 5) != 0 &&
		        strncmp(*e, "TERM=", 5) != 0)
			return 4;
	if (read(STDIN_FILENO, &byte, 1) != 0)
		return 5;
	if (fstat(STDOUT_FILENO, &out) != 0 || stat("/dev/null", &null) != 0 ||
	        out.st_rdev != null.st_rdev || !S_ISCHR(out.st_mode))
		return 8;
	if (isatty(STDERR_FILENO) && (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) != O_WRONLY)
		return 9;
	if (fstat(STDERR_FILENO, &out) == 0 && S_ISFIFO(out.st_mode) &&
	        write(STDERR_FILENO, "err", 3) != 3)
		return 10;
	if (getsid(0) != getpid())
		return 6;
	if (write(3, "hello", 5) != 5)
		return 7;
	return 0;
}

static void start_and_look_with(int errors, int mounts)
{
	char child[] = "child";
	char *argv[] = {NULL, child, NULL};
	char text[8];
	int pair[2], pidfd = -1, status;
	char name[NAME_MAX + 1];
	pid_t pid;

	snprintf(name, sizeof(name), "%s", self_name());
	argv[0] = name;
	setenv("SPAWN_SECRET", "value", 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_true(dup(0) >= 0); /* one that would leak */
	pid = spawn_program(name, argv, pair[1], errors, mounts, &pidfd);
	assert_true(pid > 0);
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(recv(pair[0], text, sizeof(text), 0), 5);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(pair[0]);
	close(pair[1]);
	close(pidfd);
}

/* 1: a namespace is pinned there. */
static int is_pin(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 ? fs.f_type == NSFS_MAGIC : -1;
}

static void start_and_look(int errors)
{
	start_and_look_with(errors, -1);
}

/* In a mount namespace of a child, so that the pin is nobody else's to see. */
static int lean(void *context)
{
	const char *at = context;
	char before[NAME_MAX] = "", inside[NAME_MAX] = "", outside[NAME_MAX] = "";
	int fd, mounts, n = 0;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
	        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return 77;
	fd = open(at, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || readlink("/proc/self/ns/mnt", before, sizeof(before) - 1) < 0 ||
	        mount("/proc/self/ns/net", at, NULL, MS_BIND, NULL) != 0)
		return 99;
	mounts = spawn_unpinned_mounts();
	n += mounts >= 0 && (fcntl(mounts, F_GETFD) & FD_CLOEXEC);
	n += readlink("/proc/self/ns/mnt", outside, sizeof(outside) - 1) > 0 &&
	     strcmp(before, outside) == 0; /* the caller stays */
	n += is_pin(at) == 1;
	start_and_look_with(-1, mounts);
	n += setns(mounts, CLONE_NEWNS) == 0;
	n += readlink("/proc/self/ns/mnt", inside, sizeof(inside) - 1) > 0 &&
	     strcmp(before, inside) != 0;
	n += is_pin(at) == 0;
	n += access("/proc/self/exe", F_OK) == 0; /* all else is there */
	return n;
}

static void a_lean_namespace_has_no_pins(void **state)
{
	char folder[] = "/tmp/vethguard-test-XXXXXX", at[sizeof(folder) + 16];
	int status;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(at, sizeof(at), "%s/a pin", folder); /* mountinfo escapes the space */
	status = in_child(lean, at);
	unlink(at);
	rmdir(folder);
	if (left_with(status, 77))
		skip();
	assert_true(left_with(status, 7));
}

static void a_program_gets_its_control_descriptor_and_nothing_else(void **state)
{
	(void)state;
	start_and_look(-1);
}

static void stderr_may_be_another(void **state)
{
	int errors[2];
	char text[16];

	(void)state;
	assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
	start_and_look(errors[1]);
	close(errors[1]);
	assert_int_equal(read(errors[0], text, sizeof(text)), 3);
	assert_memory_equal(text, "err", 3);
	close(errors[0]);
}

/* The descriptors that the child needs have higher numbers than those that it gets copies of. */
static void a_caller_may_have_many_descriptors_and_blocked_signals(void **state)
{
	int fds[MANY];
	sigset_t some, after;

	(void)state;
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigprocmask(SIG_BLOCK, &some, NULL);
	for (size_t i = 0; i < MANY; i++) {
		fds[i] = dup(0); /* would leak */
		assert_true(fds[i] >= 0);
	}
	start_and_look(-1);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(close(fds[i]), 0); /* ours are as they were */
	sigprocmask(SIG_UNBLOCK, &some, &after);
	assert_true(sigismember(&after, SIGUSR1));
	assert_false(sigismember(&after, SIGUSR2));
}

/* A role does not read what is typed at a terminal. */
static void a_terminal_is_for_writing_only(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), saved, slave;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master) | unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	assert_int_equal(dup2(slave, STDERR_FILENO), STDERR_FILENO);
	(void)state;
	start_and_look(-1);
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE, O_RDWR); /* ours is as it was */
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(slave);
	close(master);
}

static void names_are_never_paths_nor_searched(void **state)
{
	char argv0[] = "true";
	char *argv[] = {argv0, NULL};
	char path[PATH_MAX], tiny[4];
	int pidfd = -1;

	(void)state;
	assert_int_equal(spawn_find("sh", path, sizeof(path)), -ENOENT);
	assert_int_equal(spawn_find("/bin/sh", path, sizeof(path)), -ENOENT);
	assert_int_equal(spawn_find("../../../../../../bin/sh", path, sizeof(path)), -ENOENT);
	assert_int_equal(spawn_find("", path, sizeof(path)), -ENOENT);
	assert_int_equal(spawn_find(".", path, sizeof(path)), -ENOENT);
	assert_int_equal(spawn_find(self_name(), tiny, sizeof(tiny)), -ENOENT);
	assert_int_equal(spawn_find(self_name(), path, sizeof(path)), 0);
	assert_int_equal(spawn_program("true", argv, 0, -1, -1, &pidfd), -ENOENT);
	assert_int_equal(pidfd, -1);
}

static void what_cannot_be_executed_is_an_error_and_no_process(void **state)
{
	char path[PATH_MAX], argv0[] = "x";
	char *argv[] = {argv0, NULL};
	const char *slash;
	int fd, pidfd = -1;

	(void)state;
	assert_int_equal(spawn_find(self_name(), path, sizeof(path)), 0);
	slash = strrchr(path, '/');
	snprintf(path + (slash - path), sizeof(path) - (size_t)(slash - path),
	        "/spawn-not-a-program.%d", (int)getpid());
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd,
	                         "\x7f"
	                         "ELFnot",
	                         7),
	        7);
	close(fd);
	assert_int_equal(spawn_program(strrchr(path, '/') + 1, argv, 0, -1, -1, &pidfd), -ENOEXEC);
	unlink(path);
	assert_int_equal(pidfd, -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* A copy of this program is held open; replacing or removing the file changes nothing. */
static void a_held_program_stays_what_it_was(void **state)
{
	static char name[] = "held-XXXXXX";
	char path[PATH_MAX], command[2 * PATH_MAX + 64];
	char child[] = "child";
	char *argv[] = {name, child, NULL};
	char *slash, text[8];
	int pair[2], pidfd, status, fd;

	(void)state;
	assert_int_equal(spawn_hold("held-nowhere"), -ENOENT);
	assert_int_equal(spawn_find(self_name(), path, sizeof(path)), 0);
	slash = strrchr(path, '/');
	snprintf(command, sizeof(command), "%.*s/%s", (int)(slash - path), path, name);
	fd = mkstemp(command);
	assert_true(fd >= 0);
	close(fd);
	snprintf(name, sizeof(name), "%s", strrchr(command, '/') + 1);
	assert_true(strlen(command) < sizeof(path));
	memcpy(path, command, strlen(command) + 1);
	snprintf(command, sizeof(command), "cp /proc/%d/exe '%s' && chmod 700 '%s'", (int)getpid(),
	        path, path);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a path of our own */
	assert_int_equal(spawn_hold(name), 0);
	assert_int_equal(spawn_hold(name), 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		pid_t pid = spawn_program(name, argv, pair[1], -1, -1, &pidfd);
		assert_true(pid > 0);
		assert_int_equal(recv(pair[0], text, sizeof(text), 0), 5);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		close(pair[0]);
		close(pair[1]);
		close(pidfd);
		unlink(path);
		fd = round == 0 ? open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700) : -1;
		if (fd >= 0) {
			assert_int_equal(write(fd, "#!/bin/false\n", 13), 13);
			close(fd);
		}
	}
}

/* The started side of the next one: this program lies below a directory that its user may not
 * enter. What it says goes to stdout. */
static int barred_main(void)
{
	char argv0[] = "vethguardd", path[PATH_MAX], why[1024];
	char *argv[] = {argv0, NULL};
	int pidfd = -1;

	if (spawn_find("vethguardd", path, sizeof(path)) != -EACCES)
		return 1;
	if (spawn_hold("vethguardd") != -EACCES ||
	        spawn_program(argv0, argv, 0, -1, -1, &pidfd) != -EACCES || pidfd != -1)
		return 2;
	spawn_explain("vethguardd", -EACCES, 4711, why, sizeof(why));
	return printf("%s", why) > 0 && fflush(stdout) == 0 ? 0 : 3;
}

static void start_barred(const char *program, const char *folder, int out)
{
	char barred[] = "barred", *argv[] = {(char *)program, barred, NULL};
	int fd = open(program, O_PATH | O_CLOEXEC);

	dup2(out, STDOUT_FILENO);
	if (fd < 0 || chmod(folder, 0600) != 0)
		_exit(97);
	if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setresgid(65534, 65534, 65534) != 0 ||
	                              setresuid(65534, 65534, 65534) != 0))
		_exit(98);
	syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	_exit(99);
}

/* The cause is told, instead of that nothing was found. */
static void a_closed_directory_is_named(void **state)
{
	char folder[] = "/tmp/vethguard-test-XXXXXX", program[80], inner[64], command[2 * PATH_MAX];
	char text[1024] = "", expected[256];
	int out[2], status = -1;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(inner, sizeof(inner), "%s/in", folder);
	snprintf(program, sizeof(program), "%s/here", inner);
	snprintf(command, sizeof(command), "mkdir '%s' && cp /proc/%d/exe '%s' && chmod 755 '%s'",
	        inner, (int)getpid(), program, program);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a path of our own */
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		start_barred(program, folder, out[1]);
	close(out[1]);
	assert_true(read(out[0], text, sizeof(text) - 1) >= 0);
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	chmod(folder, 0700);
	unlink(program);
	rmdir(inner);
	rmdir(folder);
	assert_true(left_with(status, 0));
	snprintf(expected, sizeof(expected),
	        "the program vethguardd is out of reach: user id 4711 may not enter the directory "
	        "%s (mode 0600)",
	        folder);
	assert_string_equal(text, expected);
}

static void other_causes_are_told_as_they_are(void **state)
{
	char why[1024], tiny[8];

	(void)state;
	spawn_explain("vethguardd", -ENOENT, 0, why, sizeof(why));
	assert_non_null(strstr(why, "was not found beside this one"));
	spawn_explain("vethguardd", -EMFILE, 0, why, sizeof(why));
	assert_non_null(strstr(why, strerror(EMFILE)));
	assert_null(strstr(why, "not found"));
	spawn_explain(
	        "vethguardd", -EACCES, 0, why, sizeof(why)); /* of execve: no directory is closed */
	assert_null(strstr(why, "enter"));
	assert_non_null(strstr(why, strerror(EACCES)));
	spawn_explain("vethguardd", -ENOENT, 0, tiny, sizeof(tiny));
	assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_program_gets_its_control_descriptor_and_nothing_else),
	        cmocka_unit_test(stderr_may_be_another),
	        cmocka_unit_test(a_lean_namespace_has_no_pins),
	        cmocka_unit_test(a_caller_may_have_many_descriptors_and_blocked_signals),
	        cmocka_unit_test(a_terminal_is_for_writing_only),
	        cmocka_unit_test(names_are_never_paths_nor_searched),
	        cmocka_unit_test(what_cannot_be_executed_is_an_error_and_no_process),
	        cmocka_unit_test(a_held_program_stays_what_it_was),
	        cmocka_unit_test(a_closed_directory_is_named),
	        cmocka_unit_test(other_causes_are_told_as_they_are),
	};

	if (argc == 2 && strcmp(argv[1], "child") == 0)
		return child_main();
	if (argc == 2 && strcmp(argv[1], "barred") == 0)
		return barred_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
