/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting a sandbox up. Keeper, worker and recorder are told as early as possible, those with the
 * most work first, and work while the gate is connected, which takes longest. The worker has the
 * gate's sockets before anything leads to them. Nothing here waits.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/ipc/shared_names.h"
#include "supervisor/events/audit_file.h"
#include "supervisor/sandbox/names_file.h"
#include "supervisor/supervisor.h"

int sandbox_failed(struct sandbox *s, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int n = vsnprintf(s->failure, sizeof(s->failure), format, arguments);
	va_end(arguments);
	if (n >= 0 && (size_t)n < sizeof(s->failure))
		snprintf(s->failure + n, sizeof(s->failure) - (size_t)n, ": %s", strerror(-error));
	return error;
}

/* Only the last part of the path is created: a directory above it is missing. */
static int no_directory(struct sandbox *s)
{
	const char *slash = strrchr(s->audit_path, '/');
	int n = slash > s->audit_path ? (int)(slash - s->audit_path) : 1;

	return sandbox_failed(s, -ENOENT, "audit file %s: the directory %.*s has to exist first",
	        s->audit_path, n, s->audit_path);
}

static int open_log(struct sandbox *s)
{
	int fd = s->audit_own ? audit_file_open_own(s->audit_path)
	                      : audit_file_open(&s->generation->identity, s->audit_path);

	if (fd == -ENOENT)
		return no_directory(s);
	if (fd == -ELOOP)
		return sandbox_failed(s, fd,
		        "audit file %s is, or is reached through, a symbolic link", s->audit_path);
	if (fd < 0)
		return sandbox_failed(s, fd, "audit file %s", s->audit_path);
	int rc = recording_start(
	        s->supervisor, s->audit_path, fd, s->audit_own ? NULL : &s->generation->identity);
	return rc ? sandbox_failed(s, rc, "the recorder") : 0;
}

/* Makes the memory of synthetic names: a file if persistent. Without the old file, addresses that
 * are cached inside are unknown; nothing else is lost. */
static int make_names(const struct sandbox *s)
{
	uint32_t limit = s->generation->settings->config.limits.dns_names;
	bool damaged;

	if (!s->persistent)
		return shared_names_create(limit);
	int fd = names_file_open(s->supervisor->names, s->id, limit, &damaged);
	if (damaged)
		log_sandbox(LOG_LEVEL_WARN, s->name,
		        "the record of its synthetic addresses is damaged and is begun anew: "
		        "programs inside have to resolve names again");
	return fd;
}

int sandbox_open_names(struct sandbox *s)
{
	int fd = s->names < 0 ? make_names(s) : s->names;

	s->names = fd < 0 ? -1 : fd;
	return fd < 0 ? sandbox_failed(s, fd, "memory for names") : 0;
}

void sandbox_close_names(struct sandbox *s)
{
	if (!s->persistent || s->names < 0)
		return;
	close(s->names);
	s->names = -1;
}

int sandbox_record(struct sandbox *s)
{
	int rc = recording_open(s->supervisor, s);

	return rc ? sandbox_failed(s, rc, "the recorder") : 0;
}

size_t sandbox_udp_ports(const struct policy *policy, uint16_t out[POLICY_UDP_PORTS_MAX])
{
	uint16_t ports[POLICY_UDP_PORTS_MAX];
	size_t count = policy_udp_ports(policy, ports, POLICY_UDP_PORTS_MAX), used = 0;

	for (size_t i = 0; i < count && i < POLICY_UDP_PORTS_MAX; i++) {
		if (ports[i] == GATE_DNS_PORT)
			log_warn("udp port 53 is the name service's own: rules for it have no "
			         "effect");
		else
			out[used++] = ports[i];
	}
	return used;
}

struct fence_bounds sandbox_bounds(const struct config_limits *limits)
{
	return (struct fence_bounds){.connections_per_s = limits->connections_per_s,
	        .queries_per_s = limits->dns_queries_per_s * CONFIG_QUERIES_DROPPED,
	        .copies_per_s = limits->packet_copies_per_s,
	        .datagrams_per_s = limits->udp_datagrams_per_s};
}

static int gate_failed(struct sandbox *s, int error)
{
	char why[GATE_WHY_MAX];

	s->fault = gate_fault_of(&s->gate, error);
	gate_failure(&s->gate, error, why);
	snprintf(s->failure, sizeof(s->failure), "%s", why);
	return error;
}

static int open_socket_gate(struct sandbox *s)
{
	int fd;

	if (s->session)
		return gate_open_socket(&s->gate, -1, 0);
	fd = listen_socket_open(
	        s->listen, &s->generation->identity, false, s->gate.why, sizeof(s->gate.why));
	s->gate.kind = GATE_SOCKET;
	return fd < 0 ? fd : gate_open_socket(&s->gate, fd, s->listen->vsock.cid);
}

static int open_shared(struct sandbox *s)
{
	int packets = s->shared_packets;

	if (sandbox_cannot_share(s, s->generation->settings, s->gate.why))
		return -EINVAL;
	s->gate.dns_port = s->shared_dns_port;
	s->shared_packets = -1;
	return gate_open_shared(&s->gate, packets);
}

static int open_gate(struct sandbox *s)
{
	const struct settings *settings = s->generation->settings;
	const bool linked = !s->listen && !s->session;
	int rc;

	s->gate.bounds = sandbox_bounds(&settings->config.limits);
	s->gate.udp_port_count =
	        linked ? sandbox_udp_ports(&settings->policy, s->gate.udp_ports) : 0;
	if (!linked) {
		rc = open_socket_gate(s);
		return rc ? gate_failed(s, rc) : 0;
	}
	gate_assign(&s->gate, &settings->config.pool4, &settings->config.pool6);
	s->gate.tcp_port = settings->config.proxy_port;
	rc = s->shared_dns_port ? open_shared(s)
	     : s->divert        ? gate_open_divert(&s->gate, s->supervisor->gates, s->divert)
	                        : gate_open(&s->gate, s->supervisor->gates, s->netns);
	s->divert = NULL;
	return rc ? gate_failed(s, rc) : 0;
}

static int connect_gate(struct sandbox *s)
{
	int rc = gate_connect(&s->gate);

	if (rc)
		return gate_failed(s, rc);
	rc = s->pin[0] ? gate_pin(&s->gate, s->pin) : 0;
	return rc ? sandbox_failed(s, rc, "keeping the gate's namespace as %s", s->pin) : 0;
}

/* Closes the namespace of an attached sandbox, whose owner may end it at any time. `run` holds its
 * namespace to the end: the kernel deletes the link with the namespace, and while the last program
 * of the command ends, that must not look like a link that was deleted from inside. */
static void close_netns(struct sandbox *s)
{
	if (!s->persistent)
		return;
	if (s->netns >= 0)
		close(s->netns);
	s->netns = -1;
}

static int sandbox_take_worker(struct sandbox *s)
{
	s->current = worker_pool_take(s->supervisor, sandbox_root(s));
	if (!s->current)
		return sandbox_failed(s, -errno, "starting a worker");
	instance_give(s->current, s);
	return 0;
}

/* Frees a worker that was told nothing yet: a caller whose sandbox cannot be set up may ask again
 * at once, without waiting for the worker's end. */
static void give_worker_up(struct sandbox *s)
{
	if (s->current && s->current->worker_request == 0) {
		instance_free(s->current);
		s->current = NULL;
	}
}

/* Sets up everything of a session but its worker. */
static int set_up_asleep(struct sandbox *s)
{
	int rc = open_gate(s);

	if (!rc)
		rc = sandbox_expose(s, s->generation);
	if (!rc)
		rc = generation_make_files(s, s->generation);
	if (!rc)
		rc = sandbox_record(s);
	if (rc)
		return rc;
	generation_make_placeholders(s->generation, s->seed);
	s->sleep.ready_until_ms = loop_now_ms(s->supervisor->loop) + SANDBOX_START_MS;
	loop_timer_set(&s->timer, 0);
	return 0;
}

int sandbox_set_up(struct sandbox *s)
{
	int rc = s->supervisor->recorder_life.log_given ? 0 : open_log(s);

	if (!rc && s->session)
		return set_up_asleep(s);
	if (!rc && !s->current)
		rc = sandbox_take_worker(s);
	if (!rc)
		rc = instance_tell_keeper(s->current, s->generation);
	if (!rc)
		rc = open_gate(s);
	if (!rc)
		rc = sandbox_expose(s, s->generation);
	if (!rc)
		rc = instance_start(s->current, s->generation);
	if (!rc)
		rc = sandbox_record(s); /* the recorder has time: events from the worker wait */
	if (!rc)
		rc = connect_gate(s);
	close_netns(s);
	if (rc) {
		give_worker_up(s);
		return rc;
	}
	return sandbox_resume_verifying(s);
}
