/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files the supervisor opens for others: which of them may be a credential, what an audit file may
 * be, and that sealed memory is sealed. As root, the invoking user is somebody else, which is the
 * interesting case; as an ordinary user, the user itself.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/recording/audit_file.h"
#include "supervisor/memory_file.h"
#include "supervisor/settings/sources.h"

#define SOMEBODY 61000

static char dir[64], path[128], other[128], error_text[SOURCE_ERROR_MAX];
static struct identity user;

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/vethguard-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	user = (struct identity){
	        getuid() ? getuid() : SOMEBODY, getuid() ? getgid() : SOMEBODY, false, true};
	assert_int_equal(chown(dir, user.uid, user.gid), 0);
	snprintf(path, sizeof path, "%s/secret", dir);
	snprintf(other, sizeof other, "%s/other", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	rmdir(path);
	rmdir(dir);
	return 0;
}

static void make(const char *name, uid_t uid, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "value", 5), 5);
	assert_int_equal(fchown(fd, uid, (gid_t)-1), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static int opened(void)
{
	error_text[0] = 0;
	int fd = source_file_open(&user, path, true, error_text);

	if (fd >= 0)
		close(fd);
	else
		assert_true(error_text[0]);
	return fd >= 0;
}

/* What proc(5) shows to those only who may trace the process. */
static int look_into(void *link)
{
	int fd = open(link, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void no_rights_but_the_users(void **state)
{
	char link[64];
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(link, sizeof link, "/proc/%d/ns/net", (int)pid);
	int as_user = identity_run(&user, look_into, link), as_self = look_into(link);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(as_user, getuid() ? 0 : -EACCES);
	assert_int_equal(as_self, 0);
}

static int is_in(gid_t gid)
{
	gid_t groups[IDENTITY_GROUPS_MAX];
	int count = getgroups(IDENTITY_GROUPS_MAX, groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == gid)
			return 1;
	return 0;
}

static int count_groups(void *context)
{
	(void)context;
	return is_in(SOMEBODY + 1) + is_in(SOMEBODY + 2) * 2 + getgroups(0, NULL) * 4;
}

/* Of one that asked over a socket: those of its process, whatever the databases say of the user. */
static void groups_of_who_asked(void **state)
{
	gid_t some[] = {SOMEBODY + 1, SOMEBODY + 2}, *many;
	struct identity who = user, copy;

	(void)state;
	if (getuid() != 0)
		skip();
	who.asked = true;
	assert_int_equal(identity_run(&who, count_groups, NULL), 0);
	who.groups = some;
	who.group_count = 2;
	assert_int_equal(identity_run(&who, count_groups, NULL), 1 + 2 + 2 * 4);
	assert_int_equal(is_in(SOMEBODY + 1), 0); /* the process is itself again */
	assert_int_equal(identity_copy(&copy, &who), 0);
	some[0] = 0;
	assert_int_equal(identity_run(&copy, count_groups, NULL), 1 + 2 + 2 * 4);
	identity_fini(&copy);
	many = calloc(IDENTITY_GROUPS_MAX + 1, sizeof *many);
	assert_non_null(many);
	who.groups = many;
	who.group_count = IDENTITY_GROUPS_MAX + 1;
	assert_int_equal(identity_run(&who, count_groups, NULL), -E2BIG);
	assert_int_equal(geteuid(), 0);
	free(many);
}

static _Atomic pid_t other_thread;
static int waits[2];

static void *wait_in_thread(void *context)
{
	char byte;

	other_thread = gettid();
	(void)!read(waits[0], &byte, 1);
	return context;
}

/* Effective uid of the other thread. */
static int look_at_other(void *context)
{
	char name[64], line[256];
	unsigned real, effective = 0;
	FILE *in;

	(void)context;
	snprintf(name, sizeof name, "/proc/self/task/%d/status", (int)other_thread);
	in = fopen(name, "re");
	if (!in)
		return -errno;
	while (fgets(line, sizeof line, in))
		if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
			break;
	fclose(in);
	return (int)effective;
}

/* One that is deleting a link meanwhile keeps its rights. */
static void other_threads_stay_who_they_are(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pipe2(waits, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, NULL), 0);
	while (other_thread == 0)
		usleep(1000);
	assert_int_equal(identity_run(&user, look_at_other, NULL), (int)geteuid());
	close(waits[1]);
	pthread_join(thread, NULL);
	close(waits[0]);
}

static void own_file(void **state)
{
	(void)state;
	make(path, user.uid, 0600);
	assert_true(opened());
	/* The process is itself again. */
	int fd = open(getuid() ? path : "/etc/shadow", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
}

static void others_may_not_exchange_it(void **state)
{
	(void)state;
	make(path, user.uid, 0620);
	assert_false(opened());
	assert_non_null(strstr(error_text, "can be written"));
	chmod(path, 0602);
	assert_false(opened());
	chmod(path, 0644);
	assert_true(opened());
}

static void what_is_no_regular_file(void **state)
{
	(void)state;
	assert_false(opened());
	assert_non_null(strstr(error_text, "No such file"));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(chown(path, user.uid, user.gid), 0);
	assert_false(opened()); /* and does not wait for a writer */
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, user.uid, user.gid), 0);
	assert_false(opened());
}

static void the_administrators_file(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	make(path, 0, 0600);
	assert_true(opened());
	user.lends = false; /* for a caller of the control API: its own rights and no others */
	assert_false(opened());
	user.lends = true;
	assert_int_equal(chmod(path, 0660), 0);
	assert_false(opened());
}

static void a_third_users_file(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	make(path, SOMEBODY + 1, 0644);
	assert_false(opened());
	assert_non_null(strstr(error_text, "belongs neither"));
	assert_int_equal(chmod(path, 0600), 0);
	assert_false(opened());
	assert_non_null(strstr(error_text, "does not belong to root"));
}

/* The attack that the order of opening is for. */
static void a_link_to_what_only_root_may_read(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	make(other, 0, 0600);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(lchown(path, user.uid, user.gid), 0);
	assert_false(opened());
	assert_non_null(strstr(error_text, "symbolic link"));
	/* To a file the user may read anyway, a link is fine. */
	assert_int_equal(chmod(other, 0644), 0);
	assert_true(opened());
}

static void audit_file_is_made_and_appended_to(void **state)
{
	struct stat st;
	int fd = audit_file_open(&user, path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "one\n", 4), 4);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(write(fd, "two\n", 4), 4);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 8);
	assert_int_equal(st.st_uid, user.uid);
	assert_int_equal(st.st_mode & 07777, 0600);
	close(fd);
}

/* Neither descriptor can be mapped so that old lines could be changed. */
static void audit_file_cannot_be_mapped_for_writing(void **state)
{
	int fds[2] = {audit_file_open(&user, path)};
	char back[8] = "";

	(void)state;
	assert_int_equal(write(fds[0], "one\n", 4), 4);
	fds[1] = audit_file_reader(fds[0]);
	assert_true(fds[1] >= 0);
	assert_int_equal(pread(fds[1], back, sizeof back, 0), 4);
	assert_int_equal(pread(fds[0], back, sizeof back, 0), -1);
	assert_int_equal(write(fds[1], "two\n", 4), -1);
	for (size_t i = 0; i < 2; i++) {
		assert_true(
		        mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0) == MAP_FAILED);
		close(fds[i]);
	}
}

static void audit_file_directories_are_not_made(void **state)
{
	char deep[192];

	(void)state;
	snprintf(deep, sizeof deep, "%s/audit.log", path);
	assert_int_equal(audit_file_open(&user, deep), -ENOENT);
	assert_int_equal(access(path, F_OK), -1);
}

static void audit_file_through_a_link_or_a_fifo(void **state)
{
	(void)state;
	make(other, user.uid, 0600);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(audit_file_open(&user, path), -ELOOP);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(chown(path, user.uid, user.gid), 0);
	assert_int_equal(audit_file_open(&user, path), -EINVAL);
	assert_int_equal(audit_file_open(&user, dir), -EISDIR);
	assert_int_equal(audit_file_open(&user, "/dev/null"), -EINVAL);
}

static void audit_file_where_the_user_may_not_write(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	make(path, 0, 0600);
	assert_int_equal(audit_file_open(&user, path), -EACCES);
	assert_int_equal(audit_file_open(&user, "/etc/vethguard-test-audit"), -EACCES);
	assert_int_equal(access("/etc/vethguard-test-audit", F_OK), -1);
}

static void the_configurations_audit_file(void **state)
{
	char through[192];

	(void)state;
	int fd = audit_file_open_own(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(audit_file_open_own(other), -ELOOP);
	unlink(other);
	assert_int_equal(symlink(dir, other), 0);
	snprintf(through, sizeof through, "%s/secret", other);
	assert_int_equal(audit_file_open_own(through), -ELOOP);
	snprintf(through, sizeof through, "%s/missing/audit.log", dir);
	assert_int_equal(audit_file_open_own(through), -ENOENT);
	assert_int_equal(audit_file_open_own("/dev/null"), -EINVAL);
}

static void no_audit_file_is_memory(void **state)
{
	int fd = audit_file_open(&user, "");

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void memory_is_sealed(void **state)
{
	char back[8] = "";
	int fd = memory_file_of("test", "image", 5);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, back, sizeof back, 0), 5);
	assert_string_equal(back, "image");
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	close(fd);
}

static void ca_files_of_the_configuration(void **state)
{
	struct config *config = calloc(1, sizeof *config);
	const char *culprit;
	char tail[7] = "";
	struct stat st;

	(void)state;
	make(path, user.uid, 0644);
	config->ca_file_count = 1;
	snprintf(config->ca_files[0], PATH_MAX, "%s", path);
	int fd = memory_file_trusted_cas(config, false, &culprit);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, tail, 6, st.st_size - 6), 6);
	assert_string_equal(tail, "value\n");
	close(fd);
	snprintf(config->ca_files[0], PATH_MAX, "%s/missing", dir);
	assert_int_equal(memory_file_trusted_cas(config, false, &culprit), -ENOENT);
	assert_string_equal(culprit, config->ca_files[0]);
	snprintf(config->ca_files[0], PATH_MAX, "%s", dir);
	assert_int_equal(memory_file_trusted_cas(config, false, &culprit), -EINVAL);
	free(config);
}

static ino_t inode_of(const struct config *config, struct memory_trusted *kept)
{
	const char *culprit;
	struct memory_bundle *bundle = NULL;
	struct stat st;

	assert_int_equal(memory_file_trusted(config, kept, &bundle, &culprit), 0);
	assert_int_equal(fstat(bundle->fd, &st), 0);
	memory_bundle_put(bundle);
	return st.st_ino;
}

/* The system's bundle is old; a file that was just made may be changed again within one tick. */
static void ca_files_are_put_together_again_when_they_change(void **state)
{
	struct config *config = calloc(1, sizeof *config);
	struct memory_bundle *bundle = NULL, *again = NULL;
	struct memory_trusted kept;
	const char *culprit;
	ino_t first, second;

	(void)state;
	memory_trusted_init(&kept);
	first = inode_of(config, &kept);
	assert_int_equal(inode_of(config, &kept), first);
	assert_int_equal(memory_file_trusted(config, &kept, &bundle, &culprit), 0);
	assert_int_equal(memory_file_trusted(config, &kept, &again, &culprit), 0);
	assert_int_equal(again->fd, bundle->fd); /* no descriptor for each sandbox */
	memory_bundle_put(again);
	make(path, user.uid, 0644);
	config->ca_file_count = 1;
	snprintf(config->ca_files[0], PATH_MAX, "%s", path);
	second = inode_of(config, &kept);
	assert_int_not_equal(second, first);
	assert_int_not_equal(inode_of(config, &kept), second);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(memory_file_trusted(config, &kept, &again, &culprit), -ENOENT);
	assert_string_equal(culprit, path);
	memory_trusted_fini(&kept);
	assert_true(fcntl(bundle->fd, F_GETFD) >= 0); /* whoever has it keeps it */
	memory_bundle_put(bundle);
	free(config);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(no_rights_but_the_users),
	        T(groups_of_who_asked),
	        T(other_threads_stay_who_they_are),
	        T(own_file),
	        T(others_may_not_exchange_it),
	        T(what_is_no_regular_file),
	        T(the_administrators_file),
	        T(a_third_users_file),
	        T(a_link_to_what_only_root_may_read),
	        T(audit_file_is_made_and_appended_to),
	        T(audit_file_cannot_be_mapped_for_writing),
	        T(audit_file_directories_are_not_made),
	        T(audit_file_through_a_link_or_a_fifo),
	        T(audit_file_where_the_user_may_not_write),
	        T(the_configurations_audit_file),
	        T(no_audit_file_is_memory),
	        T(memory_is_sealed),
	        T(ca_files_of_the_configuration),
	        T(ca_files_are_put_together_again_when_they_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
