/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the configuration names a proxy (egress.proxy), attempts are made to it, and the one that
 * connects asks it for a tunnel to the destination: under its name, which the proxy resolves, or to
 * the addresses that passed here, one after the other. Nobody else notices.
 */
#include <unistd.h>

#include "proxy/dial/private.h"

/* The tunnel is not there. Another address of the destination may be reachable where this one was
 * not. */
static void proxy_refused(struct dial *d, enum egress_answer answer, unsigned status)
{
	loop_io_close(&d->io);
	close(d->result.fd);
	d->result.fd = -1;
	dial_fail(d, EVENT_CAUSE_CONNECT, egress_refusal_text(answer, status));
	if (answer == EGRESS_REFUSED && status >= 500 && ++d->target < d->target_count)
		dial_proxy(d);
	else
		dial_finish(d);
}

static void hear_proxy(struct dial *d)
{
	unsigned status = 0;
	enum egress_answer answer = egress_listen(d->result.fd, &status);

	if (answer == EGRESS_MORE && !(d->result.events & LOOP_CLOSED))
		return;
	if (answer == EGRESS_MORE)
		answer = EGRESS_ENDED;
	if (answer != EGRESS_OPEN) {
		proxy_refused(d, answer, status);
		return;
	}
	d->io.on_ready = dial_on_early;
	d->result.events |= LOOP_READ; /* something may stand behind the head */
	d->result.address = d->target_count ? d->targets[d->target] : (struct ip){0};
	dial_finish(d);
}

static void on_proxy(struct loop_io *io, unsigned events)
{
	struct dial *d = container_of(io, struct dial, io);

	d->result.events |= events;
	hear_proxy(d);
}

void dial_ask_proxy(struct dial *d)
{
	char text[POLICY_HOST_MAX + 16];
	struct destination target = d->destination;

	if (d->target_count) {
		target.host_n = 0;
		target.address = d->targets[d->target];
	}
	d->io.on_ready = on_proxy;
	if (egress_ask(d->result.fd, destination_text(&target, text),
	            d->proxy->config.egress_authorization) < 0)
		proxy_refused(d, EGRESS_ENDED, 0);
	else
		hear_proxy(d);
}

static void on_proxy_found(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	struct dial *d = container_of(wait, struct dial, waiting);

	for (d->count = 0; d->count < answer->count; d->count++)
		d->addresses[d->count] = answer->addresses[d->count];
	if (!d->count)
		dial_fail(d, EVENT_CAUSE_RESOLVE, "the egress proxy's name cannot be resolved");
	dial_try_next(d);
}

/* From the beginning: to the proxy's addresses. These are the operator's and not judged. */
void dial_proxy(struct dial *d)
{
	const struct config_egress *egress = d->proxy->config.egress;
	const struct resolver_answer *answer;

	d->count = d->next = 0;
	if (!egress->proxy_host[0]) {
		d->addresses[d->count++] = egress->proxy_address;
		dial_try_next(d);
		return;
	}
	d->waiting.on_answer = on_proxy_found;
	answer = resolver_get(
	        d->proxy->config.resolver, slice_from_string(egress->proxy_host), &d->waiting);
	if (answer)
		on_proxy_found(&d->waiting, answer);
}
