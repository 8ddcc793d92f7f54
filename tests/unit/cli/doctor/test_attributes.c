/* SPDX-License-Identifier: Apache-2.0 */
/* A role's words beside the kernel's: agreed, only claimed, contradicted, and too few. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define PID 42

static char proc[] = "/tmp/vethguard-test-facts-XXXXXX";
static struct doctor_fact fact;

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d/%s", proc, PID, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect(const char *line, bool confined, enum doctor_verdict verdict, const char *kernel)
{
	assert_true(doctor_fact_read(slice_from_string(line), proc, PID, confined, &fact));
	if (fact.verdict != verdict || strcmp(fact.kernel, kernel) != 0)
		fail_msg("%s: verdict %d, \"%s\"", line, fact.verdict, fact.kernel);
}

static void the_kernel_agrees_or_not(void **state)
{
	(void)state;
	expect("uid: 7", true, DOCTOR_AGREED, "");
	expect("uid: 8", true, DOCTOR_DIFFERS, "7");
	expect("gid: 7", true, DOCTOR_DIFFERS, "7\t7\t0\t7"); /* saved id of root */
	expect("groups: 2", true, DOCTOR_AGREED, "");
	expect("groups: 0", true, DOCTOR_DIFFERS, "2");
	expect("cap_effective: 0000000000000000", true, DOCTOR_DIFFERS, "0000000000001000");
	expect("seccomp: filter", true, DOCTOR_AGREED, "");
	expect("seccomp_filters: 2", true, DOCTOR_DIFFERS, "1");
	expect("core_limit: 0", true, DOCTOR_DIFFERS, "unlimited");
}

static void a_role_that_is_not_confined_says_so(void **state)
{
	(void)state;
	expect("cap_bounding: 0000000000000001", true, DOCTOR_WEAK, "");
	expect("cap_bounding: 0000000000000001", false, DOCTOR_AGREED, "");
	expect("no_new_privs: 0", true, DOCTOR_WEAK, "");
	expect("dumpable: 1", true, DOCTOR_WEAK, "");
	expect("dumpable: 0", true, DOCTOR_CLAIMED, "");
	expect("landlock_probe: port 1 refused", true, DOCTOR_CLAIMED, "");
	expect("landlock_probe: port 1 not refused", true, DOCTOR_WEAK, "");
	expect("root: the system's", true, DOCTOR_WEAK, "");
}

static void what_cannot_be_read_is_its_own_word(void **state)
{
	(void)state;
	expect("ns_mnt: 12", true, DOCTOR_CLAIMED, "");
	expect("descriptors: 3", true, DOCTOR_CLAIMED, "");
	expect("something_new: 1", true, DOCTOR_CLAIMED, "");
}

static void lines_that_are_none(void **state)
{
	static const char *const lines[] = {
	        "", ":", "uid", "uid:", "a_name_that_is_much_longer_than_any_name_is: 1", ": 1"};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(doctor_fact_read(slice_from_string(lines[i]), proc, PID, true, &fact));
}

static void words_are_escaped(void **state)
{
	(void)state;
	expect("a\x1b[m: \x1b]0;x\x07 c:\\d", true, DOCTOR_CLAIMED, "");
	assert_string_equal(fact.name, "a\\x1b[m");
	assert_string_equal(fact.value, "\\x1b]0;x\\x07 c:\\d");
}

static void what_is_not_told_differs(void **state)
{
	size_t n = 0;

	(void)state;
	for (const char *name; (name = doctor_fact_name(n)) != NULL; n++) {
		doctor_fact_unsaid(name, proc, PID, &fact);
		assert_string_equal(fact.name, name);
		assert_int_equal(fact.verdict, fact.kernel[0] ? DOCTOR_DIFFERS : DOCTOR_WEAK);
		if (strcmp(name, "uid") == 0)
			assert_string_equal(fact.kernel, "7");
	}
	assert_true(n > 20);
}

static int setup(void **state)
{
	char path[128];

	(void)state;
	if (!mkdtemp(proc))
		return -1;
	snprintf(path, sizeof(path), "%s/%d", proc, PID);
	mkdir(path, 0755);
	put("status",
	        "Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t7\t7\t0\t7\nGroups:\t4 5 "
	        "\nCapEff:\t0000000000001000\n"
	        "CapBnd:\t0000000000000001\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n");
	put("limits", "Limit  Soft Limit  Hard Limit  Units\nMax core file size  unlimited  "
	              "unlimited  bytes\n");
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", proc);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_kernel_agrees_or_not),
	        cmocka_unit_test(a_role_that_is_not_confined_says_so),
	        cmocka_unit_test(what_cannot_be_read_is_its_own_word),
	        cmocka_unit_test(lines_that_are_none),
	        cmocka_unit_test(words_are_escaped),
	        cmocka_unit_test(what_is_not_told_differs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
