/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to descriptors that take only a part at a time, or nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "vethguard/base/fd.h"

#define MANY (4u << 20) /* more than a pipe holds */

static char bytes[MANY];
static int ends[2];
static size_t got;
static bool same = true;

static void on_signal(int number)
{
	(void)number;
}

/* Reads slowly, and interrupts the writer. */
static void *read_all(void *writer)
{
	char piece[65536];
	ssize_t n;

	while ((n = read(ends[0], piece, sizeof(piece))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			same &= piece[i] == bytes[got + (size_t)i];
		got += (size_t)n;
		pthread_kill(*(pthread_t *)writer, SIGUSR1);
	}
	return NULL;
}

static void test_parts_and_signals(void **state)
{
	const struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART */
	pthread_t self = pthread_self(), reader;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		bytes[i] = (char)(i * 7 + i / 251);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_all, &self), 0);
	assert_int_equal(fd_write_all(ends[1], slice_of(bytes, MANY)), 0);
	close(ends[1]);
	assert_int_equal(pthread_join(reader, NULL), 0);
	close(ends[0]);
	assert_int_equal(got, MANY);
	assert_true(same);
}

static void test_refused(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(fd_write_all(full, SLICE("")), 0);
	assert_int_equal(fd_write_all(full, SLICE("x")), -ENOSPC);
	close(full);
	assert_int_equal(fd_write_all(-1, SLICE("x")), -EBADF);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	assert_int_equal(fd_write_all(ends[1], slice_of(bytes, MANY)), -EAGAIN);
	assert_int_equal(fd_write_all(ends[0], SLICE("x")), -EBADF);
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(fd_write_all(ends[1], SLICE("x")), -EPIPE);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_parts_and_signals), cmocka_unit_test(test_refused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
