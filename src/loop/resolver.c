/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One struct resolver_query per name. While one of its two queries (A, AAAA) is under way
 * (resolver_query.h), callers wait for it; afterwards it is the cached answer until its ttl is over
 * and the next caller queries anew. Static hosts are answered at the start and never age.
 */
#include <errno.h>
#include <stdlib.h>

#include "loop/resolver_query.h"
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
	struct resolver_query *questions[2]; /* A, AAAA; NULL: not under way */
	uint32_t ttl_s;
	enum resolver_query_end failure; /* the worse of the two ends */
	struct resolver_answer answer;
	struct list waits;          /* struct resolver_wait */
	struct loop_timer patience; /* runs from the first family's answer on */
	struct list age;            /* in by_age, unless pinned */
	UT_hash_handle hh;
	size_t host_n;
	char host[];
};

struct resolver {
	struct loop *loop;
	struct questions questions;
	struct resolver_query *queries;
	struct list by_age; /* struct resolver_query, the least recently requested first */
	size_t cached;
};

static bool is_out(const struct resolver_query *q)
{
	return q->questions[0] || q->questions[1];
}

static void query_cancel(struct resolver_query *q)
{
	for (int i = 0; i < 2; i++) {
		resolver_query_cancel(q->questions[i]);
		q->questions[i] = NULL;
	}
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

/* Drops the answers that were requested least recently. */
static void make_room(struct resolver *r)
{
	struct list *newer;

	for (struct list *l = r->by_age.next; l != &r->by_age && r->cached >= RESOLVER_CACHE_MAX;
	        l = newer) {
		struct resolver_query *q = container_of(l, struct resolver_query, age);

		newer = l->next;
		if (q->state != QUERY_ASKING)
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
	q = calloc(1, sizeof(*q) + host.n + 1);
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

static const char *const failure_texts[] = {
        [RESOLVER_QUERY_NO_ADDRESS] = "the name has no address",
        [RESOLVER_QUERY_NO_NAME] = "the name does not exist",
        [RESOLVER_QUERY_TRUNCATED] =
                "the resolver's answer has no room in a datagram and could not be had over TCP",
        [RESOLVER_QUERY_REFUSED] = "the resolver refused to answer",
        [RESOLVER_QUERY_SILENT] = "no resolver answered in time",
        [RESOLVER_QUERY_FAILED] = "the resolver failed",
};
_Static_assert(sizeof(failure_texts) / sizeof(failure_texts[0]) == RESOLVER_QUERY_FAILED + 1,
        "a text per end");

static void query_finish(struct resolver_query *q)
{
	uint32_t ttl = q->ttl_s;

	if (!q->answer.count) {
		q->answer.error = failure_texts[q->failure];
		ttl = NEGATIVE_TTL_S;
	}
	if (ttl > RESOLVER_TTL_MAX_S)
		ttl = RESOLVER_TTL_MAX_S;
	q->state = QUERY_ANSWERED;
	q->expires_ms = loop_now_ms(q->resolver->loop) + (int64_t)(ttl ? ttl : 1) * 1000;
	loop_timer_cancel(&q->patience);
	query_cancel(q); /* a family that is late is queried again in the next round */
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

static void take_addresses(struct resolver_query *q, const struct dns_found *found)
{
	for (size_t i = 0; i < found->count && q->answer.count < RESOLVER_ADDRESSES_MAX; i++)
		q->answer.addresses[q->answer.count++] = found->addresses[i];
	if (found->count && found->ttl_s < q->ttl_s)
		q->ttl_s = found->ttl_s;
}

static void on_family(
        void *context, uint16_t type, enum resolver_query_end end, const struct dns_found *found)
{
	struct resolver_query *q = context;

	q->questions[type == DNS_AAAA] = NULL;
	take_addresses(q, found);
	if (end > q->failure)
		q->failure = end;
	if (!is_out(q))
		query_finish(q);
	else if (q->answer.count)
		loop_timer_set(&q->patience, SECOND_FAMILY_WAIT_MS);
}

static void query_ask(struct resolver_query *q)
{
	struct questions *all = &q->resolver->questions;
	struct slice host = slice_of(q->host, q->host_n);

	memset(&q->answer, 0, sizeof(q->answer));
	q->failure = RESOLVER_QUERY_NO_ADDRESS;
	q->ttl_s = RESOLVER_TTL_MAX_S;
	q->state = QUERY_ASKING;
	q->questions[0] = resolver_query_ask(all, host, DNS_A, on_family, q);
	q->questions[1] = resolver_query_ask(all, host, DNS_AAAA, on_family, q);
	if (!is_out(q)) {
		q->failure = RESOLVER_QUERY_FAILED;
		loop_timer_set(&q->patience, 0);
	}
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

struct resolver *resolver_new(struct loop *loop, const struct config_server *servers,
        size_t server_count, const struct config_host *hosts, size_t host_count,
        uint32_t timeout_ms)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->loop = loop;
	list_init(&r->by_age);
	if (questions_open(&r->questions, loop, servers, server_count, timeout_ms) < 0)
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
	questions_close(&r->questions);
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
	if (r->questions.server_count == 0)
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
