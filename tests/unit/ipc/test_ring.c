/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between one writer and one reader, and a writer that breaks every rule of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/ipc/ring.h"
#include "ipc/private.h"

#define HEAD_AT 0
#define RECORDS_AT 4096
#define MEMORY_BYTES (RECORDS_AT + RING_BYTES)

struct both {
	struct ring writer, reader;
	uint8_t *memory; /* the hostile view */
};

static void copies(const int from[3], int to[3])
{
	for (int i = 0; i < 3; i++)
		to[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 0);
}

static int setup(void **state)
{
	struct both *b = calloc(1, sizeof(*b));
	int fds[3], second[3];

	assert_non_null(b);
	assert_int_equal(ring_create(fds), 0);
	copies(fds, second);
	b->memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	assert_true(b->memory != MAP_FAILED);
	assert_int_equal(ring_open_writer(&b->writer, fds[0], fds[1], fds[2]), 0);
	assert_int_equal(ring_open_reader(&b->reader, second[0], second[1], second[2]), 0);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct both *b = *state;

	munmap(b->memory, MEMORY_BYTES);
	ring_close(&b->writer);
	ring_close(&b->reader);
	ring_close(&b->reader);
	free(b);
	return 0;
}

static bool told(int fd)
{
	eventfd_t count;

	return eventfd_read(fd, &count) == 0;
}

static uint8_t record[RING_RECORD_MAX + 1], out[RING_RECORD_MAX];

static void records_come_in_order_across_the_end(void **state)
{
	struct both *b = *state;

	/* Sizes that share no divisor with the ring: every place wraps sooner or later. */
	for (unsigned i = 0; i < 3000; i++) {
		size_t n = 1 + i * 37 % 5003;
		memset(record, (int)i, n);
		assert_int_equal(ring_write(&b->writer, record, n), 0);
		assert_int_equal(ring_read(&b->reader, out), n);
		assert_memory_equal(record, out, n);
		ring_release(&b->reader);
	}
	assert_int_equal(ring_read(&b->reader, out), 0);
}

static void sizes_out_of_bounds(void **state)
{
	struct both *b = *state;

	assert_int_equal(ring_write(&b->writer, record, 0), -EMSGSIZE);
	assert_int_equal(ring_write(&b->writer, record, RING_RECORD_MAX + 1), -EMSGSIZE);
	assert_int_equal(ring_write(&b->writer, record, RING_RECORD_MAX), 0);
	assert_int_equal(ring_read(&b->reader, out), RING_RECORD_MAX);
}

static void a_sleeping_reader_is_told_once(void **state)
{
	struct both *b = *state;

	assert_int_equal(ring_write(&b->writer, record, 8), 0);
	assert_false(told(b->reader.data_fd)); /* it never slept */
	assert_false(ring_sleep(&b->reader));  /* there is a record */
	assert_int_equal(ring_read(&b->reader, out), 8);
	assert_true(ring_sleep(&b->reader));
	assert_false(told(b->reader.data_fd));
	assert_int_equal(ring_write(&b->writer, record, 8), 0);
	assert_true(told(b->reader.data_fd));
	assert_int_equal(ring_write(&b->writer, record, 8), 0);
	assert_false(told(b->reader.data_fd));
}

static void a_full_ring_makes_the_writer_wait(void **state)
{
	struct both *b = *state;
	const size_t room = RING_BYTES / (RING_RECORD_MAX + 8);
	size_t written = 0;

	while (ring_write(&b->writer, record, RING_RECORD_MAX) == 0)
		written++;
	assert_int_equal(written, room);
	assert_int_equal(ring_write(&b->writer, record, RING_RECORD_MAX), -EAGAIN);
	assert_false(told(b->writer.space_fd));
	for (size_t i = 0; i < room / 2 - 1; i++)
		assert_true(ring_read(&b->reader, out) > 0);
	ring_release(&b->reader);
	assert_false(told(b->writer.space_fd)); /* not half yet */
	assert_true(ring_read(&b->reader, out) > 0);
	assert_true(ring_read(&b->reader, out) > 0);
	assert_false(told(b->writer.space_fd)); /* read, not yet released */
	ring_release(&b->reader);
	assert_true(told(b->writer.space_fd));
	assert_int_equal(ring_write(&b->writer, record, RING_RECORD_MAX), 0);
	ring_release(&b->reader);
	assert_false(told(b->writer.space_fd)); /* nobody waits */
}

static void set_head(struct both *b, uint64_t head)
{
	memcpy(b->memory + HEAD_AT, &head, sizeof(head));
}

static void set_length(struct both *b, uint32_t length)
{
	memcpy(b->memory + RECORDS_AT, &length, sizeof(length));
}

static void a_hostile_head(void **state)
{
	struct both *b = *state;
	const uint64_t bad[] = {
	        RING_BYTES + 8, RING_BYTES + 1, 7, 1, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};

	set_length(b, 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set_head(b, bad[i]);
		assert_int_equal(ring_read(&b->reader, out), -EBADMSG);
	}
	assert_int_equal(ring_write(&b->writer, record, 24), 0);
	set_head(b, 32);
	assert_int_equal(ring_read(&b->reader, out), 24);
	set_head(b, 24); /* backwards */
	assert_int_equal(ring_read(&b->reader, out), -EBADMSG);
}

static void a_hostile_length(void **state)
{
	struct both *b = *state;
	const uint32_t bad[] = {0, RING_RECORD_MAX + 1, UINT32_MAX, UINT32_MAX - 3, 0x80000000u};

	set_head(b, RING_BYTES);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set_length(b, bad[i]);
		assert_int_equal(ring_read(&b->reader, out), -EBADMSG);
	}
	set_head(b, 16);
	set_length(b, 13); /* one more than 16 bytes hold */
	assert_int_equal(ring_read(&b->reader, out), -EBADMSG);
	set_length(b, 12);
	assert_int_equal(ring_read(&b->reader, out), 12);
}

static void the_readers_cursor_in_shared_memory_is_never_believed(void **state)
{
	struct both *b = *state;
	uint64_t garbage = 0x4242424242424242u;

	assert_int_equal(ring_write(&b->writer, "first", 5), 0);
	memcpy(b->memory + 64, &garbage, sizeof(garbage));
	assert_int_equal(ring_read(&b->reader, out), 5);
	/* The writer takes a cursor that makes no sense for a full ring. */
	assert_int_equal(ring_write(&b->writer, "second", 6), -EAGAIN);
	ring_release(&b->reader);
	assert_int_equal(ring_write(&b->writer, "second", 6), 0);
}

static void memory_of_another_size_is_refused(void **state)
{
	struct ring ring;
	int fd = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, MEMORY_BYTES - 1), 0);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(ring_open_reader(&ring, fd, -1, -1), -EBADMSG);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed */
}

static void memory_that_could_shrink_is_refused(void **state)
{
	struct ring ring;
	int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, MEMORY_BYTES), 0);
	assert_int_equal(ring_open_reader(&ring, fd, -1, -1), -EBADMSG);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(ring_open_reader(&ring, fd, -1, -1), -EBADMSG);
}

static void created_memory_cannot_shrink(void **state)
{
	int fds[3];

	(void)state;
	assert_int_equal(ring_create(fds), 0);
	assert_int_equal(ftruncate(fds[0], 4096), -1);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static char folder[] = "/tmp/test_ring.XXXXXX";
static int folder_fd;

static int make_folder(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(strcpy(folder, "/tmp/test_ring.XXXXXX")));
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder_fd < 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlinkat(folder_fd, "ring", 0);
	close(folder_fd);
	return rmdir(folder);
}

static void close_three(const int fds[3])
{
	for (size_t i = 0; i < 3; i++)
		close(fds[i]);
}

static void what_was_killed_half_way_stands_in_no_ones_way(void **state)
{
	int fds[3];
	int fd = openat(folder_fd, "unfinished", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), -ENOENT);
	fd = ipc_memory_new_renamed(folder_fd, "ring", MEMORY_BYTES);
	assert_true(fd >= 0);
	assert_int_equal(faccessat(folder_fd, "unfinished", F_OK, 0), -1);
	assert_int_equal(ipc_memory_new_renamed(folder_fd, "ring", MEMORY_BYTES), -EEXIST);
	assert_int_equal(faccessat(folder_fd, "unfinished", F_OK, 0), -1);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), -EWOULDBLOCK);
	close(fd);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), 0);
	close_three(fds);
}

/* A ring belongs to nobody until it has a name, and a taken name stays with its owner. */
static void a_ring_in_store_is_a_file_from_its_name_on(void **state)
{
	int fds[3], other[3], again[3];

	(void)state;
	assert_int_equal(ring_prepare(folder_fd, fds), 0);
	assert_int_equal(ring_prepare(folder_fd, other), 0);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", again), -ENOENT);
	assert_int_equal(ring_name(fds, folder_fd, "ring"), 0);
	assert_int_equal(ring_name(other, folder_fd, "ring"), -EEXIST);
	close_three(other);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", again), -EWOULDBLOCK);
	close_three(fds);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", again), 0);
	close_three(again);
	assert_int_equal(ring_prepare(-1, fds), -EBADF);
}

static void a_ring_that_is_a_file_outlives_its_writer(void **state)
{
	struct ring ring;
	int fds[3], again[3];

	(void)state;
	assert_int_equal(ring_create_at(folder_fd, "ring", fds), 0);
	assert_int_equal(ring_create_at(folder_fd, "ring", again), -EEXIST);
	assert_int_equal(ring_open_writer(&ring, fds[0], fds[1], fds[2]), 0);
	assert_int_equal(ring_write(&ring, "first", 5), 0);
	assert_int_equal(ring_write(&ring, "second", 6), 0);
	/* Nobody takes a ring over while its writer lives. */
	assert_int_equal(ring_adopt_at(folder_fd, "ring", again), -EWOULDBLOCK);
	ring_close(&ring);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), 0);
	assert_int_equal(ring_open_reader(&ring, fds[0], fds[1], fds[2]), 0);
	ring_seek_unknown(&ring);
	assert_int_equal(ring_read(&ring, out), 5);
	ring_release(&ring);
	assert_int_equal(ring_read(&ring, out), 6);
	ring_close(&ring);
	/* A part was given back, but not all: a reader that knows nothing begins at the beginning.
	 */
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), 0);
	assert_int_equal(ring_open_reader(&ring, fds[0], fds[1], fds[2]), 0);
	ring_seek_unknown(&ring);
	assert_int_equal(ring_read(&ring, out), 5);
	assert_int_equal(ring_read(&ring, out), 6);
	ring_release(&ring);
	ring_seek_unknown(&ring);
	assert_int_equal(ring_read(&ring, out), 0);
	ring_close(&ring);
}

static void files_that_are_no_rings_are_refused(void **state)
{
	int fds[3], fd = openat(folder_fd, "ring", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), -EBADMSG);
	assert_int_equal(ftruncate(fd, MEMORY_BYTES + 1), 0);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), -EBADMSG);
	close(fd);
	unlinkat(folder_fd, "ring", 0);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), -ENOENT);
	assert_int_equal(symlinkat("/etc/passwd", folder_fd, "ring"), 0);
	assert_int_equal(ring_adopt_at(folder_fd, "ring", fds), -EBADMSG);
	assert_int_equal(ring_create_at(folder_fd, "ring", fds), -EEXIST);
}

/* Cut under the reader's mapping: zeros are there, which no ring that was read from holds. */
static void a_guarded_reader_outlives_a_file_that_is_cut(void **state)
{
	struct ring writer, reader;
	int fds[3], second[3], status;
	pid_t pid;

	(void)state;
	assert_int_equal(ring_create_at(folder_fd, "ring", fds), 0);
	copies(fds, second);
	assert_int_equal(ring_open_writer(&writer, fds[0], fds[1], fds[2]), 0);
	assert_int_equal(ring_open_reader(&reader, second[0], second[1], second[2]), 0);
	assert_int_equal(ring_write(&writer, "first", 5), 0);
	assert_int_equal(ring_read(&reader, out), 5);
	assert_int_equal(ring_write(&writer, "second", 6), 0);
	assert_int_equal(ftruncate(second[0], 0), 0);
	pid = fork();
	if (pid == 0) { /* without the guard */
		signal(SIGBUS, SIG_DFL);
		ring_read(&reader, out);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	assert_int_equal(ring_guard(), 0);
	assert_int_equal(ring_read(&reader, out), -EBADMSG);
	ring_release(&reader);
	ring_close(&reader);
	ring_close(&writer);
}

static void wait_readable(int fd)
{
	eventfd_t count;

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	(void)!read(fd, &count, sizeof(count));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Two processes at full speed, both going to sleep whenever they may: a lost wake-up would hang
 * here. */
static void two_processes(void **state)
{
	enum { RECORDS = 100000 };
	struct both *b = *state;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(900);
		for (uint32_t i = 0; i < RECORDS; i++) {
			memcpy(record, &i, sizeof(i));
			while (ring_write(&b->writer, record, sizeof(i) + i * 7 % 900) == -EAGAIN)
				wait_readable(b->writer.space_fd);
		}
		_exit(0);
	}
	alarm(900);
	for (uint32_t expect = 0; expect < RECORDS;) {
		uint32_t number;
		int n = ring_read(&b->reader, out);

		assert_true(n >= 0);
		if (n == 0) {
			ring_release(&b->reader);
			if (ring_sleep(&b->reader))
				wait_readable(b->reader.data_fd);
			continue;
		}
		memcpy(&number, out, sizeof(number));
		assert_int_equal(number, expect);
		assert_int_equal(n, sizeof(expect) + expect * 7 % 900);
		expect++;
	}
	alarm(0);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(
	                records_come_in_order_across_the_end, setup, teardown),
	        cmocka_unit_test_setup_teardown(sizes_out_of_bounds, setup, teardown),
	        cmocka_unit_test_setup_teardown(a_sleeping_reader_is_told_once, setup, teardown),
	        cmocka_unit_test_setup_teardown(a_full_ring_makes_the_writer_wait, setup, teardown),
	        cmocka_unit_test_setup_teardown(a_hostile_head, setup, teardown),
	        cmocka_unit_test_setup_teardown(a_hostile_length, setup, teardown),
	        cmocka_unit_test_setup_teardown(
	                the_readers_cursor_in_shared_memory_is_never_believed, setup, teardown),
	        cmocka_unit_test(memory_of_another_size_is_refused),
	        cmocka_unit_test(memory_that_could_shrink_is_refused),
	        cmocka_unit_test(created_memory_cannot_shrink),
	        cmocka_unit_test_setup_teardown(
	                what_was_killed_half_way_stands_in_no_ones_way, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(
	                a_ring_in_store_is_a_file_from_its_name_on, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(
	                a_ring_that_is_a_file_outlives_its_writer, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(
	                files_that_are_no_rings_are_refused, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(
	                a_guarded_reader_outlives_a_file_that_is_cut, make_folder, remove_folder),
	        cmocka_unit_test_setup_teardown(two_processes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
