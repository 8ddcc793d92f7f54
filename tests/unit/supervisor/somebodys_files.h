/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of a user and two paths in it. As root, the user is somebody else, which is the
 * interesting case; as an ordinary user, the user itself.
 */
#ifndef VETHGUARD_TESTS_UNIT_SUPERVISOR_SOMEBODYS_FILES_H
#define VETHGUARD_TESTS_UNIT_SUPERVISOR_SOMEBODYS_FILES_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/os/identity.h"

#define SOMEBODY 61000

static char dir[64], path[128], other[128];
static struct identity user;

static inline int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/vethguard-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	user = (struct identity){
	        getuid() ? getuid() : SOMEBODY, getuid() ? getgid() : SOMEBODY, false, true};
	assert_int_equal(chown(dir, user.uid, user.gid), 0);
	snprintf(path, sizeof(path), "%s/secret", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	rmdir(path);
	rmdir(dir);
	return 0;
}

static inline void make(const char *name, uid_t uid, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "value", 5), 5);
	assert_int_equal(fchown(fd, uid, (gid_t)-1), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
