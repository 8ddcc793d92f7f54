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
#include "supervisor/supervisor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
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

/* The value of a label of the sandbox, or NULL. */
static const char *label_of(const struct sandbox *s, struct slice key, size_t *n)
{
	const char *line = s->labels;

	while (line && *line) {
		size_t length = strcspn(line, "\n");

		if (length > key.n && line[key.n] == '=' && memcmp(line, key.p, key.n) == 0) {
			*n = length - key.n - 1;
			return line + key.n + 1;
		}
		line += length + (line[length] == '\n');
	}
	return NULL;
}

/* Two sandboxes share a budget only if the same user named their policies. */
static void shared_name(
        const struct generation *g, struct slice key, struct slice value, char out[NAME_BYTES])
{
	static const struct hash_key hash = {0x7368617265642062, 0x7564676574000001};
	char text[MESSAGE_LABELS_MAX + 32];
	int n = snprintf(text, sizeof(text), "%u\n%.*s=%.*s", (unsigned)g->identity.uid,
	        SLICE_ARG(key), SLICE_ARG(value));

	snprintf(out, NAME_BYTES, SHARED "%016" PRIx64, hash_bytes(&hash, text, (size_t)n));
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
	size_t n;
	const char *value = label_of(s, key, &n);

	*damaged = false;
	if (!value)
		return sandbox_failed(s, -EINVAL,
		        "a budget of its policy is shared by label \"%.*s\", which it does not "
		        "have: give it one (--label %.*s=VALUE), or remove shared: from the budget",
		        SLICE_ARG(key), SLICE_ARG(key));
	shared_name(g, key, slice_of(value, n), name);
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

/* Adds the memory for a label, once. Returns 0, or -errno with s->failure. */
static int add_memory(struct sandbox *s, const struct generation *g,
        struct message_worker_limits *m, int fds[MESSAGE_LIMITS_MAX], struct slice shared)
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
	fds[m->count++] = fd;
	rc = place(s, g, fd, shared, damaged);
	return rc ? sandbox_failed(s, rc,
	                    rc == -ENOSPC ? "too many limits were counted under other names"
	                                  : "memory for limits")
	          : 0;
}

static int open_all(struct sandbox *s, const struct generation *g, struct message_worker_limits *m,
        int fds[MESSAGE_LIMITS_MAX])
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
	int fds[MESSAGE_LIMITS_MAX], rc;

	if (policy_limit_count(&g->settings->policy) == 0)
		return 0;
	shared_names_guard(); /* a file may be truncated while it is mapped */
	rc = open_all(i->sandbox, g, &m, fds);
	if (!rc) {
		size_t n = message_worker_limits_encode(buffer, sizeof(buffer),
		        MESSAGE_WORKER_LIMITS, supervisor_next_id(i->supervisor), &m);

		rc = role_send(&i->worker, buffer, n, fds, m.count);
		if (rc)
			rc = sandbox_failed(i->sandbox, rc, "the worker");
	}
	for (size_t k = 0; k < m.count; k++)
		close(fds[k]);
	return rc;
}

/* --- for people --- */

/* Opens the memory of a limit as it is now; it makes none. */
static int open_to_read(const struct sandbox *s, struct slice shared, struct counters *counters)
{
	const char *value = NULL;
	char name[NAME_BYTES];
	size_t n;
	int fd;

	*counters = (struct counters){0};
	if (shared.n && !(value = label_of(s, shared, &n)))
		return -ENOENT;
	if (value)
		shared_name(s->generation, shared, slice_of(value, n), name);
	else
		own_name(s->id, name);
	fd = !s->persistent && !value ? duplicate(s->counters)
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
