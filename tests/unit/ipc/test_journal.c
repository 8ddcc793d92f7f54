/* SPDX-License-Identifier: Apache-2.0 */
/* What a journal holds after its writer was killed at each possible point. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/journal.h"

static int fd;
static struct journal journal;

static int set_up(void **state)
{
	(void)state;
	fd = journal_create();
	return fd < 0 ? -1 : journal_open(&journal, dup(fd));
}

static int tear_down(void **state)
{
	(void)state;
	journal_close(&journal);
	close(fd);
	return 0;
}

/* The writer is gone; the next one maps the memory. */
static void open_again(void)
{
	journal_close(&journal);
	assert_int_equal(journal_open(&journal, dup(fd)), 0);
}

static void begin(const char *notes, const char *batch, off_t offset)
{
	memcpy(journal_spare(&journal), notes, strlen(notes));
	journal_begin(&journal, strlen(notes), slice_from_string(batch), offset);
}

static void expect_notes(const char *text)
{
	assert_true(slice_equals(journal_notes(&journal), slice_from_string(text)));
}

static bool begun(void)
{
	struct slice batch;
	off_t offset;

	return journal_begun(&journal, &batch, &offset);
}

static void a_new_one_is_empty(void **state)
{
	(void)state;
	expect_notes("");
	assert_false(begun());
}

static void what_is_being_prepared_does_not_count(void **state)
{
	(void)state;
	begin("one", "line\n", 0);
	journal_commit(&journal);
	memcpy(journal_spare(&journal), "two", 3);
	open_again();
	expect_notes("one");
	assert_false(begun());
}

static void what_was_begun_counts_with_its_batch(void **state)
{
	struct slice batch;
	off_t offset;

	(void)state;
	begin("one", "line\n", 7);
	journal_commit(&journal);
	begin("twice", "another line\n", 12);
	open_again();
	expect_notes("twice");
	assert_true(journal_begun(&journal, &batch, &offset));
	assert_true(slice_equals(batch, SLICE("another line\n")));
	assert_int_equal(offset, 12);
	journal_commit(&journal);
	open_again();
	expect_notes("twice");
	assert_false(begun());
}

static void what_was_begun_can_be_given_up(void **state)
{
	(void)state;
	begin("one", "line\n", 0);
	journal_commit(&journal);
	begin("two", "line\n", 5);
	journal_forget(&journal);
	open_again();
	expect_notes("one");
	assert_false(begun());
}

static void notes_without_a_batch_count_from_their_commit(void **state)
{
	(void)state;
	begin("one", "", 0);
	open_again();
	expect_notes("");
	begin("one", "", 0);
	journal_commit(&journal);
	open_again();
	expect_notes("one");
}

static void nonsense_is_within_bounds(void **state)
{
	struct stat st;
	uint8_t *memory;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED);
	for (int byte = 1; byte < 256; byte++) {
		memset(memory, byte, 4096);
		open_again();
		assert_true(journal_notes(&journal).n <= JOURNAL_NOTES_MAX);
		assert_true(journal_mark(&journal).n <= JOURNAL_MARK_MAX);
		assert_false(begun());
		begin("one", "line\n", 0);
		journal_commit(&journal);
		expect_notes("one");
	}
	munmap(memory, (size_t)st.st_size);
}

static void a_mark_lasts_until_it_is_replaced(void **state)
{
	static const char large[JOURNAL_MARK_MAX + 1] = "too much";

	(void)state;
	assert_int_equal(journal_mark(&journal).n, 0);
	journal_set_mark(&journal, slice_of(large, JOURNAL_MARK_MAX));
	begin("one", "line\n", 0);
	journal_commit(&journal);
	open_again();
	assert_int_equal(journal_mark(&journal).n, JOURNAL_MARK_MAX);
	journal_set_mark(&journal, SLICE("mark"));
	assert_true(slice_equals(journal_mark(&journal), SLICE("mark")));
	journal_set_mark(&journal, slice_of(large, sizeof(large)));
	assert_int_equal(journal_mark(&journal).n, 0);
}

static void other_memory_is_refused(void **state)
{
	struct journal other;
	int small = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;

	(void)state;
	assert_int_equal(journal_open(&other, dup(small)), -EBADMSG);
	/* The right size, but it could be cut under our feet. */
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(small, st.st_size), 0);
	assert_int_equal(journal_open(&other, small), -EBADMSG);
	assert_int_equal(ftruncate(fd, 0), -1);
}

static void a_file_tells_how_often_it_was_opened(void **state)
{
	char folder[] = "/tmp/test_journal.XXXXXX";
	struct journal_identity first = {0}, second = {0};
	int directory, one, two;
	struct journal j;

	(void)state;
	assert_non_null(mkdtemp(folder));
	directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	one = journal_open_at(directory, "journal", &first);
	assert_true(one >= 0);
	assert_int_equal(journal_open_at(directory, "journal", &second), -EWOULDBLOCK);
	/* The mapping's own descriptor keeps it locked. */
	assert_int_equal(journal_open(&j, dup(one)), 0);
	close(one);
	assert_int_equal(journal_open_at(directory, "journal", &second), -EWOULDBLOCK);
	memcpy(journal_spare(&j), "noted", 5);
	journal_begin(&j, 5, SLICE("line\n"), 3);
	journal_close(&j);
	two = journal_open_at(directory, "journal", &second);
	assert_true(two >= 0);
	assert_int_equal(first.created, second.created);
	assert_true(second.opened > first.opened);
	assert_int_equal(journal_open(&j, two), 0);
	assert_true(slice_equals(journal_notes(&j), SLICE("noted")));
	journal_close(&j);
	two = openat(directory, "journal", O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(two, 4096), 0);
	close(two);
	assert_int_equal(journal_open_at(directory, "journal", &second), -EBADMSG);
	unlinkat(directory, "journal", 0);
	close(directory);
	rmdir(folder);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(a_new_one_is_empty),
	        TEST(what_is_being_prepared_does_not_count),
	        TEST(what_was_begun_counts_with_its_batch),
	        TEST(what_was_begun_can_be_given_up),
	        TEST(notes_without_a_batch_count_from_their_commit),
	        TEST(nonsense_is_within_bounds),
	        TEST(a_mark_lasts_until_it_is_replaced),
	        TEST(other_memory_is_refused),
	        TEST(a_file_tells_how_often_it_was_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
