/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed memory is sealed; trusted CAs are put together, and again when a file of them changes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/os/memfd.h"
#include "../somebodys_files.h"

static void memory_is_sealed(void **state)
{
	char back[8] = "";
	int fd = memfd_of("test", "image", 5);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, back, sizeof(back), 0), 5);
	assert_string_equal(back, "image");
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	close(fd);
}

static void ca_files_of_the_configuration(void **state)
{
	struct config *config = calloc(1, sizeof(*config));
	const char *culprit;
	char tail[7] = "";
	struct stat st;

	(void)state;
	make(path, user.uid, 0644);
	config->ca_file_count = 1;
	snprintf(config->ca_files[0], PATH_MAX, "%s", path);
	int fd = memfd_trusted_cas(config, false, &culprit);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, tail, 6, st.st_size - 6), 6);
	assert_string_equal(tail, "value\n");
	close(fd);
	snprintf(config->ca_files[0], PATH_MAX, "%s/missing", dir);
	assert_int_equal(memfd_trusted_cas(config, false, &culprit), -ENOENT);
	assert_string_equal(culprit, config->ca_files[0]);
	snprintf(config->ca_files[0], PATH_MAX, "%s", dir);
	assert_int_equal(memfd_trusted_cas(config, false, &culprit), -EINVAL);
	free(config);
}

static ino_t inode_of(const struct config *config, struct memory_trusted *kept)
{
	const char *culprit;
	struct memory_bundle *bundle = NULL;
	struct stat st;

	assert_int_equal(memfd_trusted(config, kept, &bundle, &culprit), 0);
	assert_int_equal(fstat(bundle->fd, &st), 0);
	memory_bundle_put(bundle);
	return st.st_ino;
}

/* The system's bundle is old; a file that was just made may be changed again within one tick. */
static void ca_files_are_put_together_again_when_they_change(void **state)
{
	struct config *config = calloc(1, sizeof(*config));
	struct memory_bundle *bundle = NULL, *again = NULL;
	struct memory_trusted kept;
	const char *culprit;
	ino_t first, second;

	(void)state;
	memory_trusted_init(&kept);
	first = inode_of(config, &kept);
	assert_int_equal(inode_of(config, &kept), first);
	assert_int_equal(memfd_trusted(config, &kept, &bundle, &culprit), 0);
	assert_int_equal(memfd_trusted(config, &kept, &again, &culprit), 0);
	assert_int_equal(again->fd, bundle->fd); /* no descriptor for each sandbox */
	memory_bundle_put(again);
	make(path, user.uid, 0644);
	config->ca_file_count = 1;
	snprintf(config->ca_files[0], PATH_MAX, "%s", path);
	second = inode_of(config, &kept);
	assert_int_not_equal(second, first);
	assert_int_not_equal(inode_of(config, &kept), second);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(memfd_trusted(config, &kept, &again, &culprit), -ENOENT);
	assert_string_equal(culprit, path);
	memory_trusted_fini(&kept);
	assert_true(fcntl(bundle->fd, F_GETFD) >= 0); /* whoever has it keeps it */
	memory_bundle_put(bundle);
	free(config);
}

static struct memory_bundle *bundle_of(const void *p, size_t n)
{
	struct memory_bundle *bundle = calloc(1, sizeof(*bundle));

	assert_non_null(bundle);
	*bundle = (struct memory_bundle){.refs = 1, .fd = memfd_of("test", p, n)};
	assert_true(bundle->fd >= 0);
	return bundle;
}

static void bundles_are_equal_by_their_bytes(void **state)
{
	static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};
	static uint8_t bytes[100001];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const size_t n = sizes[i];
		struct memory_bundle *a = bundle_of(bytes, n), *same = bundle_of(bytes, n),
		                     *longer = bundle_of(bytes, n + 1), *changed;

		bytes[n] = 'x';
		changed = bundle_of(bytes, n + 1); /* its last byte is another */
		bytes[n] = 0;
		assert_true(memory_bundle_equal(a, a));
		assert_true(memory_bundle_equal(a, same));
		assert_false(memory_bundle_equal(a, longer));
		assert_false(memory_bundle_equal(longer, a));
		assert_false(memory_bundle_equal(longer, changed));
		assert_false(memory_bundle_equal(a, NULL));
		assert_false(memory_bundle_equal(NULL, a));
		memory_bundle_put(a);
		memory_bundle_put(same);
		memory_bundle_put(longer);
		memory_bundle_put(changed);
	}
	assert_true(memory_bundle_equal(NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(memory_is_sealed),
	        T(ca_files_of_the_configuration),
	        T(ca_files_are_put_together_again_when_they_change),
	        T(bundles_are_equal_by_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
