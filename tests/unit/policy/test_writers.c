/* SPDX-License-Identifier: Apache-2.0 */
/* Who else can change a policy: rights of the file and of the directories above it, real ones and
 * ones that are made up; and that the loader tells of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "policy_test.h"
#include "vethguard/policy/writers.h"

#define USER 1000
#define BELOW "lies below /etc/x, where "

static struct stat made_up;

/* Only /etc/x is not root's alone. */
static int look(void *context, const char *path, struct stat *st)
{
	(void)context;
	if (strcmp(path, "/etc/gone") == 0)
		return -ENOENT;
	*st = made_up;
	if (strcmp(path, "/etc/x") != 0)
		*st = (struct stat){.st_mode = S_IFDIR | 0755};
	return 0;
}

static const char *directory_text(mode_t mode, uint32_t owner, uint32_t group)
{
	static char text[POLICY_WRITERS_TEXT_MAX];
	struct policy_writers w = {0};

	made_up = (struct stat){.st_mode = S_IFDIR | mode, .st_uid = owner, .st_gid = group};
	policy_writers_add_above(&w, "/etc/x/gone/../y/p.yaml", USER, look, NULL);
	return w.who ? policy_writers_text(&w, text) : "";
}

static const char *file_text(mode_t mode, uint32_t owner, uint32_t group)
{
	static char text[POLICY_WRITERS_TEXT_MAX];
	const struct stat st = {.st_mode = S_IFREG | mode, .st_uid = owner, .st_gid = group};
	struct policy_writers w = {0};

	policy_writers_add(&w, &st, "", USER);
	return w.who ? policy_writers_text(&w, text) : "";
}

static void test_rights_of_a_file(void **state)
{
	static const struct {
		mode_t mode;
		uint32_t owner, group;
		const char *text;
	} rows[] = {
	        {0644, 0, 0, ""},
	        {0600, USER, 100, ""},
	        {0664, USER, USER, ""}, /* the group of that user alone */
	        {0664, USER, 0, ""},
	        {0664, 0, 0, ""},
	        {0666, 0, 0, "can be changed by everybody: 'chmod o-w' fixes that"},
	        {0602, USER, USER, "can be changed by everybody: 'chmod o-w' fixes that"},
	        {01666, 0, 0, "can be changed by everybody: 'chmod o-w' fixes that"},
	        {0664, USER, 100, "can be changed by group 100: 'chmod g-w' fixes that"},
	        {0664, 0, USER, ""},
	        {0664, 0, 1001, "can be changed by group 1001: 'chmod g-w' fixes that"},
	        {0666, 7, 100, "can be changed by everybody: 'chmod o-w' fixes that"},
	        {0664, 7, 100, "can be changed by group 100: 'chmod g-w' fixes that"},
	        {0400, 7, 7,
	                "belongs to user 7, who can change it: let it belong to root or to who "
	                "uses it"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(
		        file_text(rows[i].mode, rows[i].owner, rows[i].group), rows[i].text);
}

static void test_rights_of_a_directory(void **state)
{
	(void)state;
	assert_string_equal(directory_text(0755, 0, 0), "");
	assert_string_equal(directory_text(0775, USER, USER), "");
	assert_string_equal(directory_text(01777, 0, 0), ""); /* as /tmp is */
	assert_string_equal(directory_text(01775, 0, 100), "");
	assert_string_equal(directory_text(0777, 0, 0),
	        BELOW "everybody can put another file in its place: 'chmod o-w /etc/x' fixes that");
	assert_string_equal(directory_text(0775, 0, 50),
	        BELOW "group 50 can put another file in its place: 'chmod g-w /etc/x' fixes that");
	assert_string_equal(directory_text(0755, 7, 7),
	        "lies below /etc/x of user 7, who can put another file in its place: keep it "
	        "where only root and who uses it can write");
	assert_string_equal(directory_text(01777, 7, 7),
	        "lies below /etc/x of user 7, who can put another file in its place: keep it "
	        "where only root and who uses it can write");
}

/* Names of any length and any bytes. */
static void test_names(void **state)
{
	const struct stat st = {.st_mode = S_IFDIR | 0777};
	char place[5000], text[POLICY_WRITERS_TEXT_MAX];
	struct policy_writers w = {0}, other;

	(void)state;
	memset(place, '\n', sizeof(place) - 1);
	place[sizeof(place) - 1] = 0;
	policy_writers_add(&w, &st, place, USER);
	assert_int_equal(strlen(w.place), POLICY_WRITERS_PLACE_MAX - 1);
	policy_writers_text(&w, text);
	assert_null(strchr(text, '\n'));
	assert_non_null(strstr(text, "everybody can put another file"));

	other = w;
	assert_true(policy_writers_equal(&w, &other));
	other.place[0] = 'x';
	assert_false(policy_writers_equal(&w, &other));
	memset(place, '/', sizeof(place) - 1);
	memset(&w, 0, sizeof(w));
	policy_writers_add_above(&w, place, USER, look, NULL); /* longer than a path can be */
	assert_int_equal(w.who, POLICY_WRITER_NONE);
	policy_writers_add_above(&w, "none", USER, look, NULL);
	assert_int_equal(w.who, POLICY_WRITER_NONE);
}

static char dir[64], main_path[128], part_path[128], link_path[128];

static void put(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, 0644), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/vethguard-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(main_path, sizeof(main_path), "%s/main.yaml", dir);
	snprintf(part_path, sizeof(part_path), "%s/part.yaml", dir);
	snprintf(link_path, sizeof(link_path), "/tmp/vethguard-test-link-%d.yaml", getpid());
	put(main_path, "vethguard: 1\ninclude: [part.yaml, preset:pypi]\n");
	put(part_path, "vethguard: 1\n");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(link_path);
	unlink(main_path);
	unlink(part_path);
	rmdir(dir);
	return 0;
}

/* The notes of a load, which succeeds whoever can write. */
static void load(const char *path, const char *presets, struct diag_list *notes)
{
	struct policy_file_facts facts = {0};
	struct policy_reader reader = policy_reader_watchful_files(presets, &facts);
	struct policy_load_options options = {.notes = notes};
	struct diag_list diags = {.count = 0};
	uint8_t *image;
	size_t size;

	memset(notes, 0, sizeof(*notes));
	assert_int_equal(policy_load(&reader, path, &options, &image, &size, &diags), 0);
	free(image);
}

static void test_a_load_tells(void **state)
{
	struct diag_list notes;

	(void)state;
	load(main_path, "policies/presets", &notes);
	assert_int_equal(notes.count, 0);
	assert_int_equal(chmod(part_path, 0666), 0);
	load(main_path, "policies/presets", &notes);
	assert_int_equal(notes.count, 1);
	assert_string_equal(notes.items[0].file, part_path);
	assert_int_equal(notes.items[0].line, 0);
	assert_non_null(strstr(notes.items[0].message, "can be changed by everybody"));
	assert_int_equal(chmod(main_path, 0646), 0);
	load(main_path, "policies/presets", &notes);
	assert_int_equal(notes.count, 2);
	assert_string_equal(notes.items[0].file, main_path);
	assert_int_equal(chmod(main_path, 0644), 0);
	assert_int_equal(chmod(part_path, 0644), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	load(main_path, "policies/presets", &notes);
	assert_int_equal(notes.count, 2);
	assert_non_null(strstr(notes.items[1].message, "where everybody can put another file"));
	assert_int_equal(chmod(dir, 01777), 0);
	load(main_path, "policies/presets", &notes);
	assert_int_equal(notes.count, 0);
}

/* The file's real directory counts as well as that of its name. */
static void test_a_link(void **state)
{
	struct diag_list notes;

	(void)state;
	assert_int_equal(symlink(part_path, link_path), 0);
	load(link_path, NULL, &notes);
	assert_int_equal(notes.count, 0);
	assert_int_equal(chmod(dir, 0777), 0);
	load(link_path, NULL, &notes);
	assert_int_equal(notes.count, 1);
	assert_non_null(strstr(notes.items[0].message, dir));
}

/* Presets come with the program; whoever installed it decided who may write there. */
static void test_presets_are_not_told(void **state)
{
	struct diag_list notes;
	char preset[128];

	(void)state;
	snprintf(preset, sizeof(preset), "%s/npm.yaml", dir);
	put(preset, "vethguard: 1\n");
	assert_int_equal(chmod(preset, 0666), 0);
	put(main_path, "vethguard: 1\ninclude: [preset:npm]\n");
	load(main_path, dir, &notes);
	assert_int_equal(notes.count, 0);
	put(main_path, "vethguard: 1\ninclude: [npm.yaml]\n");
	load(main_path, dir, &notes);
	assert_int_equal(notes.count, 1);
	unlink(preset);
}

/* The user who only checks a policy need not be the one who will use it. */
static void test_owners_are_not_told(void **state)
{
	struct diag_list notes;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(main_path, 61000, 61000), 0);
	load(main_path, "policies/presets", &notes);
	assert_int_equal(notes.count, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rights_of_a_file),
	        cmocka_unit_test(test_rights_of_a_directory),
	        cmocka_unit_test(test_names),
	        T(test_a_load_tells),
	        T(test_a_link),
	        T(test_presets_are_not_told),
	        T(test_owners_are_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
