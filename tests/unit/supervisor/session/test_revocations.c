/* SPDX-License-Identifier: Apache-2.0 */
/* Revoked tokens: remembered by the next daemon, forgotten when they are over, and a damaged file.
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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/session/revocations.h"

#define NOW_MS 1790000000000
#define LATER_MS (NOW_MS + 60000)

static char path[] = "/tmp/revocations-XXXXXX";
static int dir;

static int begin(void **state)
{
	(void)state;
	dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY) : -1;
	return dir < 0;
}

static int end(void **state)
{
	(void)state;
	unlinkat(dir, REVOCATIONS_FILE, 0);
	close(dir);
	return rmdir(path);
}

static const uint8_t *id(unsigned n)
{
	static uint8_t out[MESSAGE_TOKEN_HASH_BYTES];

	memset(out, 0, sizeof(out));
	memcpy(out + 3, &n, sizeof(n));
	return out;
}

static void test_kept(void **state)
{
	struct revocations r = {NULL}, next = {NULL};

	(void)state;
	assert_int_equal(revocations_load(&r, dir, NOW_MS), 0);
	assert_false(revocations_has(&r, id(1), NOW_MS));
	assert_int_equal(revocations_add(&r, dir, id(1), LATER_MS, NOW_MS), 0);
	assert_int_equal(revocations_add(&r, dir, id(2), NOW_MS + 1, NOW_MS), 0);
	assert_int_equal(revocations_add(&r, dir, id(1), NOW_MS + 5, NOW_MS), 0); /* not sooner */
	assert_true(revocations_has(&r, id(1), NOW_MS + 10));
	assert_true(revocations_has(&r, id(2), NOW_MS));
	assert_false(revocations_has(&r, id(2), NOW_MS + 1));
	assert_false(revocations_has(&r, id(3), NOW_MS));
	assert_int_equal(revocations_load(&next, dir, NOW_MS + 1), 0);
	assert_true(revocations_has(&next, id(1), NOW_MS + 1));
	assert_false(revocations_has(&next, id(2), NOW_MS));
	assert_int_equal(revocations_add(&next, dir, id(4), LATER_MS + 9, LATER_MS), 0);
	assert_false(revocations_has(&next, id(1), NOW_MS)); /* forgotten */
	revocations_free(&r);
	revocations_free(&next);
}

static void test_full(void **state)
{
	struct revocations r = {NULL};
	char line[REVOCATION_LINE_MAX + 1];
	FILE *out;
	int fd = openat(dir, REVOCATIONS_FILE, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	(void)state;
	out = fdopen(fd, "w");
	assert_non_null(out);
	for (unsigned i = 0; i < REVOCATIONS_MAX; i++) {
		snprintf(line, sizeof(line), "%064x %lld\n", i, (long long)LATER_MS);
		fputs(line, out);
	}
	fclose(out);
	assert_int_equal(revocations_load(&r, dir, NOW_MS), 0);
	assert_int_equal(revocations_add(&r, dir, id(1), LATER_MS, NOW_MS), -ENOSPC);
	assert_false(revocations_has(&r, id(1), NOW_MS));
	assert_int_equal(revocations_add(&r, dir, id(1), LATER_MS + 9, LATER_MS), 0);
	revocations_free(&r);
	assert_int_equal(revocations_load(&r, dir, NOW_MS), 0);
	assert_true(revocations_has(&r, id(1), NOW_MS));
	revocations_free(&r);
}

static void write_text(const char *text, mode_t mode)
{
	int fd = openat(dir, REVOCATIONS_FILE, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

#define ID "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void test_damaged(void **state)
{
	static const char *const wrong[] = {"x", "\n", ID "\n", ID " \n", ID " 12", ID " 12x\n",
	        ID " -1\n", ID "  12\n", "0" ID " 12\n", ID " 99999999999999999999\n",
	        "G" ID " 12\n", ID " 12\n\n", ID " 12\nx\n",
	        "0011223344556677G899aabbccddeeff00112233445566778899aabbccddeeff 12\n",
	        "00112233445566778899AABBccddeeff00112233445566778899aabbccddeeff 12\n"};
	struct revocations r = {NULL};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_text(wrong[i], 0600);
		assert_int_equal(revocations_load(&r, dir, NOW_MS), -EBADMSG);
		revocations_free(&r);
	}
	write_text(ID " 1790000060000\n", 0600);
	assert_int_equal(revocations_load(&r, dir, NOW_MS), 0);
	revocations_free(&r);
	write_text(ID " 1790000060000\n", 0622);
	assert_int_equal(revocations_load(&r, dir, NOW_MS), -EBADMSG);
	assert_int_equal(unlinkat(dir, REVOCATIONS_FILE, 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, REVOCATIONS_FILE), 0);
	assert_int_equal(revocations_load(&r, dir, NOW_MS), -ELOOP);
	assert_int_equal(unlinkat(dir, REVOCATIONS_FILE, 0), 0);
	assert_int_equal(revocations_load(&r, dir, NOW_MS), 0);
	close(dir);
	assert_int_equal(revocations_add(&r, dir, id(1), LATER_MS, NOW_MS), -EBADF);
	assert_false(revocations_has(&r, id(1), NOW_MS));
	dir = open(path, O_RDONLY | O_DIRECTORY);
	revocations_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_kept),
	        cmocka_unit_test(test_full),
	        cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
