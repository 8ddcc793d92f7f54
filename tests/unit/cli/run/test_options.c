/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `vethguard run`. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/run/options.h"

#define WORDS(...)                \
	(char *[])                \
	{                         \
		__VA_ARGS__, NULL \
	}
#define W(literal) ((char[]){literal})

static void run_needs_policy_and_command(void **state)
{
	struct run_options o;
	int status = 0;

	(void)state;
	assert_int_equal(run_options_parse(WORDS(W("--"), W("true")), &o, &status), -1);
	assert_int_equal(status, 125);
	assert_int_equal(run_options_parse(WORDS(W("--policy="), W("true")), &o, &status), -1);
	assert_int_equal(run_options_parse(WORDS(W("--policy=p")), &o, &status), -1);
	assert_int_equal(run_options_parse(WORDS(W("--policy=p"), W("")), &o, &status), -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("-vv"), W("true"), W("-v")), &o, &status), 0);
	assert_int_equal(o.verbose, 2);
	assert_string_equal(o.command[1], "-v");
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("--name"), W("../x"), W("true")), &o, &status),
	        -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("--env"), W("=x"), W("true")), &o, &status),
	        -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("--env"), W("A B=x"), W("true")), &o, &status),
	        -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("-eA=b=c"), W("true")), &o, &status), 0);
	assert_string_equal(o.env[0], "A=b=c");
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("--policy=q"), W("true")), &o, &status), -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("a.yaml"), W("--"), W("true")), &o, &status), -1);
}

static void more_variables_than_there_is_room_for_are_refused(void **state)
{
	static char policy[] = "-pp", variable[] = "-eA=1", command[] = "true";
	char *words[RUN_ENV_MAX + 4];
	struct run_options o;
	int status = 0;
	size_t n = 0;

	(void)state;
	words[n++] = policy;
	for (size_t i = 0; i < RUN_ENV_MAX; i++)
		words[n++] = variable;
	words[n] = command;
	words[n + 1] = NULL;
	assert_int_equal(run_options_parse(words, &o, &status), 0);
	words[n++] = variable;
	words[n] = command;
	words[n + 1] = NULL;
	assert_int_equal(run_options_parse(words, &o, &status), -1);
}

static int with_device(const char *path, struct run_options *o)
{
	char policy[] = "-pp", option[] = "--device", word[PATH_MAX + 8], command[] = "true";
	char *words[] = {policy, option, word, command, NULL};
	int status = 0;

	snprintf(word, sizeof(word), "%s", path);
	return run_options_parse(words, o, &status);
}

static void devices_are_paths_in_dev(void **state)
{
	static const char *const wrong[] = {"", "/", "/dev", "/dev/", "dev/kvm", "kvm", "/devkvm",
	        "/dev//kvm", "/dev/kvm/", "/dev/./kvm", "/dev/../etc", "/dev/dri/..", "/dev/pts",
	        "/dev/pts/3", "/dev/ptmx", "/dev/shm", "/dev/shm/x", "/dev/fd/0", "/dev/stdin",
	        "/etc/passwd", "/proc/kmsg"};
	static const char *const right[] = {
	        "/dev/kvm", "/dev/dri", "/dev/net/tun", "/dev/...", "/dev/ptsx", "/dev/.x"};
	struct run_options o;
	char longest[PATH_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(with_device(wrong[i], &o), -1);
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		assert_int_equal(with_device(right[i], &o), 0);
		assert_int_equal(o.device_count, 1);
	}
	memset(longest, 'x', PATH_MAX);
	memcpy(longest, "/dev/", 5);
	longest[PATH_MAX] = '\0';
	assert_int_equal(with_device(longest, &o), -1);
	longest[PATH_MAX - 1] = '\0';
	assert_int_equal(with_device(longest, &o), 0);
}

static void more_devices_than_there_is_room_for_are_refused(void **state)
{
	static char policy[] = "-pp", device[] = "--device=/dev/kvm", command[] = "true";
	char *words[RUN_DEVICES_MAX + 4];
	struct run_options o;
	int status = 0;
	size_t n = 0;

	(void)state;
	words[n++] = policy;
	for (size_t i = 0; i < RUN_DEVICES_MAX; i++)
		words[n++] = device;
	words[n] = command;
	words[n + 1] = NULL;
	assert_int_equal(run_options_parse(words, &o, &status), 0);
	assert_int_equal(o.device_count, RUN_DEVICES_MAX);
	words[n++] = device;
	words[n] = command;
	words[n + 1] = NULL;
	assert_int_equal(run_options_parse(words, &o, &status), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(run_needs_policy_and_command),
	        cmocka_unit_test(more_variables_than_there_is_room_for_are_refused),
	        cmocka_unit_test(devices_are_paths_in_dev),
	        cmocka_unit_test(more_devices_than_there_is_room_for_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
