/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are answered without being sent on cost the sandbox nothing but asking, and the
 * machine a judgement, an answer and a line of the log each. So there is a rate of them: the answer
 * to one too many waits for its turn, first come, first served. Its event is written before it
 * waits. Until its answer a request holds its connection or stream, of which there is a bounded
 * number, so no more of them can be asked for than are answered. Requests that are sent on neither
 * wait nor count.
 */

#include "proxy/exchange/exchange.h"
#include "vethguard/base/clock.h"

#define BURST_S 2
#define TURN_MS 10 /* between two looks at who may be answered */

static void wait_for_turn(struct proxy *p)
{
	if (!p->deny_throttle.due)
		loop_timer_set(&p->deny_throttle.turn, TURN_MS);
	p->deny_throttle.due = true;
}

static void answer_first(struct deny_throttle *r)
{
	struct exchange *ex = container_of(r->waiting.next, struct exchange, turn);

	list_remove(&ex->turn);
	exchange_answer_refusal(ex);
}

static void on_turn(struct loop_timer *timer)
{
	struct proxy *p = container_of(timer, struct proxy, deny_throttle.turn);
	struct deny_throttle *r = &p->deny_throttle;
	int64_t now_ms = clock_monotonic_ms();

	r->due = false;
	while (!list_is_empty(&r->waiting) && rate_take(&r->rate, now_ms))
		answer_first(r);
	if (!list_is_empty(&r->waiting))
		wait_for_turn(p);
}

int deny_throttle_open(struct proxy *p)
{
	struct deny_throttle *r = &p->deny_throttle;

	list_init(&r->waiting);
	rate_init(&r->rate, p->config.limits.refusals_per_s, BURST_S, clock_monotonic_ms());
	return loop_timer_open(p->config.loop, &r->turn, on_turn);
}

void deny_throttle_close(struct proxy *p)
{
	loop_timer_close(&p->deny_throttle.turn);
}

void deny_throttle_answer_all(struct proxy *p)
{
	while (!list_is_empty(&p->deny_throttle.waiting))
		answer_first(&p->deny_throttle);
}

/* What is under way to an upstream, or ends by somebody else's will, is never slowed. */
static bool may_wait(const struct exchange *ex)
{
	return !ex->request_sent && !ex->upstream && !ex->cut && !ex->delayed &&
	       !ex->proxy->draining;
}

/* Of its failure an upstream's connection may be about to free the text. */
static bool keep_detail(struct exchange *ex)
{
	if (!ex->detail || ex->detail == ex->kept_detail)
		return true;
	ex->kept_detail = strdup(ex->detail);
	ex->detail = ex->kept_detail;
	return ex->kept_detail != NULL;
}

bool deny_throttle_waits(struct exchange *ex)
{
	struct deny_throttle *r = &ex->proxy->deny_throttle;
	const char *detail = ex->detail;

	if (!may_wait(ex) ||
	        (list_is_empty(&r->waiting) && rate_take(&r->rate, clock_monotonic_ms())))
		return false;
	if (!keep_detail(ex)) {
		ex->detail = detail;
		return false;
	}
	ex->delayed = true;
	loop_deadline_clear(&ex->whole);
	list_append(&r->waiting, &ex->turn);
	r->delayed++;
	wait_for_turn(ex->proxy);
	return true;
}
