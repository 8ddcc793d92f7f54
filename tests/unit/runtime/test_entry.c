/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of containers, which of them are cleaned up, and how a refusal is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/entry.h"

static struct settings settings;
static struct fault fault;
static char folder[] = "/tmp/vethguard-entry-XXXXXX";

static int begin(void **state)
{
	(void)state;
	fault.text[0] = '\0';
	snprintf(settings.directory, sizeof(settings.directory), "%s/a/b", folder);
	return 0;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s/*", folder);
	return system(command);
}

static bool is_there(const struct entry *e)
{
	struct stat st;

	return stat(e->path, &st) == 0;
}

static void make(struct entry *e, const char *root, const char *id, pid_t pid)
{
	json_t *state = json_object();

	entry_name(e, &settings, root, id);
	e->state = state;
	assert_true(entry_set_process(e, pid));
	json_object_set_new(state, ENTRY_SANDBOX, json_string("box"));
	assert_true(entry_make(e, &settings, state, &fault));
}

static void test_names(void **state)
{
	static const char *const ids[] = {"box", "../../etc", ".", "..", "a/b", "", "A b\n",
	        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
	struct entry a, b;

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		entry_name(&a, &settings, "/run/one", ids[i]);
		entry_name(&b, &settings, "/run/two", ids[i]);
		assert_string_not_equal(a.key, b.key);
		assert_null(strchr(a.key, '/'));
		assert_true(strlen(a.key) >= 17);
		entry_name(&b, &settings, "/run/one", ids[i]);
		assert_string_equal(a.path, b.path);
		entry_name(&b, &settings, NULL, ids[i]);
		assert_string_not_equal(a.key, b.key);
	}
}

static void test_a_life(void **state)
{
	struct entry e, again;
	char path[PATH_MAX];

	(void)state;
	make(&e, NULL, "box", getpid());
	entry_name(&again, &settings, NULL, "box");
	assert_true(entry_load(&again, &fault));
	assert_string_equal(entry_text(&again, ENTRY_SANDBOX), "box");
	assert_string_equal(entry_text(&again, ENTRY_NETNS), "");
	assert_false(entry_is(&again, ENTRY_SHARED));
	assert_true(entry_write(&again, "file", ENTRY_SHOWN, SLICE("text"), path, &fault));
	assert_int_equal(access(path, R_OK), 0);
	entry_free(&again);
	entry_name(&again, &settings, NULL, "box");
	assert_false(entry_make(&again, &settings, json_object(), &fault));
	assert_non_null(strstr(fault.text, "there is a container of that id"));
	entry_free(&again);
	entry_remove(&e);
	assert_false(is_there(&e));
	fault.text[0] = '\0';
	assert_false(entry_load(&e, &fault));
	assert_string_equal(fault.text, "");
}

/* An entry stays as long as its process, and one whose state is damaged does not. */
static void test_tidy(void **state)
{
	struct entry alive, over, damaged, empty;
	char command[PATH_MAX + 64];
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		pause();
		_exit(0);
	}
	make(&alive, NULL, "alive", getpid());
	make(&over, NULL, "over", child);
	make(&damaged, NULL, "damaged", getpid());
	snprintf(command, sizeof(command), "echo '{' >%s/state.json", damaged.path);
	assert_int_equal(system(command), 0);
	entry_name(&empty, &settings, NULL, "empty");
	assert_int_equal(mkdir(empty.path, 0755), 0);
	entries_tidy(&settings);
	assert_true(is_there(&alive) && is_there(&over));
	assert_false(is_there(&damaged) || is_there(&empty));
	kill(child, SIGKILL);
	siginfo_t ended;
	waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT); /* it still waits for its parent */
	entries_tidy(&settings);
	assert_true(is_there(&alive));
	assert_false(is_there(&over));
	waitpid(child, NULL, 0);
	entry_free(&alive);
	entry_free(&over);
	entry_free(&damaged);
}

/* However many there are, each goes in the end. */
static void test_many(void **state)
{
	enum { COUNT = ENTRIES_LOOK_MAX * 3 };
	static struct entry all[COUNT];
	unsigned left = COUNT, calls;

	(void)state;
	for (unsigned i = 0; i < COUNT; i++) {
		char id[16];

		snprintf(id, sizeof(id), "c%u", i);
		make(&all[i], NULL, id, getpid());
		json_object_set_new(all[i].state, ENTRY_START_TIME, json_integer(1));
		assert_true(entry_save(&all[i], &fault));
	}
	for (calls = 0; left > 0 && calls < 10000; calls++) {
		unsigned before = left;

		entries_tidy(&settings);
		left = 0;
		for (unsigned i = 0; i < COUNT; i++)
			left += is_there(&all[i]);
		assert_true(before - left <= ENTRIES_LOOK_MAX);
	}
	assert_int_equal(left, 0);
	for (unsigned i = 0; i < COUNT; i++)
		entry_free(&all[i]);
}

/* A process that got the number of an earlier one is another. */
static void test_same_number(void **state)
{
	struct entry e;

	(void)state;
	make(&e, NULL, "box", getpid());
	json_object_set_new(e.state, ENTRY_START_TIME, json_integer(1));
	assert_true(entry_save(&e, &fault));
	entries_tidy(&settings);
	assert_false(is_there(&e));
	assert_false(entry_set_process(&e, -1));
	entry_free(&e);
}

static void test_no_directory(void **state)
{
	struct entry e;

	(void)state;
	snprintf(settings.directory, sizeof(settings.directory), "/proc/no/such");
	entry_name(&e, &settings, NULL, "box");
	assert_false(entry_make(&e, &settings, json_object(), &fault));
	assert_non_null(strstr(fault.text, "/proc/no/such"));
	entries_tidy(&settings);
	entry_free(&e);
}

static void test_faults(void **state)
{
	struct fault f = {""};
	char path[128], line[512];
	FILE *file;

	(void)state;
	assert_false(fault_set(&f, "first \"%s\"", "a\nb"));
	assert_false(fault_set(&f, "second"));
	snprintf(path, sizeof(path), "%s/log", folder);
	fault_report(&f, "error", path, true);
	fault_report(&f, "error", path, false);
	file = fopen(path, "r");
	assert_non_null(fgets(line, sizeof(line), file));
	assert_non_null(strstr(line, "{\"level\":\"error\",\"msg\":\"first \\\"a"));
	assert_non_null(fgets(line, sizeof(line), file));
	assert_non_null(strstr(line, "level=error msg=\"vethguard: first"));
	assert_null(fgets(line, sizeof(line), file));
	fclose(file);
	fault_report(&f, "error", "/proc/no/such/log", true); /* stderr has it */
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(test_names),
	        CASE(test_a_life),
	        CASE(test_tidy),
	        CASE(test_many),
	        CASE(test_same_number),
	        CASE(test_no_directory),
	        CASE(test_faults),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
