/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic names of a sandbox as a file: made, copied for a clone, looked for, removed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/shared_names.h"
#include "supervisor/sandbox/names_file.h"

#define LIMIT 16384

static char folder[] = "/tmp/test_names.XXXXXX";
static int dir = -1;

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_names.XXXXXX");
	assert_non_null(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
	(void)state;
	for (uint64_t id = 1; id < 5; id++)
		names_file_remove(dir, id);
	close(dir);
	return rmdir(folder);
}

static void put(struct shared_names *names, const char *name, uint32_t *index)
{
	assert_int_equal(shared_names_claim(names, index), 0);
	shared_names_put(names, *index, slice_from_string(name), 5);
}

static struct shared_names open_names(uint64_t id)
{
	struct shared_names names;
	bool damaged;

	assert_int_equal(shared_names_open(&names, names_file_open(dir, id, LIMIT, &damaged)), 0);
	assert_false(damaged);
	return names;
}

static off_t blocks_of(uint64_t id)
{
	char name[17];
	struct stat st;

	snprintf(name, sizeof(name), "%016llx", (unsigned long long)id);
	assert_int_equal(fstatat(dir, name, &st, 0), 0);
	return st.st_blocks;
}

static void a_copy_has_the_names_of_then(void **state)
{
	struct shared_names names = open_names(1), copy;
	char name[SHARED_NAME_MAX];
	uint32_t first, far = 0;
	int64_t asked_ms;

	(void)state;
	put(&names, "api.lab.test", &first);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(shared_names_claim(&names, &far), 0);
	shared_names_put(&names, far, SLICE("far.lab.test"), 6);
	assert_int_equal(names_file_copy(dir, 1, 2), 0);
	assert_true(names_file_exists(dir, 2));
	shared_names_put(&names, first, SLICE("later.lab.test"), 7);
	copy = open_names(2);
	assert_int_equal(shared_names_get(&copy, first, name, &asked_ms), 12);
	assert_memory_equal(name, "api.lab.test", 12);
	assert_int_equal(shared_names_get(&copy, far, name, &asked_ms), 12);
	assert_memory_equal(name, "far.lab.test", 12);
	assert_int_equal(shared_names_count(&copy), shared_names_count(&names));
	/* Unused names take no memory there either. */
	assert_true(blocks_of(2) * 512 < (off_t)shared_names_bytes(LIMIT) / 4);
	shared_names_close(&names);
	shared_names_close(&copy);
}

static void what_is_not_there_is_no_failure(void **state)
{
	(void)state;
	assert_int_equal(names_file_copy(dir, 3, 4), 0);
	assert_false(names_file_exists(dir, 4));
	names_file_remove(dir, 4);
}

static void what_is_damaged_is_not_copied(void **state)
{
	int fd = openat(dir, "0000000000000003", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(write(fd, "short", 5), 5);
	close(fd);
	assert_int_equal(names_file_copy(dir, 3, 4), 0);
	assert_false(names_file_exists(dir, 4));
}

static void nothing_is_copied_over_another(void **state)
{
	struct shared_names one = open_names(1), two = open_names(2);
	char name[SHARED_NAME_MAX];
	int64_t asked_ms;
	uint32_t index;

	(void)state;
	put(&two, "two.lab.test", &index);
	assert_int_equal(names_file_copy(dir, 1, 2), -EEXIST);
	assert_int_equal(shared_names_get(&two, index, name, &asked_ms), 12);
	shared_names_close(&one);
	shared_names_close(&two);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {T(a_copy_has_the_names_of_then),
	        T(what_is_not_there_is_no_failure), T(what_is_damaged_is_not_copied),
	        T(nothing_is_copied_over_another)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
