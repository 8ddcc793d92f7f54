/* SPDX-License-Identifier: Apache-2.0 */
/* Which files may be a credential: their owners, who may change them, and links to them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/config/sources.h"
#include "../somebodys_files.h"

static char error_text[SOURCE_ERROR_MAX];

static int opened(void)
{
	error_text[0] = 0;
	int fd = source_file_open(&user, path, true, error_text);

	if (fd >= 0)
		close(fd);
	else
		assert_true(error_text[0]);
	return fd >= 0;
}

static void own_file(void **state)
{
	(void)state;
	make(path, user.uid, 0600);
	assert_true(opened());
	/* The process is itself again. */
	int fd = open(getuid() ? path : "/etc/shadow", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
}

static void others_may_not_exchange_it(void **state)
{
	(void)state;
	make(path, user.uid, 0620);
	assert_false(opened());
	assert_non_null(strstr(error_text, "can be written"));
	chmod(path, 0602);
	assert_false(opened());
	chmod(path, 0644);
	assert_true(opened());
}

static void what_is_no_regular_file(void **state)
{
	(void)state;
	assert_false(opened());
	assert_non_null(strstr(error_text, "No such file"));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(chown(path, user.uid, user.gid), 0);
	assert_false(opened()); /* and does not wait for a writer */
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, user.uid, user.gid), 0);
	assert_false(opened());
}

static void the_administrators_file(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	make(path, 0, 0600);
	assert_true(opened());
	user.lends = false; /* for a caller of the control API: its own rights and no others */
	assert_false(opened());
	user.lends = true;
	assert_int_equal(chmod(path, 0660), 0);
	assert_false(opened());
}

static void a_third_users_file(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	make(path, SOMEBODY + 1, 0644);
	assert_false(opened());
	assert_non_null(strstr(error_text, "belongs neither"));
	assert_int_equal(chmod(path, 0600), 0);
	assert_false(opened());
	assert_non_null(strstr(error_text, "does not belong to root"));
}

/* The attack that the order of opening is for. */
static void a_link_to_what_only_root_may_read(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	make(other, 0, 0600);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(lchown(path, user.uid, user.gid), 0);
	assert_false(opened());
	assert_non_null(strstr(error_text, "symbolic link"));
	/* To a file the user may read anyway, a link is fine. */
	assert_int_equal(chmod(other, 0644), 0);
	assert_true(opened());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(own_file),
	        T(others_may_not_exchange_it),
	        T(what_is_no_regular_file),
	        T(the_administrators_file),
	        T(a_third_users_file),
	        T(a_link_to_what_only_root_may_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
