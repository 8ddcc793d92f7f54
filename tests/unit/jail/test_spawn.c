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
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/jail/spawn.h"

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
	char byte;

	if (fcntl(3, F_GETFD) != 0) /* there, and stays over an exec */
		return 1;
	for (int fd = 4; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			return 2;
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

static void start_and_look(int errors)
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
	pid = spawn_program(name, argv, pair[1], errors, &pidfd);
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

/* Whoever types at a terminal is not read by a role. */
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
	assert_int_equal(spawn_program("true", argv, 0, -1, &pidfd), -ENOENT);
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
	assert_int_equal(spawn_program(strrchr(path, '/') + 1, argv, 0, -1, &pidfd), -ENOEXEC);
	unlink(path);
	assert_int_equal(pidfd, -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_program_gets_its_control_descriptor_and_nothing_else),
	        cmocka_unit_test(stderr_may_be_another),
	        cmocka_unit_test(a_terminal_is_for_writing_only),
	        cmocka_unit_test(names_are_never_paths_nor_searched),
	        cmocka_unit_test(what_cannot_be_executed_is_an_error_and_no_process),
	};

	if (argc == 2 && strcmp(argv[1], "child") == 0)
		return child_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
