/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels: the associations for flows. A flow without a channel joins the first of these:
 *
 * 1. an association that carries no flow with the same destination;
 * 2. one whose flow with that destination belongs to a socket that is closed (that flow ends);
 * 3. a new one;
 * 4. one whose flow with that destination has been idle for long (that flow ends).
 *
 * So a program that asks one server by a new socket each time needs few associations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "association.h"
#include "connect.h"
#include "udp.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/wire/socks5.h"

bool udp_is_closed(const struct udp *u)
{
	return clock_monotonic_ms() < u->closed_until_ms;
}

void udp_warn_of_bound(struct udp *u)
{
	if (!u->warned_of_bound)
		log_warn("datagrams are dropped: more than %d flows, or more than %d programs with "
		         "one destination, at a time",
		        FLOWS_MAX, ASSOCIATIONS_MAX);
	u->warned_of_bound = true;
}

static bool has_destination(const struct flow *f, const struct flow *other)
{
	if (*f->host || *other->host)
		return f->destination.port == other->destination.port &&
		       strcmp(f->host, other->host) == 0;
	return endpoint_equals(&f->destination, &other->destination);
}

void channel_leave(struct flow *f)
{
	if (f->channel) {
		f->channel->flow_count--;
		f->channel->used_ms = clock_monotonic_ms();
	}
	f->channel = NULL;
}

void channel_free(struct channel *ch)
{
	list_remove(&ch->place);
	association_free(ch->association);
	free(ch);
}

static void on_ready(void *context)
{
	struct channel *ch = context;

	ch->udp->warned = NULL;
}

static bool is_from(const struct flow *f, const struct socks5_header *from)
{
	if (*f->host)
		return f->destination.port == from->port &&
		       slice_equals(from->name, slice_from_string(f->host));
	return !from->name.n && f->destination.port == from->port &&
	       ip_equals(&f->destination.address, &from->address);
}

/* Drops an answer from a destination to which no flow of the channel goes. */
static void on_received(void *context, const struct socks5_header *from, const uint8_t *p, size_t n)
{
	struct channel *ch = context;
	struct list *all = &ch->udp->flows;

	for (struct list *at = all->prev; at != all; at = at->prev) {
		struct flow *f = container_of(at, struct flow, place);

		if (f->channel != ch || !is_from(f, from))
			continue;
		flow_touch(f);
		if (send(f->fd, p + from->used, n - from->used, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
		        errno == ECONNREFUSED) /* an earlier answer has met a closed socket */
			flow_free(f);
		return;
	}
}

static void tell(struct udp *u, enum association_end end, const char *why)
{
	if (u->warned == why)
		log_debug("udp: %s", why);
	else if (end != ASSOCIATION_FAILED)
		log_warn("datagrams are refused: %s", why);
	else
		log_warn("datagrams do not reach the gateway: %s", why);
	u->warned = why;
}

/* Opens no association for a while. The gateway slows down addresses that show it many wrong
 * tokens. */
static void close_for(struct udp *u, enum association_end end, const char *why)
{
	static const int64_t times_ms[] = {[ASSOCIATION_REFUSED] = REFUSED_MS,
	        [ASSOCIATION_UNKNOWN] = UNKNOWN_MS,
	        [ASSOCIATION_FAILED] = FAILED_MS};

	tell(u, end, why);
	u->is_refused = end != ASSOCIATION_FAILED;
	u->closed_until_ms = clock_monotonic_ms() + times_ms[end];
}

static void on_ended(void *context, enum association_end end, const char *why)
{
	struct channel *ch = context;
	struct udp *u = ch->udp;
	struct list *next;

	if (end == ASSOCIATION_OVER)
		log_debug("udp: an association has ended: %s", why);
	else
		close_for(u, end, why);
	for (struct list *at = u->flows.next; at != &u->flows; at = next) {
		struct flow *f = container_of(at, struct flow, place);

		next = at->next;
		if (f->channel != ch)
			continue;
		channel_leave(f);
		if (end != ASSOCIATION_OVER && u->is_refused) {
			unreachable_send(&f->client, &f->destination, 0);
			flow_free(f);
		}
	}
	channel_free(ch);
}

static const struct association_ops ops = {on_ready, on_received, on_ended};

static struct channel *channel_open(struct udp *u)
{
	struct channel *ch = udp_is_closed(u) ? NULL : calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->udp = u;
	ch->used_ms = clock_monotonic_ms();
	ch->association = association_open(u->connect, &ops, ch);
	if (!ch->association) {
		free(ch);
		return NULL;
	}
	list_append(&u->channels, &ch->place);
	return ch;
}

/* --- which channel a flow joins --- */

static bool carries_destination(const struct channel *ch, const struct flow *f)
{
	for (struct list *at = ch->udp->flows.next; at != &ch->udp->flows; at = at->next) {
		const struct flow *other = container_of(at, struct flow, place);

		if (other->channel == ch && has_destination(other, f))
			return true;
	}
	return false;
}

static struct channel *find_free(const struct flow *f)
{
	struct list *all = &f->udp->channels;

	for (struct list *at = all->next; at != all; at = at->next) {
		struct channel *ch = container_of(at, struct channel, place);

		if (!carries_destination(ch, f))
			return ch;
	}
	return NULL;
}

/* Ends another flow with this destination, and returns its channel: one whose client is gone, or
 * with idle_ms >= 0 the first that has been idle for so long. Returns NULL if there is none. */
static struct channel *take_over(const struct flow *f, int64_t idle_ms)
{
	const int64_t now_ms = clock_monotonic_ms();
	struct list *all = &f->udp->flows;

	for (struct list *at = all->next; at != all; at = at->next) {
		struct flow *other = container_of(at, struct flow, place);
		struct channel *ch = other->channel;

		if (other == f || !ch || !has_destination(other, f))
			continue;
		if (idle_ms < 0 ? capture_is_gone(&other->client)
		                : now_ms - other->used_ms >= idle_ms) {
			flow_free(other);
			return ch;
		}
	}
	return NULL;
}

bool channel_join(struct flow *f)
{
	struct udp *u = f->udp;
	struct channel *ch = find_free(f);

	if (!ch)
		ch = take_over(f, -1);
	if (!ch)
		ch = channel_open(u);
	if (!ch && !udp_is_closed(u)) {
		ch = take_over(f, FLOW_YIELDS_MS);
		if (!ch)
			udp_warn_of_bound(u);
	}
	if (!ch)
		return false;
	f->channel = ch;
	ch->flow_count++;
	ch->used_ms = clock_monotonic_ms();
	return true;
}
