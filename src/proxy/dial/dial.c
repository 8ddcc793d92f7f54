/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dialing: name -> addresses -> those that may be dialed -> a connection.
 *
 * Here: which addresses may be dialed, and a dial's beginning and end. An address of this host
 * itself is refused like a private one: a public name that resolves to it would reach services that
 * trust local callers. The kernel tells, and nothing is sent to ask it. That an address is not the
 * host's is believed for NOT_OWN_MS.
 *
 * A socket is registered with the loop once: its next owner gets the registration too.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/loop/own_address.h"
#include "proxy/dial/private.h"
#include "proxy/exchange/authorize.h"

#define NOT_OWN_MS 5000

/* --- the end --- */

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	resolver_wait_cancel(&d->waiting);
	list_remove(&d->call);
	for (size_t i = 0; i < d->count; i++)
		dial_attempt_close(&d->attempts[i]);
	loop_timer_close(&d->stagger);
	loop_task_cancel(d->proxy->config.loop, &d->finish);
	loop_io_close(&d->io);
	if (d->result.fd >= 0)
		close(d->result.fd);
	free(d);
}

void dial_on_early(struct loop_io *io, unsigned events)
{
	container_of(io, struct dial, io)->result.events |= events;
}

/* The end of a dial, at level debug. */
static void trace_result(const struct dial *d)
{
	if (d->result.fd >= 0)
		log_debug("dial %s:%u: connected", d->destination.host, d->destination.port);
	else
		log_debug("dial %s:%u: failed: %s", d->destination.host, d->destination.port,
		        d->result.detail ? d->result.detail : "no reason");
}

/* Results are told in a task, so that done is never called from within dial_start() or a resolver's
 * callback. */
static void on_finish(struct loop_task *task)
{
	struct dial *d = container_of(task, struct dial, finish);
	struct dial_result result = d->result;
	dial_done done = d->done;
	void *context = d->context;
	struct loop_io io = {0};

	trace_result(d);
	if (result.fd >= 0)
		loop_io_move(&d->io, &io, dial_on_early);
	result.io = &io;
	d->result.fd = -1;
	dial_cancel(d);
	done(context, &result);
}

void dial_finish(struct dial *d)
{
	loop_task_queue(d->proxy->config.loop, &d->finish);
}

void dial_refuse_address(struct dial *d, const struct ip *address, const char *detail)
{
	dial_fail(d, EVENT_CAUSE_ADDRESS, detail);
	d->result.address = *address;
}

void dial_fail(struct dial *d, enum event_cause cause, const char *detail)
{
	d->result.cause = cause;
	d->result.detail = detail;
}

/* --- addresses --- */

/* Where an answer about the address is kept. */
static struct not_own *not_own_slot(struct proxy *proxy, const struct ip *address)
{
	unsigned sum = 0;

	for (size_t i = 0; i < sizeof(address->bytes); i++)
		sum = sum * 31 + address->bytes[i];
	return &proxy->not_own[sum % DIAL_NOT_OWN_KEPT];
}

bool dial_may_connect(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address)
{
	struct not_own *known = not_own_slot(proxy, address);
	int64_t now_ms;

	if (decision->names_exactly)
		return true;
	if (ip_networks_name(proxy->config.permit, proxy->config.permit_count, address))
		return true;
	now_ms = loop_now_ms(proxy->config.loop);
	if (now_ms < known->until_ms && ip_equals(&known->address, address))
		return true;
	if (own_address(address))
		return false;
	*known = (struct not_own){.address = *address, .until_ms = now_ms + NOT_OWN_MS};
	return true;
}

/* Keeps the addresses that may be dialed, IPv6 and IPv4 in turn. */
static void choose(struct dial *d, const struct ip *all, size_t count)
{
	const struct ip *families[2][RESOLVER_ADDRESSES_MAX];
	size_t n[2] = {0, 0}, i[2] = {0, 0};
	const struct ip *refused = NULL; /* the first */

	for (size_t k = 0; k < count && k < RESOLVER_ADDRESSES_MAX; k++) {
		if (authorize_address(d->proxy, &d->decision, &all[k]))
			families[all[k].family == 4][n[all[k].family == 4]++] = &all[k];
		else if (!refused)
			refused = &all[k];
	}
	for (unsigned f = 0; i[0] < n[0] || i[1] < n[1]; f ^= 1)
		if (i[f] < n[f])
			d->addresses[d->count++] = *families[f][i[f]++];
	if (d->count == 0 && refused)
		dial_refuse_address(d, refused,
		        "the destination is a private or otherwise special address, which no rule "
		        "names and the configuration does not permit");
}

/* The addresses that passed are the proxy's to dial. */
static void begin(struct dial *d)
{
	if (!d->through) {
		dial_try_next(d);
		return;
	}
	memcpy(d->targets, d->addresses, sizeof(d->targets));
	d->target_count = d->count;
	d->count = 0;
	if (d->target_count)
		dial_proxy(d);
	else
		dial_finish(d);
}

/* --- the beginning --- */

static void resolved(struct dial *d, const struct resolver_answer *answer)
{
	if (!answer->count)
		dial_fail(d, EVENT_CAUSE_RESOLVE, answer->error);
	else
		choose(d, answer->addresses, answer->count);
	begin(d);
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	resolved(container_of(wait, struct dial, waiting), answer);
}

struct dial *dial_start(struct proxy *proxy, const struct destination *destination,
        const struct policy_decision *decision, dial_done done, void *context)
{
	struct dial *d = calloc(1, sizeof(*d));

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
	if (slice_equals(destination_host(destination), SLICE(POLICY_OWN_HOST))) {
		dial_fail(d, EVENT_CAUSE_RESOLVE, "vethguard itself answers this name");
		dial_finish(d);
		return d;
	}
	if (dial_is_call(destination)) {
		dial_call(d);
		return d;
	}
	d->through = proxy->config.egress && proxy->config.egress->proxy_port;
	if (d->through && destination->host_n && !proxy->config.egress->resolve_local) {
		dial_proxy(d);
	} else if (destination->host_n) {
		const struct resolver_answer *answer = resolver_get(
		        proxy->config.resolver, destination_host(&d->destination), &d->waiting);

		if (answer)
			resolved(d, answer);
	} else {
		choose(d, &destination->address, destination->address.family != 0);
		begin(d);
	}
	return d;
}
