/* SPDX-License-Identifier: Apache-2.0 */
/* listen_socket: which paths it takes, which files it never replaces, with whose rights, and what
 * is removed. */
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
#include <unistd.h>

#include "supervisor/os/listen_socket.h"

#define OTHER 61234

static char folder[64], why[256];

static struct identity own(void)
{
	return (struct identity){.uid = geteuid(), .gid = getegid(), .asked = true};
}

static struct listen_socket at(const char *name)
{
	struct listen_socket s = {.mode = 0600, .uid = geteuid(), .gid = getegid()};

	snprintf(s.path, sizeof(s.path), "%s/%s", folder, name);
	return s;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/listen-XXXXXX");
	assert_non_null(mkdtemp(folder));
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static int open_it(struct listen_socket *s, bool again)
{
	const struct identity id = own();

	return listen_socket_open(s, &id, again, why, sizeof(why));
}

static int remove_it(const struct listen_socket *s)
{
	const struct identity id = own();

	return listen_socket_remove(s, &id);
}

static bool is_there(const struct listen_socket *s)
{
	struct stat st;

	return lstat(s->path, &st) == 0;
}

static int connect_to(const struct listen_socket *s)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	memcpy(to.sun_path, s->path, strlen(s->path));
	rc = connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static void test_paths(void **state)
{
	static const char *const bad[] = {
	        "", "x", "./x", "/", "/tmp/", "/tmp/.", "/tmp/..", "/a\nb", "/\x7f", "/\x1b[31m"};
	char longest[LISTEN_PATH_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_non_null(listen_path_objection(bad[i]));
	assert_null(listen_path_objection("/x"));
	assert_null(listen_path_objection("/run/a b/\xc3\xa9.sock"));
	memset(longest, 'x', sizeof(longest));
	longest[0] = longest[LISTEN_PATH_MAX - LISTEN_NAME_MAX - 1] = '/';
	longest[LISTEN_PATH_MAX] = 0;
	assert_null(listen_path_objection(longest));
	longest[LISTEN_PATH_MAX] = 'x';
	longest[LISTEN_PATH_MAX + 1] = 0;
	assert_non_null(listen_path_objection(longest));
	longest[LISTEN_PATH_MAX] = 0;
	longest[LISTEN_PATH_MAX - LISTEN_NAME_MAX - 1] = 'x';
	longest[LISTEN_PATH_MAX - LISTEN_NAME_MAX - 2] = '/';
	assert_non_null(listen_path_objection(longest)); /* the name is too long now */
}

static void test_it_listens_with_its_mode(void **state)
{
	struct listen_socket s = at("s");
	struct stat st;
	int fd;

	(void)state;
	umask(077); /* has no effect */
	s.mode = 0666;
	fd = open_it(&s, false);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(umask(022), 077);
	assert_int_equal(lstat(s.path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0666);
	assert_int_equal(st.st_ino, s.inode);
	assert_int_equal(st.st_dev, s.device);
	assert_int_equal(connect_to(&s), 0);
	assert_int_equal(remove_it(&s), 0);
	assert_false(is_there(&s));
	assert_int_equal(remove_it(&s), 0); /* nothing is there */
	close(fd);
}

static void make_other(const struct listen_socket *s, int what)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd;

	memcpy(to.sun_path, s->path, strlen(s->path));
	switch (what) {
	case 0:
		fd = open(s->path, O_CREAT | O_WRONLY, 0600);
		break;
	case 1:
		fd = mkdir(s->path, 0700);
		break;
	case 2:
		fd = symlink("/etc/passwd", s->path);
		break;
	case 3:
		fd = symlink("/nonexistent/x", s->path);
		break;
	case 4:
		fd = mkfifo(s->path, 0600);
		break;
	default: /* a stale socket */
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	}
	assert_true(fd >= 0);
	if (fd > 0)
		close(fd);
}

static void test_never_over_another_file(void **state)
{
	(void)state;
	for (int what = 0; what < 6; what++) {
		const struct identity id = own();
		char name[16];

		snprintf(name, sizeof(name), "o%d", what);
		struct listen_socket s = at(name);
		struct stat before, after;

		make_other(&s, what);
		lstat(s.path, &before);
		assert_int_equal(listen_socket_check(&s, &id, why, sizeof(why)), -EADDRINUSE);
		assert_int_equal(open_it(&s, false), -EADDRINUSE);
		assert_non_null(strstr(why, "exists already"));
		assert_int_equal(s.inode, 0);
		s.inode = before.st_ino + 1; /* the one that was made is another */
		s.device = before.st_dev;
		assert_int_equal(remove_it(&s), 0);
		assert_int_equal(open_it(&s, true), -EADDRINUSE);
		assert_int_equal(lstat(s.path, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(before.st_mode, after.st_mode);
		if (what == 5)
			continue;
		s.inode = 0; /* unknown: only a stale socket is taken for it */
		assert_int_equal(remove_it(&s), 0);
		assert_int_equal(open_it(&s, true), -EADDRINUSE);
		s.inode = before.st_ino; /* the inode's number was given to a file that is not a
		                            socket */
		assert_int_equal(remove_it(&s), 0);
		assert_true(is_there(&s));
	}
}

static void test_its_own_stale_socket(void **state)
{
	struct listen_socket s = at("stale");
	ino_t before;

	(void)state;
	close(open_it(&s, false));
	before = s.inode;
	assert_true(is_there(&s));
	assert_int_equal(connect_to(&s), -ECONNREFUSED);
	assert_int_equal(open_it(&s, false), -EADDRINUSE);
	s.inode = before;
	close(open_it(&s, true));
	assert_int_equal(connect_to(&s), -ECONNREFUSED);
	s.inode = 0; /* whoever has died knew it not yet */
	int fd = open_it(&s, true);
	assert_true(fd >= 0);
	assert_int_equal(connect_to(&s), 0);

	struct listen_socket same = s;

	same.inode = 0; /* somebody listens: it is not stale */
	assert_int_equal(remove_it(&same), 0);
	assert_int_equal(open_it(&same, true), -EADDRINUSE);
	assert_int_equal(connect_to(&s), 0);
	assert_int_equal(remove_it(&s), 0);
	assert_false(is_there(&s));
	close(fd);
}

/* The number of an inode may be given to another file at once. */
static void test_another_file_with_its_number(void **state)
{
	struct listen_socket s = at("again"), other;

	(void)state;
	close(open_it(&s, false));
	if (!s.born_ns) {
		print_message("skipped: this file system does not tell when a file was made\n");
		skip();
	}
	other = s;
	other.born_ns--;
	assert_int_equal(remove_it(&other), 0);
	assert_true(is_there(&s));
	assert_int_equal(open_it(&other, true), -EADDRINUSE);
	assert_int_equal(remove_it(&s), 0);
	assert_false(is_there(&s));
}

static void test_directories(void **state)
{
	struct listen_socket missing = at("no/s"), file = at("f/s"), remote = at("s");
	const struct identity id = own();
	char path[128];

	(void)state;
	assert_int_equal(open_it(&missing, false), -ENOENT);
	assert_non_null(strstr(why, "/no: No such file"));
	assert_int_equal(remove_it(&missing), 0);
	snprintf(path, sizeof(path), "%s/f", folder);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(listen_socket_check(&file, &id, why, sizeof(why)), -ENOTDIR);
	assert_int_equal(open_it(&file, false), -ENOTDIR);
	snprintf(remote.path, sizeof(remote.path), "/proc/s");
	assert_int_equal(open_it(&remote, false), -EREMOTE);
	assert_non_null(strstr(why, "local file system"));
}

static void test_whose_rights(void **state)
{
	const struct identity other = {.uid = OTHER, .gid = OTHER, .asked = true};
	struct listen_socket s = at("s"), theirs = at("open/s");
	struct stat st;
	char path[128];
	int fd;

	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root has other users' rights\n");
		skip();
	}
	chmod(folder, 0755);
	snprintf(path, sizeof(path), "%s/open", folder);
	mkdir(path, 0755);
	assert_int_equal(chown(path, OTHER, OTHER), 0);
	assert_int_equal(listen_socket_open(&s, &other, false, why, sizeof(why)), -EACCES);
	assert_false(is_there(&s));
	theirs.uid = theirs.gid = 0; /* they give nothing to root */
	assert_int_equal(listen_socket_open(&theirs, &other, false, why, sizeof(why)), -EPERM);
	assert_non_null(strstr(why, "cannot belong to user 0"));
	assert_false(is_there(&theirs));
	theirs.uid = theirs.gid = OTHER;
	fd = listen_socket_open(&theirs, &other, false, why, sizeof(why));
	assert_true(fd >= 0);
	assert_int_equal(lstat(theirs.path, &st), 0);
	assert_int_equal(st.st_uid, OTHER);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	assert_int_equal(geteuid(), 0);
	close(fd);
	assert_int_equal(chown(path, 0, 0), 0); /* the directory is nobody's of theirs now */
	assert_int_equal(listen_socket_remove(&theirs, &other), -EACCES);
	assert_true(is_there(&theirs));
	assert_int_equal(remove_it(&theirs), 0);
	assert_false(is_there(&theirs));
	s.uid = s.gid = OTHER; /* root gives theirs to others */
	fd = open_it(&s, false);
	assert_true(fd >= 0);
	assert_int_equal(lstat(s.path, &st), 0);
	assert_int_equal(st.st_uid, OTHER);
	assert_int_equal(st.st_gid, OTHER);
	assert_int_equal(remove_it(&s), 0);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void test_vsock(void **state)
{
	const struct identity id = own(), other = {.uid = OTHER, .gid = OTHER, .asked = true};
	struct listen_socket s = {0}, same = {0};
	int fd;

	(void)state;
	assert_non_null(listen_socket_name(&s, "vsock:2:31281"));
	assert_int_equal(s.vsock.cid, 0);
	assert_null(listen_socket_name(&s, "vsock:7:31281"));
	assert_null(listen_socket_name(&same, "vsock:8:31281"));
	fd = listen_socket_open(&s, &id, false, why, sizeof(why));
	if (fd < 0) {
		assert_true(fd == -EAFNOSUPPORT || fd == -ENODEV);
		assert_non_null(strstr(why, "no vsock"));
		printf("skipped: this kernel has no vsock\n");
		return;
	}
	assert_int_equal(listen_socket_check(&same, &id, why, sizeof(why)), -EADDRINUSE);
	assert_non_null(strstr(why, "a port of its own"));
	assert_int_equal(listen_socket_open(&same, &id, true, why, sizeof(why)), -EADDRINUSE);
	assert_int_equal(listen_socket_remove(&s, &id), 0);
	close(fd);
	assert_int_equal(listen_socket_check(&same, &other, why, sizeof(why)), -EPERM);
	assert_non_null(strstr(why, "only root"));
	assert_int_equal(listen_socket_check(&same, &id, why, sizeof(why)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_paths),
	        TEST(test_it_listens_with_its_mode),
	        TEST(test_never_over_another_file),
	        TEST(test_its_own_stale_socket),
	        TEST(test_another_file_with_its_number),
	        TEST(test_directories),
	        TEST(test_whose_rights),
	        TEST(test_vsock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
