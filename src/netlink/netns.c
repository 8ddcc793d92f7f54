/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a thread that may return to its namespace enters another one by itself,
 * which costs two system calls. If it may not, another thread enters and ends: in a user namespace
 * of our own, the network namespace we came from still belongs to the parent.
 */
#include "vethguard/netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/log.h"

#define EXIT_FAILED 125

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

static int visit(const struct visit *v)
{
	int entered = v->netns_fd < 0 ? unshare(CLONE_NEWNET) : setns(v->netns_fd, CLONE_NEWNET);

	return entered < 0 ? -errno : v->what(v->context);
}

static void *visit_run(void *argument)
{
	struct visit *v = argument;

	v->result = visit(v);
	return NULL;
}

static int visit_in_thread(struct visit *v)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, visit_run, v);

	if (rc)
		return -rc;
	pthread_join(thread, NULL);
	return v->result;
}

/* netns_keep_home(). A child that was forked may have moved, and so may another thread. */
static struct {
	int fd; /* -1: none is kept */
	pid_t thread;
	bool away; /* its thread is inside another namespace */
} kept = {-1, 0, false};

void netns_keep_home(int home)
{
	kept.fd = home >= 0 && setns(home, CLONE_NEWNET) == 0 ? home : -1;
	kept.thread = gettid();
	kept.away = false;
}

static int visit_from_home(const struct visit *v)
{
	int rc;

	kept.away = true;
	rc = visit(v);
	if (setns(kept.fd, CLONE_NEWNET) < 0)
		die(EXIT_FAILED, "cannot return to the host's network namespace: %s",
		        strerror(errno));
	kept.away = false;
	return rc;
}

/* Joining one's own namespace needs the same permission as returning to it. A process with that
 * permission that fails to return must not go on, because it would do in a sandbox's namespace what
 * is meant for the host's. */
static int visit_and_return(struct visit *v)
{
	int home, rc;

	if (kept.fd >= 0 && kept.thread == gettid() && !kept.away)
		return visit_from_home(v);
	home = netns_current();
	if (home < 0)
		return visit_in_thread(v);
	if (setns(home, CLONE_NEWNET) < 0) {
		rc = visit_in_thread(v);
	} else {
		rc = visit(v);
		if (setns(home, CLONE_NEWNET) < 0)
			die(EXIT_FAILED, "cannot return to the host's network namespace: %s",
			        strerror(errno));
	}
	close(home);
	return rc;
}

static int open_current(void *context)
{
	(void)context;
	return netns_current();
}

int netns_new(void)
{
	struct visit v = {.netns_fd = -1, .what = open_current};

	return visit_and_return(&v);
}

int netns_run(int netns_fd, int (*what)(void *context), void *context)
{
	struct visit v = {.netns_fd = netns_fd, .what = what, .context = context};

	return netns_fd < 0 ? -EBADF : visit_and_return(&v);
}
