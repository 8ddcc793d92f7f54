/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: as with counters, the supervisor maps a memory only while it gives quotas
 * their places or reads them. What a budget is called at the server, and how much it is, goes to
 * vethguard-quota in a message and not through the memory, because workers write to that.
 */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/sandbox/quotas.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/tls/digest.h"

#define NAME_BYTES 32
#define MS_PER_S 1000

_Static_assert(MESSAGE_QUOTA_BUDGETS_MAX == QUOTAS_MAX, "one message tells of a whole memory");
_Static_assert(MESSAGE_QUOTA_NAME_BYTES == DIGEST_SHA256_HEX, "a budget's name is a digest");

/* --- who shares --- */

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

bool sharing_text(const struct sandbox *s, const struct generation *g, struct slice key,
        char out[SHARING_TEXT_MAX])
{
	size_t n;
	const char *value = label_of(s, key, &n);

	if (!value)
		return false;
	snprintf(out, SHARING_TEXT_MAX, "%u\n%.*s=%.*s", (unsigned)g->identity.uid, SLICE_ARG(key),
	        (int)n, value);
	return true;
}

uint64_t sharing_digest(const char *text)
{
	static const struct hash_key hash = {0x7368617265642062, 0x7564676574000001};

	return hash_bytes(&hash, text, strlen(text));
}

/* --- memories --- */

static void file_name(uint64_t digest, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "quota-%016" PRIx64, digest);
}

static bool is_of(const struct policy_limit *limit, struct slice shared)
{
	return limit->hosts && slice_equals(limit->shared, shared);
}

bool quotas_are_needed(const struct generation *g, struct slice shared)
{
	const struct policy *policy = &g->settings->policy;
	struct policy_limit limit;

	for (uint32_t i = 0; i < policy_limit_count(policy); i++) {
		policy_limit(policy, i, &limit);
		if (is_of(&limit, shared))
			return true;
	}
	return false;
}

/* A damaged file begins anew, under another name at the server, which still has what was claimed
 * under the name before. */
static int open_file(struct sandbox *s, uint64_t digest)
{
	int directory = s->supervisor->limits, fd;
	char name[NAME_BYTES];

	file_name(digest, name);
	fd = quotas_open_at(directory, name);
	if (fd == -EBADMSG) {
		log_sandbox(LOG_LEVEL_WARN, s->name,
		        "the memory of a budget that hosts share is damaged: it begins anew");
		quota_forget(s->supervisor, digest);
		if (unlinkat(directory, name, 0) < 0)
			return -errno;
	} else if (fd != -ENOENT) {
		return fd;
	}
	return quotas_create_at(directory, name);
}

/* Writes the name of the budget at the server: the same on all hosts. */
static int name_budget(const struct policy *policy, const struct policy_limit *limit,
        const char *sharing, char out[DIGEST_SHA256_HEX + 1])
{
	struct slice rule = policy_rule_name(policy, limit->rule);
	char kind[64];
	const struct slice parts[] = {slice_from_string(sharing), slice_from_string(kind), rule};
	struct digest digest;
	int rc = digest_init(&digest);

	if (rc)
		return rc;
	snprintf(kind, sizeof(kind), "\n%s\n%" PRIu32 "\n%s\n", policy_limit_kind_name(limit->kind),
	        limit->period_s,
	        limit->floor ? "floor"
	        : rule.n     ? "rule"
	                     : "policy");
	rc = digest_sha256_hex(&digest, parts, sizeof(parts) / sizeof(parts[0]), out);
	digest_fini(&digest);
	return rc;
}

static char names[QUOTAS_MAX][DIGEST_SHA256_HEX + 1];

/* Gives the budgets of the label their places, and lists them for vethguard-quota. */
static int place(struct quotas *quotas, const struct generation *g, struct slice shared,
        const char *sharing, struct message_quota_budgets *m)
{
	const struct policy *policy = &g->settings->policy;
	struct policy_limit limit;
	uint8_t key[POLICY_LIMIT_KEY];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < policy_limit_count(policy); i++) {
		struct message_quota_budget *b = &m->budgets[m->count];

		policy_limit(policy, i, &limit);
		if (!is_of(&limit, shared))
			continue;
		policy_limit_key(policy, &limit, key);
		*b = (struct message_quota_budget){.period_s = limit.period_s,
		        .amount = limit.amount,
		        .index = quotas_place(
		                quotas, key, (uint64_t)limit.period_s * MS_PER_S, limit.amount)};
		if (b->index == QUOTAS_NONE)
			return -ENOSPC;
		rc = name_budget(policy, &limit, sharing, names[m->count]);
		b->name = slice_from_string(names[m->count]);
		m->count++;
	}
	return rc;
}
_Static_assert(POLICY_LIMITS_MAX <= QUOTAS_MAX, "all limits of a policy have a place");

/* Returns the memory's descriptor, which the caller owns, or -errno. */
static int tell(struct sandbox *s, const struct generation *g, struct slice shared)
{
	static struct message_quota_budgets m;
	struct quotas quotas;
	char sharing[SHARING_TEXT_MAX];
	int fd, own, rc;

	if (!sharing_text(s, g, shared, sharing))
		return -EINVAL;
	m = (struct message_quota_budgets){.memory = sharing_digest(sharing)};
	fd = open_file(s, m.memory);
	own = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	rc = own < 0 ? -errno : quotas_open(&quotas, own, -1);
	if (!rc)
		rc = quotas_prepare(&quotas, s->supervisor->quota.config.hosts);
	if (!rc)
		rc = place(&quotas, g, shared, sharing, &m);
	if (own >= 0)
		quotas_close(&quotas);
	if (!rc) {
		quota_tell(s->supervisor, &m, fd);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

const char *quotas_objection(const struct supervisor *sv, const struct policy *policy)
{
	struct policy_limit limit;
	bool over_hosts = false, local = false;

	for (uint32_t i = 0; i < policy_limit_count(policy); i++) {
		policy_limit(policy, i, &limit);
		over_hosts |= limit.hosts != POLICY_HOSTS_NONE;
		local |= limit.hosts == POLICY_HOSTS_LOCAL;
	}
	if (over_hosts && !quota_is_configured(&sv->quota))
		return "error: hosts share a budget of the policy, but the configuration names no "
		       "server for that: add quota: {server: redis://HOST}";
	if (local && !sv->quota.config.hosts)
		return "error: a budget of the policy has hosts: local, but the configuration does "
		       "not "
		       "say how many hosts there are: add hosts: to quota";
	return NULL;
}

int quotas_give(
        struct sandbox *s, const struct generation *g, struct slice shared, int fds[QUOTAS_FDS])
{
	int bell;

	shared_names_guard(); /* a file may be truncated while it is mapped */
	bell = quota_bell(s->supervisor);
	fds[1] = bell < 0 ? bell : fcntl(bell, F_DUPFD_CLOEXEC, 0);
	if (fds[1] < 0)
		return sandbox_failed(s, -errno, "the bell of vethguard-quota");
	fds[0] = tell(s, g, shared);
	if (fds[0] >= 0)
		return 0;
	close(fds[1]);
	return sandbox_failed(s, fds[0],
	        fds[0] == -ENOSPC ? "too many budgets of hosts were counted under other names"
	                          : "memory for budgets of hosts");
}

/* --- all memories --- */

/* Calls `what` once for each label by which hosts share a budget of the sandbox's policy. */
static void for_each_label(struct sandbox *s,
        void (*what)(struct sandbox *s, struct slice shared, void *context), void *context)
{
	const struct policy *policy;
	struct policy_limit limit, before;

	if (!s->generation || !s->generation->settings) /* its policy was not loaded */
		return;
	policy = &s->generation->settings->policy;
	for (uint32_t i = 0; i < policy_limit_count(policy); i++) {
		bool is_first = true;

		policy_limit(policy, i, &limit);
		for (uint32_t k = 0; limit.hosts && k < i; k++) {
			policy_limit(policy, k, &before);
			is_first &= !is_of(&before, limit.shared);
		}
		if (limit.hosts && is_first)
			what(s, limit.shared, context);
	}
}

static void tell_one(struct sandbox *s, struct slice shared, void *context)
{
	int fd = tell(s, s->generation, shared);

	(void)context;
	if (fd < 0)
		log_sandbox(LOG_LEVEL_ERROR, s->name,
		        "the memory of a budget that hosts share cannot be opened: %s",
		        strerror(-fd));
	else
		close(fd);
}

void quotas_tell_all(struct supervisor *sv)
{
	struct sandbox *s, *next;

	shared_names_guard();
	HASH_ITER(hh, sv->sandboxes, s, next)
	for_each_label(s, tell_one, NULL);
}

struct search {
	uint64_t digest;
	bool found;
};

static void look_for(struct sandbox *s, struct slice shared, void *context)
{
	struct search *search = context;
	char sharing[SHARING_TEXT_MAX];

	if (sharing_text(s, s->generation, shared, sharing))
		search->found |= sharing_digest(sharing) == search->digest;
}

static void forget_one(struct sandbox *s, struct slice shared, void *context)
{
	char sharing[SHARING_TEXT_MAX];
	struct sandbox *other, *next;
	struct search search = {0};

	(void)context;
	if (!sharing_text(s, s->generation, shared, sharing))
		return;
	search.digest = sharing_digest(sharing);
	HASH_ITER(hh, s->supervisor->sandboxes, other, next)
	if (other != s)
		for_each_label(other, look_for, &search);
	if (!search.found)
		quota_forget(s->supervisor, search.digest);
}

void quotas_forget(struct sandbox *s)
{
	for_each_label(s, forget_one, NULL);
}

/* --- for people --- */

bool quotas_used(const struct sandbox *s, const struct policy_limit *limit, uint64_t *used,
        enum quota_state *state)
{
	char sharing[SHARING_TEXT_MAX], name[NAME_BYTES];
	uint8_t key[POLICY_LIMIT_KEY];
	struct quotas quotas;
	uint32_t index;
	int fd;

	if (!limit->hosts || !sharing_text(s, s->generation, limit->shared, sharing))
		return false;
	file_name(sharing_digest(sharing), name);
	fd = quotas_open_at(s->supervisor->limits, name);
	if (fd < 0 || quotas_open(&quotas, fd, -1) != 0)
		return false;
	policy_limit_key(&s->generation->settings->policy, limit, key);
	index = quotas_find(&quotas, key, (uint64_t)limit->period_s * MS_PER_S, limit->amount);
	if (index != QUOTAS_NONE) {
		*used = quotas_used_by_all(&quotas, index);
		*state = quotas_are_away(&quotas, index, clock_boot_ms())
		                 ? QUOTA_AWAY
		                 : quotas_state(&quotas, index);
	}
	quotas_close(&quotas);
	return index != QUOTAS_NONE;
}
