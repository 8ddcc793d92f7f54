/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One query at a time. All roles are asked with the same id. A report is found by process id,
 * because a role, and its struct, may be gone before the last answer has come.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/jail/jail.h"
#include "supervisor/process/confinement.h"

struct confinement {
	struct supervisor *supervisor;
	struct loop_timer patience;
	uint64_t ask_id; /* id of DESCRIBE */
	uint64_t id;     /* id of the caller */
	roles_told told;
	void *context;
	size_t count, answered, max;
	struct confinement_report *reports;
};

static struct confinement *asked; /* the open query; a process has one supervisor */

static void confinement_free(struct confinement *r)
{
	r->supervisor->confinement = asked = NULL;
	loop_timer_close(&r->patience);
	for (size_t i = 0; i < r->count; i++)
		free(r->reports[i].text);
	free(r->reports);
	free(r);
}

static void tell(struct confinement *r)
{
	r->told(r->context, r->id, r->reports, r->count);
	confinement_free(r);
}

/* The caller holds resources for the answer and frees them when told is called. */
void confinement_fini(struct supervisor *sv)
{
	if (!sv->confinement)
		return;
	sv->confinement->told(sv->confinement->context, sv->confinement->id, NULL, 0);
	confinement_free(sv->confinement);
}

static void on_patience_over(struct loop_timer *timer)
{
	tell(container_of(timer, struct confinement, patience));
}

static void on_description(struct role *role, struct slice text)
{
	struct confinement *r = asked;

	if (!r || role->describe_id != r->ask_id)
		return; /* too late */
	for (size_t i = 0; i < r->count; i++)
		if (r->reports[i].pid == role->pid && !r->reports[i].text) {
			r->reports[i].text = strndup(text.p, text.n);
			r->answered++;
			loop_timer_set(&r->patience, CONFINEMENT_PATIENCE_MS); /* wait on */
		}
	if (r->answered == r->count)
		loop_timer_set(&r->patience, 0);
}

static struct confinement_report *add(struct confinement *r, const char *label, pid_t pid)
{
	struct confinement_report *report;

	if (r->count == r->max)
		return NULL;
	report = &r->reports[r->count++];
	snprintf(report->label, sizeof(report->label), "%s", label);
	report->pid = pid;
	return report;
}

static void ask(struct confinement *r, struct role *role)
{
	if (role_runs(role) && add(r, role->label, role->pid))
		role_ask(role, r->ask_id, on_description);
}

static void ask_worker(struct instance *i, const void *context)
{
	(void)context;
	if (i->state == INSTANCE_SERVING || i->state == INSTANCE_RETIRED)
		ask(asked, &i->worker);
}

static void count_worker(struct instance *i, const void *context)
{
	(void)context;
	asked->max += i->worker.pid > 0;
}

static void describe_own(struct confinement *r)
{
	struct confinement_report *own = add(r, "the supervisor", getpid());
	char *text = own ? malloc(JAIL_TEXT_MAX) : NULL;

	if (text) {
		jail_describe(text, JAIL_TEXT_MAX);
		own->text = text;
		r->answered++;
	}
}

int confinement_ask(struct supervisor *sv, uint64_t id, roles_told told, void *context)
{
	struct confinement *r;

	if (sv->confinement)
		return -EBUSY;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct confinement){
	        .supervisor = sv, .id = id, .told = told, .context = context, .max = 5};
	r->ask_id = supervisor_next_id(sv);
	sv->confinement = asked = r;
	supervisor_for_each_worker(sv, count_worker, NULL);
	r->reports = calloc(r->max, sizeof(*r->reports));
	if (!r->reports || loop_timer_open(sv->loop, &r->patience, on_patience_over) != 0) {
		confinement_free(r);
		return -ENOMEM;
	}
	describe_own(r);
	ask(r, &sv->keeper);
	if (sv->recorder_life.ready)
		ask(r, &sv->recorder);
	if (sv->gateway.ready)
		ask(r, &sv->gateway.role);
	if (sv->quota.answers)
		ask(r, &sv->quota.role);
	supervisor_for_each_worker(sv, ask_worker, NULL);
	loop_timer_set(&r->patience, CONFINEMENT_PATIENCE_MS);
	return 0;
}
