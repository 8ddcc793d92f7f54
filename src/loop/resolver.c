/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver over evdns. One struct resolver_query per name: it is asked about while its two
 * questions (A, AAAA) are out, an answer in the cache afterwards, until its ttl is over and the
 * next caller asks anew. Static hosts are queries that were answered at the start and never age.
 *
 * evdns sends no EDNS and retries no truncated answer over TCP; such a name fails with that reason.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <event2/dns.h>
#include <event2/event.h>

#include "loop/private.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/table.h"
#include "vethguard/loop/resolver.h"

#define SECOND_FAMILY_WAIT_MS 50
#define NEGATIVE_TTL_S 5

enum query_state { QUERY_IDLE, QUERY_ASKING, QUERY_ANSWERED };

struct resolver_query {
	struct resolver *resolver;
	enum query_state state;
	bool pinned; /* a static host */
	int64_t expires_ms;
	struct evdns_request *requests[2]; /* A, AAAA; NULL: not out */
	uint32_t ttl_s;
	int failure; /* last DNS error */
	struct resolver_answer answer;
	struct list waits;          /* struct resolver_wait */
	struct loop_timer patience; /* runs from the first family's answer */
	struct list age;            /* among those that are not pinned */
	UT_hash_handle hh;
	size_t host_n;
	char host[];
};

struct resolver {
	struct loop *loop;
	struct evdns_base *dns;
	struct resolver_query *queries;
	struct list by_age; /* struct resolver_query, the one asked for longest ago first */
	size_t cached;
	bool has_servers;
};

/* evdns has still to call back, with the query for argument. */
static bool is_out(const struct resolver_query *q)
{
	return q->requests[0] || q->requests[1];
}

static void query_cancel(struct resolver_query *q)
{
	for (int i = 0; i < 2; i++)
		if (q->requests[i])
			evdns_cancel_request(q->resolver->dns, q->requests[i]);
}

static void query_free(struct resolver *r, struct resolver_query *q)
{
	HASH_DEL(r->queries, q);
	if (!q->pinned) {
		list_remove(&q->age);
		r->cached--;
	}
	loop_timer_close(&q->patience);
	free(q);
}

/* Drops the oldest answers that nobody waits for and no request is out for. */
static void make_room(struct resolver *r)
{
	struct list *newer;

	for (struct list *l = r->by_age.next; l != &r->by_age && r->cached >= RESOLVER_CACHE_MAX;
	        l = newer) {
		struct resolver_query *q = container_of(l, struct resolver_query, age);

		newer = l->next;
		if (q->state != QUERY_ASKING && !is_out(q))
			query_free(r, q);
	}
}

static void on_patience(struct loop_timer *timer);

static struct resolver_wait *first_wait(const struct resolver_query *q)
{
	return container_of(q->waits.next, struct resolver_wait, place);
}

static struct resolver_query *query_new(struct resolver *r, struct slice host, bool pinned)
{
	struct resolver_query *q;

	make_room(r);
	if (r->cached >= RESOLVER_CACHE_MAX && !pinned)
		return NULL;
	q = calloc(1, sizeof *q + host.n + 1);
	if (!q)
		return NULL;
	q->resolver = r;
	q->pinned = pinned;
	list_init(&q->waits);
	memcpy(q->host, host.p, host.n);
	q->host_n = host.n;
	if (loop_timer_open(r->loop, &q->patience, on_patience) < 0) {
		free(q);
		return NULL;
	}
	HASH_ADD(hh, r->queries, host, host.n, q);
	if (!q->hh.tbl) {
		loop_timer_close(&q->patience);
		free(q);
		return NULL;
	}
	if (!pinned) {
		list_append(&r->by_age, &q->age);
		r->cached++;
	}
	return q;
}

static const char *failure_text(int failure)
{
	switch (failure) {
	case DNS_ERR_NONE:
	case DNS_ERR_NODATA:
		return "the name has no address";
	case DNS_ERR_NOTEXIST:
		return "the name does not exist";
	case DNS_ERR_TIMEOUT:
		return "no resolver answered in time";
	case DNS_ERR_TRUNCATED:
		return "the resolver's answer was truncated";
	case DNS_ERR_REFUSED:
		return "the resolver refused to answer";
	default:
		return "the resolver failed";
	}
}

static void query_finish(struct resolver_query *q)
{
	uint32_t ttl = q->ttl_s;

	if (!q->answer.count) {
		q->answer.error = failure_text(q->failure);
		ttl = NEGATIVE_TTL_S;
	}
	if (ttl > RESOLVER_TTL_MAX_S)
		ttl = RESOLVER_TTL_MAX_S;
	q->state = QUERY_ANSWERED;
	q->expires_ms = loop_now_ms(q->resolver->loop) + (int64_t)(ttl ? ttl : 1) * 1000;
	loop_timer_cancel(&q->patience);
	while (!list_is_empty(&q->waits)) {
		struct resolver_wait *wait = first_wait(q);

		resolver_wait_cancel(wait);
		wait->on_answer(wait, &q->answer);
	}
}

static void on_patience(struct loop_timer *timer)
{
	struct resolver_query *q = container_of(timer, struct resolver_query, patience);

	if (q->state == QUERY_ASKING)
		query_finish(q);
}

static void take_addresses(
        struct resolver_query *q, char type, int count, int ttl, const uint8_t *addresses)
{
	size_t width = type == DNS_IPv4_A ? 4 : 16;

	for (int i = 0; i < count && q->answer.count < RESOLVER_ADDRESSES_MAX; i++) {
		struct ip *ip = &q->answer.addresses[q->answer.count++];

		*ip = (struct ip){.family = width == 4 ? 4 : 6};
		memcpy(ip->bytes, addresses + (size_t)i * width, width);
	}
	if (ttl >= 0 && (uint32_t)ttl < q->ttl_s)
		q->ttl_s = (uint32_t)ttl;
}

static void on_family(struct resolver_query *q, unsigned family, int result, char type, int count,
        int ttl, const void *addresses)
{
	if (result == DNS_ERR_CANCEL)
		return;
	q->requests[family] = NULL;
	if (q->state != QUERY_ASKING) /* the second family came too late for this round */
		return;
	if (result == DNS_ERR_NONE && (type == DNS_IPv4_A || type == DNS_IPv6_AAAA))
		take_addresses(q, type, count, ttl, addresses);
	else if (result != DNS_ERR_NODATA || !q->failure)
		q->failure = result;
	if (!is_out(q))
		query_finish(q);
	else if (q->answer.count)
		loop_timer_set(&q->patience, SECOND_FAMILY_WAIT_MS);
}

static void on_ipv4(int result, char type, int count, int ttl, void *addresses, void *argument)
{
	on_family(argument, 0, result, type, count, ttl, addresses);
}

static void on_ipv6(int result, char type, int count, int ttl, void *addresses, void *argument)
{
	on_family(argument, 1, result, type, count, ttl, addresses);
}

/* evdns may call back from within the asking call only by its own deferred queue, never directly. A
 * family that is still out since an earlier round is not asked about again: its answer, however
 * late, will do. Nor could it be called off: an answer that has come already is told all the same,
 * later in this turn, and would pass for the new question's. */
static void query_ask(struct resolver_query *q)
{
	struct evdns_base *dns = q->resolver->dns;
	const int flags = DNS_QUERY_NO_SEARCH;

	memset(&q->answer, 0, sizeof q->answer);
	q->failure = 0;
	q->ttl_s = RESOLVER_TTL_MAX_S;
	q->state = QUERY_ASKING;
	if (!q->requests[0])
		q->requests[0] = evdns_base_resolve_ipv4(dns, q->host, flags, on_ipv4, q);
	if (!q->requests[1])
		q->requests[1] = evdns_base_resolve_ipv6(dns, q->host, flags, on_ipv6, q);
	if (!is_out(q)) {
		q->failure = DNS_ERR_UNKNOWN;
		loop_timer_set(&q->patience, 0);
	}
}

static int add_server(struct resolver *r, const struct config_server *server)
{
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&server->address, server->port ? server->port : 53, &ss);

	if (evdns_base_nameserver_sockaddr_add(r->dns, (struct sockaddr *)&ss, n, 0) != 0)
		return -EINVAL;
	r->has_servers = true;
	return 0;
}

static int add_host(struct resolver *r, const struct config_host *host)
{
	struct slice name = slice_from_string(host->name);
	struct resolver_query *q;

	HASH_FIND(hh, r->queries, name.p, name.n, q);
	if (!q)
		q = query_new(r, name, true);
	if (!q)
		return -ENOMEM;
	q->state = QUERY_ANSWERED;
	if (q->answer.count < RESOLVER_ADDRESSES_MAX)
		q->answer.addresses[q->answer.count++] = host->address;
	return 0;
}

static void set_patience(struct evdns_base *dns, uint32_t timeout_ms)
{
	char seconds[32];

	/* Two tries within the time that a name may take as a whole. */
	snprintf(seconds, sizeof seconds, "%u.%03u", timeout_ms / 2000, timeout_ms / 2 % 1000);
	evdns_base_set_option(dns, "timeout", seconds);
	evdns_base_set_option(dns, "attempts", "2");
	evdns_base_set_option(dns, "max-timeouts", "16");
	evdns_base_set_option(dns, "initial-probe-timeout", "1");
	evdns_base_set_option(dns, "max-inflight", "256");
}

struct resolver *resolver_new(struct loop *loop, const struct config_server *servers,
        size_t server_count, const struct config_host *hosts, size_t host_count,
        uint32_t timeout_ms)
{
	struct resolver *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->loop = loop;
	list_init(&r->by_age);
	r->dns = evdns_base_new(loop_base(loop), EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!r->dns)
		goto fail;
	set_patience(r->dns, timeout_ms);
	for (size_t i = 0; i < server_count; i++)
		if (add_server(r, &servers[i]) < 0)
			goto fail;
	for (size_t i = 0; i < host_count; i++)
		if (add_host(r, &hosts[i]) < 0)
			goto fail;
	return r;
fail:
	resolver_free(r);
	return NULL;
}

void resolver_free(struct resolver *r)
{
	struct resolver_query *q, *next;

	if (!r)
		return;
	HASH_ITER(hh, r->queries, q, next)
	{
		while (!list_is_empty(&q->waits))
			resolver_wait_cancel(first_wait(q));
		query_cancel(q);
		query_free(r, q);
	}
	if (r->dns)
		evdns_base_free(r->dns, 0);
	free(r);
}

static const struct resolver_answer *refuse(const char *why)
{
	static struct resolver_answer answer;

	answer.error = why;
	return &answer;
}

const struct resolver_answer *resolver_get(
        struct resolver *r, struct slice host, struct resolver_wait *wait)
{
	struct resolver_query *q;

	HASH_FIND(hh, r->queries, host.p, host.n, q);
	if (q && q->state == QUERY_ANSWERED && (q->pinned || loop_now_ms(r->loop) < q->expires_ms))
		return &q->answer;
	if (!r->has_servers)
		return refuse("no resolver is configured");
	if (!q)
		q = query_new(r, host, false);
	if (!q)
		return refuse("too many names are being resolved");
	if (!q->pinned) {
		list_remove(&q->age);
		list_append(&r->by_age, &q->age);
	}
	if (q->state != QUERY_ASKING)
		query_ask(q);
	wait->query = q;
	list_append(&q->waits, &wait->place);
	return NULL;
}

void resolver_wait_cancel(struct resolver_wait *wait)
{
	list_remove(&wait->place);
	wait->query = NULL;
}
