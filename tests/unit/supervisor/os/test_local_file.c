/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are known to be local, and all others, which are not an error but give no descriptor
 * either. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/os/local_file.h"

static char dir[64], path[256], other[256];
static bool alone; /* in a mount namespace of this program's own */

static const char *at(char out[256], const char *name)
{
	snprintf(out, 256, "%s/%s", dir, name);
	return out;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(at(path, name), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/vethguard-local-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(mkdir(at(path, "folder"), 0755), 0);
	put("folder/file", "text");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	umount2(at(path, "mount"), MNT_DETACH);
	snprintf(command, sizeof(command), "rm -r --one-file-system %s", dir);
	return system(command) == 0 ? 0 : -1;
}

/* What opening name gives: 0 and the text of the file, or an error. */
static int look(const char *name, char text[16])
{
	int fd = local_file_open(name[0] == '/' ? name : at(path, name));
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, 15);
	text[n > 0 ? n : 0] = 0;
	close(fd);
	return 0;
}

static void assert_text(const char *name)
{
	char text[16] = "";

	assert_int_equal(look(name, text), 0);
	assert_string_equal(text, "text");
}

static int fault(const char *name)
{
	char text[16];

	return look(name, text);
}

static void what_is_local(void **state)
{
	(void)state;
	assert_text("folder/file");
	assert_text("folder//./file");
	assert_text("folder/../folder/file");
	assert_int_equal(symlink("file", at(path, "folder/link")), 0);
	assert_text("folder/link");
	snprintf(other, sizeof(other), "%s/folder", dir);
	assert_int_equal(symlink(other, at(path, "absolute")), 0);
	assert_text("absolute/file");
}

static bool is_own(const char *name)
{
	bool real = true;
	int fd = local_file_find_real(name, &real);

	if (fd >= 0)
		close(fd);
	else
		assert_false(real);
	return real;
}

/* A path with a link, a dot or two slashes is not the file's own. */
static void whose_path_it_is(void **state)
{
	static const char *const others[] = {"folder//file", "folder/./file",
	        "folder/../folder/file", "folder/file/", "folder/", "folder/.", "folder/..",
	        "folder/link", "by/file", "none", "folder/none", "folder/file/none", NULL};

	(void)state;
	assert_int_equal(symlink("file", at(path, "folder/link")), 0);
	assert_int_equal(symlink("folder", at(path, "by")), 0);
	assert_int_equal(symlink("loop", at(path, "loop")), 0);
	assert_true(is_own(at(path, "folder/file")));
	assert_true(is_own(at(path, "folder")));
	for (const char *const *o = others; *o; o++)
		assert_false(is_own(at(path, *o)));
	assert_false(is_own(at(path, "loop")));
	assert_false(is_own("folder/file"));
	assert_false(is_own(""));
	assert_false(is_own("/"));
	assert_false(is_own("//"));
	assert_false(is_own("/proc/self/status"));
	assert_int_equal(mkdir(at(path, "..a"), 0755), 0);
	assert_int_equal(mkdir(at(path, ".b"), 0755), 0);
	assert_true(is_own(at(path, "..a")));
	assert_true(is_own(at(path, ".b")));
}

static void what_is_no_file(void **state)
{
	(void)state;
	assert_int_equal(fault("nothing"), -ENOENT);
	assert_int_equal(fault("nothing/file"), -ENOENT);
	assert_int_equal(fault("folder/file/more"), -ENOTDIR);
	assert_int_equal(fault("folder"), -EINVAL);
	assert_int_equal(mkfifo(at(path, "fifo"), 0600), 0);
	assert_int_equal(fault("fifo"), -EINVAL); /* nobody waits for a writer */
	int fd = local_file_find(at(path, "folder"));
	assert_true(fd >= 0);
	close(fd);
}

/* The child tells what these are. */
static void what_cannot_be_known(void **state)
{
	char deep[2 * NAME_MAX];

	(void)state;
	assert_int_equal(local_file_open("folder/file"), LOCAL_FILE_UNKNOWN);
	assert_int_equal(local_file_open(""), LOCAL_FILE_UNKNOWN);
	assert_int_equal(symlink("loop", at(path, "loop")), 0);
	assert_int_equal(fault("loop"), LOCAL_FILE_UNKNOWN);
	assert_int_equal(fault("/proc/self/status"), LOCAL_FILE_UNKNOWN);
	snprintf(other, sizeof(other), "/proc/self/root%s/folder/file", dir);
	assert_int_equal(fault(other), LOCAL_FILE_UNKNOWN);
	memset(deep, 'x', sizeof(deep));
	deep[0] = '/';
	deep[sizeof(deep) - 1] = 0;
	assert_int_equal(fault(deep), -ENAMETOOLONG);
}

static void need_mounts(const char *type, const char *options)
{
	if (!alone)
		skip();
	assert_int_equal(mkdir(at(path, "mount"), 0777), 0);
	if (mount("none", at(path, "mount"), type, 0, options) != 0) {
		print_message("no %s here\n", type);
		skip();
	}
}

static void another_mount(void **state)
{
	(void)state;
	need_mounts("tmpfs", "mode=0755");
	put("mount/file", "text");
	assert_text("mount/file");

	assert_int_equal(fault("mount/../mount/file"), LOCAL_FILE_UNKNOWN);
	assert_int_equal(symlink("mount/file", at(path, "link")), 0);
	assert_text("link");
	snprintf(other, sizeof(other), "%s/mount", dir);
	assert_int_equal(symlink(other, at(path, "absolute")), 0);
	assert_text("absolute/file");
	assert_int_equal(fault("mount/nothing"), -ENOENT);
	put("bound", "other");
	snprintf(other, sizeof(other), "%s/mount/file", dir);
	assert_int_equal(mount(other, at(path, "bound"), NULL, MS_BIND, NULL), 0);
	assert_text("bound");
	assert_int_equal(umount2(at(path, "bound"), MNT_DETACH), 0);
}

/* One step, from the root directory; and up to where a mount ends. */
static void looking_and_going_up(void **state)
{
	struct stat st, above;
	int fd, next;

	(void)state;
	need_mounts("tmpfs", "mode=0755");
	assert_int_equal(mkdir(at(other, "mount/folder"), 0711), 0);
	assert_int_equal(local_file_look(at(path, "folder"), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(local_file_look(at(path, "none"), &st), -ENOENT);
	assert_int_equal(local_file_look(other, &st), -EXDEV);

	fd = local_file_find(other);
	assert_true(fd >= 0);
	next = local_file_above(fd);
	assert_true(next >= 0);
	assert_int_equal(stat(at(path, "mount"), &st), 0);
	assert_int_equal(fstat(next, &above), 0);
	assert_int_equal(st.st_ino, above.st_ino);
	assert_int_equal(local_file_above(next), -EXDEV);
	close(fd);
	close(next);
	fd = local_file_find("/");
	next = local_file_above(fd);
	assert_int_equal(fstat(next, &above), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, above.st_ino);
	close(fd);
	close(next);
}

/* A link of somebody else's in a folder for everybody: the kernel is to decide. */
static void a_strangers_link(void **state)
{
	(void)state;
	need_mounts("tmpfs", "mode=0755");
	put("mount/file", "text");
	assert_int_equal(mkdir(at(path, "all"), 0777), 0);
	assert_int_equal(chmod(path, 01777), 0);
	assert_int_equal(symlink("../mount/file", at(path, "all/own")), 0);
	assert_int_equal(symlink("../mount/file", at(path, "all/theirs")), 0);
	assert_int_equal(lchown(path, 61000, 61000), 0);
	assert_int_equal(fault("all/theirs"), LOCAL_FILE_UNKNOWN);
	assert_int_equal(fault("all/own"), LOCAL_FILE_UNKNOWN); /* "..", over a mount */
	snprintf(other, sizeof(other), "%s/mount/file", dir);
	assert_int_equal(symlink(other, at(path, "all/absolute")), 0);
	assert_text("all/absolute");
	assert_int_equal(lchown(path, 61000, 61000), 0);
	assert_int_equal(fault("all/absolute"), LOCAL_FILE_UNKNOWN);
}

/* Of a type that is not among those known to be harmless, and what is below it. */
static void a_mount_that_is_not_local(void **state)
{
	(void)state;
	need_mounts("proc", NULL);
	assert_int_equal(fault("mount/version"), LOCAL_FILE_UNKNOWN);
	assert_int_equal(fault("mount/nothing"), LOCAL_FILE_UNKNOWN);
	assert_int_equal(symlink("mount", at(path, "link")), 0);
	assert_int_equal(fault("link/version"), LOCAL_FILE_UNKNOWN);
	assert_int_equal(local_file_find(at(path, "mount")), LOCAL_FILE_UNKNOWN);
}

/* A mount that is not of our namespace has no line that tells its type. */
static void a_mount_that_is_gone(void **state)
{
	int folder;

	(void)state;
	need_mounts("tmpfs", "mode=0755");
	put("mount/file", "text");
	folder = open(at(path, "mount"), O_PATH | O_DIRECTORY);
	assert_true(folder >= 0);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	snprintf(other, sizeof(other), "/proc/self/fd/%d/file", folder);
	assert_int_equal(fault(other), LOCAL_FILE_UNKNOWN);
	close(folder);
}

static void many_links(void **state)
{
	char name[32], target[64];

	(void)state;
	need_mounts("tmpfs", "mode=0755");
	put("mount/file", "text");
	snprintf(other, sizeof(other), "%s/mount/file", dir);
	assert_int_equal(symlink(other, at(path, "l0")), 0);
	for (unsigned i = 1; i <= 41; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		snprintf(target, sizeof(target), "l%u", i - 1);
		assert_int_equal(symlink(target, at(path, name)), 0);
	}
	assert_text("l39"); /* 40 links */
	assert_int_equal(fault("l41"), LOCAL_FILE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(what_is_local, setup, teardown),
	        cmocka_unit_test_setup_teardown(whose_path_it_is, setup, teardown),
	        cmocka_unit_test_setup_teardown(what_is_no_file, setup, teardown),
	        cmocka_unit_test_setup_teardown(what_cannot_be_known, setup, teardown),
	        cmocka_unit_test_setup_teardown(another_mount, setup, teardown),
	        cmocka_unit_test_setup_teardown(looking_and_going_up, setup, teardown),
	        cmocka_unit_test_setup_teardown(a_strangers_link, setup, teardown),
	        cmocka_unit_test_setup_teardown(a_mount_that_is_not_local, setup, teardown),
	        cmocka_unit_test_setup_teardown(a_mount_that_is_gone, setup, teardown),
	        cmocka_unit_test_setup_teardown(many_links, setup, teardown),
	};

	alone = getuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
	        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
