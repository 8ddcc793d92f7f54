/* SPDX-License-Identifier: Apache-2.0 */
/* Who can change a file through the directories above it, if one load examines each directory
 * once: what an earlier look, other rights or a long path must not hide. */
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
#include <unistd.h>

#include "supervisor/config/private.h"
#include "supervisor/os/local_file.h"

static char root[64], above[96], inner[128], one[160], other[160];
static struct path_looks looks;
static const struct identity nobody = {.uid = 65534, .gid = 65534};

static void make_directory(const char *path)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(chmod(path, 0755), 0);
}

static void put(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
}

static int start(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/path-writers-XXXXXX");
	assert_non_null(mkdtemp(root));
	make_directory(root);
	snprintf(above, sizeof(above), "%s/above", root);
	snprintf(inner, sizeof(inner), "%s/inner", above);
	snprintf(one, sizeof(one), "%s/one", inner);
	snprintf(other, sizeof(other), "%s/other", inner);
	make_directory(above);
	make_directory(inner);
	put(one);
	put(other);
	looks = (struct path_looks){0};
	return 0;
}

static int finish(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

struct call {
	const char *path;
	struct path_looks *looks;
	struct policy_writers found;
};

static int add(void *context)
{
	struct call *call = context;
	bool is_real;
	int fd = local_file_find_real(call->path, &is_real);

	settings_add_path_writers(fd, call->path, is_real, call->looks, &call->found);
	if (fd >= 0)
		close(fd);
	return 0;
}

static struct policy_writers writers_of(const char *path, struct path_looks *kept)
{
	struct call call = {.path = path, .looks = kept};

	add(&call);
	return call.found;
}

/* With the rights of a user who has none. */
static struct policy_writers writers_for_nobody(const char *path)
{
	struct call call = {.path = path, .looks = &looks};

	if (geteuid() != 0)
		skip();
	assert_int_equal(identity_run(&nobody, add, &call), 0);
	return call.found;
}

static void assert_open(struct policy_writers found, const char *place)
{
	assert_int_equal(found.who, POLICY_WRITER_EVERYBODY);
	assert_string_equal(found.place, place);
}

static void files_share_their_directories(void **state)
{
	(void)state;
	assert_int_equal(writers_of(one, &looks).who, POLICY_WRITER_NONE);
	const size_t count = looks.count;

	assert_int_equal(count, 5); /* inner, above, root, /tmp and / */
	assert_int_equal(writers_of(other, &looks).who, POLICY_WRITER_NONE);
	assert_int_equal(looks.count, count);
}

/* An open directory is told for each file below it. */
static void an_open_directory_is_told_each_time(void **state)
{
	(void)state;
	assert_int_equal(chmod(above, 0777), 0);
	assert_open(writers_of(one, &looks), above);
	assert_open(writers_of(other, &looks), above);
	assert_open(writers_of(other, NULL), above);
}

/* The looks of a load are that load's: the next one begins without any. */
static void the_next_load_looks_again(void **state)
{
	struct path_looks next = {0};

	(void)state;
	assert_int_equal(writers_of(one, &looks).who, POLICY_WRITER_NONE);
	assert_int_equal(chmod(above, 0777), 0);
	assert_open(writers_of(one, &next), above);
	assert_open(writers_of(one, NULL), above);
}

/* One user may look where another may not: a refusal for one is not a refusal for root. */
static void other_rights_look_again(void **state)
{
	(void)state;
	assert_int_equal(chmod(inner, 0777), 0);
	assert_int_equal(chmod(above, 0700), 0);
	writers_for_nobody(one); /* does not get to inner */
	assert_open(writers_of(one, &looks), inner);
	writers_for_nobody(one);
	for (size_t i = 0; i < looks.count; i++) /* and root's looks are not nobody's */
		if (strcmp(looks.items[i].path, inner) == 0)
			assert_int_equal(looks.items[i].rc, -EACCES);
	assert_open(writers_of(one, &looks), inner);
}

static void a_path_that_is_too_long_is_looked_at_each_time(void **state)
{
	char directory[sizeof(inner) + PATH_LOOK_MAX + 1], file[sizeof(directory) + 5];

	(void)state;
	snprintf(directory, sizeof(directory), "%s/%0*d", inner, PATH_LOOK_MAX, 0);
	snprintf(file, sizeof(file), "%s/file", directory);
	make_directory(directory);
	put(file);
	assert_int_equal(writers_of(file, &looks).who, POLICY_WRITER_NONE);
	for (size_t i = 0; i < looks.count; i++)
		assert_true(strlen(looks.items[i].path) < PATH_LOOK_MAX);
	assert_int_equal(chmod(directory, 0777), 0);
	assert_open(writers_of(file, &looks), directory);
}

static void more_directories_than_are_kept(void **state)
{
	char directory[160], file[192];

	(void)state;
	for (unsigned i = 0; i < PATH_LOOKS_MAX + 4; i++) {
		snprintf(directory, sizeof(directory), "%s/%u", inner, i);
		snprintf(file, sizeof(file), "%s/file", directory);
		make_directory(directory);
		put(file);
		assert_int_equal(writers_of(file, &looks).who, POLICY_WRITER_NONE);
	}
	assert_int_equal(looks.count, PATH_LOOKS_MAX);
	assert_int_equal(chmod(directory, 0777), 0);
	assert_open(writers_of(file, &looks), directory);
}

/* The path may lead by a link into a directory that others can change. */
static void both_ways_to_the_file_count(void **state)
{
	char link[160], file[192];

	(void)state;
	snprintf(link, sizeof(link), "%s/link", root);
	snprintf(file, sizeof(file), "%s/one", link);
	assert_int_equal(symlink(inner, link), 0);
	assert_int_equal(writers_of(one, &looks).who, POLICY_WRITER_NONE);
	assert_int_equal(writers_of(file, &looks).who, POLICY_WRITER_NONE);
	looks = (struct path_looks){0};
	assert_int_equal(chmod(above, 0777), 0);
	assert_open(writers_of(file, &looks), above);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(files_share_their_directories, start, finish),
	        cmocka_unit_test_setup_teardown(an_open_directory_is_told_each_time, start, finish),
	        cmocka_unit_test_setup_teardown(the_next_load_looks_again, start, finish),
	        cmocka_unit_test_setup_teardown(other_rights_look_again, start, finish),
	        cmocka_unit_test_setup_teardown(
	                a_path_that_is_too_long_is_looked_at_each_time, start, finish),
	        cmocka_unit_test_setup_teardown(more_directories_than_are_kept, start, finish),
	        cmocka_unit_test_setup_teardown(both_ways_to_the_file_count, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
