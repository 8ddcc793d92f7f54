/* SPDX-License-Identifier: Apache-2.0 */
/* Files that stay in memory, asked of the kernel; and limits under which they do not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/jail/capabilities.h"
#include "supervisor/os/mlock.h"

enum { PAGES = 16 };

static char path[64];
static int file;
static size_t page;

static int setup(void **state)
{
	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	snprintf(path, sizeof(path), "/tmp/vethguard-test-XXXXXX");
	file = mkstemp(path);
	assert_true(file >= 0);
	for (int i = 0; i < PAGES; i++)
		assert_int_equal(pwrite(file, path, sizeof(path), i * (off_t)page), sizeof(path));
	assert_int_equal(fsync(file), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(file);
	unlink(path);
	return 0;
}

/* Those in memory of the file's pages, once the kernel was told that nobody needs them. */
static unsigned pages_in_memory(void)
{
	unsigned char in_memory[PAGES];
	unsigned count = 0;
	void *at = mmap(NULL, PAGES * page, PROT_READ, MAP_SHARED, file, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
	assert_int_equal(mincore(at, PAGES * page, in_memory), 0);
	for (int i = 0; i < PAGES; i++)
		count += in_memory[i] & 1;
	munmap(at, PAGES * page);
	return count;
}

static unsigned long locked_kib(void)
{
	FILE *in = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	char line[256];

	assert_non_null(in);
	while (fgets(line, sizeof(line), in))
		sscanf(line, "VmLck: %lu kB", &kib);
	fclose(in);
	return kib;
}

static void what_is_kept_stays(void **state)
{
	struct statfs system;
	unsigned long before = locked_kib();

	(void)state;
	assert_int_equal(statfs(path, &system), 0);
	if (system.f_type != TMPFS_MAGIC)
		assert_int_equal(pages_in_memory(), 0);
	assert_int_equal(mlock_file(path), 0);
	assert_int_equal(pages_in_memory(), PAGES);
	assert_int_equal(locked_kib() - before, PAGES * page / 1024);
}

static void what_is_no_file_is_not_kept(void **state)
{
	unsigned long before = locked_kib();

	(void)state;
	assert_int_equal(mlock_file("/nonexistent"), -ENOENT);
	assert_int_equal(mlock_file("/tmp"), -EINVAL);
	assert_int_equal(mlock_file("/dev/zero"), -EINVAL);
	assert_int_equal(ftruncate(file, 0), 0);
	assert_int_equal(mlock_file(path), -EINVAL);
	assert_int_equal(ftruncate(file, (off_t)MLOCK_MAX + 1), 0);
	assert_int_equal(mlock_file(path), -ENOMEM);
	assert_int_equal(locked_kib(), before);
}

/* In a child, for whom the limit of locked memory counts. */
static int keep_with_limit(size_t limit)
{
	const struct rlimit memory = {limit, limit};
	const struct capabilities none = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int error = setrlimit(RLIMIT_MEMLOCK, &memory);

		error = error ? error : capabilities_set(&none);
		_exit(error ? 255 : -mlock_file(path));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void the_limit_of_locked_memory_is_kept(void **state)
{
	(void)state;
	assert_int_equal(keep_with_limit(PAGES * page - 1), ENOMEM);
	assert_int_equal(keep_with_limit(0), ENOMEM);
	assert_int_equal(keep_with_limit(PAGES * page), 0);
}

static void this_program_and_its_libraries(void **state)
{
	static const char *const unknown[] = {"no-such-program", NULL};
	unsigned long before = locked_kib();

	(void)state;
	mlock_programs(unknown);                   /* tells of it, and goes on */
	assert_true(locked_kib() > before + 1024); /* the C library alone is more */
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(what_is_kept_stays),
	        T(what_is_no_file_is_not_kept),
	        T(the_limit_of_locked_memory_is_kept),
	        T(this_program_and_its_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
