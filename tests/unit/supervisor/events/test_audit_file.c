/* SPDX-License-Identifier: Apache-2.0 */
/* Which files can be an audit file, and that no line can be changed later. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/events/audit_file.h"
#include "../somebodys_files.h"

static void audit_file_is_made_and_appended_to(void **state)
{
	struct stat st;
	int fd = audit_file_open(&user, path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "one\n", 4), 4);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(write(fd, "two\n", 4), 4);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 8);
	assert_int_equal(st.st_uid, user.uid);
	assert_int_equal(st.st_mode & 07777, 0600);
	close(fd);
}

/* Neither descriptor can be mapped so that old lines could be changed. */
static void audit_file_cannot_be_mapped_for_writing(void **state)
{
	int fds[2] = {audit_file_open(&user, path)};
	char back[8] = "";

	(void)state;
	assert_int_equal(write(fds[0], "one\n", 4), 4);
	fds[1] = audit_file_reader(fds[0]);
	assert_true(fds[1] >= 0);
	assert_int_equal(pread(fds[1], back, sizeof(back), 0), 4);
	assert_int_equal(pread(fds[0], back, sizeof(back), 0), -1);
	assert_int_equal(write(fds[1], "two\n", 4), -1);
	for (size_t i = 0; i < 2; i++) {
		assert_true(
		        mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0) == MAP_FAILED);
		close(fds[i]);
	}
}

static void audit_file_directories_are_not_made(void **state)
{
	char deep[192];

	(void)state;
	snprintf(deep, sizeof(deep), "%s/audit.log", path);
	assert_int_equal(audit_file_open(&user, deep), -ENOENT);
	assert_int_equal(access(path, F_OK), -1);
}

static void audit_file_through_a_link_or_a_fifo(void **state)
{
	(void)state;
	make(other, user.uid, 0600);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(audit_file_open(&user, path), -ELOOP);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(chown(path, user.uid, user.gid), 0);
	assert_int_equal(audit_file_open(&user, path), -EINVAL);
	assert_int_equal(audit_file_open(&user, dir), -EISDIR);
	assert_int_equal(audit_file_open(&user, "/dev/null"), -EINVAL);
}

static void audit_file_where_the_user_may_not_write(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	make(path, 0, 0600);
	assert_int_equal(audit_file_open(&user, path), -EACCES);
	assert_int_equal(audit_file_open(&user, "/etc/vethguard-test-audit"), -EACCES);
	assert_int_equal(access("/etc/vethguard-test-audit", F_OK), -1);
}

static void the_configurations_audit_file(void **state)
{
	char through[192];

	(void)state;
	int fd = audit_file_open_own(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(audit_file_open_own(other), -ELOOP);
	unlink(other);
	assert_int_equal(symlink(dir, other), 0);
	snprintf(through, sizeof(through), "%s/secret", other);
	assert_int_equal(audit_file_open_own(through), -ELOOP);
	snprintf(through, sizeof(through), "%s/missing/audit.log", dir);
	assert_int_equal(audit_file_open_own(through), -ENOENT);
	assert_int_equal(audit_file_open_own("/dev/null"), -EINVAL);
}

static void no_audit_file_is_memory(void **state)
{
	int fd = audit_file_open(&user, "");

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(audit_file_is_made_and_appended_to),
	        T(audit_file_cannot_be_mapped_for_writing),
	        T(audit_file_directories_are_not_made),
	        T(audit_file_through_a_link_or_a_fifo),
	        T(audit_file_where_the_user_may_not_write),
	        T(the_configurations_audit_file),
	        T(no_audit_file_is_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
