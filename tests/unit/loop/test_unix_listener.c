/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unix_listener: the socket that a service manager passes, and everything that it may pass by
 * mistake. Each case is a process of its own, where descriptor 3 and those after it are what the
 * manager made of them, and ends with what it found.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/loop/unix_listener.h"

#define FIRST 3
#define NO_GROUP ((gid_t)-1)

enum { TAKEN, NONE, REFUSED, REFUSED_ELSE, NOT_CLEAN };

static struct {
	char directory[64], path[96], long_path[UNIX_LISTENER_PATH_MAX + 1];
	gid_t group; /* that may use it */
} f;

static int set_up(void **state)
{
	size_t n;

	(void)state;
	snprintf(f.directory, sizeof(f.directory), "/tmp/vethguard-listener-XXXXXX");
	assert_non_null(mkdtemp(f.directory));
	snprintf(f.path, sizeof(f.path), "%s/control.sock", f.directory);
	n = (size_t)snprintf(f.long_path, sizeof(f.long_path), "%s/", f.directory);
	memset(f.long_path + n, 'x', UNIX_LISTENER_PATH_MAX - n);
	f.group = NO_GROUP;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(f.path);
	unlink(f.long_path);
	rmdir(f.directory);
	return 0;
}

/* What the manager makes: a descriptor. */

static int bound(int family, int type, const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(family, type, 0);

	assert_true(fd >= 0);
	memcpy(name.sun_path, path, strlen(path));
	assert_return_code(bind(fd, (struct sockaddr *)&name, sizeof(name)), errno);
	return fd;
}

static int listening_as(const char *path, mode_t mode)
{
	int fd = bound(AF_UNIX, SOCK_STREAM, path);

	assert_return_code(listen(fd, 1), errno);
	assert_return_code(chmod(path, mode), errno);
	return fd;
}

static int control_socket(void)
{
	return listening_as(f.path, 0600);
}

/* What a child says of it. */

static bool forgotten(void)
{
	return !getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES") &&
	       !getenv("LISTEN_PIDFDID");
}

static int inherit(const char *path, const char *word)
{
	struct unix_listener l;
	const char *why = NULL;
	int error = unix_listener_inherit(&l, path, f.group, &why);

	if (!forgotten())
		return NOT_CLEAN;
	if (error == -ENOENT)
		return l.fd == -1 && !why ? NONE : NOT_CLEAN;
	if (error == -EINVAL)
		return l.fd != -1 ? NOT_CLEAN : strstr(why, word) ? REFUSED : REFUSED_ELSE;
	if (error || l.fd != FIRST || l.ours || fcntl(FIRST, F_GETFD) != FD_CLOEXEC ||
	        !(fcntl(FIRST, F_GETFL) & O_NONBLOCK))
		return NOT_CLEAN;
	unix_listener_close(&l);
	return access(path, F_OK) == 0 && fcntl(FIRST, F_GETFD) < 0 ? TAKEN : NOT_CLEAN;
}

/* pid NULL: the child's own. fds: of this process, closed here; they are the first ones there. */
static int passed(const char *pid, const char *count, const int *fds, int n, const char *path,
        const char *word)
{
	pid_t child = fork();
	int status, moved[4];
	char own[16];

	assert_true(child >= 0 && n <= 4);
	if (child == 0) {
		for (int i = 0; i < n; i++)
			moved[i] = fcntl(fds[i], F_DUPFD, 40);
		for (int i = 0; i < n; i++)
			dup2(moved[i], FIRST + i);
		close_range(FIRST + (unsigned)n, ~0u, 0);
		snprintf(own, sizeof(own), "%d", (int)getpid());
		setenv("LISTEN_PID", pid ? pid : own, 1);
		setenv("LISTEN_FDS", count, 1);
		setenv("LISTEN_FDNAMES", "vethguardd.socket", 1);
		setenv("LISTEN_PIDFDID", "1", 1);
		_exit(inherit(path, word));
	}
	for (int i = 0; i < n; i++)
		close(fds[i]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int passed_one(int fd, const char *word)
{
	return passed(NULL, "1", &fd, 1, f.path, word);
}

static void test_taken(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(passed_one(control_socket(), ""), TAKEN);
	fd = listening_as(f.long_path, 0600); /* the longest path has no NUL behind it */
	assert_int_equal(passed(NULL, "1", &fd, 1, f.long_path, ""), TAKEN);
}

/* To connect needs the right to write. */
static void test_modes(void **state)
{
	static const struct {
		mode_t mode;
		gid_t owner, group;
		uid_t user;
		const char *refused; /* NULL: it is taken */
	} cases[] = {
	        {0660, 0, NO_GROUP, 0, NULL},
	        {0664, 0, NO_GROUP, 0, NULL},
	        {0600, 4711, NO_GROUP, 0, NULL},
	        {0660, 4711, 4711, 0, NULL},
	        {0666, 0, NO_GROUP, 0, "everybody"},
	        {0777, 0, NO_GROUP, 0, "everybody"},
	        {0602, 4711, 4711, 0, "everybody"},
	        {0660, 4711, NO_GROUP, 0, "another group"},
	        {0660, 4711, 4712, 0, "another group"},
	        {0620, 4711, 4712, 0, "another group"},
	        {0660, 4711, 4711, 4711, "another user"},
	        {0600, 0, NO_GROUP, 4711, "another user"},
	};

	(void)state;
	if (geteuid() != 0)
		skip(); /* only root gives files away */
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int fd = listening_as(f.path, cases[i].mode);

		assert_return_code(chown(f.path, cases[i].user, cases[i].owner), errno);
		f.group = cases[i].group;
		assert_int_equal(passed_one(fd, cases[i].refused ? cases[i].refused : ""),
		        cases[i].refused ? REFUSED : TAKEN);
		unlink(f.path);
	}
}

static void test_everybody_by_anybody(void **state)
{
	(void)state;
	assert_int_equal(passed_one(listening_as(f.path, 0662), "everybody"), REFUSED);
}

static void test_nothing_passed(void **state)
{
	struct unix_listener l;
	const char *why = NULL;
	int fd;

	(void)state;
	assert_int_equal(unix_listener_inherit(&l, f.path, NO_GROUP, &why), -ENOENT);
	fd = control_socket();
	assert_int_equal(passed("1", "1", &fd, 1, f.path, ""), NONE); /* to somebody else */
	setenv("LISTEN_FDS", "1", 1);                                 /* to nobody */
	assert_int_equal(unix_listener_inherit(&l, f.path, NO_GROUP, &why), -ENOENT);
	assert_true(forgotten());
	setenv("LISTEN_PID", "me", 1); /* nothing to nobody */
	assert_int_equal(unix_listener_inherit(&l, f.path, NO_GROUP, &why), -ENOENT);
	assert_true(forgotten());
	assert_null(why);
}

static void test_no_numbers(void **state)
{
	static const char *const counts[] = {"", "0", "-1", "+1", " 1", "1 ", "1x", "0x1", "one",
	        "2147483648", "18446744073709551617"};
	static const char *const pids[] = {"", "-1", "me", "1x", "4294967297"};
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		fd = control_socket();
		assert_int_equal(passed(NULL, counts[i], &fd, 1, f.path, "not a number"), REFUSED);
		unlink(f.path);
	}
	for (size_t i = 0; i < sizeof(pids) / sizeof(*pids); i++) {
		fd = control_socket();
		assert_int_equal(passed(pids[i], "1", &fd, 1, f.path, "not a number"), REFUSED);
		unlink(f.path);
	}
}

static void test_too_many(void **state)
{
	int fds[2] = {control_socket(), listening_as(f.long_path, 0600)};

	(void)state;
	assert_int_equal(passed(NULL, "2", fds, 2, f.path, "more than one"), REFUSED);
	unlink(f.path);
	fds[0] = control_socket();
	assert_int_equal(passed(NULL, "1000000", fds, 1, f.path, "more than one"), REFUSED);
}

static void test_none_there(void **state)
{
	(void)state;
	assert_int_equal(passed(NULL, "1", NULL, 0, f.path, "listening Unix stream"), REFUSED);
}

static void test_wrong_kind(void **state)
{
	int pipes[2], pair[2], fd;

	(void)state;
	assert_int_equal(
	        passed_one(bound(AF_UNIX, SOCK_DGRAM, f.path), "listening Unix stream"), REFUSED);
	unlink(f.path);
	fd = bound(AF_UNIX, SOCK_SEQPACKET, f.path);
	assert_return_code(listen(fd, 1), errno);
	assert_int_equal(passed_one(fd, "listening Unix stream"), REFUSED);
	unlink(f.path);
	assert_int_equal(
	        passed_one(bound(AF_UNIX, SOCK_STREAM, f.path), "listening Unix stream"), REFUSED);
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	assert_int_equal(passed_one(pair[0], "listening Unix stream"), REFUSED);
	close(pair[1]);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_return_code(listen(fd, 1), errno); /* at a port that the kernel chooses */
	assert_int_equal(passed_one(fd, "listening Unix stream"), REFUSED);
	assert_return_code(pipe(pipes), errno);
	close(pipes[1]);
	assert_int_equal(passed_one(pipes[0], "listening Unix stream"), REFUSED);
	assert_int_equal(
	        passed_one(open(f.directory, O_RDONLY | O_DIRECTORY), "listening Unix stream"),
	        REFUSED);
}

static void test_wrong_path(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd;

	(void)state;
	assert_int_equal(passed_one(listening_as(f.long_path, 0600), "another path"), REFUSED);
	/* An abstract socket of that name has no file whose mode could keep anybody out. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(name.sun_path + 1, f.path, strlen(f.path));
	assert_return_code(
	        bind(fd, (struct sockaddr *)&name,
	                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(f.path))),
	        errno);
	assert_return_code(listen(fd, 1), errno);
	assert_int_equal(passed_one(fd, "another path"), REFUSED);
}

static void test_file_in_its_place(void **state)
{
	int fd = control_socket();

	(void)state;
	unlink(f.path);
	assert_int_equal(passed_one(fd, "gone"), REFUSED);
	fd = control_socket();
	unlink(f.path);
	assert_return_code(symlink(f.directory, f.path), errno);
	assert_int_equal(passed_one(fd, "gone"), REFUSED);
	unlink(f.path);
	fd = control_socket();
	unlink(f.path);
	close(open(f.path, O_CREAT | O_RDWR, 0600));
	assert_int_equal(passed_one(fd, "gone"), REFUSED);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        CASE(test_taken),
	        CASE(test_modes),
	        CASE(test_everybody_by_anybody),
	        CASE(test_nothing_passed),
	        CASE(test_no_numbers),
	        CASE(test_too_many),
	        CASE(test_none_there),
	        CASE(test_wrong_kind),
	        CASE(test_wrong_path),
	        CASE(test_file_in_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
