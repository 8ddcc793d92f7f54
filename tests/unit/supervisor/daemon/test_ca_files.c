/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's files of a CA: who may own and change them, and that none stays open after a
 * refusal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/wire/message.h"
#include "supervisor/daemon/ca_files.h"

static char dir[64];
static struct config_ca config;
static struct ca_files files;
static char why[CA_FILES_WHY_MAX];

static void put(char out[PATH_MAX], const char *name, mode_t mode)
{
	int fd;

	snprintf(out, PATH_MAX, "%s/%s", dir, name);
	fd = open(out, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, name, strlen(name)), (ssize_t)strlen(name));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/vethguard-ca-XXXXXX");
	assert_non_null(mkdtemp(dir));
	memset(&config, 0, sizeof(config));
	put(config.root, "root", 0644);
	put(config.certificate, "certificate", 0644);
	put(config.key, "key", 0600);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r --one-file-system %s", dir);
	return system(command) == 0 ? 0 : -1;
}

static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void refused(const char *path, const char *what)
{
	int before = next_fd();

	assert_true(ca_files_open(&config, &files, why) < 0);
	assert_int_equal(files.count, 0);
	assert_true(files.configured & MESSAGE_CA_ROOT_FILE);
	assert_int_equal(next_fd(), before);
	assert_non_null(strstr(why, path));
	if (!strstr(why, what))
		fail_msg("%s", why);
}

static void test_good(void **state)
{
	char text[16] = "";

	(void)state;
	assert_int_equal(ca_files_open(&config, &files, why), 0);
	assert_int_equal(files.configured,
	        MESSAGE_CA_ROOT_FILE | MESSAGE_CA_CERTIFICATE_FILE | MESSAGE_CA_KEY_FILE);
	assert_int_equal(files.count, 3);
	assert_int_equal(read(files.fds[2], text, sizeof(text) - 1), 3);
	assert_string_equal(text, "key");
	ca_files_close(&files);
	config.certificate[0] = 0;
	assert_int_equal(ca_files_open(&config, &files, why), 0);
	assert_int_equal(files.configured, MESSAGE_CA_ROOT_FILE | MESSAGE_CA_KEY_FILE);
	assert_int_equal(files.count, 2);
	ca_files_close(&files);
	config.root[0] = config.key[0] = 0;
	assert_int_equal(ca_files_open(&config, &files, why), 0);
	assert_true(files.configured == 0 && files.count == 0);
}

static void test_refused(void **state)
{
	(void)state;
	chmod(config.key, 0640);
	refused(config.key, "others can read");
	chmod(config.key, 0604);
	refused(config.key, "others can read");
	chmod(config.key, 0602);
	refused(config.key, "can be written by others");
	chmod(config.key, 0600);
	chmod(config.root, 0664);
	refused(config.root, "can be written by others");
	chmod(config.root, 0644);
	chmod(config.certificate, 0646);
	refused(config.certificate, "can be written by others");
	chmod(config.certificate, 0644);
	if (geteuid() == 0) {
		assert_int_equal(chown(config.key, 65534, 65534), 0);
		refused(config.key, "belongs to somebody else");
		assert_int_equal(chown(config.key, 0, 0), 0);
	}
	unlink(config.root);
	refused(config.root, "No such file");
	assert_int_equal(mkdir(config.root, 0755), 0);
	refused(config.root, "not a regular file");
	rmdir(config.root);
	assert_int_equal(mkfifo(config.root, 0600), 0); /* and nobody waits for its other end */
	refused(config.root, "not a regular file");
	assert_int_equal(unlink(config.root), 0);
	put(config.root, "root", 0644);
	assert_int_equal(ca_files_open(&config, &files, why), 0);
	ca_files_close(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_good, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
