/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the supervisor maps a memory only while it gives counters their places or
 * reads them. It trusts nothing in it: counters.c bounds all that is read. If a file is damaged,
 * nobody knows what was counted, so its counters begin full.
 */
#include "supervisor/sandbox/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/os/directory.h"
#include "supervisor/sandbox/quotas.h"
#include "supervisor/supervisor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/counters.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/policy/limits.h"

#define NAME_BYTES 32
#define SHARED "shared-"
#define MS_PER_S 1000

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* --- files --- */

static void own_name(uint64_t id, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%016" PRIx64, id);
}

void limits_remove(int directory, uint64_t id)
{
	char name[NAME_BYTES];

	own_name(id, name);
	unlinkat(directory, name, 0);
}

/* Returns false if the sandbox does not have the label. */
static bool shared_name(
        const struct sandbox *s, const struct generation *g, struct slice key, char out[NAME_BYTES])
{
	char text[SHARING_TEXT_MAX];

	if (!sharing_text(s, g, key, text))
		return false;
	snprintf(out, NAME_BYTES, SHARED "%016" PRIx64, sharing_digest(text));
	return true;
}

static size_t count_shared(int directory)
{
	DIR *dir = directory_list(directory);
	const struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir)))
		count += strncmp(entry->d_name, SHARED, sizeof(SHARED) - 1) == 0;
	if (dir)
		closedir(dir);
	return count;
}

static int open_file(const struct sandbox *s, const char *name, bool shared, bool *damaged)
{
	int directory = s->supervisor->limits;
	int fd = counters_open_at(directory, name);

	*damaged = fd == -EBADMSG;
	if (*damaged) {
		log_sandbox(LOG_LEVEL_WARN, s->name,
		        "what was counted for its limits is damaged: they count as used up");
		if (unlinkat(directory, name, 0) < 0)
			return -errno;
	} else if (fd != -ENOENT) {
		return fd;
	}
	if (shared && count_shared(directory) >= LIMITS_SHARED_MAX)
		return -ENOSPC;
	return counters_create_at(directory, name);
}

/* Returns a descriptor that the caller owns, or -errno. */
static int duplicate(int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return own < 0 ? -errno : own;
}

/* Returns a descriptor that the caller owns, or -errno. */
static int open_own(struct sandbox *s, bool *damaged)
{
	char name[NAME_BYTES];

	*damaged = false;
	if (s->persistent) {
		own_name(s->id, name);
		return open_file(s, name, false, damaged);
	}
	if (s->counters < 0)
		s->counters = counters_create();
	return s->counters < 0 ? s->counters : duplicate(s->counters);
}

static int open_shared(
        struct sandbox *s, const struct generation *g, struct slice key, bool *damaged)
{
	char name[NAME_BYTES];

	*damaged = false;
	if (!shared_name(s, g, key, name))
		return sandbox_failed(s, -EINVAL,
		        "a budget of its policy is shared by label \"%.*s\", which it does not "
		        "have: give it one (--label %.*s=VALUE), or remove shared: from the budget",
		        SLICE_ARG(key), SLICE_ARG(key));
	return open_file(s, name, true, damaged);
}

/* --- places --- */

struct keeping {
	const struct policy *policies[2];
};

static bool policy_names(const struct policy *policy, const uint8_t *key, uint64_t period_ms)
{
	uint8_t own[POLICY_LIMIT_KEY];
	struct policy_limit limit;

	for (uint32_t i = 0; i < policy_limit_count(policy); i++) {
		policy_limit(policy, i, &limit);
		policy_limit_key(policy, &limit, own);
		if (memcmp(own, key, sizeof(own)) == 0 &&
		        (uint64_t)limit.period_s * MS_PER_S == period_ms)
			return true;
	}
	return false;
}

static bool is_kept(void *context, const uint8_t *key, uint64_t period_ms)
{
	const struct keeping *keeping = context;

	return policy_names(keeping->policies[0], key, period_ms) ||
	       policy_names(keeping->policies[1], key, period_ms);
}

/* Gives the counters of this memory their places. fd stays the caller's. */
static int place(
        struct sandbox *s, const struct generation *g, int fd, struct slice shared, bool damaged)
{
	const struct policy *policy = &g->settings->policy;
	struct keeping keeping = {{policy, &s->generation->settings->policy}};
	int own = duplicate(fd);
	struct counters counters;
	int rc = own < 0 ? own : counters_open(&counters, own);

	for (uint32_t i = 0; !rc && i < policy_limit_count(policy); i++) {
		uint8_t key[POLICY_LIMIT_KEY];
		struct policy_limit limit;

		policy_limit(policy, i, &limit);
		if (!limit.period_s || !slice_equals(limit.shared, shared))
			continue;
		policy_limit_key(policy, &limit, key);
		if (counters_place(&counters, key, (uint64_t)limit.period_s * MS_PER_S,
		            damaged ? limit.amount : 0, clock_boot_ms(), shared.n ? NULL : is_kept,
		            &keeping) == COUNTERS_NONE)
			rc = -ENOSPC;
	}
	if (own >= 0)
		counters_close(&counters);
	return rc;
}

/* --- telling a worker --- */

/* Descriptors for the worker; all are closed when it was told. */
struct told_fds {
	size_t count;
	int all[MESSAGE_LIMITS_MAX * (1 + QUOTAS_FDS)];
};

/* Adds the memory for a label, once. Returns 0, or -errno with s->failure. */
static int add_memory(struct sandbox *s, const struct generation *g,
        struct message_worker_limits *m, struct told_fds *fds, struct slice shared)
{
	bool damaged;
	int rc, fd;

	for (size_t i = 0; i < m->count; i++)
		if (slice_equals(m->shared[i], shared))
			return 0;
	if (m->count == MESSAGE_LIMITS_MAX)
		return sandbox_failed(s, -E2BIG, "budgets that more than %d labels share",
		        MESSAGE_LIMITS_MAX - 1);
	fd = shared.n ? open_shared(s, g, shared, &damaged) : open_own(s, &damaged);
	if (fd == -EINVAL)
		return fd; /* s->failure says why */
	if (fd < 0)
		return sandbox_failed(s, fd, "memory for limits");
	m->shared[m->count] = shared;
	fds->all[fds->count++] = fd;
	rc = place(s, g, fd, shared, damaged);
	if (!rc && quotas_are_needed(g, shared)) {
		rc = quotas_give(s, g, shared, fds->all + fds->count);
		if (rc)
			return rc; /* s->failure says why */
		m->has_quotas[m->count] = true;
		fds->count += QUOTAS_FDS;
	}
	m->count++;
	return rc ? sandbox_failed(s, rc,
	                    rc == -ENOSPC ? "too many limits were counted under other names"
	                                  : "memory for limits")
	          : 0;
}

static int open_all(struct sandbox *s, const struct generation *g, struct message_worker_limits *m,
        struct told_fds *fds)
{
	const struct policy *policy = &g->settings->policy;
	int rc = add_memory(s, g, m, fds, SLICE(""));

	for (uint32_t i = 0; !rc && i < policy_limit_count(policy); i++) {
		struct policy_limit limit;

		policy_limit(policy, i, &limit);
		rc = add_memory(s, g, m, fds, limit.shared);
	}
	return rc;
}

int limits_tell(struct instance *i, const struct generation *g)
{
	struct message_worker_limits m = {0};
	struct told_fds fds = {0};
	int rc;

	if (policy_limit_count(&g->settings->policy) == 0)
		return 0;
	shared_names_guard(); /* a file may be truncated while it is mapped */
	rc = open_all(i->sandbox, g, &m, &fds);
	if (!rc) {
		size_t n = message_worker_limits_encode(buffer, sizeof(buffer),
		        MESSAGE_WORKER_LIMITS, supervisor_next_id(i->supervisor), &m);

		rc = role_send(&i->worker, buffer, n, fds.all, fds.count);
		if (rc)
			rc = sandbox_failed(i->sandbox, rc, "the worker");
	}
	while (fds.count)
		close(fds.all[--fds.count]);
	return rc;
}

/* --- for people --- */

/* Opens the memory of a limit as it is now; it makes none. */
static int open_to_read(const struct sandbox *s, struct slice shared, struct counters *counters)
{
	char name[NAME_BYTES];
	int fd;

	*counters = (struct counters){0};
	if (!shared.n)
		own_name(s->id, name);
	else if (!shared_name(s, s->generation, shared, name))
		return -ENOENT;
	fd = !s->persistent && !shared.n ? duplicate(s->counters)
	                                 : counters_open_at(s->supervisor->limits, name);
	return fd < 0 ? fd : counters_open(counters, fd);
}

uint64_t limits_used(const struct sandbox *s, const struct policy_limit *limit)
{
	uint8_t key[POLICY_LIMIT_KEY];
	struct counters counters;
	uint64_t used = 0;
	uint32_t index;

	if (open_to_read(s, limit->shared, &counters) != 0)
		return 0;
	policy_limit_key(&s->generation->settings->policy, limit, key);
	index = counters_find(&counters, key, (uint64_t)limit->period_s * MS_PER_S);
	if (index != COUNTERS_NONE)
		used = counters_used(&counters, index, clock_boot_ms());
	counters_close(&counters);
	return used;
}
