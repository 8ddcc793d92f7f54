/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon keeps of a bundle: found again by the next daemon, replaced whole, and refused if
 * it is damaged. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/config/bundle_store.h"

/* The linker wraps: fsync */

static char path[64];
static int parent;
static unsigned syncs, failing; /* fsync() calls so far, and the one that fails; 0: none */

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	if (++syncs != failing)
		return __real_fsync(fd);
	errno = EIO;
	return -1;
}

static int begin(void **state)
{
	(void)state;
	syncs = failing = 0;
	snprintf(path, sizeof(path), "/tmp/bundle-store-XXXXXX");
	parent = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return parent < 0;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	close(parent);
	snprintf(command, sizeof(command), "rm -r %s", path);
	return system(command);
}

static struct signed_bundle *bundle(unsigned serial, const char *name, const char *text)
{
	static const uint8_t none[SIGNED_BUNDLE_SIGNATURE_BYTES];
	char content[512], why[SIGNED_BUNDLE_WHY_MAX];
	struct signed_bundle *b;
	struct buf file;

	snprintf(content, sizeof(content),
	        "{\"name\":\"a\",\"serial\":%u,\"files\":{\"%s\":\"%s\"}}", serial, name, text);
	buf_init(&file, sizeof(content) + SIGNED_BUNDLE_HEAD_BYTES);
	assert_int_equal(signed_bundle_join(none, slice_from_string(content), &file), 0);
	assert_int_equal(signed_bundle_open_unverified(buf_slice(&file), &b, why), 0);
	buf_fini(&file);
	return b;
}

static void keep(struct bundle_store *s, unsigned serial, const char *name, const char *text)
{
	struct signed_bundle *b = bundle(serial, name, text);

	assert_int_equal(bundle_store_keep(s, b), 0);
	signed_bundle_free(b);
}

/* Returns the text of the file found through `current`; NULL: there is none. */
static const char *current(const struct bundle_store *s, const char *name)
{
	static char text[64];
	char file[128];
	int fd;
	ssize_t n;

	snprintf(file, sizeof(file), "current/%s", name);
	fd = openat(s->dir, file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static unsigned count_names(int dir)
{
	char command[64];
	unsigned n = 0;
	FILE *list;

	snprintf(command, sizeof(command), "ls /proc/%d/fd/%d/ | wc -l", (int)getpid(), dir);
	list = popen(command, "r");
	assert_int_equal(fscanf(list, "%u", &n), 1);
	pclose(list);
	return n;
}

static void test_kept(void **state)
{
	struct bundle_store s;
	struct buf file;

	(void)state;
	buf_init(&file, SIGNED_BUNDLE_BYTES_MAX);
	assert_int_equal(bundle_store_open(&s, parent, "a"), 0);
	assert_true(s.highest == 0);
	assert_int_equal(bundle_store_read(&s, &file), -ENOENT);
	assert_null(current(&s, "x.yaml"));
	keep(&s, 7, "x.yaml", "seven");
	assert_string_equal(current(&s, "x.yaml"), "seven");
	keep(&s, 8, "y.yaml", "eight");
	assert_null(current(&s, "x.yaml"));
	assert_string_equal(current(&s, "y.yaml"), "eight");
	assert_int_equal(count_names(s.dir), 4); /* serial, bundle, one tree, current */
	bundle_store_close(&s);
	assert_int_equal(bundle_store_open(&s, parent, "a"), 0);
	assert_true(s.highest == 8);
	assert_int_equal(bundle_store_read(&s, &file), 0);
	assert_non_null(memmem(buf_bytes(&file), file.len, "eight", 5));
	keep(&s, 8, "y.yaml", "eight"); /* again, as after a death between two steps */
	assert_string_equal(current(&s, "y.yaml"), "eight");
	bundle_store_hide(&s);
	assert_null(current(&s, "y.yaml"));
	bundle_store_close(&s);
	buf_fini(&file);
}

static void test_extract(void **state)
{
	struct signed_bundle *b = bundle(7, "x.yaml", "seven");
	struct bundle_store s;

	(void)state;
	assert_int_equal(bundle_store_open(&s, parent, "a"), 0);
	/* What an earlier daemon left behind when it died. */
	assert_int_equal(mkdirat(s.dir, "tree.new", 0700), 0);
	close(openat(s.dir, "tree.new/half.yaml", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(mkdirat(s.dir, "tree-6-0011223344556677", 0700), 0);
	assert_int_equal(symlinkat("tree-6-0011223344556677", s.dir, "current"), 0);
	assert_int_equal(bundle_store_extract(&s, b), 0);
	assert_string_equal(current(&s, "x.yaml"), "seven");
	assert_null(current(&s, "half.yaml"));
	assert_int_equal(count_names(s.dir), 2);
	assert_int_equal(bundle_store_extract(&s, b), 0);
	signed_bundle_free(b);
	bundle_store_close(&s);
}

static void put(const struct bundle_store *s, const char *name, const char *text)
{
	int fd;

	unlinkat(s->dir, name, 0);
	fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void test_damaged(void **state)
{
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	static const char *const texts[] = {"", "7", "7 \n", "7 " HEX, "7 " HEX " \n",
	        "0 " HEX "\n", "-1 " HEX "\n", "x " HEX "\n", "1000000000000000 " HEX "\n",
	        "7 g" HEX "\n", "7 " HEX "0\n", "7 " HEX HEX "\n"};
	struct bundle_store s;

	(void)state;
	assert_int_equal(bundle_store_open(&s, parent, "a"), 0);
	put(&s, "serial", "7 " HEX "\n");
	bundle_store_close(&s);
	assert_int_equal(bundle_store_open(&s, parent, "a"), 0);
	assert_true(s.highest == 7);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put(&s, "serial", texts[i]);
		bundle_store_close(&s);
		assert_int_equal(bundle_store_open(&s, parent, "a"), -EBADMSG);
		assert_true(s.highest == 0);
	}
	/* a bundle without its serial: a rollback would not be noticed */
	put(&s, "bundle", "x");
	unlinkat(s.dir, "serial", 0);
	bundle_store_close(&s);
	assert_int_equal(bundle_store_open(&s, parent, "a"), -EBADMSG);
	/* others may write there */
	unlinkat(s.dir, "bundle", 0);
	assert_int_equal(fchmod(s.dir, 0777), 0);
	bundle_store_close(&s);
	assert_int_equal(bundle_store_open(&s, parent, "a"), -EBADMSG);
	bundle_store_close(&s);
	assert_int_equal(symlinkat("a", parent, "b"), 0);
	assert_int_equal(bundle_store_open(&s, parent, "b"), -ENOTDIR);
	bundle_store_close(&s);
}

static void test_full(void **state)
{
	struct signed_bundle *b = bundle(7, "x.yaml", "seven");
	struct bundle_store s;

	(void)state;
	assert_int_equal(bundle_store_open(&s, parent, "a"), 0);
	keep(&s, 6, "x.yaml", "six");
	/* A directory has this name, so not even root can make the file. */
	assert_int_equal(mkdirat(s.dir, "serial.new", 0700), 0);
	assert_int_not_equal(bundle_store_keep(&s, b), 0);
	assert_true(s.highest == 6);
	assert_string_equal(current(&s, "x.yaml"), "six");
	unlinkat(s.dir, "serial.new", AT_REMOVEDIR);
	assert_int_equal(bundle_store_keep(&s, b), 0);
	assert_string_equal(current(&s, "x.yaml"), "seven");
	signed_bundle_free(b);
	bundle_store_close(&s);
}

static void test_path(void **state)
{
	static const char *const bad[] = {"bundle:", "bundle:a", "bundle:a/", "bundle:/x.yaml",
	        "bundle:a/../x.yaml", "bundle:a/b/x.yaml", "bundle:../x.yaml", "bundle:A/x.yaml",
	        "bundle:a/.yaml", "bundle:a/x.yml", "bundle:a//x.yaml"};
	char out[64];

	(void)state;
	assert_int_equal(bundle_store_path("/b", "bundle:a/x.yaml", out, sizeof(out)), 1);
	assert_string_equal(out, "/b/a/current/x.yaml");
	assert_int_equal(bundle_store_path("/b", "/etc/x.yaml", out, sizeof(out)), 0);
	assert_int_equal(bundle_store_path("/b", "bundle:a/x.yaml", out, 8), -EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (bundle_store_path("/b", bad[i], out, sizeof(out)) != -EINVAL)
			fail_msg("%s", bad[i]);
}

/* Whichever step does not reach the disk: nobody finds files of a bundle that is not in force, and
 * the same bundle can be kept later. */
static void test_a_disk_that_fails(void **state)
{
	struct signed_bundle *next = bundle(8, "y.yaml", "eight");
	unsigned steps = 0;
	int rc = -EIO;

	for (unsigned old = 0; old < 2; old++, rc = -EIO) {
		struct bundle_store s;

		assert_int_equal(bundle_store_open(&s, parent, old ? "old" : "new"), 0);
		if (old)
			keep(&s, 7, "x.yaml", "seven");
		for (unsigned step = 1; rc; step++, steps++) {
			syncs = 0;
			failing = step;
			rc = bundle_store_keep(&s, next);
			failing = 0;
			if (!rc)
				break;
			assert_int_equal(rc, -EIO);
			assert_null(current(&s, "y.yaml"));
			if (old)
				assert_string_equal(current(&s, "x.yaml"), "seven");
		}
		assert_string_equal(current(&s, "y.yaml"), "eight");
		assert_null(current(&s, "x.yaml"));
		bundle_store_close(&s);
	}
	assert_true(steps >= 10); /* two files, two directories and the link, twice */
	signed_bundle_free(next);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_kept, begin, end),
	        cmocka_unit_test_setup_teardown(test_extract, begin, end),
	        cmocka_unit_test_setup_teardown(test_damaged, begin, end),
	        cmocka_unit_test_setup_teardown(test_full, begin, end),
	        cmocka_unit_test_setup_teardown(test_a_disk_that_fails, begin, end),
	        cmocka_unit_test(test_path)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
