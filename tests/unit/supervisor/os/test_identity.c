/* SPDX-License-Identifier: Apache-2.0 */
/* Another user's rights are lent to one thread for one call, with the caller's groups. */
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
#include <sys/wait.h>
#include <unistd.h>

#include "../somebodys_files.h"

/* A file that proc(5) shows only to those who may trace the process. */
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
	snprintf(link, sizeof(link), "/proc/%d/ns/net", (int)pid);
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
	many = calloc(IDENTITY_GROUPS_MAX + 1, sizeof(*many));
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
	snprintf(name, sizeof(name), "/proc/self/task/%d/status", (int)other_thread);
	in = fopen(name, "re");
	if (!in)
		return -errno;
	while (fgets(line, sizeof(line), in))
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(no_rights_but_the_users),
	        T(groups_of_who_asked),
	        T(other_threads_stay_who_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
