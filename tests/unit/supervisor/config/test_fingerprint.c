/* SPDX-License-Identifier: Apache-2.0 */
/* A file's fingerprint: which changes it shows, and when it is not reliable. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "supervisor/config/fingerprint.h"

#define NOW 1000000

static const struct stat file = {.st_dev = 1,
        .st_ino = 2,
        .st_size = 3,
        .st_mtim = {NOW - 100, 4},
        .st_ctim = {NOW - 50, 5}};

static void an_old_file_holds_its_fingerprint(void **state)
{
	struct fingerprint fingerprint = fingerprint_of(&file, NOW);

	(void)state;
	assert_true(fingerprint.counts);
	assert_true(fingerprint_holds(&fingerprint, &file));
}

static void whatever_differs_is_another(void **state)
{
	const struct fingerprint fingerprint = fingerprint_of(&file, NOW);
	struct stat other[8];

	(void)state;
	for (size_t i = 0; i < 8; i++)
		other[i] = file;
	other[0].st_dev++;
	other[1].st_ino++;
	other[2].st_size++;
	other[3].st_mtim.tv_sec++;
	other[4].st_mtim.tv_nsec++;
	other[5].st_ctim.tv_sec++;
	other[6].st_ctim.tv_nsec++;
	other[7].st_ctim.tv_nsec--;
	for (size_t i = 0; i < 8; i++)
		assert_false(fingerprint_holds(&fingerprint, &other[i]));
}

/* It may change once more and look the same. */
static void one_that_has_just_changed_tells_nothing(void **state)
{
	(void)state;
	for (time_t age = -10; age <= FINGERPRINT_STEP_S; age++) {
		struct stat fresh = file;
		struct fingerprint fingerprint;

		fresh.st_ctim.tv_sec = NOW - age;
		fingerprint = fingerprint_of(&fresh, NOW);
		assert_false(fingerprint.counts);
		assert_false(fingerprint_holds(&fingerprint, &fresh));
	}
}

static void none_holds_nothing(void **state)
{
	const struct fingerprint none = {0};
	const struct stat empty = {0};

	(void)state;
	assert_false(fingerprint_holds(&none, &empty));
	assert_false(fingerprint_holds(&none, &file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_old_file_holds_its_fingerprint),
	        cmocka_unit_test(whatever_differs_is_another),
	        cmocka_unit_test(one_that_has_just_changed_tells_nothing),
	        cmocka_unit_test(none_holds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
