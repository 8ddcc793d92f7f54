/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a namespace is entered by a short-lived thread, never by the calling one. A
 * thread that unshares or joins a namespace and then ends needs no way back; the calling thread may
 * lack the right to one: in a user namespace of our own, the network namespace we came from still
 * belongs to the parent.
 */
#include "vethguard/netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

struct visit {
	int netns_fd; /* -1: a new namespace */
	int (*what)(void *context);
	void *context;
	int result;
};

int netns_current(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void *visit_run(void *argument)
{
	struct visit *v = argument;
	int entered = v->netns_fd < 0 ? unshare(CLONE_NEWNET) : setns(v->netns_fd, CLONE_NEWNET);

	v->result = entered < 0 ? -errno : v->what(v->context);
	return NULL;
}

static int visit_in_thread(struct visit *v)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, visit_run, v);

	if (error)
		return -error;
	pthread_join(thread, NULL);
	return v->result;
}

static int open_current(void *context)
{
	(void)context;
	return netns_current();
}

int netns_new(void)
{
	struct visit v = {.netns_fd = -1, .what = open_current};

	return visit_in_thread(&v);
}

int netns_run(int netns_fd, int (*what)(void *context), void *context)
{
	struct visit v = {.netns_fd = netns_fd, .what = what, .context = context};

	return netns_fd < 0 ? -EBADF : visit_in_thread(&v);
}
