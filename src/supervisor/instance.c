/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes as such: their making, their messages, their end. What follows for the sandbox
 * is decided in sandbox.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "supervisor/supervisor.h"

struct generation *generation_new(uint64_t number)
{
	struct generation *g = calloc(1, sizeof *g);

	if (g) {
		g->refs = 1;
		g->number = number;
		g->image = g->trusted = -1;
	}
	return g;
}

struct generation *generation_get(struct generation *g)
{
	g->refs++;
	return g;
}

void generation_put(struct generation *g)
{
	if (!g || --g->refs)
		return;
	settings_fini(&g->settings);
	if (g->image >= 0)
		close(g->image);
	if (g->trusted >= 0)
		close(g->trusted);
	free(g);
}

static int on_message(struct role *role, struct ipc_message *message)
{
	struct instance *i = container_of(role, struct instance, worker);

	if (message->head.type != MESSAGE_WORKER_READY || !reader_done(&message->body) ||
	        i->worker_request == 0 || message->head.id != i->worker_request || i->worker_ready)
		return -EBADMSG;
	i->worker_ready = true;
	sandbox_instance_progress(i->sandbox, i);
	return 0;
}

static void on_dead(struct role *role, const char *how)
{
	struct instance *i = container_of(role, struct instance, worker);

	if (i->sandbox)
		sandbox_instance_dead(i->sandbox, i, how);
	else
		supervisor_spare_dead(i->supervisor, i, how);
}

static void on_time(struct loop_timer *timer)
{
	struct instance *i = container_of(timer, struct instance, timer);

	sandbox_instance_late(i->sandbox, i);
}

struct instance *instance_new(struct supervisor *sv)
{
	struct instance *i = calloc(1, sizeof *i);

	if (!i)
		return NULL;
	i->supervisor = sv;
	i->id = supervisor_next_id(sv);
	sources_init(&i->sources, sv->loop, NULL, supervisor_on_source);
	int error = loop_timer_open(sv->loop, &i->timer, on_time);
	if (!error)
		error = role_start(sv->loop, &i->worker, "vethguard-worker", "the worker",
		        on_message, on_dead);
	if (!error) {
		role_bound(&i->worker, ROLE_WORKER_BURST, ROLE_WORKER_PER_S);
		return i;
	}
	loop_timer_close(&i->timer);
	free(i);
	errno = -error;
	return NULL;
}

void instance_give(struct instance *i, struct sandbox *s)
{
	i->sandbox = s;
	DL_APPEND(s->instances, i);
	if (s->name[0])
		snprintf(i->worker.label, sizeof i->worker.label, "the worker of %s", s->name);
}

bool instance_is_ready(const struct instance *i)
{
	return i->keeper_ready && i->worker_ready;
}

void instance_serves(struct instance *i)
{
	loop_timer_cancel(&i->timer);
	i->state = INSTANCE_SERVING;
	i->serving_since_ms = loop_now_ms(i->supervisor->loop);
}

void instance_free(struct instance *i)
{
	if (i->sandbox)
		DL_DELETE(i->sandbox->instances, i);
	role_fini(&i->worker);
	if (i->ring)
		recording_ring_end(i->supervisor, i->sandbox, i->ring);
	sources_fini(&i->sources);
	generation_put(i->generation);
	loop_timer_close(&i->timer);
	free(i);
}
