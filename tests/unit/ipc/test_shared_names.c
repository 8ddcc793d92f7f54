/* SPDX-License-Identifier: Apache-2.0 */
/* shared_names: what one worker wrote another reads; whatever is in the memory, reading it is safe.
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/hash.h"
#include "vethguard/ipc/shared_names.h"

#define LIMIT 8

static int memory;

static int set_up(void **state)
{
	(void)state;
	memory = shared_names_create(LIMIT);
	return memory < 0;
}

static int tear_down(void **state)
{
	(void)state;
	return close(memory);
}

static struct shared_names open_again(void)
{
	struct shared_names names;

	assert_int_equal(shared_names_open(&names, dup(memory)), 0);
	return names;
}

static void has(const struct shared_names *names, uint32_t index, const char *name, int64_t asked)
{
	char found[SHARED_NAME_MAX];
	int64_t when = 0;
	size_t n = shared_names_get(names, index, found, &when);

	assert_true(slice_equals(slice_of(found, n), slice_from_string(name)));
	assert_true(when == asked);
}

static void the_next_one_reads_it(void **state)
{
	struct shared_names first = open_again(), second;
	uint32_t index;

	(void)state;
	assert_int_equal(first.limit, LIMIT);
	assert_int_equal(shared_names_count(&first), 0);
	assert_int_equal(shared_names_claim(&first, &index), 0);
	assert_int_equal(index, 0);
	has(&first, 0, "", 0);
	shared_names_put(&first, 0, SLICE("a.example"), 5);
	shared_names_close(&first);
	second = open_again();
	assert_int_equal(shared_names_count(&second), 1);
	has(&second, 0, "a.example", 5);
	shared_names_asked(&second, 0, 9);
	shared_names_put(&second, 0, SLICE("b.test"), 9);
	has(&second, 0, "b.test", 9);
	shared_names_close(&second);
}

static void no_index_is_claimed_twice(void **state)
{
	struct shared_names a = open_again(), b = open_again();
	uint32_t index;

	(void)state;
	assert_false(shared_names_newest(&a));
	assert_true(shared_names_newest(&b));
	for (uint32_t i = 0; i < LIMIT; i++) {
		assert_int_equal(shared_names_claim(i % 2 ? &a : &b, &index), 0);
		assert_int_equal(index, i);
	}
	assert_int_equal(shared_names_claim(&a, &index), -ENOSPC);
	assert_int_equal(shared_names_claim(&b, &index), -ENOSPC);
	shared_names_close(&a);
	assert_true(shared_names_newest(&b));
	shared_names_close(&b);
}

static void its_size_is_sealed(void **state)
{
	(void)state;
	assert_int_equal(ftruncate(memory, 0), -1);
	assert_int_equal(ftruncate(memory, 1 << 20), -1);
}

/* A file of another size is refused, up to the largest size. */
static void other_sizes(void **state)
{
	const off_t wrong[] = {0, (off_t)shared_names_bytes(1) - 1,
	        (off_t)shared_names_bytes(3) - 1, (off_t)shared_names_bytes(3) + 1,
	        (off_t)shared_names_bytes(SHARED_NAMES_MAX + 1)};
	struct shared_names names;
	int fd = memfd_create("names", MFD_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(ftruncate(fd, wrong[i]), 0);
		assert_int_equal(shared_names_open(&names, dup(fd)), -EBADMSG);
	}
	assert_int_equal(ftruncate(fd, (off_t)shared_names_bytes(SHARED_NAMES_MAX)), 0);
	assert_int_equal(shared_names_open(&names, fd), 0);
	assert_int_equal(names.limit, SHARED_NAMES_MAX);
	shared_names_close(&names);
	assert_int_equal(shared_names_open(&names, open("/dev/null", O_RDWR)), -EBADMSG);
}

/* Files. */

struct place {
	char path[64];
	int directory;
};

static int make_place(void **state)
{
	static struct place place;

	snprintf(place.path, sizeof(place.path), "/tmp/vethguard-names-XXXXXX");
	if (!mkdtemp(place.path))
		return -1;
	place.directory = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &place;
	return place.directory < 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;

	unlinkat(place->directory, "names", 0);
	close(place->directory);
	return rmdir(place->path);
}

static void a_file_outlives_its_holders(void **state)
{
	const struct place *place = *state;
	int fd = shared_names_create_at(place->directory, "names", LIMIT);
	struct shared_names names;
	uint32_t index;

	assert_true(fd >= 0);
	assert_int_equal(shared_names_create_at(place->directory, "names", LIMIT), -EEXIST);
	assert_int_equal(shared_names_open(&names, fd), 0);
	assert_int_equal(shared_names_claim(&names, &index), 0);
	shared_names_put(&names, index, SLICE("a.example"), 5);
	shared_names_close(&names);
	fd = shared_names_open_at(place->directory, "names");
	assert_true(fd >= 0);
	assert_int_equal(shared_names_open(&names, fd), 0);
	assert_int_equal(names.limit, LIMIT);
	assert_int_equal(shared_names_count(&names), 1);
	has(&names, 0, "a.example", 5);
	shared_names_close(&names);
}

static void refused(const struct place *place, int expected)
{
	assert_int_equal(shared_names_open_at(place->directory, "names"), expected);
	unlinkat(place->directory, "names", 0);
}

static void a_damaged_file_is_refused(void **state)
{
	const struct place *place = *state;
	int fd = shared_names_create_at(place->directory, "names", LIMIT);

	assert_int_equal(ftruncate(fd, (off_t)shared_names_bytes(LIMIT) - 1), 0);
	close(fd);
	refused(place, -EBADMSG);
	refused(place, -ENOENT);
	fd = openat(place->directory, "names", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, (off_t)shared_names_bytes(LIMIT)), 0);
	close(fd);
	refused(place, -EBADMSG); /* made by somebody else */
	fd = shared_names_create_at(place->directory, "names", LIMIT);
	assert_int_equal(fchmod(fd, 0620), 0);
	close(fd);
	refused(place, -EBADMSG);
	assert_int_equal(symlinkat("/dev/zero", place->directory, "names"), 0);
	refused(place, -EBADMSG);
	assert_int_equal(mkfifoat(place->directory, "names", 0600), 0);
	refused(place, -EBADMSG);
}

/* As where the file system is full: the table is empty from then on, and its holder goes on. */
static void a_file_that_vanishes(void **state)
{
	const struct place *place = *state;
	int fd = shared_names_create_at(place->directory, "names", LIMIT);
	struct shared_names names;
	uint32_t index;

	assert_int_equal(shared_names_guard(), 0);
	assert_int_equal(shared_names_open(&names, dup(fd)), 0);
	assert_int_equal(shared_names_claim(&names, &index), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	shared_names_put(&names, index, SLICE("a.example"), 5);
	assert_int_equal(shared_names_count(&names), 0);
	assert_true(shared_names_newest(&names));
	shared_names_close(&names);
}

/* Every bit pattern: sizes and counts stay within bounds. */
static void noise_is_read_safely(void **state)
{
	size_t bytes = shared_names_bytes(LIMIT);
	struct shared_names names = open_again();
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	char name[SHARED_NAME_MAX];
	int64_t asked;
	uint32_t index;

	(void)state;
	assert_true(p != MAP_FAILED);
	for (int round = 0; round < 500; round++) {
		if (round == 0)
			memset(p, 0xff, bytes);
		else
			random_bytes(p, bytes);
		assert_true(shared_names_count(&names) <= LIMIT);
		for (uint32_t i = 0; i < LIMIT; i++)
			assert_true(shared_names_get(&names, i, name, &asked) <= SHARED_NAME_MAX);
		if (shared_names_claim(&names, &index) == 0)
			assert_true(index < LIMIT);
		shared_names_put(&names, (uint32_t)round % LIMIT, SLICE("c.example"), 1);
		has(&names, (uint32_t)round % LIMIT, "c.example", 1);
	}
	munmap(p, bytes);
	shared_names_close(&names);
}

#define SHARED(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define PLACED(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        SHARED(the_next_one_reads_it),
	        SHARED(no_index_is_claimed_twice),
	        SHARED(its_size_is_sealed),
	        SHARED(other_sizes),
	        SHARED(noise_is_read_safely),
	        PLACED(a_file_outlives_its_holders),
	        PLACED(a_damaged_file_is_refused),
	        PLACED(a_file_that_vanishes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
