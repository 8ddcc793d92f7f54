/* SPDX-License-Identifier: Apache-2.0 */
/* Named network namespaces, in a mount namespace of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "privileges.h"
#include "vethguard/adapter/netns_file.h"

static char directory[] = "/tmp/netns-file-XXXXXX";
static char path[PATH_MAX];

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/netns/one", directory);
	return 0;
}

static int clean(void **state)
{
	char folder[PATH_MAX];

	(void)state;
	netns_file_remove(path);
	snprintf(folder, sizeof(folder), "%s/netns", directory);
	rmdir(folder);
	return rmdir(directory);
}

static ino_t inode_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(name, &st), 0);
	return st.st_ino;
}

static void test_made_and_removed(void **state)
{
	(void)state;
	assert_int_equal(netns_file_make(path), 0);
	assert_int_not_equal(inode_of(path), inode_of("/proc/self/ns/net"));
	/* The other one is left as it is. */
	assert_int_equal(netns_file_make(path), -EEXIST);
	assert_int_not_equal(inode_of(path), inode_of("/proc/self/ns/net"));
	assert_int_equal(netns_file_remove(path), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(netns_file_remove(path), 0);
}

static void test_its_loopback_is_up(void **state)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;
	char text[16] = "";

	(void)state;
	assert_int_equal(netns_file_make(path), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(setns(fd, CLONE_NEWNET), 0);
	close(fd);
	fd = open("/proc/self/net/if_inet6", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) { /* a kernel with IPv6: ::1 is there once lo is up */
		assert_true(read(fd, text, sizeof(text) - 1) > 0);
		close(fd);
	}
	assert_int_equal(setns(own, CLONE_NEWNET), 0);
	close(own);
	assert_int_equal(netns_file_remove(path), 0);
}

static void test_a_file_that_is_none_of_ours(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(netns_file_make(path), 0);
	assert_int_equal(netns_file_remove(path), 0);
	fd = open(
	        path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600); /* of a process that died in between */
	close(fd);
	assert_int_equal(netns_file_make(path), -EEXIST);
	assert_int_equal(netns_file_remove(path), 0);
	assert_int_equal(netns_file_make("no-directory"), -ENAMETOOLONG);
	assert_int_equal(netns_file_make("/nonexistent/a/b"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_made_and_removed),
	        cmocka_unit_test(test_its_loopback_is_up),
	        cmocka_unit_test(test_a_file_that_is_none_of_ours),
	};

	if (!privileges_for_namespaces() || unshare(CLONE_NEWNS) < 0 ||
	        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		fprintf(stderr, "skipped: no network and mount namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, make, clean);
}
