/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a worker. The worker met the keeper when it was made (usually in the pool) and has its
 * CA. The keeper is told of the sandbox first; then the worker gets one message with every
 * descriptor it will have. Nothing here waits. Descriptors that were handed out are closed at the
 * end: only their receiver keeps them open.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/tls/ca_names.h"
#include "supervisor/os/local_file.h"
#include "supervisor/os/memfd.h"
#include "supervisor/os/priority.h"
#include "supervisor/sandbox/asks.h"
#include "supervisor/sandbox/limits.h"
#include "supervisor/sandbox/team.h"
#include "supervisor/sandbox/tools_memory.h"
#include "supervisor/supervisor.h"

#define SOURCE_GRACE_MS 2000

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* Returns a descriptor of an equal policy image in another sandbox (whose settings are not shared,
 * because its variables differ, for example), so that one memory serves both; -1: there is none. */
static int same_image(const struct sandbox *s, const struct settings *own)
{
	struct sandbox *other, *next;

	HASH_ITER(hh, s->supervisor->sandboxes, other, next)
	{
		const struct settings *theirs =
		        other->generation ? other->generation->settings : NULL;

		if (theirs && theirs->image_file >= 0 && theirs->image_size == own->image_size &&
		        memcmp(theirs->image, own->image, own->image_size) == 0)
			return fcntl(theirs->image_file, F_DUPFD_CLOEXEC, 0);
	}
	return -1;
}

static int open_image(const struct sandbox *s, const struct settings *own)
{
	int fd = same_image(s, own);

	return fd >= 0 ? fd : memfd_of("vethguard-policy", own->image, own->image_size);
}

int generation_make_files(struct sandbox *s, struct generation *g)
{
	const char *culprit = NULL;
	int fd, rc;

	if (g->settings->image_file < 0) {
		fd = open_image(s, g->settings);
		if (fd < 0)
			return sandbox_failed(s, fd, "memory for the policy");
		settings_keep_image(g->settings, fd);
	}
	rc = team_make_memory(s, g);
	if (rc || g->trusted)
		return rc;
	rc = memfd_trusted(&g->settings->config, &s->supervisor->trusted, &g->trusted, &culprit);
	if (rc == LOCAL_FILE_UNKNOWN && culprit)
		return sandbox_failed(s, rc, "CA file %s " SETTINGS_NOT_LOCAL, culprit);
	if (rc && culprit)
		return sandbox_failed(s, rc, "CA file %s", culprit);
	return rc ? sandbox_failed(s, rc, "memory for trusted CAs") : 0;
}

/* An instance that observes refuses little, so its names are not known beforehand. */
static bool is_constrained(const struct instance *i)
{
	return i->supervisor->ca_life.config.constrain_names &&
	       policy_mode(&i->credentials->settings->policy) != POLICY_OBSERVE;
}

static int collect_names(const struct instance *i, struct ca_names *names)
{
	const struct policy *policy = &i->credentials->settings->policy;
	struct policy_named named;
	uint32_t at = 0;
	int rc = 0;

	if (!is_constrained(i))
		return 0;
	while (rc == 0 && policy_named_next(policy, &at, &named))
		rc = named.host.n ? ca_names_add_host(names, named.host)
		                  : ca_names_add_network(names, &named.network);
	if (rc == 0 && policy_answers(policy))
		rc = ca_names_add_host(names, SLICE(POLICY_OWN_HOST));
	if (rc == 0)
		rc = ca_names_end(names);
	if (rc)
		sandbox_failed(i->sandbox, rc,
		        "the policy names more than a certificate can be limited to (%d bytes; ca: "
		        "constrain_names: of the configuration)",
		        CA_NAMES_MAX);
	return rc;
}

static int tell_keeper_of(struct instance *i, struct slice names)
{
	struct supervisor *sv = i->supervisor;
	const struct policy *policy = &i->credentials->settings->policy;
	struct message_keeper_sandbox m = {.sandbox_id = i->id,
	        .owner = i->sandbox->id,
	        .generation = i->credentials->number,
	        .names = names,
	        .sandbox = slice_from_string(i->sandbox->name)};
	struct policy_credential c;

	m.credential_count = policy_credential_count(policy);
	if (m.credential_count > POLICY_CREDENTIALS_MAX)
		return -E2BIG;
	for (uint32_t n = 0; n < m.credential_count; n++) {
		policy_credential(policy, n, &c);
		m.credentials[n].name = c.name;
		/* The supervisor's own limit comes first: its error text says more. */
		m.credentials[n].timeout_ms = c.timeout_ms + SOURCE_GRACE_MS;
		m.credentials[n].revoked = i->credentials->revoked >> n & 1;
		m.credentials[n].sealed = c.source == POLICY_SOURCE_SEALED;
		if (c.inject == POLICY_INJECT_CLIENT_CERTIFICATE &&
		        identity_owns_machine(&i->credentials->identity))
			m.credentials[n].key = c.field;
		/* The value of a variable can be read only once, so it does not expire. */
		m.credentials[n].ttl_s = c.source == POLICY_SOURCE_ENV ? 0 : c.ttl_s;
	}
	i->keeper_ready = false;
	int rc = instance_asks_keeper(i, supervisor_next_id(sv));
	if (rc)
		return rc;
	size_t n = message_keeper_sandbox_encode(
	        buffer, sizeof(buffer), MESSAGE_KEEPER_SANDBOX, i->keeper_request, &m);
	priority_lend(sv->keeper.pid);
	rc = role_send(&sv->keeper, buffer, n, NULL, 0);
	return rc == -EPIPE ? 0 : rc;
}

/* A keeper that is ending is no error: the next one is told. */
static int tell_keeper(struct instance *i)
{
	struct ca_names names;
	int rc;

	ca_names_init(&names);
	rc = collect_names(i, &names);
	if (rc == 0)
		rc = tell_keeper_of(i, buf_slice(&names.text));
	ca_names_fini(&names);
	return rc;
}

void generation_make_placeholders(struct generation *g, const uint8_t seed[16])
{
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(&g->settings->policy); i++) {
		policy_credential(&g->settings->policy, i, &c);
		if (c.env.n || c.source == POLICY_SOURCE_SEALED ||
		        c.inject == POLICY_INJECT_DOCKER_REGISTRY)
			placeholder_make(&c, seed, g->placeholders[i]);
	}
}

static void describe_placeholders(struct generation *g, struct message_worker_start *m)
{
	for (uint32_t i = 0; i < policy_credential_count(&g->settings->policy); i++) {
		if (!g->placeholders[i][0])
			continue;
		m->placeholders[m->placeholder_count].credential = i;
		m->placeholders[m->placeholder_count++].text =
		        slice_from_string(g->placeholders[i]);
	}
}

static void describe_sandbox(
        const struct sandbox *s, struct generation *g, struct message_worker_start *m)
{
	const struct settings *settings = g->settings;

	*m = (struct message_worker_start){.sandbox = slice_from_string(s->name),
	        .sandbox_id = s->id,
	        .generation = g->number,
	        .gate4 = s->gate.gate4,
	        .gate6 = s->gate.gate6,
	        .pool4 = settings->config.pool4,
	        .pool6 = settings->config.pool6,
	        /* The port of the open listeners: the configuration's may have changed. */
	        .proxy_port = s->gate.tcp_port,
	        .server_count = settings->server_count,
	        .host_count = settings->host_count,
	        .hosts = settings->hosts,
	        .permit_count = settings->config.permit_count,
	        .limits = settings->config.limits,
	        .timeouts = settings->config.timeouts,
	        .log_level = (uint8_t)log_level(),
	        .listener_count = s->gate.listener_count};
	memcpy(m->servers, settings->servers, sizeof(m->servers));
	memcpy(m->permit, settings->config.permit, sizeof(m->permit));
	config_limits_divide(&m->limits, team_size(s, g));
	m->egress = settings->config.egress;
	m->egress_pair = secret_slice(&settings->egress_pair);
	generation_make_placeholders(g, s->seed);
	describe_placeholders(g, m);
	for (size_t i = 0; i < s->gate.listener_count; i++) {
		m->listeners[i].kind = s->gate.listeners[i].kind;
		m->listeners[i].port = s->gate.listeners[i].port;
		m->listeners[i].cid = s->gate.listeners[i].cid;
	}
}

static int tell_worker(struct instance *i)
{
	static struct message_worker_start m;
	struct sandbox *s = i->sandbox;
	int fds[MESSAGE_WORKER_FDS_BEFORE_LISTENERS + MESSAGE_LISTENERS_MAX] = {
	        i->generation->settings->image_file, i->generation->trusted->fd, i->ring->fds[0],
	        i->ring->fds[1], i->ring->fds[2], s->names};
	size_t count = MESSAGE_WORKER_FDS_BEFORE_LISTENERS;

	describe_sandbox(s, i->generation, &m);
	for (size_t n = 0; n < s->gate.listener_count; n++)
		fds[count++] = s->gate.listeners[n].fd;
	i->worker_request = supervisor_next_id(i->supervisor);
	size_t n = message_worker_start_encode(
	        buffer, sizeof(buffer), MESSAGE_WORKER_START, i->worker_request, &m);
	if (n == 0)
		return sandbox_failed(
		        s, -EMSGSIZE, "what the worker has to know (too many static hosts?)");
	priority_lend(i->worker.pid);
	int rc = role_send(&i->worker, buffer, n, fds, count);
	secret_wipe(buffer, n);
	return rc ? sandbox_failed(s, rc, "the worker") : 0;
}

/* Sent before START, so that the worker never serves without knowing. */
static void tell_quiet(struct instance *i)
{
	const struct sandbox *s = i->sandbox;

	if (s->paused)
		instance_pause(i, s->pause_reason);
	if (s->persistent && !s->supervisor->recorder_life.ready)
		instance_hold(i);
	recorder_stalls(i);
}

static int make_ring(struct instance *i)
{
	i->ring = recording_ring_new(i->supervisor, i->sandbox);
	return i->ring ? 0
	               : sandbox_failed(i->sandbox, -errno, "%s",
	                         errno == ENOBUFS ? "too many of its workers have left events that "
	                                            "the audit log has no room for"
	                                          : "memory for events");
}

static void set_credentials(struct instance *i, struct generation *g)
{
	struct generation *before = i->credentials;

	i->credentials = generation_get(g);
	generation_put(before);
	i->sources.policy = &g->settings->policy;
	i->sources.identity = g->identity;
	i->sources.settings = g->settings;
	i->sources.trusted = &g->trusted;
	i->sources.mounts = i->supervisor->mounts;
}

int instance_change_credentials(struct instance *i, struct generation *g)
{
	if (i->credentials != g)
		sources_stop(&i->sources); /* the answers have no receiver any more */
	set_credentials(i, g);
	return tell_keeper(i);
}

int instance_tell_keeper(struct instance *i, struct generation *g)
{
	struct sandbox *s = i->sandbox;

	instance_enter(i, INSTANCE_STARTING);
	i->generation = generation_get(g);
	set_credentials(i, g);
	snprintf(i->sources.directory, sizeof(i->sources.directory), "%s", s->directory);
	int rc = tell_keeper(i);

	return rc == -ENOBUFS || rc == -EINVAL ? rc : rc ? sandbox_failed(s, rc, "the keeper") : 0;
}

int instance_start(struct instance *i, struct generation *g)
{
	struct sandbox *s = i->sandbox;
	int rc = i->generation ? 0 : instance_tell_keeper(i, g);

	if (!rc)
		rc = generation_make_files(s, g);
	if (!rc)
		rc = sandbox_open_names(s);
	if (!rc)
		rc = make_ring(i);
	if (!rc) {
		tell_quiet(i);
		rc = limits_tell(i, g);
		rc = rc ? rc : tools_memory_tell(i, g);
		asks_tell(i);
	}
	if (!rc)
		rc = team_tell(i);
	if (!rc) {
		rc = tell_worker(i);
	}
	if (!rc && !i->further && instance_tell_exposed(i) != 0)
		rc = sandbox_failed(s, -EPIPE, "the worker");
	gate_close_handed_out(&s->gate);
	sandbox_close_names(s);
	if (rc)
		return rc;
	loop_timer_set(&i->timer, SANDBOX_START_MS);
	return 0;
}

int instance_meet_keeper(struct instance *i, struct slice root)
{
	struct supervisor *sv = i->supervisor;
	const struct message_keeper_worker m = {root, sv->ca_life.config.constrain_names};
	int pair[2], error;

	if (!role_runs(&sv->keeper)) /* the next keeper is met */
		return 0;
	error = ipc_pair(pair);
	if (error)
		return error;
	error = role_send(&sv->keeper, buffer,
	        message_keeper_worker_encode(
	                buffer, sizeof(buffer), MESSAGE_KEEPER_WORKER, i->id, &m),
	        &pair[0], 1);
	if (!error)
		error = role_send(&i->worker, buffer,
		        message_empty(buffer, sizeof(buffer), MESSAGE_WORKER_KEEPER,
		                supervisor_next_id(sv)),
		        &pair[1], 1);
	if (error == -EPIPE) /* one of them is exiting; its on_dead handles that */
		error = 0;
	close(pair[0]);
	close(pair[1]);
	return error;
}

int instance_new_keeper(struct instance *i)
{
	int rc = instance_meet_keeper(i, i->sandbox ? sandbox_root(i->sandbox) : slice_of("", 0));

	return rc || !i->sandbox || !i->generation ? rc : tell_keeper(i);
}
