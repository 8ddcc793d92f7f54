/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a change of policy, or the end of everything, does to one exchange. proxy/reauthorize.c has
 * the order of all steps: first each exchange is looked at, while the old policy can still name the
 * rule that had allowed it; once the policies have changed, marked exchanges take their step.
 */
#include <inttypes.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/authorize.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "vethguard/base/log.h"

static const char *const state_names[] = {
        [MARKING_NONE] = "NONE",
        [MARKING_AGAIN] = "AGAIN",
        [MARKING_CUT] = "CUT",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == MARKING_STATE_COUNT, "a name per state");

void marking_enter(struct exchange *ex, enum marking_state state)
{
	struct marking *m = &ex->marking;

	if (m->state == MARKING_CUT)
		return;
	if (m->state != state)
		log_debug("event %016" PRIx64 ": next step: %s -> %s", ex->id,
		        state_names[m->state], state_names[state]);
	m->state = state;
}

/* True if both indices name the same credential. */
static bool same_credential(
        const struct policy *policy, uint32_t before, const struct policy *next, uint32_t now)
{
	if (before == POLICY_NONE || now == POLICY_NONE)
		return before == now;
	return policy_credential_equals(policy, before, next, now);
}

bool exchange_decision_stands(const struct policy *policy, const struct policy_decision *before,
        const struct policy *next, const struct policy_decision *now)
{
	struct dlp_settings was, is;

	policy_dlp(policy, before->rule, &was);
	policy_dlp(next, now->rule, &is);
	return is.mode <= was.mode && now->names_address >= before->names_address &&
	       now->names_exactly >= before->names_exactly && now->seals == before->seals &&
	       before->lists_tools >= now->lists_tools &&
	       before->needs_messages >= now->needs_messages &&
	       same_credential(policy, before->credential, next, now->credential);
}

/* True if the next policy lets the exchange go on; its verdict is then the new one. */
static bool stays(struct exchange *ex, const struct policy *next)
{
	struct destination d;
	struct verdict j;

	authorize_request(next, ex->client, &ex->request, exchange_body(ex, next), &d, &j);
	if (ex->state == EXCHANGE_HOLDING && ex->holding->why == HOLDING_TO_DECIDE &&
	        (j.allowed || j.needs_body)) {
		ex->verdict.decision = j.decision; /* it is judged again when the body is whole */
		return true;
	}
	if (!j.allowed || !exchange_decision_stands(ex->proxy->config.policy, &ex->verdict.decision,
	                          next, &j.decision))
		return false;
	if (j.decision.asks && !asking_is_approved(&ex->asking) && ex->state != EXCHANGE_ASKING)
		return false; /* it has begun without asking */
	limiting_goes_on(ex, next);
	ex->verdict.decision = j.decision;
	ex->verdict.own = j.own;
	ex->verdict.shown = POLICY_NONE; /* an index of before */
	marking_enter(
	        ex, ex->credential && ex->state == EXCHANGE_DIAL ? MARKING_AGAIN : MARKING_NONE);
	return true;
}

bool exchange_reauthorize(
        struct exchange *ex, const struct policy *next, enum event_cause cause, const char *detail)
{
	if (ex->state == EXCHANGE_NEW || ex->state == EXCHANGE_DONE)
		return false; /* no verdict yet: it will come from the policy in force then */
	if (next && stays(ex, next))
		return false;
	marking_enter(ex, MARKING_CUT);
	ex->cause = cause;
	ex->detail = detail;
	if (!responding_has_begun(&ex->responding))
		exchange_will_refuse(ex, 0);
	audit_exchange(ex);
	return true;
}

bool exchange_is_marked(const struct exchange *ex)
{
	return ex->marking.state != MARKING_NONE;
}

static void end(struct exchange *ex, bool policy_is_new)
{
	if (policy_is_new) /* indices of the old one */
		ex->verdict.decision.rule = ex->verdict.decision.credential = POLICY_NONE;
	if (responding_has_begun(&ex->responding))
		exchange_abort(ex, ex->cause, ex->detail);
	else
		exchange_refuse(ex, 0, ex->cause, ex->detail);
}

void exchange_take_step(struct exchange *ex, bool policy_is_new)
{
	if (ex->marking.state == MARKING_CUT)
		end(ex, policy_is_new);
	else
		exchange_begin_again(ex);
}
