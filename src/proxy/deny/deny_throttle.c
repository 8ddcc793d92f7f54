/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the rate of refusals. A request that is answered without being sent on costs the sandbox
 * nothing, but costs the machine an authorization, an answer and a line of the log. Beyond the
 * rate, an answer waits for its turn, first come, first served. The event is written before the
 * wait.
 *
 * A waiting request holds its connection or stream. The number of these is bounded, so the sandbox
 * cannot ask for more refusals than are answered. Requests that are sent on neither wait nor count.
 */

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"
#include "vethguard/base/clock.h"

#define BURST_S 2
#define TURN_MS 10 /* between two checks for requests that may be answered */

static void wait_for_turn(struct proxy *p)
{
	if (!p->deny_throttle.due)
		loop_timer_set(&p->deny_throttle.turn, TURN_MS);
	p->deny_throttle.due = true;
}

static void answer_first(struct deny_throttle *r)
{
	struct exchange *ex = container_of(r->waiting.next, struct exchange, throttled.turn);

	list_remove(&ex->throttled.turn);
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

/* False for requests that are under way to an upstream or that vethguard itself ends: they are
 * never slowed down. */
static bool may_wait(const struct exchange *ex)
{
	return ex->sending.state == SENDING_NOTHING && !ex->upstream &&
	       ex->marking.state != MARKING_CUT && !ex->throttled.delayed &&
	       ex->proxy->state == PROXY_SERVING;
}

/* Copies the text: the upstream connection whose failure it describes may be about to free it. */
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
	ex->throttled.delayed = true;
	loop_deadline_clear(&ex->whole);
	list_append(&r->waiting, &ex->throttled.turn);
	r->delayed++;
	wait_for_turn(ex->proxy);
	return true;
}
