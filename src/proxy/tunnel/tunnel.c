/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels: raw bytes between two sockets, as two symmetric halves that share their code (half.c).
 *
 * An end whose socket takes no more (the peer has closed it with unread bytes: a reset) is dead.
 * What it had sent before is in its receive queue and goes to the other end, as it would without a
 * tunnel. Then both ends are reset.
 */
#include <stdlib.h>
#include <unistd.h>

#include "proxy/tunnel/half.h"
#include "vethguard/base/log.h"

static const char *const state_names[] = {
        [TUNNEL_OPEN] = "OPEN",
        [TUNNEL_LIMITED] = "LIMITED",
        [TUNNEL_REFUSED] = "REFUSED",
        [TUNNEL_CLOSED] = "CLOSED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == TUNNEL_STATE_COUNT, "a name per state");

static void enter(struct tunnel *t, enum tunnel_state state)
{
	log_debug("tunnel of %d and %d: %s -> %s", t->ends[0].fd, t->ends[1].fd,
	        state_names[t->state], state_names[state]);
	t->state = state;
}

void tunnel_stop(struct tunnel *t, enum tunnel_state state, const char *why)
{
	if (t->state != TUNNEL_OPEN)
		return;
	t->why = why;
	enter(t, state);
}

/* Closes a tunnel that tunnel_stop() has marked. Returns true if it did. */
static bool ends(struct tunnel *t)
{
	if (t->state == TUNNEL_OPEN)
		return false;
	tunnel_close(t, t->state == TUNNEL_LIMITED ? EVENT_CAUSE_POLICY_LIMIT : EVENT_CAUSE_POLICY,
	        t->why);
	return true;
}

static bool any_dead(const struct tunnel *t)
{
	return t->ends[0].dead || t->ends[1].dead;
}

static void run(struct tunnel *t)
{
	bool again = false, was_dead = any_dead(t);
	uint64_t before = t->halves[0].bytes + t->halves[1].bytes;

	for (int i = 0; i < 2 && t->state != TUNNEL_REFUSED; i++)
		again |= half_relay(t, &t->halves[i]);
	if (t->state == TUNNEL_REFUSED && ends(t))
		return;
	/* Relays what an end that has just died had sent; its other direction is over. */
	for (int i = 0; i < 2 && any_dead(t) && !was_dead; i++)
		again |= half_relay(t, &t->halves[i]);
	if (ends(t))
		return;
	if (t->halves[0].ended && t->halves[1].ended) {
		tunnel_close(t, EVENT_CAUSE_POLICY,
		        any_dead(t) ? "one side reset the connection" : NULL);
		return;
	}
	if (t->halves[0].bytes + t->halves[1].bytes != before)
		loop_deadline_set(&t->proxy->waits[WAIT_TUNNEL], &t->deadline);
	if (t->doubtful)
		loop_deadline_set(&t->proxy->waits[WAIT_DOUBT], &t->doubt);
	t->doubtful = false;
	if (again)
		loop_task_queue(t->proxy->config.loop, &t->go_on);
}

static void take_note(struct end *e, unsigned events)
{
	if (events & LOOP_CLOSED)
		e->hung_up = true;
	if (events & (LOOP_READ | LOOP_CLOSED))
		e->readable = true;
	if (events & LOOP_WRITE)
		e->writable = true;
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct end *e = container_of(io, struct end, io);

	take_note(e, events);
	run(e->tunnel);
}

static void on_go_on(struct loop_task *task)
{
	run(container_of(task, struct tunnel, go_on));
}

void tunnel_on_deadline(struct loop_deadline *deadline)
{
	tunnel_close(container_of(deadline, struct tunnel, deadline), EVENT_CAUSE_TIMEOUT,
	        "no traffic for too long");
}

void tunnel_on_doubt(struct loop_deadline *deadline)
{
	struct tunnel *t = container_of(deadline, struct tunnel, doubt);

	t->ends[0].readable = t->ends[1].readable = true;
	run(t);
}

static void end_close(struct end *e, bool reset)
{
	loop_io_close(&e->io);
	outer_free(e->outer);
	e->outer = NULL;
	if (reset)
		socket_reset_socket(e->fd);
	close(e->fd);
	e->fd = -1;
}

void tunnel_record(struct tunnel *t, enum event_cause cause, const char *detail)
{
	if (t->recorded)
		return;
	t->recorded = true;
	t->owner->record(t->context, cause, detail, t->halves[0].bytes, t->halves[1].bytes);
}

void tunnel_close(struct tunnel *t, enum event_cause cause, const char *detail)
{
	bool whole = t->halves[0].ended && t->halves[1].ended && !any_dead(t);

	if (t->state == TUNNEL_CLOSED)
		return;
	enter(t, TUNNEL_CLOSED);
	tunnel_record(t, cause, detail);
	for (int i = 0; i < 2; i++) {
		half_return_pipe(t, &t->halves[i]);
		buf_fini(&t->halves[i].pending);
		end_close(&t->ends[i], !whole);
	}
	loop_deadline_clear(&t->deadline);
	loop_deadline_clear(&t->doubt);
	loop_task_cancel(t->proxy->config.loop, &t->go_on);
	t->owner->closed(t->context);
}

void tunnel_free(struct tunnel *t)
{
	free(t);
}

static void halves_init(struct tunnel *t)
{
	for (int i = 0; i < 2; i++) {
		struct half *h = &t->halves[i];

		h->from = &t->ends[i];
		h->to = &t->ends[1 - i];
		h->pipe[0] = h->pipe[1] = -1;
		buf_init(&h->pending, 2 * SOCKET_CHUNK);
		t->ends[i].tunnel = t;
		t->ends[i].writable = true; /* try first; the loop reports when it was too much */
	}
}

struct tunnel *tunnel_new(struct proxy *proxy, const struct tunnel_owner *owner, void *context)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->owner = owner;
	t->context = context;
	t->proxy = proxy;
	t->go_on.run = on_go_on;
	halves_init(t);
	return t;
}

void tunnel_inspect(struct tunnel *t)
{
	t->inspects = true;
}

/* Counts what the sandbox has sent before the tunnel was made. */
static void grant_first(struct tunnel *t)
{
	size_t n = t->halves[0].pending.len;
	const char *why = NULL;

	if (n == 0 || !t->owner->grant)
		return;
	if (t->owner->grant(t->context, true, n, &why) < n)
		tunnel_stop(t, TUNNEL_LIMITED,
		        why ? why : "a limit does not let all of the first bytes pass");
	if (t->state == TUNNEL_LIMITED)
		buf_fini(&t->halves[0].pending);
}

void tunnel_run(struct tunnel *t, struct tunnel_side sides[2])
{
	for (int i = 0; i < 2; i++) {
		struct end *e = &t->ends[i];

		t->halves[i].pending = sides[i].first;
		t->halves[i].pending.max = 2 * SOCKET_CHUNK;
		t->doubtful |= sides[i].doubtful;
		e->fd = sides[i].fd;
		e->outer = sides[i].outer;
		loop_io_move(sides[i].io, &e->io, on_ready);
		take_note(e, sides[i].events);
	}
	loop_deadline_set(&t->proxy->waits[WAIT_TUNNEL], &t->deadline);
	if (sides[0].first.len)
		half_is_refused(t, &t->halves[0], buf_bytes(&sides[0].first), sides[0].first.len);
	grant_first(t);
	run(t);
}
