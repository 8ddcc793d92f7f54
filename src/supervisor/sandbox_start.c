/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting a sandbox up, in the order that makes it quick: the keeper and the recorder get their
 * messages first and work while the gate is made; the worker is told last, because its message
 * carries the gate's sockets. Nobody is waited for here. Descriptors that were handed out are
 * closed at the end: only their holder keeps them open.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "vethguard/ipc/ring.h"
#include "vethguard/ipc/shared_names.h"
#include "supervisor/audit_file.h"
#include "supervisor/memory_file.h"
#include "supervisor/supervisor.h"

/* What a set-up makes and hands out. */
struct parts {
	int image, trusted, keeper[2];
};

#define PARTS_NONE ((struct parts){-1, -1, {-1, -1}})

#define SOURCE_GRACE_MS 2000

static uint8_t buffer[MESSAGE_BYTES_MAX];

__attribute__((format(printf, 3, 4))) static int fail(
        struct sandbox *s, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int n = vsnprintf(s->failure, sizeof s->failure, format, arguments);
	va_end(arguments);
	if (n >= 0 && (size_t)n < sizeof s->failure)
		snprintf(s->failure + n, sizeof s->failure - (size_t)n, ": %s", strerror(-error));
	return error;
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void parts_close(struct parts *p)
{
	close_if(p->image);
	close_if(p->trusted);
	close_if(p->keeper[0]);
	close_if(p->keeper[1]);
}

static int parts_make(struct sandbox *s, struct parts *p)
{
	const char *culprit;
	int error;

	p->image = memory_file_of("vethguard-policy", s->settings.image, s->settings.image_size);
	if (p->image < 0)
		return fail(s, p->image, "memory for the policy");
	p->trusted = memory_file_trusted_cas(&s->settings.config, &culprit);
	if (p->trusted < 0 && culprit)
		return fail(s, p->trusted, "CA file %s", culprit);
	if (p->trusted < 0)
		return fail(s, p->trusted, "memory for trusted CAs");
	error = ring_create(s->ring);
	if (error) {
		s->ring[0] = s->ring[1] = s->ring[2] = -1;
		return fail(s, error, "memory for events");
	}
	s->names = shared_names_create(s->settings.config.limits.dns_names);
	if (s->names < 0)
		return fail(s, s->names, "memory for names");
	error = ipc_pair(p->keeper);
	if (error)
		p->keeper[0] = p->keeper[1] = -1;
	return error ? fail(s, error, "a socket between worker and keeper") : 0;
}

/* The last part of the path would have been made: a directory above it is missing. */
static int no_directory(struct sandbox *s)
{
	const char *slash = strrchr(s->audit_path, '/');
	int n = slash > s->audit_path ? (int)(slash - s->audit_path) : 1;

	return fail(s, -ENOENT, "audit file %s: the directory %.*s has to be there first",
	        s->audit_path, n, s->audit_path);
}

static int open_log(struct sandbox *s)
{
	int fd = s->audit_own ? audit_file_open_own(s->audit_path)
	                      : audit_file_open(&s->sources.identity, s->audit_path);

	if (fd == -ENOENT)
		return no_directory(s);
	if (fd == -ELOOP)
		return fail(s, fd, "audit file %s is, or is reached through, a symbolic link",
		        s->audit_path);
	if (fd < 0)
		return fail(s, fd, "audit file %s", s->audit_path);
	int error = recording_start(s->supervisor, s->audit_path, fd);
	return error ? fail(s, error, "the recorder") : 0;
}

static int tell_keeper(struct sandbox *s, const struct parts *p)
{
	struct supervisor *sv = s->supervisor;
	struct message_keeper_sandbox m = {
	        .sandbox_id = s->id, .sandbox = slice_from_string(s->name)};
	struct policy_credential c;

	m.credential_count = policy_credential_count(&s->settings.policy);
	if (m.credential_count > POLICY_CREDENTIALS_MAX)
		return fail(s, -E2BIG, "credentials of the policy");
	for (uint32_t i = 0; i < m.credential_count; i++) {
		policy_credential(&s->settings.policy, i, &c);
		m.credentials[i].name = c.name;
		/* The supervisor's own limit comes first and knows what to say. */
		m.credentials[i].timeout_ms = c.timeout_ms + SOURCE_GRACE_MS;
		/* The value of a variable can be had once only, so it lasts. */
		m.credentials[i].ttl_s = c.source == POLICY_SOURCE_ENV ? 0 : c.ttl_s;
	}
	s->keeper_request = supervisor_next_id(sv);
	size_t n = message_keeper_sandbox_encode(
	        buffer, sizeof buffer, MESSAGE_KEEPER_SANDBOX, s->keeper_request, &m);
	int error = role_send(&sv->keeper, buffer, n, &p->keeper[0], 1);
	return error ? fail(s, error, "the keeper") : 0;
}

static int tell_recorder(struct sandbox *s)
{
	int error = recording_open(s->supervisor, s);

	s->recording = !error;
	return error ? fail(s, error, "the recorder") : 0;
}

static int open_gate(struct sandbox *s)
{
	uint16_t ports[POLICY_UDP_PORTS_MAX];
	size_t count = policy_udp_ports(&s->settings.policy, ports, POLICY_UDP_PORTS_MAX);

	gate_assign(&s->gate, &s->settings.config.pool4, &s->settings.config.pool6);
	s->gate.tcp_port = s->settings.config.proxy_port;
	for (size_t i = 0; i < count && i < POLICY_UDP_PORTS_MAX; i++) {
		if (ports[i] == GATE_DNS_PORT)
			log_warn("udp port 53 is the name service's own: rules for it have no "
			         "effect");
		else
			s->gate.udp_ports[s->gate.udp_port_count++] = ports[i];
	}
	int error = gate_open(&s->gate, NULL, s->netns);
	close(s->netns);
	s->netns = -1;
	return error ? fail(s, error, "%s", s->gate.step) : 0;
}

/* Variables that show a placeholder inside the sandbox. */
static void make_placeholders(struct sandbox *s, struct message_worker_start *m)
{
	struct policy_credential c;
	uint8_t seed[16];

	random_bytes(seed, sizeof seed);
	for (uint32_t i = 0; i < policy_credential_count(&s->settings.policy); i++) {
		policy_credential(&s->settings.policy, i, &c);
		if (c.env.n == 0)
			continue;
		size_t n = placeholder_make(c.name, c.env, seed, s->placeholders[i]);
		m->placeholders[m->placeholder_count].credential = i;
		m->placeholders[m->placeholder_count++].text = slice_of(s->placeholders[i], n);
	}
}

static void describe_sandbox(struct sandbox *s, struct message_worker_start *m)
{
	const struct settings *settings = &s->settings;

	*m = (struct message_worker_start){.sandbox = slice_from_string(s->name),
	        .sandbox_id = s->id,
	        .gate4 = s->gate.gate4,
	        .gate6 = s->gate.gate6,
	        .pool4 = settings->config.pool4,
	        .pool6 = settings->config.pool6,
	        .proxy_port = settings->config.proxy_port,
	        .server_count = settings->server_count,
	        .host_count = settings->host_count,
	        .hosts = settings->hosts,
	        .permit_count = settings->config.permit_count,
	        .limits = settings->config.limits,
	        .timeouts = settings->config.timeouts,
	        .log_level = (uint8_t)log_level(),
	        .listener_count = s->gate.listener_count};
	memcpy(m->servers, settings->servers, sizeof m->servers);
	memcpy(m->permit, settings->config.permit, sizeof m->permit);
	m->egress = settings->config.egress;
	m->egress_pair = secret_slice(&settings->egress_pair);
	make_placeholders(s, m);
	for (size_t i = 0; i < s->gate.listener_count; i++) {
		m->listeners[i].kind = s->gate.listeners[i].kind;
		m->listeners[i].port = s->gate.listeners[i].port;
	}
}

static int tell_worker(struct sandbox *s, const struct parts *p)
{
	static struct message_worker_start m;
	int fds[MESSAGE_WORKER_FDS_BEFORE_LISTENERS + MESSAGE_LISTENERS_MAX] = {
	        p->image, p->trusted, s->ring[0], s->ring[1], s->ring[2], p->keeper[1], s->names};
	size_t count = MESSAGE_WORKER_FDS_BEFORE_LISTENERS;

	describe_sandbox(s, &m);
	for (size_t i = 0; i < s->gate.listener_count; i++)
		fds[count++] = s->gate.listeners[i].fd;
	s->worker_request = supervisor_next_id(s->supervisor);
	size_t n = message_worker_start_encode(
	        buffer, sizeof buffer, MESSAGE_WORKER_START, s->worker_request, &m);
	if (n == 0)
		return fail(s, -EMSGSIZE, "what the worker has to know (too many static hosts?)");
	int error = role_send(&s->worker, buffer, n, fds, count);
	secret_wipe(buffer, n);
	return error ? fail(s, error, "the worker") : 0;
}

int sandbox_set_up(struct sandbox *s)
{
	struct parts parts = PARTS_NONE;
	int error = parts_make(s, &parts);

	if (!error)
		error = tell_keeper(s, &parts);
	if (!error)
		error = open_log(s);
	if (!error)
		error = open_gate(s);
	if (!error)
		error = tell_recorder(s);
	if (!error)
		error = tell_worker(s, &parts);
	parts_close(&parts);
	gate_close_handed_out(&s->gate);
	return error;
}
