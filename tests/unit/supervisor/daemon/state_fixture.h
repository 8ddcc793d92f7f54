/* SPDX-License-Identifier: Apache-2.0 */
/* A directory with the state file of one sandbox, which a test damages. */
#ifndef VETHGUARD_TESTS_UNIT_SUPERVISOR_DAEMON_STATE_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_SUPERVISOR_DAEMON_STATE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/daemon/state_file.h"

#define TEXT_MAX 65536

static char folder[64];
static int dir;

static inline int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/state-XXXXXX");
	assert_non_null(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0;
}

static inline int remove_folder(void **state)
{
	(void)state;
	unlinkat(dir, "one.json", 0);
	unlinkat(dir, "two.json", 0);
	close(dir);
	return rmdir(folder);
}

static inline int load(struct attach_record *record, struct gate *gate, char error[STATE_ERROR_MAX])
{
	error[0] = 0;
	gate_init(gate);
	return state_load(dir, "one.json", record, gate, error);
}

static void save_sample(void); /* each test's own */

static inline size_t read_text(char *text)
{
	int fd = openat(dir, "one.json", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, TEXT_MAX - 1);

	close(fd);
	assert_true(n > 0);
	text[n] = 0;
	return (size_t)n;
}

static inline void write_text(const char *file, const char *text, size_t n)
{
	int fd = openat(dir, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, n), (ssize_t)n);
	close(fd);
}

/* Writes the sample, in which from becomes to. */
static inline void save_changed(const char *from, const char *to)
{
	static char text[TEXT_MAX], changed[2 * TEXT_MAX];
	const char *at;
	int n;

	save_sample();
	read_text(text);
	at = strstr(text, from);
	if (!at)
		fail_msg("the sample has no %s", from);
	n = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, to,
	        at + strlen(from));
	write_text("one.json", changed, (size_t)n);
}

/* With from as to it has to be refused, and say so. */
static inline void refuses(const char *from, const char *to, const char *why)
{
	char error[STATE_ERROR_MAX];
	struct attach_record record;
	struct gate gate;

	save_changed(from, to);
	if (load(&record, &gate, error) != -EINVAL || !strstr(error, why))
		fail_msg("%s for %s: %s", to, from, error);
	attach_record_fini(&record);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

#endif
