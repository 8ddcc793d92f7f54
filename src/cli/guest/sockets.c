/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets with a path belong to no namespace: any process that sees the file may connect, and
 * a program outside that fetches URLs or starts processes may be behind it. So the kernel asks init
 * about each call that could reach one, and init makes the call for the caller, to a socket that it
 * has judged before (guest/socket_name.c). The caller may not continue with such a call itself:
 * between init's look and the kernel's it could change the address, the file at the path, and what
 * the descriptor refers to.
 *
 * The caller may continue (SECCOMP_USER_NOTIF_FLAG_CONTINUE) if none of these matters, that is, if
 * both are true:
 *
 * - The descriptor is not a Unix socket or, for a message, is one that takes no address (only
 *   datagram sockets do).
 * - Nobody can put another socket in its place meanwhile. That holds for a process with one thread
 *   that shares its descriptors with no other process: it waits, and so does nothing else. Calls
 *   that make processes which share descriptors are asked about too; from the first such call on,
 *   no process of the sandbox counts as alone.
 *
 * A filter below this one that hands calls to a supervisor of its own would take precedence. The
 * kernel permits one listener (EBUSY), so there is no such filter.
 *
 * This is a thread of init, with init's rights, which reach nothing but the sandbox. Nobody inside
 * can kill or trace init, and when init ends, so does everything inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/guest/sockets.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS /* Linux 6.6 */
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#define WAITING_MAX 4096     /* calls that wait for room or for a peer */
#define WAITING_FILES 3      /* descriptors of each */
#define OTHER_FILES 400      /* all others: known files and those of a message */
#define TRIED_AT_ONCE 16     /* waiting calls that are tried in one turn */
#define AT_ONCE 64           /* questions that are taken before the waiting calls have their turn */
#define LOOK_AGAIN_MS 2      /* first pause of a call that no descriptor reports */
#define LOOK_AGAIN_MAX_MS 50 /* longest pause, after which a missing caller is noticed */
#define SIGNAL_EVERY_MS 250  /* how often a pending signal of the caller is looked for */
#define GO_ON LONG_MAX       /* answer: the kernel makes the call */
#define WAIT LONG_MIN        /* no answer yet */

struct waiting {
	struct caller caller;
	struct socket_name name; /* of a connection */
	struct caller_ids ids;
	bool named;
	bool connecting; /* a TCP connection that the kernel makes */
	int pause_ms;
	long long next_ms, signal_ms, end_ms; /* end: of SO_SNDTIMEO; 0: none */
};

static struct {
	int listener;
	size_t size;        /* of what the kernel writes */
	size_t waiting_max; /* limited by the number of descriptors */
	bool tables_shared;
	struct seccomp_notif *question;
	struct waiting *waiting[WAITING_MAX];
	struct pollfd polled[WAITING_MAX + 1];
	size_t count, next; /* next: whose turn it is */
} sockets;

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void answer(const struct caller *c, long result)
{
	struct seccomp_notif_resp r = {.id = c->id};

	if (result == GO_ON)
		r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (result < 0)
		r.error = (int)result;
	else
		r.val = result;
	ioctl(sockets.listener, (int)SECCOMP_IOCTL_NOTIF_SEND, &r); /* ENOENT: the caller is gone */
}

/* True if the kernel's own call would use the socket that was looked at, and that socket reaches
 * nothing outside. */
static bool may_go_on(const struct caller *c)
{
	if (c->domain == AF_UNIX && (c->call == JAIL_CALL_CONNECT || c->type == SOCK_DGRAM))
		return false;
	return !sockets.tables_shared && caller_is_alone(c) && caller_is_there(c);
}

/* O_NONBLOCK is a property of the open file, and connect(2) has no flag for it: it is set for this
 * moment. */
static long connect_now(const struct caller *c, const struct socket_name *name)
{
	int flags = c->blocks ? fcntl(c->socket, F_GETFL) : 0;
	long rc;

	if (c->blocks)
		fcntl(c->socket, F_SETFL, flags | O_NONBLOCK);
	rc = connect(c->socket, &name->address.any, name->n) != 0 ? -errno : 0;
	if (c->blocks)
		fcntl(c->socket, F_SETFL, flags);
	return rc;
}

/* The peer is told the caller's ids. */
static long connect_as(struct waiting *w)
{
	const struct caller *c = &w->caller;
	long rc = c->domain == AF_UNIX ? caller_lend(&w->ids) : 0;

	if (rc == 0)
		rc = caller_is_there(c) ? connect_now(c, &w->name) : -EINTR;
	caller_return();
	return rc;
}

/* The judged file stays open, and every further try connects to it. */
static long make_connection(struct waiting *w)
{
	const struct caller *c = &w->caller;
	long rc = 0;

	if (!w->named) {
		rc = socket_name_take(c, c->args[1], c->args[2], &w->name);
		w->named = rc == 0;
	}
	if (rc == 0 && c->domain == AF_UNIX && w->pause_ms == 0)
		rc = caller_ids(c, &w->ids);
	return rc == 0 ? connect_as(w) : rc;
}

static long connection_end(const struct caller *c)
{
	int rc = 0;
	socklen_t n = sizeof(rc);

	return getsockopt(c->socket, SOL_SOCKET, SO_ERROR, &rc, &n) != 0 ? -errno : -rc;
}

static long try(struct waiting *w)
{
	struct caller *c = &w->caller;
	int flags = 0;
	long rc;

	if (w->connecting)
		return connection_end(c);
	if (c->call == JAIL_CALL_CONNECT) {
		rc = make_connection(w);
		w->connecting = rc == -EINPROGRESS;
		return c->blocks && (rc == -EINPROGRESS || rc == -EAGAIN) ? WAIT : rc;
	}
	rc = socket_send(c);
	flags = (int)c->args[c->call == JAIL_CALL_SENDMSG ? 2 : 3];
	return rc == -EAGAIN && c->blocks && (flags & MSG_DONTWAIT) == 0 ? WAIT : rc;
}

static void set_end(struct waiting *w, long long now)
{
	struct timeval limit = {0, 0};
	socklen_t n = sizeof(limit);

	w->pause_ms = LOOK_AGAIN_MS;
	w->next_ms = now + w->pause_ms;
	w->signal_ms = now + SIGNAL_EVERY_MS;
	getsockopt(w->caller.socket, SOL_SOCKET, SO_SNDTIMEO, &limit, &n);
	if (limit.tv_sec > 0 || limit.tv_usec > 0)
		w->end_ms = now + limit.tv_sec * 1000LL + limit.tv_usec / 1000;
}

/* The descriptor reports progress only for a stream: a datagram waits for its receiver. */
static bool is_told(const struct waiting *w)
{
	return w->connecting ||
	       (w->caller.call != JAIL_CALL_CONNECT && w->caller.type == SOCK_STREAM);
}

/* Returns the answer, or WAIT. */
static long go_on_with(struct waiting *w, bool told, long long now)
{
	long rc = WAIT;

	if (now >= w->next_ms) {
		if (!caller_is_there(&w->caller))
			return -EINTR; /* nobody hears it */
		w->pause_ms =
		        w->pause_ms * 2 < LOOK_AGAIN_MAX_MS ? w->pause_ms * 2 : LOOK_AGAIN_MAX_MS;
		w->next_ms = now + w->pause_ms;
		told = told || !is_told(w);
	}
	if (told)
		rc = try(w);
	if (rc == WAIT && w->end_ms != 0 && now >= w->end_ms)
		rc = w->connecting ? -EINPROGRESS : -EAGAIN;
	if (rc == WAIT && now >= w->signal_ms) {
		w->signal_ms = now + SIGNAL_EVERY_MS;
		if (caller_has_signal(&w->caller))
			rc = -EINTR;
	}
	if ((rc == -EINTR || rc == -EAGAIN) && w->caller.done > 0)
		rc = (long)w->caller.done;
	return rc;
}

/* Closes everything of the caller's before it answers: what the caller closes next has to be closed
 * then, its port free, its peer told. */
static void finish(struct waiting *w, long result)
{
	if (w->named)
		socket_name_close(&w->name);
	caller_close(&w->caller);
	answer(&w->caller, result);
	free(w);
}

static void forget_finished(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < sockets.count; i++)
		if (sockets.waiting[i])
			sockets.waiting[kept++] = sockets.waiting[i];
	sockets.count = kept;
}

/* Tries a few in each turn, so that new callers do not wait for all of them. */
static void look_at_waiting(long long now)
{
	size_t first = sockets.next, budget = TRIED_AT_ONCE;
	bool finished = false;
	long rc;

	for (size_t n = 0; n < sockets.count && budget > 0; n++) {
		size_t i = (first + n) % sockets.count;
		struct waiting *w = sockets.waiting[i];
		bool told = sockets.polled[i + 1].revents != 0;

		if (!told && now < w->next_ms)
			continue;
		budget--;
		sockets.next = i + 1;
		rc = go_on_with(w, told, now);
		if (rc != WAIT) {
			finish(w, rc);
			sockets.waiting[i] = NULL;
			finished = true;
		}
	}
	if (finished)
		forget_finished();
}

static long begin(struct waiting *w)
{
	struct caller *c = &w->caller;
	long rc;

	if (c->call == JAIL_CALL_CLONE) {
		sockets.tables_shared = true;
		return GO_ON;
	}
	if (c->call == JAIL_CALL_OTHER)
		return -ENOSYS;
	rc = caller_open(c);
	if (rc != 0)
		return rc;
	if (may_go_on(c))
		return GO_ON;
	rc = try(w);
	if (rc == WAIT && sockets.count >= sockets.waiting_max)
		rc = -ENOBUFS;
	return rc;
}

static int take_question(void)
{
	const struct seccomp_data *data = &sockets.question->data;
	struct waiting *w;
	long rc;

	memset(sockets.question, 0, sockets.size);
	if (ioctl(sockets.listener, (int)SECCOMP_IOCTL_NOTIF_RECV, sockets.question) != 0)
		return errno == EINTR || errno == ENOENT ? 0 : -errno;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->caller = (struct caller){.listener = sockets.listener,
	        .id = sockets.question->id,
	        .tid = (pid_t)sockets.question->pid,
	        .pidfd = -1,
	        .socket = -1};
	w->caller.call = jail_call_find(data->arch, (uint32_t)data->nr, &w->caller.native);
	for (size_t i = 0; i < 6; i++)
		w->caller.args[i] = data->args[i];
	rc = begin(w);
	if (rc != WAIT) {
		finish(w, rc);
		return 0;
	}
	set_end(w, now_ms());
	sockets.waiting[sockets.count++] = w;
	return 0;
}

static int wait_for_something(void)
{
	long long next = LLONG_MAX, now = now_ms();

	sockets.polled[0] = (struct pollfd){.fd = sockets.listener, .events = POLLIN};
	for (size_t i = 0; i < sockets.count; i++) {
		const struct waiting *w = sockets.waiting[i];

		sockets.polled[i + 1] = (struct pollfd){
		        .fd = is_told(w) ? w->caller.socket : -1, .events = POLLOUT};
		next = w->next_ms < next ? w->next_ms : next;
	}
	next = next < now ? now : next;
	return poll(sockets.polled, sockets.count + 1, sockets.count > 0 ? (int)(next - now) : -1);
}

static int take_questions(void)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < AT_ONCE && (sockets.polled[0].revents & POLLIN) != 0; i++) {
		rc = take_question();
		if (poll(sockets.polled, 1, 0) < 1)
			sockets.polled[0].revents = 0;
	}
	return rc;
}

/* If it cannot continue, init ends, and everything inside with it. */
static void *serve(void *unused)
{
	(void)unused;
	caller_start();
	for (;;) {
		if (wait_for_something() < 0 && errno != EINTR)
			_exit(CLI_FAILED);
		if (sockets.count > 0)
			look_at_waiting(now_ms());
		if (take_questions() != 0)
			_exit(CLI_FAILED);
		if ((sockets.polled[0].revents & (POLLHUP | POLLERR)) != 0)
			return NULL; /* nobody is left who could ask */
	}
}

/* Call this after the command was started: the command keeps its caller's limit on open files. */
static int make_room(void)
{
	struct seccomp_notif_sizes sizes;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_NOFILE, &files);
	sockets.waiting_max =
	        files.rlim_cur < OTHER_FILES ? 0 : (files.rlim_cur - OTHER_FILES) / WAITING_FILES;
	if (sockets.waiting_max > WAITING_MAX)
		sockets.waiting_max = WAITING_MAX;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0)
		return -errno;
	sockets.size = sizes.seccomp_notif > sizeof(struct seccomp_notif)
	                       ? sizes.seccomp_notif
	                       : sizeof(struct seccomp_notif);
	sockets.question = malloc(sockets.size);
	return sockets.question ? 0 : -ENOMEM;
}

int sockets_start(int listener)
{
	pthread_t thread;
	int rc = make_room();

	sockets.listener = listener;
	/* The caller sleeps while this thread works: one CPU is enough for both. */
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	if (rc == 0)
		rc = -pthread_create(&thread, NULL, serve, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return rc;
}
