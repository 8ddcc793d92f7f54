/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One struct resolver_name per name. While one of its two queries (A, AAAA) is under way
 * (resolver_query.h), callers wait for it; afterwards it is the cached answer until its ttl is over
 * and the next caller queries anew. Static hosts are answered at the start and never age.
 */
#include <errno.h>
#include <stdlib.h>

#include "loop/resolver_query.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "vethguard/base/table.h"
#include "vethguard/loop/resolver.h"

#define SECOND_FAMILY_WAIT_MS 50
#define NEGATIVE_TTL_S 5

enum name_state {
	NAME_IDLE,
	NAME_ASKING, /* a query is under way */
	NAME_ANSWERED,
	NAME_STATE_COUNT
};

struct resolver_name {
	struct resolver *resolver;
	enum name_state state;
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
	struct resolver_name *names;
	struct list by_age; /* struct resolver_name, the least recently requested first */
	size_t cached;
};

static const char *const state_names[] = {
        [NAME_IDLE] = "IDLE",
        [NAME_ASKING] = "ASKING",
        [NAME_ANSWERED] = "ANSWERED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == NAME_STATE_COUNT, "a name per state");

/* Sets the state; nothing else does. */
static void enter(struct resolver_name *n, enum name_state state)
{
	if (n->state != state)
		log_debug("name %s: %s -> %s", n->host, state_names[n->state], state_names[state]);
	n->state = state;
}

static bool is_out(const struct resolver_name *n)
{
	return n->questions[0] || n->questions[1];
}

static void name_cancel(struct resolver_name *n)
{
	for (int i = 0; i < 2; i++) {
		resolver_query_cancel(n->questions[i]);
		n->questions[i] = NULL;
	}
}

static void name_free(struct resolver *r, struct resolver_name *n)
{
	HASH_DEL(r->names, n);
	if (!n->pinned) {
		list_remove(&n->age);
		r->cached--;
	}
	loop_timer_close(&n->patience);
	free(n);
}

/* Drops the answers that were requested least recently. */
static void make_room(struct resolver *r)
{
	struct list *newer;

	for (struct list *l = r->by_age.next; l != &r->by_age && r->cached >= RESOLVER_CACHE_MAX;
	        l = newer) {
		struct resolver_name *n = container_of(l, struct resolver_name, age);

		newer = l->next;
		if (n->state != NAME_ASKING)
			name_free(r, n);
	}
}

static void on_patience(struct loop_timer *timer);

static struct resolver_wait *first_wait(const struct resolver_name *n)
{
	return container_of(n->waits.next, struct resolver_wait, place);
}

static struct resolver_name *name_new(struct resolver *r, struct slice host, bool pinned)
{
	struct resolver_name *n;

	make_room(r);
	if (r->cached >= RESOLVER_CACHE_MAX && !pinned)
		return NULL;
	n = calloc(1, sizeof(*n) + host.n + 1);
	if (!n)
		return NULL;
	n->resolver = r;
	n->pinned = pinned;
	list_init(&n->waits);
	memcpy(n->host, host.p, host.n);
	n->host_n = host.n;
	if (loop_timer_open(r->loop, &n->patience, on_patience) < 0) {
		free(n);
		return NULL;
	}
	HASH_ADD(hh, r->names, host, host.n, n);
	if (!n->hh.tbl) {
		loop_timer_close(&n->patience);
		free(n);
		return NULL;
	}
	if (!pinned) {
		list_append(&r->by_age, &n->age);
		r->cached++;
	}
	return n;
}

static const char *const failure_texts[] = {
        [RESOLVER_QUERY_NO_ADDRESS] = "the name has no address",
        [RESOLVER_QUERY_NO_NAME] = "the name does not exist",
        [RESOLVER_QUERY_TRUNCATED] = ("the resolver's answer does not fit into a datagram and "
                                      "could not be fetched over TCP"),
        [RESOLVER_QUERY_REFUSED] = "the resolver refused to answer",
        [RESOLVER_QUERY_SILENT] = "no resolver answered in time",
        [RESOLVER_QUERY_FAILED] = "the resolver failed",
};
_Static_assert(sizeof(failure_texts) / sizeof(failure_texts[0]) == RESOLVER_QUERY_FAILED + 1,
        "a text per end");

static void name_finish(struct resolver_name *n)
{
	uint32_t ttl = n->ttl_s;

	if (!n->answer.count) {
		n->answer.error = failure_texts[n->failure];
		ttl = NEGATIVE_TTL_S;
	}
	if (ttl > RESOLVER_TTL_MAX_S)
		ttl = RESOLVER_TTL_MAX_S;
	enter(n, NAME_ANSWERED);
	n->expires_ms = loop_now_ms(n->resolver->loop) + (int64_t)(ttl ? ttl : 1) * 1000;
	loop_timer_cancel(&n->patience);
	name_cancel(n); /* a family that is late is queried again in the next round */
	while (!list_is_empty(&n->waits)) {
		struct resolver_wait *wait = first_wait(n);

		resolver_wait_cancel(wait);
		wait->on_answer(wait, &n->answer);
	}
}

static void on_patience(struct loop_timer *timer)
{
	struct resolver_name *n = container_of(timer, struct resolver_name, patience);

	if (n->state == NAME_ASKING)
		name_finish(n);
}

static void take_addresses(struct resolver_name *n, const struct dns_found *found)
{
	for (size_t i = 0; i < found->count && n->answer.count < RESOLVER_ADDRESSES_MAX; i++)
		n->answer.addresses[n->answer.count++] = found->addresses[i];
	if (found->count && found->ttl_s < n->ttl_s)
		n->ttl_s = found->ttl_s;
}

static void on_family(
        void *context, uint16_t type, enum resolver_query_end end, const struct dns_found *found)
{
	struct resolver_name *n = context;

	n->questions[type == DNS_AAAA] = NULL;
	take_addresses(n, found);
	if (end > n->failure)
		n->failure = end;
	if (!is_out(n))
		name_finish(n);
	else if (n->answer.count)
		loop_timer_set(&n->patience, SECOND_FAMILY_WAIT_MS);
}

static void name_ask(struct resolver_name *n)
{
	struct questions *all = &n->resolver->questions;
	struct slice host = slice_of(n->host, n->host_n);

	memset(&n->answer, 0, sizeof(n->answer));
	n->failure = RESOLVER_QUERY_NO_ADDRESS;
	n->ttl_s = RESOLVER_TTL_MAX_S;
	enter(n, NAME_ASKING);
	n->questions[0] = resolver_query_ask(all, host, DNS_A, on_family, n);
	n->questions[1] = resolver_query_ask(all, host, DNS_AAAA, on_family, n);
	if (!is_out(n)) {
		n->failure = RESOLVER_QUERY_FAILED;
		loop_timer_set(&n->patience, 0);
	}
}

static int add_host(struct resolver *r, const struct config_host *host)
{
	struct slice name = slice_from_string(host->name);
	struct resolver_name *n;

	HASH_FIND(hh, r->names, name.p, name.n, n);
	if (!n)
		n = name_new(r, name, true);
	if (!n)
		return -ENOMEM;
	enter(n, NAME_ANSWERED);
	if (n->answer.count < RESOLVER_ADDRESSES_MAX)
		n->answer.addresses[n->answer.count++] = host->address;
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
	struct resolver_name *n, *next;

	if (!r)
		return;
	HASH_ITER(hh, r->names, n, next)
	{
		while (!list_is_empty(&n->waits))
			resolver_wait_cancel(first_wait(n));
		name_cancel(n);
		name_free(r, n);
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
	struct resolver_name *n;

	HASH_FIND(hh, r->names, host.p, host.n, n);
	if (n && n->state == NAME_ANSWERED && (n->pinned || loop_now_ms(r->loop) < n->expires_ms))
		return &n->answer;
	if (r->questions.server_count == 0)
		return refuse("no resolver is configured");
	if (!n)
		n = name_new(r, host, false);
	if (!n)
		return refuse("too many names are being resolved");
	if (!n->pinned) {
		list_remove(&n->age);
		list_append(&r->by_age, &n->age);
	}
	if (n->state != NAME_ASKING)
		name_ask(n);
	wait->name = n;
	list_append(&n->waits, &wait->place);
	return NULL;
}

void resolver_wait_cancel(struct resolver_wait *wait)
{
	list_remove(&wait->place);
	wait->name = NULL;
}
