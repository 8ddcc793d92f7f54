/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Destinations that are other sandboxes: NAME.sandbox.internal. Such a name is never looked up, and
 * such a connection never goes through a network. The supervisor finds the called sandbox and sends
 * its worker one end of a pair of Unix sockets; this worker gets the other end. Only a rule that
 * allows the name permits a call: mode observe does not.
 */
#include <errno.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "proxy/dial/private.h"
#include "vethguard/policy/expose.h"

#define CALL_AGAIN_MS 20

static const struct slice suffix = {POLICY_SANDBOX_SUFFIX, sizeof(POLICY_SANDBOX_SUFFIX) - 1};

bool dial_is_call(const struct destination *destination)
{
	struct slice host = destination_host(destination);

	return host.n > suffix.n && slice_ends_with(host, suffix);
}

static void fail(struct dial *d, const char *detail)
{
	list_remove(&d->call);
	dial_fail(d, EVENT_CAUSE_CONNECT, detail);
	dial_finish(d);
}

/* Asks for the waiting calls, as many as the rate permits now. The supervisor kills a worker that
 * sends too much (supervisor/process/role.h). */
static void send_calls(struct proxy *p)
{
	struct list *next;

	for (struct list *l = p->calls.next; l != &p->calls; l = next) {
		struct dial *d = container_of(l, struct dial, call);
		struct slice name = destination_host(&d->destination);

		next = l->next;
		if (d->call_id)
			continue;
		if (!rate_take(&p->call_rate, clock_monotonic_ms())) {
			loop_timer_set(&p->call_again, CALL_AGAIN_MS);
			return;
		}
		name.n -= suffix.n;
		d->call_id = ++p->last_call;
		if (p->config.call(p->config.context, d->call_id, name, d->destination.port) != 0)
			fail(d, "the supervisor cannot be asked");
	}
}

static void on_again(struct loop_timer *timer)
{
	send_calls(container_of(timer, struct proxy, call_again));
}

int dial_calls_open(struct proxy *p)
{
	list_init(&p->calls);
	rate_init(&p->call_rate, DIAL_CALLS_PER_S, DIAL_CALLS_BURST_S, clock_monotonic_ms());
	return loop_timer_open(p->config.loop, &p->call_again, on_again);
}

void dial_calls_close(struct proxy *p)
{
	loop_timer_close(&p->call_again);
}

void dial_call(struct dial *d)
{
	struct proxy *p = d->proxy;

	if (d->decision.observed || !p->config.call) {
		fail(d, "mode observe opens no other sandbox: only a rule that names it does");
		return;
	}
	list_append(&p->calls, &d->call);
	send_calls(p);
}

static struct dial *find(struct proxy *p, uint64_t id)
{
	for (struct list *l = p->calls.next; l != &p->calls; l = l->next)
		if (container_of(l, struct dial, call)->call_id == id)
			return container_of(l, struct dial, call);
	return NULL;
}

/* The dial may have been given up meanwhile. */
int proxy_called(struct proxy *p, uint64_t id, int fd)
{
	struct dial *d = find(p, id);

	if (id == 0 || id > p->last_call) {
		if (fd >= 0)
			close(fd);
		return -EBADMSG;
	}
	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (fd < 0) {
		fail(d, "no sandbox of that name exposes this port to this one now");
		return 0;
	}
	if (loop_io_open(p->config.loop, &d->io, fd, SOCKET_EVENTS, dial_on_early) < 0) {
		close(fd);
		fail(d, "no memory");
		return 0;
	}
	list_remove(&d->call);
	d->result.fd = fd;
	d->result.events = LOOP_WRITE;
	dial_finish(d);
	return 0;
}
