/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over the gate that an earlier daemon has left, and makes its sandbox of it. */
#include <errno.h>
#include <stdio.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/attach/process.h"
#include "supervisor/recover/recover.h"
#include "supervisor/session/session.h"

void attachment_stays_cut_off(struct attachment *a, const char *text)
{
	char told[sizeof(a->trouble) + MESSAGE_NAME_MAX + 16];

	snprintf(a->trouble, sizeof(a->trouble), "%.400s; it stays cut off from every network%s",
	        text,
	        a->recoverable ? " until its policy is repaired and 'vethguard reload' takes it"
	                       : "");
	log_sandbox(LOG_LEVEL_ERROR, a->record.name, "%s", a->trouble);
	snprintf(told, sizeof(told), "Sandbox %s: %s.", a->record.name, a->trouble);
	outbox_finding(a->all->supervisor, NULL, EVENT_FINDING_CUT_OFF, told);
}

/* True if its process or namespace has ended while no daemon ran. It is removed after all
 * attachments were looked at. */
static bool has_ended(struct attachment *a)
{
	a->gone = a->record.pid ? attachment_process_is_gone(a) : attachment_netns_is_gone(a);
	if (a->gone)
		snprintf(a->trouble, sizeof(a->trouble), "it has ended");
	return a->gone;
}

static int adopt_gate(struct attachment *a, struct gate *shape)
{
	char pin[MESSAGE_PATH_MAX + 1], text[GATE_WHY_MAX + 64];
	int rc;

	attachment_pin(a->all, a->record.id, pin);
	rc = gate_adopt(shape, a->all->supervisor->gates, pin);
	if (rc > 0)
		log_sandbox(LOG_LEVEL_WARN, a->record.name,
		        "its fence had been changed, and was repaired: %s", shape->why);
	if (rc >= 0)
		return 0;
	if (rc == -ENOLINK && has_ended(a))
		return rc;
	snprintf(text, sizeof(text), "its gate cannot be taken over: %s", shape->why);
	attachment_stays_cut_off(a, text);
	return rc;
}

static int adopt_socket(struct attachment *a, struct gate *shape)
{
	int rc = a->record.kind == ATTACH_SESSION ? gate_open_socket(shape, -1, 0)
	                                          : attachment_adopt_socket(a, shape);

	if (rc)
		attachment_stays_cut_off(a, shape->why);
	return rc;
}

/* The configuration may have other bounds than the fence was made with. */
static void set_bounds(struct attachment *a)
{
	struct sandbox *s = a->sandbox;
	const struct fence_bounds bounds = sandbox_bounds(&s->generation->settings->config.limits);
	int rc;

	if (memcmp(&bounds, &s->gate.bounds, sizeof(bounds)) == 0)
		return;
	rc = gate_set_traffic(&s->gate, s->gate.udp_ports, s->gate.udp_port_count, &bounds);
	if (!rc)
		rc = attachment_save(a);
	if (rc)
		log_sandbox(
		        LOG_LEVEL_WARN, a->record.name, "bounds of its fence: %s", strerror(-rc));
}

/* The policy may have other ports than the gate was made for. */
static void settle_ports(struct attachment *a, const struct gate *shape)
{
	struct sandbox *s = a->sandbox;
	int rc;

	sandbox_settle_ports(s);
	if (s->gate.udp_port_count == shape->udp_port_count &&
	        memcmp(s->gate.udp_ports, shape->udp_ports, sizeof(shape->udp_ports)) == 0)
		return;
	gate_close_handed_out(&s->gate); /* the worker gets listeners for the new ports */
	rc = attachment_save(a);
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its state cannot be written: %s",
		        strerror(-rc));
}

/* Sets where the recorder counts dropped packets from, if its journal has no entry for this
 * sandbox. The state file's number is used once: the next daemon would count the same packets
 * again. shared: the former daemon's recorder reads copies as well. */
static void count_from(struct attachment *a, bool shared)
{
	struct sandbox *s = a->sandbox;
	int rc = 0;

	s->dropped_before = shared                    ? MESSAGE_DROPPED_UNKNOWN
	                    : a->record.dropped_known ? a->record.dropped
	                                              : gate_dropped(&s->gate).packets;
	if (a->record.dropped_known) {
		a->record.dropped_known = false;
		rc = attachment_save(a);
	}
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, a->record.name, "its state cannot be written: %s",
		        strerror(-rc));
}

/* What it knows decides which CA signs for it. Where nothing is recorded, zeros stand for the
 * oldest. */
static void set_root(const struct attachment *a)
{
	a->sandbox->root_known = true;
	memcpy(a->sandbox->root, a->record.root, sizeof(a->record.root));
}

static void adopt(struct attachment *a, const struct gate *shape, struct generation *g, bool shared)
{
	struct sandbox *s = sandbox_new(a->all->supervisor, &a->owner, true);

	if (!s) {
		generation_put(g);
		attachment_stays_cut_off(a, "no memory");
		return;
	}
	if (sandbox_set_id(s, a->record.id) != 0) {
		sandbox_free(s);
		generation_put(g);
		attachment_stays_cut_off(a, "no memory");
		return;
	}
	a->sandbox = s;
	s->generation = g;
	s->labels = attach_labels_lines(&a->record.labels);
	set_root(a);
	attachment_watch_policy(a);
	s->gate = *shape;
	set_bounds(a);
	count_from(a, shared);
	memcpy(s->seed, a->record.seed, sizeof(s->seed));
	snprintf(s->name, sizeof(s->name), "%s", a->record.name);
	if (a->record.kind == ATTACH_LISTEN)
		s->listen = &a->record.listen;
	else if (a->record.kind == ATTACH_SESSION)
		s->session = &a->record.session;
	else
		attachment_pin(a->all, s->id, s->pin);
	settle_ports(a, shape);
	s->paused = a->record.paused;
	snprintf(s->pause_reason, sizeof(s->pause_reason), "%s", a->record.reason);
	sandbox_event(s, SANDBOX_ADOPT);
	attachment_admit(a);
}

void attachment_adopt(struct attachment *a, struct generation *g)
{
	const bool socket = a->record.kind == ATTACH_LISTEN || a->record.kind == ATTACH_SESSION;
	struct attachments *all = a->all;
	struct gate shape;
	bool shared;

	gate_move(&shape, &a->gate);
	if (all->take)
		all->take(all, a->record.id, &shape.packets);
	shared = !socket && shape.packets >= 0;
	if ((socket ? adopt_socket(a, &shape) : adopt_gate(a, &shape)) != 0) {
		generation_put(g);
		attachment_hold(a);
		return;
	}
	gate_init(&a->gate);
	adopt(a, &shape, g, shared);
}
