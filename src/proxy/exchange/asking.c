/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the question goes to the supervisor under the id of the request's event, and
 * the answer comes back under it. Each decision takes effect in a task of the exchange. A timer
 * ticks while a request waits or a grant will end by time. A request is refused if nobody can be
 * asked, if there are too many questions, or if the supervisor cannot be reached.
 */
#include "proxy/exchange/asking.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define TICK_MS 500
#define PER_S 8
#define BURST_S 8
#define MS_PER_S 1000

static const char not_in_time[] = "nobody has approved it in time";

static const char *const state_names[] = {
        [ASKING_NONE] = "NONE",
        [ASKING_WAITS] = "WAITS",
        [ASKING_DENIED] = "DENIED",
        [ASKING_APPROVED] = "APPROVED",
        [ASKING_PASSED] = "PASSED",
        [ASKING_ENDED] = "ENDED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == ASKING_STATE_COUNT, "a name per state");

static void enter(struct exchange *ex, enum asking_state state)
{
	struct asking *a = &ex->asking;

	log_debug("event %016" PRIx64 ": approval: %s -> %s", ex->id, state_names[a->state],
	        state_names[state]);
	a->state = state;
}

static struct exchange *exchange_of(struct list *l)
{
	struct asking *a = container_of(l, struct asking, list);

	return container_of(a, struct exchange, asking);
}

/* --- keys --- */

static void key_of(const struct message_worker_ask *m, bool whole, uint8_t out[ASKING_KEY])
{
	static const struct hash_key keys[2] = {{0x61736b206b657920, 1}, {0x61736b206b657920, 2}};
	char text[POLICY_NAME_MAX + POLICY_METHOD_MAX + POLICY_HOST_MAX + POLICY_PATH_MAX + 64];
	int n;

	if (whole)
		n = snprintf(text, sizeof(text), "%.*s", SLICE_ARG(m->rule));
	else
		n = snprintf(text, sizeof(text), "%.*s\n%.*s %u %.*s %u %.*s", SLICE_ARG(m->rule),
		        SLICE_ARG(m->method), m->scheme, SLICE_ARG(m->host), m->port,
		        SLICE_ARG(m->path));
	for (size_t i = 0; i < 2; i++) {
		uint64_t hash = hash_bytes(
		        &keys[i], text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);

		memcpy(out + i * sizeof(hash), &hash, sizeof(hash));
	}
}

/* host: room for the destination, if it is an address. */
static struct message_worker_ask question_of(const struct exchange *ex, char host[64])
{
	const struct http_request *r = &ex->request;
	const struct policy *policy = ex->proxy->config.policy;
	struct message_worker_ask m = {.rule = policy_rule_name(policy, ex->verdict.decision.rule),
	        .method = r->method,
	        .scheme = ex->client->tls ? POLICY_HTTPS : POLICY_HTTP,
	        .host = destination_host(&ex->destination),
	        .port = ex->destination.port,
	        .path = slice_of(r->path, r->path_n),
	        .query = r->has_query ? r->query : SLICE(""),
	        .bytes = r->body == HTTP_BODY_LENGTH ? r->content_length : 0,
	        .wait_s = policy_rule_wait_s(policy, ex->verdict.decision.rule)};

	if (!m.host.n)
		m.host = slice_from_string(ip_format(&ex->destination.address, host));
	if (m.query.n > MESSAGE_ASK_QUERY_MAX) /* for people: the key has no query */
		m.query.n = MESSAGE_ASK_QUERY_MAX;
	return m;
}

/* --- ticking --- */

static void tick_on(struct proxy *p)
{
	if (!p->asking.ticking)
		loop_timer_set(&p->asking.tick, TICK_MS);
	p->asking.ticking = true;
}

static void decide_later(struct exchange *ex)
{
	loop_task_queue(ex->proxy->config.loop, &ex->asking.task);
}

static void keep_text(struct exchange *ex, const char *text)
{
	free(ex->kept_detail);
	ex->kept_detail = strdup(text);
	ex->detail = ex->kept_detail;
}

static void approve(struct exchange *ex, uint64_t grant, const char *text)
{
	enter(ex, ASKING_APPROVED);
	ex->asking.grant = grant;
	keep_text(ex, text);
	decide_later(ex);
}

static void end_grant(struct proxy *p, struct asking_grant *g)
{
	struct list *next;

	for (struct list *l = p->asking.granted.next; l != &p->asking.granted; l = next) {
		struct exchange *ex = exchange_of(l);

		next = l->next;
		if (ex->asking.grant != g->id)
			continue;
		list_remove(l);
		enter(ex, ASKING_ENDED);
		decide_later(ex);
	}
	*g = (struct asking_grant){0};
}

/* Ends grants and waits whose time is over. Asks for another tick if any that end by time are left.
 */
static void on_tick(struct loop_timer *timer)
{
	struct asking_all *all = container_of(timer, struct asking_all, tick);
	struct proxy *p = container_of(all, struct proxy, asking);
	int64_t now_ms = clock_boot_ms();
	bool more = !list_is_empty(&all->waiting);

	all->ticking = false;
	for (size_t i = 0; i < MESSAGE_ASKS_MAX; i++) {
		struct asking_grant *g = &all->grants[i];

		if (g->id && g->until_ms && g->until_ms <= now_ms)
			end_grant(p, g);
		more |= g->id && g->until_ms;
	}
	for (struct list *l = all->waiting.next; l != &all->waiting; l = l->next)
		if (exchange_of(l)->asking.until_ms <= now_ms ||
		        !exchange_of(l)->verdict.decision.asks)
			decide_later(exchange_of(l));
	if (more)
		tick_on(p);
}

int asking_open(struct proxy *p)
{
	list_init(&p->asking.waiting);
	list_init(&p->asking.granted);
	rate_init(&p->asking.rate, PER_S, BURST_S, clock_monotonic_ms());
	return loop_timer_open(p->config.loop, &p->asking.tick, on_tick);
}

void asking_close(struct proxy *p)
{
	loop_timer_close(&p->asking.tick);
}

/* --- one exchange --- */

/* True while the request is among those that wait. */
static bool is_waiting(const struct asking *a)
{
	return a->state == ASKING_WAITS || a->state == ASKING_DENIED || a->state == ASKING_APPROVED;
}

/* True if the supervisor takes the request for one that waits. It knows which request an answer is
 * for, but not which requests a grant has approved. */
static bool is_known(const struct asking *a)
{
	return a->state == ASKING_WAITS || (a->state == ASKING_APPROVED && a->grant);
}

static void leave(struct exchange *ex, enum asking_state next)
{
	struct asking *a = &ex->asking;
	struct proxy *p = ex->proxy;

	if (is_waiting(a))
		p->asking.count--;
	list_remove(&a->list);
	if (is_known(a) && p->config.ask_end)
		p->config.ask_end(p->config.context, ex->id);
	if (a->state != next)
		enter(ex, next);
}

static bool refuse(struct exchange *ex, const char *why)
{
	keep_text(ex, why);
	exchange_refuse(ex, 0, EVENT_CAUSE_ASK, ex->kept_detail ? ex->kept_detail : "not approved");
	return false;
}

/* Carries out what was decided about the exchange. */
static void on_task(struct loop_task *task)
{
	struct exchange *ex = container_of(task, struct exchange, asking.task);
	struct asking *a = &ex->asking;
	bool waited = ex->state == EXCHANGE_ASKING;
	bool passes = asking_is_approved(a) || !ex->verdict.decision.asks;

	if (asking_is_approved(a) && !waited)
		return;
	leave(ex, waited && passes ? ASKING_PASSED : ASKING_ENDED);
	if (waited)
		inquiry_note_ask(
		        ex, passes, passes || ex->kept_detail ? ex->kept_detail : not_in_time);
	if (!waited) { /* its grant has ended */
		keep_text(ex, "the approval by which it was under way has ended");
		if (responding_has_begun(&ex->responding))
			exchange_abort(ex, EVENT_CAUSE_ASK, ex->kept_detail);
		else
			exchange_refuse(ex, 0, EVENT_CAUSE_ASK, ex->kept_detail);
	} else if (passes) {
		if (a->grant)
			list_append(&ex->proxy->asking.granted, &a->list);
		exchange_enter(ex, EXCHANGE_NEW);
		exchange_follow_verdict(ex);
	} else if (ex->kept_detail) {
		exchange_refuse(ex, 0, EVENT_CAUSE_ASK, ex->kept_detail);
	} else {
		refuse(ex, not_in_time);
	}
}

static const struct asking_grant *find_grant(
        const struct proxy *p, const struct message_worker_ask *m)
{
	int64_t now_ms = clock_boot_ms();
	uint8_t keys[2][ASKING_KEY];

	key_of(m, false, keys[0]);
	key_of(m, true, keys[1]);
	for (size_t i = 0; i < MESSAGE_ASKS_MAX; i++) {
		const struct asking_grant *g = &p->asking.grants[i];

		if (g->id && (!g->until_ms || g->until_ms > now_ms) &&
		        (memcmp(g->key, keys[0], ASKING_KEY) == 0 ||
		                memcmp(g->key, keys[1], ASKING_KEY) == 0))
			return g;
	}
	return NULL;
}

/* Asks. Returns NULL, or why not. */
static const char *ask(struct exchange *ex, const struct message_worker_ask *m)
{
	struct proxy *p = ex->proxy;
	struct asking *a = &ex->asking;

	if (!p->config.ask)
		return "a person has to approve it, and nobody can be asked here";
	if (p->asking.count >= MESSAGE_ASKS_MAX)
		return "a person has to approve it, and too many requests wait for that already";
	if (!rate_take(&p->asking.rate, clock_monotonic_ms()))
		return "a person has to approve it, and too many were asked about just now";
	if (p->config.ask(p->config.context, ex->id, m) < 0)
		return "a person has to approve it, and nobody can be asked at the moment";
	a->until_ms = clock_boot_ms() + (int64_t)m->wait_s * MS_PER_S;
	p->asking.count++;
	enter(ex, ASKING_WAITS);
	list_append(&p->asking.waiting, &a->list);
	tick_on(p);
	return NULL;
}

bool asking_passes(struct exchange *ex)
{
	struct asking *a = &ex->asking;
	const struct asking_grant *g;
	struct message_worker_ask m;
	const char *why;
	char host[64];

	if (asking_is_approved(a))
		return true;
	m = question_of(ex, host);
	a->task.run = on_task;
	g = find_grant(ex->proxy, &m);
	if (g) {
		enter(ex, ASKING_PASSED);
		a->grant = g->id;
		keep_text(ex, g->text);
		list_append(&ex->proxy->asking.granted, &a->list);
		return true;
	}
	why = ask(ex, &m);
	if (why) {
		enter(ex, ASKING_ENDED);
		return refuse(ex, why);
	}
	exchange_enter(ex, EXCHANGE_ASKING);
	return false;
}

void asking_fini(struct exchange *ex)
{
	if (ex->asking.state == ASKING_NONE)
		return;
	loop_task_cancel(ex->proxy->config.loop, &ex->asking.task);
	leave(ex, ASKING_ENDED);
}

void asking_each(
        struct proxy *p, void (*each)(void *context, const struct exchange *ex), void *context)
{
	for (struct list *l = p->asking.waiting.next; l != &p->asking.waiting; l = l->next)
		each(context, exchange_of(l));
}

/* --- what the supervisor says --- */

void proxy_answer(struct proxy *p, uint64_t id, bool approved, struct slice text)
{
	char kept[MESSAGE_ASK_TEXT_MAX + 1];

	snprintf(kept, sizeof(kept), "%.*s", SLICE_ARG(text));
	for (struct list *l = p->asking.waiting.next; l != &p->asking.waiting; l = l->next) {
		struct exchange *ex = exchange_of(l);

		if (ex->id != id)
			continue;
		if (approved) {
			approve(ex, 0, kept);
		} else {
			enter(ex, ASKING_DENIED);
			keep_text(ex, kept);
			decide_later(ex);
		}
		return;
	}
}

static struct asking_grant *grant_room(struct proxy *p, uint64_t id)
{
	struct asking_grant *room = NULL;

	for (size_t i = 0; i < MESSAGE_ASKS_MAX; i++) {
		struct asking_grant *g = &p->asking.grants[i];

		if (g->id == id)
			return g;
		if (!g->id && !room)
			room = g;
	}
	return room;
}

/* Approves the waiting requests that the grant is for. */
static void approve_waiting(struct proxy *p, const struct asking_grant *g)
{
	for (struct list *l = p->asking.waiting.next; l != &p->asking.waiting; l = l->next) {
		struct exchange *ex = exchange_of(l);
		char host[64];
		struct message_worker_ask m = question_of(ex, host);

		if (ex->asking.state == ASKING_WAITS && find_grant(p, &m) == g)
			approve(ex, g->id, g->text);
	}
}

void proxy_grant(struct proxy *p, uint64_t id, const struct message_worker_grant *m)
{
	struct asking_grant *g = grant_room(p, id);

	if (!g)
		return; /* the supervisor gives no more than there is room for */
	if (m->ends) {
		if (g->id)
			end_grant(p, g);
		return;
	}
	g->id = id;
	g->until_ms = (int64_t)m->until_ms;
	key_of(&m->ask, m->whole, g->key);
	snprintf(g->text, sizeof(g->text), "%.*s", SLICE_ARG(m->text));
	approve_waiting(p, g);
	if (g->until_ms)
		tick_on(p);
}
