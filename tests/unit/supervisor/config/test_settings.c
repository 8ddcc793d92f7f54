/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes with the same policy share, and what ends the sharing: a byte of any file,
 * other rights, other variables, a user who may not read it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/config/settings.h"
#include "supervisor/config/fingerprint.h"

#define SOMEBODY 61000

static char dir[64], policy[128], part[128], config[128];
static struct identity own;
static struct settings *registry;

static void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/vethguard-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(policy, sizeof(policy), "%s/policy.yaml", dir);
	snprintf(part, sizeof(part), "%s/part.yaml", dir);
	snprintf(config, sizeof(config), "%s/config.yaml", dir);
	put(policy, "vethguard: 1\nname: one\ninclude: [part.yaml]\nvariables: {task: {default: "
	            "none}}\n"
	            "allow:\n  - name: api\n    to: https://${task}.example\n");
	put(part, "vethguard: 1\nallow:\n  - name: other\n    to: https://b.example\n");
	put(config, "proxy_port: 3200\n");
	own = (struct identity){.uid = getuid(), .gid = getgid()};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_null(registry); /* it goes with the last reference */
	unlink(policy);
	unlink(part);
	unlink(config);
	rmdir(dir);
	return 0;
}

static struct settings *load(const struct identity *who, const char *task, bool observe)
{
	struct policy_variable variable = {SLICE("task"), slice_from_string(task)};
	const struct policy_load_options options = {
	        .observe = observe, .variables = &variable, .variable_count = task != NULL};
	char *error;
	struct settings *s = settings_load(&registry, who, policy, config, &options, NULL, &error);

	if (!s)
		print_message("%s\n", error ? error : "no memory");
	free(error);
	return s;
}

static void the_same_is_shared(void **state)
{
	struct settings *first = load(&own, NULL, false), *second;

	(void)state;
	assert_non_null(first);
	assert_int_equal(first->config.proxy_port, 3200);
	second = load(&own, NULL, false);
	assert_ptr_equal(first, second);
	settings_put(second);
	second = load(&own, "x", false);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	settings_put(second);
	second = load(&own, NULL, true);
	assert_ptr_not_equal(first, second);
	settings_put(second);
	settings_put(first);
}

/* Each file in turn: a changed file is read anew, its old text stays whole for those who have it.
 */
static void a_changed_file_is_loaded_anew(void **state)
{
	struct settings *first = load(&own, NULL, false), *second, *third;

	(void)state;
	put(part, "vethguard: 1\nallow:\n  - name: other\n    to: https://c.example\n");
	second = load(&own, NULL, false);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	put(config, "proxy_port: 3201\n");
	third = load(&own, NULL, false);
	assert_non_null(third);
	assert_ptr_not_equal(second, third);
	assert_int_equal(third->config.proxy_port, 3201);
	assert_int_equal(second->config.proxy_port, 3200);
	settings_put(first);
	assert_int_equal(chmod(policy, 0600), 0);
	first = load(&own, NULL, false);
	assert_ptr_not_equal(first, third); /* another user may read it */
	put(policy, "vethguard: 1\nname: [\n");
	assert_null(load(&own, NULL, false)); /* with a fault: none, and not the one before */
	assert_int_equal(unlink(part), 0);
	assert_null(load(&own, NULL, false));
	settings_put(first);
	settings_put(second);
	settings_put(third);
}

/* Each load reports who else can change a file, also if only a folder above it has changed.
 */
static void who_else_can_write_is_told(void **state)
{
	struct settings *first = load(&own, NULL, false), *second, *third;

	(void)state;
	assert_null(first->notes);
	assert_int_equal(chmod(dir, 0777), 0);
	second = load(&own, NULL, false);
	assert_ptr_not_equal(first, second);
	assert_non_null(strstr(second->notes, "part.yaml: lies below "));
	third = load(&own, NULL, false);
	assert_ptr_equal(second, third);
	settings_put(third);
	assert_int_equal(chmod(dir, 0755), 0);
	third = load(&own, NULL, false);
	assert_null(third->notes);
	settings_put(third);
	assert_int_equal(chmod(config, 0602), 0);
	third = load(&own, NULL, false);
	assert_non_null(strstr(third->notes, "config.yaml: can be changed by everybody"));
	assert_null(strstr(third->notes, "policy.yaml"));
	settings_put(third);
	settings_put(second);
	settings_put(first);
}

/* An owner who is neither root nor the user who named the policy; without root, owners are unknown.
 */
static void whose_else_it_is_is_told(void **state)
{
	struct identity other = {.uid = SOMEBODY, .gid = SOMEBODY},
	                same = {.uid = SOMEBODY + 1, .gid = SOMEBODY + 1},
	                fixed = {.uid = SOMEBODY + 1, .gid = SOMEBODY + 1, .fixed = true};
	struct settings *s;

	(void)state;
	if (getuid() != 0)
		skip();
	assert_int_equal(chown(part, SOMEBODY, SOMEBODY), 0);
	s = load(&other, NULL, false);
	assert_null(s->notes);
	settings_put(s);
	s = load(&same, NULL, false);
	assert_non_null(strstr(s->notes, "part.yaml: belongs to user 61000"));
	settings_put(s);
	s = load(&fixed, NULL, false);
	assert_null(s->notes);
	settings_put(s);
}

static void nothing_is_lent_to_others(void **state)
{
	struct identity other = {.uid = SOMEBODY, .gid = SOMEBODY};
	struct settings *first, *second;

	(void)state;
	if (getuid() != 0)
		skip();
	first = load(&own, NULL, false);
	second = load(&other, NULL, false);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	settings_put(second);
	assert_int_equal(chmod(part, 0600), 0);
	assert_null(load(&other, NULL, false));
	settings_put(first);
}

/* Memory with a secret in it is one sandbox's. */
static void secrets_are_not_shared(void **state)
{
	struct settings *first, *second;

	(void)state;
	put(config, "egress:\n  proxy: http://user:a-long-password@127.0.0.1:8080\n");
	assert_int_equal(chmod(config, 0600), 0);
	first = load(&own, NULL, false);
	second = load(&own, NULL, false);
	assert_non_null(first);
	assert_non_null(second);
	assert_true(first->egress_pair.n > 0);
	assert_ptr_not_equal(first, second);
	settings_put(first);
	settings_put(second);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* As a child reads a policy, and we load it from what it read. */
static struct settings_files *read_by_child(int *report)
{
	const struct policy_load_options options = {0};

	*report = memfd_create("report", MFD_CLOEXEC);
	assert_true(*report >= 0);
	assert_int_equal(settings_files_read(&own, policy, &options, *report), 0);
	return settings_files_open(*report);
}

static struct settings *load_from(const struct settings_files *files, char **error)
{
	const struct policy_load_options options = {0};

	return settings_load(&registry, &own, policy, config, &options, files, error);
}

static void what_a_child_has_read(void **state)
{
	struct settings_files *files;
	struct settings *s, *again;
	char *error;
	int report;

	(void)state;
	files = read_by_child(&report);
	assert_non_null(files);
	assert_null(settings_files_waits_for(files));
	unlink(part); /* from now on only the child knew it */
	s = load_from(files, &error);
	assert_non_null(s);
	assert_int_equal(s->file_count, 3); /* and the floor, where it would be */
	assert_string_equal(s->files[2], POLICY_FLOOR_PATH);
	again = load_from(files, &error);
	assert_ptr_equal(again, s);
	settings_put(again);
	assert_null(load_from(&settings_no_files, &error));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error, "part.yaml"));
	free(error);
	settings_put(s);
	settings_files_free(files);
	close(report);
}

/* Who else could write when it did. */
static void who_else_can_write_where_a_child_reads(void **state)
{
	struct settings_files *files;
	struct settings *s;
	char *error;
	int report;

	(void)state;
	assert_int_equal(chmod(dir, 0777), 0);
	files = read_by_child(&report);
	assert_int_equal(chmod(dir, 0755), 0);
	s = load_from(files, &error);
	assert_non_null(s);
	assert_non_null(strstr(s->notes, "part.yaml: lies below "));
	settings_put(s);
	settings_files_free(files);
	close(report);
}

/* Faults of files as well. */
static void what_a_child_could_not_read(void **state)
{
	struct settings_files *files;
	char *error;
	int report;

	(void)state;
	unlink(part);
	files = read_by_child(&report);
	assert_non_null(files);
	put(part, "vethguard: 1\n");
	assert_null(load_from(files, &error));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error, "there is no file part.yaml"));
	free(error);
	settings_files_free(files);
	close(report);
}

/* A policy of n bytes, with what it includes. */
static void put_large(size_t n)
{
	FILE *f = fopen(policy, "w");
	char line[1 << 12];
	int head;

	assert_non_null(f);
	memset(line, '#', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	head = fprintf(f, "vethguard: 1\nname: a\ninclude: [%s]\n", part);
	for (n -= (size_t)head; n; n -= n < sizeof(line) ? n : sizeof(line))
		assert_true(fwrite(n < sizeof(line) ? line + sizeof(line) - n : line, 1,
		                    n < sizeof(line) ? n : sizeof(line), f) > 0);
	fclose(f);
}

/* Together, and to the byte. */
static void more_than_a_child_may_read(void **state)
{
	struct settings_files *files;
	struct settings *s;
	struct stat st;
	char *error;
	int report;

	(void)state;
	assert_int_equal(stat(part, &st), 0);
	put_large(SETTINGS_FILES_MAX - (size_t)st.st_size);
	files = read_by_child(&report);
	assert_non_null(files);
	assert_null(settings_files_beyond(files));
	s = load_from(files, &error);
	assert_non_null(s);
	settings_put(s);
	settings_files_free(files);
	close(report);
	put_large(SETTINGS_FILES_MAX - (size_t)st.st_size + 1);
	files = read_by_child(&report);
	assert_non_null(files);
	assert_string_equal(settings_files_beyond(files), part);
	assert_null(load_from(files, &error));
	assert_int_equal(errno, EINVAL);
	free(error);
	assert_int_equal(fstat(report, &st), 0);
	assert_true((size_t)st.st_size < SETTINGS_FILES_MAX + 4096);
	settings_files_free(files);
	close(report);
}

/* Wherever the child is killed, what is there is whole or not there, and what it waited for is
 * known. */
static void a_report_that_is_cut_off(void **state)
{
	struct settings_files *files;
	char bytes[4096];
	int report, part_of;
	ssize_t size;
	bool waited = false;

	(void)state;
	files = read_by_child(&report);
	assert_non_null(files);
	settings_files_free(files);
	size = pread(report, bytes, sizeof(bytes), 0);
	assert_true(size > 0 && size < (ssize_t)sizeof(bytes));
	for (ssize_t n = 0; n < size; n++) {
		part_of = memfd_create("part", MFD_CLOEXEC);
		assert_int_equal(write(part_of, bytes, (size_t)n), n);
		files = settings_files_open(part_of);
		assert_non_null(files);
		waited = waited || (settings_files_waits_for(files) &&
		                           strcmp(settings_files_waits_for(files), part) == 0);
		settings_files_free(files);
		close(part_of);
	}
	assert_true(waited);
	close(report);
}

/* One that may not be local is for the child; a configuration is not to be there at all. */
static void what_is_not_local(void **state)
{
	char near_by[128], far[160], *error;
	struct diag_list *diags = calloc(1, sizeof(*diags));
	struct config *c = calloc(1, sizeof(*c));
	const struct policy_load_options options = {0};

	(void)state;
	assert_non_null(diags);
	assert_non_null(c);
	snprintf(near_by, sizeof(near_by), "%s", policy);
	snprintf(far, sizeof(far), "/proc/self/root%s", near_by);
	assert_null(
	        settings_load(&registry, &own, far, config, &options, &settings_no_files, &error));
	assert_int_equal(errno, EREMOTE);
	assert_null(error);
	snprintf(far, sizeof(far), "/proc/self/root%s", config);
	assert_null(
	        settings_load(&registry, &own, policy, far, &options, &settings_no_files, &error));
	assert_int_equal(errno, ECANCELED);
	assert_non_null(strstr(error, "keep it on a local one"));
	free(error);
	config_init(c);
	assert_int_not_equal(settings_load_config(far, c, diags), 0);
	assert_int_equal(diags->count, 1);
	assert_non_null(strstr(diags->items[0].message, "keep it on a local one"));
	config_fini(c);
	free(c);
	free(diags);
}

static void wait_until_settled(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	while (!fingerprint_of(&st, time(NULL)).counts)
		poll(NULL, 0, 50);
}

static bool was_read(int watch)
{
	char events[4096];
	bool any = false;

	while (read(watch, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static struct settings *load_as(const struct identity *who)
{
	const struct policy_load_options options = {0};
	char *error;
	struct settings *s =
	        settings_load(&registry, who, policy, config, &options, &settings_no_files, &error);

	free(error);
	return s;
}

/* Nothing waits for the bytes of an unchanged file, and every change of it is noticed. */
static void what_has_not_changed_is_not_read(void **state)
{
	struct settings *first, *second;
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	(void)state;
	wait_until_settled(config); /* the one that was written last */
	first = load_as(&own);
	assert_non_null(first);
	assert_true(inotify_add_watch(watch, policy, IN_ACCESS) >= 0);
	assert_true(inotify_add_watch(watch, part, IN_ACCESS) >= 0);
	assert_true(inotify_add_watch(watch, config, IN_ACCESS) >= 0);
	second = load_as(&own);
	assert_ptr_equal(second, first);
	settings_put(second);
	assert_false(was_read(watch));

	put(part, "vethguard: 1\nallow: [\n");
	assert_null(load_as(&own));
	assert_true(was_read(watch));
	assert_null(load_as(&own)); /* and not the one before, whose file this was */
	put(part, "vethguard: 1\nallow:\n  - name: other\n    to: https://b.example\n");
	second = load_as(&own);
	assert_ptr_equal(second, first); /* as it was, to the byte */
	settings_put(second);
	put(part, "vethguard: 1\nallow:\n  - name: other\n    to: https://c.example\n");
	second = load_as(&own);
	assert_non_null(second);
	assert_ptr_not_equal(second, first);
	settings_put(second);
	settings_put(first);
	close(watch);
}

/* A user loses access to an unchanged file: what was loaded for that user before is not
 * reused. */
static void what_may_not_be_read_any_more(void **state)
{
	const struct identity other = {.uid = SOMEBODY, .gid = SOMEBODY};
	struct settings *first;

	(void)state;
	if (getuid() != 0)
		skip();
	wait_until_settled(config);
	first = load_as(&other);
	assert_non_null(first);
	assert_int_equal(chmod(dir, 0700), 0);
	assert_null(load_as(&other));
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(chmod(part, 0600), 0);
	assert_null(load_as(&other));
	settings_put(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(the_same_is_shared),
	        T(a_changed_file_is_loaded_anew),
	        T(who_else_can_write_is_told),
	        T(whose_else_it_is_is_told),
	        T(nothing_is_lent_to_others),
	        T(secrets_are_not_shared),
	        T(what_has_not_changed_is_not_read),
	        T(what_may_not_be_read_any_more),
	        T(what_a_child_has_read),
	        T(who_else_can_write_where_a_child_reads),
	        T(what_a_child_could_not_read),
	        T(more_than_a_child_may_read),
	        T(a_report_that_is_cut_off),
	        T(what_is_not_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
