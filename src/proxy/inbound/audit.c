/* SPDX-License-Identifier: Apache-2.0 */
/* A refused visitor may come again and again and must not fill the log. So the first refused visits
 * of a second get an event each, and the others are counted in one event. */
#include <stdio.h>

#include "proxy/inbound/inbound.h"

#define SECOND_MS 1000

static void put(struct inbound *in, const struct event *e)
{
	in->proxy->config.record(in->proxy->config.context, e);
}

static void tell_more(struct inbound *in)
{
	char detail[96];

	if (in->more == 0)
		return;
	snprintf(detail, sizeof(detail),
	        "the last of %llu more connections refused within a second",
	        (unsigned long long)in->more);
	in->last_more.detail = slice_from_string(detail);
	in->last_more.rule = slice_of("", 0); /* the policy may have changed since */
	in->more = 0;
	put(in, &in->last_more);
}

void inbound_on_second(struct loop_timer *timer)
{
	struct inbound *in = container_of(timer, struct inbound, second);

	in->counting = false;
	tell_more(in);
}

void inbound_record_refused(struct inbound *in, const struct event *e)
{
	if (!in->counting) {
		in->counting = true;
		in->told = 0;
		loop_timer_set(&in->second, SECOND_MS);
	}
	if (in->told < INBOUND_REFUSED_PER_S) {
		in->told++;
		put(in, e);
		return;
	}
	in->more++;
	in->last_more = *e;
	in->last_more.user = slice_of(in->last_user,
	        e->user.n < sizeof(in->last_user) ? e->user.n : sizeof(in->last_user));
	if (in->last_more.user.n)
		memcpy(in->last_user, e->user.p, in->last_more.user.n);
}
