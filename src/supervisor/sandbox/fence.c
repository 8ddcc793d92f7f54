/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a sandbox whose fence, link or interface was changed: changed rules are set again
 * and reported; if they cannot be set again, the sandbox is cut off.
 */
#include <errno.h>
#include <stdio.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

/* Root inside has deleted its own end of the link. The sandbox has no network any more; its command
 * goes on. */
static void on_link_gone(struct sandbox *s)
{
	gate_unwatch(&s->gate);
	log_sandbox(LOG_LEVEL_WARN, s->name,
	        "its link to the gate was taken away from inside: it has no network any more");
	outbox_observed(s->supervisor, s, EVENT_FINDING_FENCE_CHANGED,
	        "The sandbox's link to its gate is gone: it was taken away from inside. It has no "
	        "network any more.");
}

/* A container's interface disappears when it stops, and may come back with it. */
static void on_interface_away(struct sandbox *s)
{
	char text[IFNAMSIZ + 128];

	snprintf(text, sizeof(text),
	        "Its interface %s is not there any more: nothing passes until it comes back.",
	        s->gate.device);
	log_sandbox(LOG_LEVEL_WARN, s->name, "%s", text);
	outbox_observed(s->supervisor, s, EVENT_FINDING_FENCE_CHANGED, text);
}

/* Only vethguard may change these rules. Another program that did so ran as root on this machine,
 * usually by mistake (flushing the ruleset of every namespace, for example). */
static void on_gate_change(struct gate *gate, int result)
{
	struct sandbox *s = container_of(gate, struct sandbox, gate);
	char text[GATE_WHY_MAX + 128];

	if (result == GATE_AWAY) {
		on_interface_away(s);
	} else if (result > 0) {
		log_sandbox(LOG_LEVEL_WARN, s->name,
		        "its fence was changed from outside and is in order again: %s", gate->why);
		snprintf(text, sizeof(text),
		        "The sandbox's fence was changed from outside and has been set again: %s.",
		        gate->why);
		outbox_finding(s->supervisor, s, EVENT_FINDING_FENCE_CHANGED, text);
		s->mended++;
	} else if (result == -ENOLINK && !s->persistent) {
		on_link_gone(s);
	} else if (result == -ENOLINK && s->owner->link_gone && s->owner->link_gone(s->owner)) {
		return; /* s may be freed */
	} else if (result == -ENOLINK && s->gate.kind == GATE_VETH) {
		sandbox_fail(s, "its link to the gate was taken away from inside, or its network "
		                "namespace has ended; it is cut off from every network: detach it, "
		                "and attach anew what is still there");
	} else {
		sandbox_fail(s,
		        "its fence cannot be examined or set again (%s); the sandbox is cut off "
		        "from every network",
		        gate->why);
	}
}

int sandbox_verify_now(struct sandbox *s)
{
	int rc = gate_repair(&s->gate);

	if (rc)
		on_gate_change(&s->gate, rc);
	return rc < 0 ? rc : 0;
}

void sandbox_take_gate(struct sandbox *s, struct gate *gate)
{
	gate_move_watched(&s->gate, gate, on_gate_change);
}

void sandbox_stop_verifying(struct sandbox *s)
{
	gate_unwatch(&s->gate);
}

int sandbox_resume_verifying(struct sandbox *s)
{
	int rc = gate_watch(&s->gate, s->supervisor->gates, on_gate_change);

	return rc ? sandbox_failed(s, rc, "watching the fence") : 0;
}
