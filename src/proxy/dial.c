/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dialling: name -> addresses -> those that may be dialled -> a connection, in the manner of RFC
 * 8305: families in turn, a further attempt whenever the last one failed or has taken 250 ms, the
 * first to connect wins.
 *
 * An address of this host itself is refused like a private one: a public name that resolves to it
 * would reach services that trust local callers. The kernel tells: the source address it chose for
 * the connection is the destination's.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/private.h"

#define STAGGER_MS 250

struct attempt {
	struct loop_io io;
	struct dial *dial;
	struct ip address;
	int fd; /* -1: not under way */
};

struct dial {
	struct proxy *proxy;
	struct destination destination;
	struct policy_decision decision;
	dial_done done;
	void *context;
	struct resolver_wait waiting;
	struct ip addresses[RESOLVER_ADDRESSES_MAX];
	size_t count, next, running;
	struct attempt attempts[RESOLVER_ADDRESSES_MAX];
	struct loop_timer stagger;
	struct dial_result result; /* of a failure so far */
	struct loop_task finish;
};

static void attempt_close(struct attempt *a)
{
	if (a->fd < 0)
		return;
	loop_io_close(&a->io);
	close(a->fd);
	a->fd = -1;
	a->dial->running--;
}

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	resolver_wait_cancel(&d->waiting);
	for (size_t i = 0; i < d->count; i++)
		attempt_close(&d->attempts[i]);
	loop_timer_close(&d->stagger);
	loop_task_cancel(d->proxy->config.loop, &d->finish);
	if (d->result.fd >= 0)
		close(d->result.fd);
	free(d);
}

/* Results are told in a task, so that done is never called from within dial_start() or a resolver's
 * callback. */
static void on_finish(struct loop_task *task)
{
	struct dial *d = container_of(task, struct dial, finish);
	struct dial_result result = d->result;
	dial_done done = d->done;
	void *context = d->context;

	d->result.fd = -1;
	dial_cancel(d);
	done(context, &result);
}

static void finish(struct dial *d)
{
	loop_task_queue(d->proxy->config.loop, &d->finish);
}

static void fail(struct dial *d, enum event_cause cause, const char *detail)
{
	d->result.cause = cause;
	d->result.detail = detail;
}

static void try_next(struct dial *d);

static void won(struct attempt *a)
{
	struct dial *d = a->dial;

	loop_io_close(&a->io);
	d->result.fd = a->fd;
	d->result.address = a->address;
	a->fd = -1;
	d->running--;
	for (size_t i = 0; i < d->count; i++)
		attempt_close(&d->attempts[i]);
	loop_timer_cancel(&d->stagger);
	finish(d);
}

static const char *connect_error_text(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return "the destination refused the connection";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "there is no route to the destination";
	case ETIMEDOUT:
		return "the destination did not answer";
	case EACCES:
	case EPERM:
		return "connecting to that port is not permitted by this worker's confinement";
	default:
		return "the connection could not be made";
	}
}

static void on_connect(struct loop_io *io, unsigned events)
{
	struct attempt *a = container_of(io, struct attempt, io);
	struct dial *d = a->dial;
	int error = 0;
	socklen_t n = sizeof error;

	(void)events;
	if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error == 0) {
		won(a);
		return;
	}
	fail(d, EVENT_CAUSE_CONNECT, connect_error_text(error));
	attempt_close(a);
	try_next(d);
}

bool dial_may_connect(
        const struct proxy *proxy, const struct policy_decision *decision, const struct ip *address)
{
	struct sockaddr_storage to, local;
	socklen_t n = ip_to_sockaddr(address, 9, &to), local_n = sizeof local;
	struct ip source = {0};
	int fd;

	if (decision->names_address)
		return true;
	for (size_t i = 0; i < proxy->config.permit_count; i++) {
		const struct ip_prefix *permit = &proxy->config.permit[i];

		if (permit->bits == (address->family == 4 ? 32 : 128) &&
		        ip_in_prefix(address, permit))
			return true;
	}
	/* Connecting a datagram socket sends nothing and tells which source address the kernel
	 * would use. */
	fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (struct sockaddr *)&to, n) == 0 &&
	        getsockname(fd, (struct sockaddr *)&local, &local_n) == 0)
		source = ip_from_sockaddr((struct sockaddr *)&local, NULL);
	close(fd);
	return !ip_equals(&source, address);
}

/* Starts one attempt; false: it failed at once. */
static bool attempt_start(struct dial *d, struct attempt *a)
{
	struct sockaddr_storage to;
	socklen_t n = ip_to_sockaddr(&a->address, d->destination.port, &to);
	int r;

	if (!dial_may_connect(d->proxy, &d->decision, &a->address)) {
		fail(d, EVENT_CAUSE_ADDRESS, "the name resolves to an address of this host itself");
		return false;
	}
	a->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (a->fd < 0) {
		fail(d, EVENT_CAUSE_LIMIT, "no descriptor is left for a connection");
		return false;
	}
	d->running++;
	r = connect(a->fd, (struct sockaddr *)&to, n);
	if (r < 0 && errno != EINPROGRESS) {
		fail(d, EVENT_CAUSE_CONNECT, connect_error_text(errno));
	} else if (r == 0) {
		won(a);
		return true;
	} else if (loop_io_open(d->proxy->config.loop, &a->io, a->fd, LOOP_WRITE, on_connect) ==
	           0) {
		return true;
	} else {
		fail(d, EVENT_CAUSE_LIMIT, "no memory for a connection");
	}
	attempt_close(a);
	return false;
}

static void try_next(struct dial *d)
{
	if (d->result.fd >= 0)
		return;
	while (d->next < d->count) {
		struct attempt *a = &d->attempts[d->next];

		a->address = d->addresses[d->next++];
		if (!attempt_start(d, a))
			continue;
		if (d->result.fd < 0)
			loop_timer_set(&d->stagger, STAGGER_MS);
		return;
	}
	if (d->running == 0)
		finish(d);
}

static void on_stagger(struct loop_timer *timer)
{
	struct dial *d = container_of(timer, struct dial, stagger);

	if (d->next < d->count)
		try_next(d);
}

/* Keeps the addresses that may be dialled, IPv6 and IPv4 in turn. */
static void choose(struct dial *d, const struct ip *all, size_t count)
{
	const struct ip *families[2][RESOLVER_ADDRESSES_MAX];
	size_t n[2] = {0, 0}, i[2] = {0, 0};
	bool refused = false;

	for (size_t k = 0; k < count && k < RESOLVER_ADDRESSES_MAX; k++) {
		if (judge_address(d->proxy, &d->decision, &all[k]))
			families[all[k].family == 4][n[all[k].family == 4]++] = &all[k];
		else
			refused = true;
	}
	for (unsigned f = 0; i[0] < n[0] || i[1] < n[1]; f ^= 1)
		if (i[f] < n[f])
			d->addresses[d->count++] = *families[f][i[f]++];
	if (d->count == 0 && refused)
		fail(d, EVENT_CAUSE_ADDRESS,
		        "the destination is a private or otherwise special address, which no rule "
		        "names and the configuration does not permit");
}

static void resolved(struct dial *d, const struct resolver_answer *answer)
{
	if (!answer->count)
		fail(d, EVENT_CAUSE_RESOLVE, answer->error);
	else
		choose(d, answer->addresses, answer->count);
	try_next(d);
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	resolved(container_of(wait, struct dial, waiting), answer);
}

struct dial *dial_start(struct proxy *proxy, const struct destination *destination,
        const struct policy_decision *decision, dial_done done, void *context)
{
	struct dial *d = calloc(1, sizeof *d);

	if (!d)
		return NULL;
	d->proxy = proxy;
	d->destination = *destination;
	d->decision = *decision;
	d->done = done;
	d->context = context;
	d->result.fd = -1;
	d->waiting.on_answer = on_answer;
	d->finish.run = on_finish;
	for (size_t i = 0; i < RESOLVER_ADDRESSES_MAX; i++) {
		d->attempts[i].dial = d;
		d->attempts[i].fd = -1;
	}
	if (loop_timer_open(proxy->config.loop, &d->stagger, on_stagger) < 0) {
		free(d);
		return NULL;
	}
	if (destination->host_n) {
		const struct resolver_answer *answer = resolver_get(
		        proxy->config.resolver, destination_host(&d->destination), &d->waiting);

		if (answer)
			resolved(d, answer);
	} else {
		choose(d, &destination->address, destination->address.family != 0);
		try_next(d);
	}
	return d;
}
