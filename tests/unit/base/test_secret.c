/* SPDX-License-Identifier: Apache-2.0 */
/* secret: locked, undumpable, empty in a child, between guards, and wiped when given back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/secret.h"

static void refuses_bad_sizes(void **state)
{
	struct secret s = {.p = (uint8_t *)1};

	(void)state;
	assert_int_equal(secret_alloc(&s, 0), -EINVAL);
	assert_null(s.p);
	assert_int_equal(secret_alloc(&s, SECRET_MAX + 1), -EINVAL);
	assert_int_equal(secret_alloc(&s, SIZE_MAX), -EINVAL);
	assert_int_equal(secret_copy(&s, "", 0), -EINVAL);
	assert_null(s.p);
	secret_free(&s);
	secret_free(&s);
}

/* Every size around the borders of slot, alignment and page: zeroed, wholly writable, its own. */
static void holds_values_of_every_size(void **state)
{
	static const size_t sizes[] = {
	        1, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 65535, 65536};
	struct secret secrets[sizeof(sizes) / sizeof(sizes[0])];
	size_t count = sizeof(sizes) / sizeof(sizes[0]);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(secret_alloc(&secrets[i], sizes[i]), 0);
		assert_int_equal(secrets[i].cap, sizes[i]);
		assert_int_equal(secrets[i].n, 0);
		for (size_t j = 0; j < sizes[i]; j++)
			assert_int_equal(secrets[i].p[j], 0);
		memset(secrets[i].p, (int)i + 1, sizes[i]);
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < sizes[i]; j++)
			assert_int_equal(secrets[i].p[j], i + 1);
		secret_free(&secrets[i]);
		assert_null(secrets[i].p);
		assert_int_equal(secrets[i].cap, 0);
	}
}

static size_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	size_t lines = 0;
	int c;

	assert_non_null(f);
	while ((c = fgetc(f)) != EOF)
		lines += c == '\n';
	fclose(f);
	return lines;
}

static void many_small_ones_share_pages(void **state)
{
	static struct secret secrets[1000];
	struct secret last;
	size_t before;

	(void)state;
	assert_int_equal(secret_copy(&last, "last", 4), 0);
	before = mappings();
	for (size_t i = 0; i < 1000; i++) {
		char value[32];

		snprintf(value, sizeof(value), "value %zu", i);
		assert_int_equal(secret_copy(&secrets[i], value, sizeof(value)), 0);
	}
	assert_true(mappings() - before <= 3 * 1000 / 16 + 30);
	for (size_t i = 0; i < 1000; i += 2)
		secret_free(&secrets[i]);
	for (size_t i = 0; i < 1000; i += 2) /* slots are used again, and empty */
		assert_int_equal(secret_alloc(&secrets[i], 32), 0);
	for (size_t i = 0; i < 1000; i++) {
		char value[32] = {0};

		if (i % 2)
			snprintf(value, sizeof(value), "value %zu", i);
		assert_string_equal(secrets[i].p, value);
		secret_free(&secrets[i]);
	}
	assert_true(mappings() <= before + 8);
	assert_memory_equal(last.p, "last", 4);
	secret_free(&last);
}

/* The flags of the mapping that holds p, from /proc/self/smaps. */
static void flags_of(const void *p, char *flags, size_t flags_size)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	int inside = 0;

	assert_non_null(f);
	flags[0] = '\0';
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (unsigned long)(uintptr_t)p >= from &&
			         (unsigned long)(uintptr_t)p < to;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			snprintf(flags, flags_size, "%s", line + 8);
	}
	fclose(f);
}

static void pages_are_hardened(void **state)
{
	static const size_t sizes[] = {40, 5000};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct secret s;
		char flags[512];

		assert_int_equal(secret_alloc(&s, sizes[i]), 0);
		flags_of(s.p, flags, sizeof(flags));
#ifndef __SANITIZE_ADDRESS__                           /* which makes mlock(2) do nothing */
		assert_non_null(strstr(flags, " lo")); /* locked */
#endif
		assert_non_null(strstr(flags, " dd")); /* not in core dumps */
		assert_non_null(strstr(flags, " wf")); /* wiped on fork */
		secret_free(&s);
	}
}

static void child_sees_nothing(void **state)
{
	struct secret s;
	int status = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(secret_copy(&s, "token", 5), 0);
	pid = fork();
	if (pid == 0)
		_exit(memcmp(s.p, "\0\0\0\0\0", 5) == 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_memory_equal(s.p, "token", 5);
	secret_free(&s);
}

static void touch_in_child(uint8_t *p)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit no_core = {0, 0};

		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		*(volatile uint8_t *)p = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void guards_stop_overruns(void **state)
{
	struct secret s;
	uint8_t *page;

	(void)state;
	assert_int_equal(secret_alloc(&s, 4096 + 32), 0);
	touch_in_child(s.p + s.cap);
	page = s.p + s.cap - 8192;
	touch_in_child(page - 1);
	secret_free(&s);
	assert_int_equal(secret_alloc(&s, 8), 0);
	page = s.p - (uintptr_t)s.p % (uintptr_t)sysconf(_SC_PAGESIZE);
	touch_in_child(page - 1);
	touch_in_child(page + sysconf(_SC_PAGESIZE));
	secret_free(&s);
}

static void freed_slots_are_wiped(void **state)
{
	struct secret keep, s;
	uint8_t *was;

	(void)state;
	assert_int_equal(secret_copy(&keep, "keeps the page", 14), 0);
	assert_int_equal(secret_copy(&s, "0123456789", 10), 0);
	was = s.p;
	secret_free(&s);
	for (int i = 0; i < 10; i++)
		assert_int_equal(was[i], 0);
	secret_free(&keep);
}

static void says_when_memory_may_not_be_locked(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct rlimit small = {4096, 4096};
		struct secret s;
		int err;

		if (setrlimit(RLIMIT_MEMLOCK, &small) < 0)
			_exit(2);
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(3);
		err = secret_alloc(&s, 60000);
		_exit((err == -ENOMEM || err == -EAGAIN || err == -EPERM) && !s.p ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void wipes(void **state)
{
	char bytes[8] = "secret!";

	(void)state;
	secret_wipe(bytes, 6);
	assert_memory_equal(bytes, "\0\0\0\0\0\0!", 8);
	secret_wipe(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(refuses_bad_sizes),
	        cmocka_unit_test(holds_values_of_every_size),
	        cmocka_unit_test(many_small_ones_share_pages),
	        cmocka_unit_test(pages_are_hardened),
	        cmocka_unit_test(child_sees_nothing),
	        cmocka_unit_test(guards_stop_overruns),
	        cmocka_unit_test(freed_slots_are_wiped),
	        cmocka_unit_test(says_when_memory_may_not_be_locked),
	        cmocka_unit_test(wipes),
	};

	return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
