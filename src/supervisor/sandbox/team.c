/* SPDX-License-Identifier: Apache-2.0 */
/* Several workers of one sandbox: their number, and the memory in which they have seats. */
#include "supervisor/sandbox/team.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "vethguard/policy/tools.h"
#include "supervisor/supervisor.h"

_Static_assert(CONFIG_WORKERS_MAX == TEAM_WORKERS_MAX, "a team has room for all workers");

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* --- the number --- */

/* True if the policy has credentials whose tokens are known only to the worker that has sealed
 * them. */
static bool seals(const struct policy *policy)
{
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(policy); i++) {
		policy_credential(policy, i, &c);
		if (c.source == POLICY_SOURCE_SEALED || c.inject == POLICY_INJECT_DOCKER_REGISTRY)
			return true;
	}
	return false;
}

uint32_t team_size(const struct sandbox *s, const struct generation *g)
{
	const uint32_t workers = g->settings->config.workers;

	if (workers <= 1 || !s->persistent || s->listen || s->session || s->shared_dns_port)
		return 1;
	/* Only one worker may write what MCP servers said of their tools: if two wrote the same
	 * entry at the same moment, a change might be missed. */
	if (seals(&g->settings->policy) || policy_has_tools(&g->settings->policy))
		return 1;
	return workers;
}

size_t team_retired_max(const struct sandbox *s)
{
	const struct instance *i;
	uint32_t most = team_size(s, s->generation);
	size_t all;

	/* The workers of an earlier generation may have been more. */
	DL_FOREACH(s->instances, i)
	{
		if (i->state == INSTANCE_RETIRED && i->seated && team_size(s, i->generation) > most)
			most = team_size(s, i->generation);
	}
	all = (size_t)SANDBOX_RETIRED_MAX * most;
	return all < TEAM_WORKERS_MAX ? all : TEAM_WORKERS_MAX;
}

/* --- memory and seats --- */

int team_make_memory(struct sandbox *s, struct generation *g)
{
	if (g->has_team || team_size(s, g) == 1)
		return 0;
	g->team = team_create();
	g->has_team = g->team >= 0;
	return g->has_team ? 0 : sandbox_failed(s, g->team, "memory for its workers");
}

/* Returns the lowest seat that no other worker of the generation has; TEAM_SEATS if all are taken.
 */
static uint32_t free_seat(const struct instance *own)
{
	uint64_t taken = 0;
	const struct instance *i;
	uint32_t seat = 0;

	DL_FOREACH(own->sandbox->instances, i)
	{
		if (i != own && i->seated && i->generation == own->generation)
			taken |= UINT64_C(1) << i->seat;
	}
	while (seat < TEAM_SEATS && taken >> seat & 1)
		seat++;
	return seat;
}
_Static_assert(TEAM_SEATS == 64, "a bit for each seat");

int team_tell(struct instance *i)
{
	struct message_worker_team m = {.further = i->further};
	int rc;

	if (!i->generation->has_team)
		return 0;
	m.seat = free_seat(i);
	if (m.seat == TEAM_SEATS)
		return sandbox_failed(i->sandbox, -EAGAIN, "too many of its workers are ending");
	i->seat = m.seat;
	i->seated = true;
	size_t n = message_worker_team_encode(
	        buffer, sizeof(buffer), MESSAGE_WORKER_TEAM, supervisor_next_id(i->supervisor), &m);
	rc = role_send(&i->worker, buffer, n, &i->generation->team, 1);
	return rc ? sandbox_failed(i->sandbox, rc, "the worker") : 0;
}

/* If the memory cannot be mapped, the other workers still count what this one had open, until the
 * next reload. */
static void clear_seat(const struct instance *i)
{
	int fd = fcntl(i->generation->team, F_DUPFD_CLOEXEC, 0);
	struct team team;

	if (fd < 0 || team_open(&team, fd, i->seat) != 0) {
		log_sandbox(LOG_LEVEL_WARN, i->sandbox->name,
		        "a worker is gone, but what it had open still counts against the sandbox's "
		        "limits");
		return;
	}
	team_clear(&team);
	team_close(&team);
}

void team_forget(struct instance *i)
{
	if (!i->seated)
		return;
	clear_seat(i);
	i->seated = false;
	team_forget_questions(i);
}

/* --- who is there --- */

bool team_has(const struct sandbox *s, const struct instance *i)
{
	return i->further && i->generation == s->generation &&
	       (i->state == INSTANCE_STARTING || i->state == INSTANCE_SERVING);
}

size_t team_serving(const struct sandbox *s, pid_t *pids, size_t max)
{
	const struct instance *i;
	size_t count = 0;

	DL_FOREACH(s->instances, i)
	{
		if (!team_has(s, i) || i->state != INSTANCE_SERVING)
			continue;
		if (count < max)
			pids[count] = i->worker.pid;
		count++;
	}
	return count;
}
