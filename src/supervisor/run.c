/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a run, in order: START with the paths and the sandbox's namespace; ENV_GET
 * and ENV if the policy reads variables; READY; END (the end of the socket means the same);
 * SUMMARY. FAILED may replace any of them and carries the full text for people. Between READY and
 * END a sidecar may send RELOAD (run_reload.c).
 *
 * `vethguard run` has the rights of the user it serves: its messages are checked like anybody's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "supervisor/process/confinement.h"
#include "supervisor/run.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

void run_say(struct run *run, const uint8_t *message, size_t size)
{
	int rc = ipc_send(&run->peer, message, size, NULL, 0);

	if (rc && rc != -EPIPE)
		log_error("`vethguard run` could not be answered: %s", strerror(-rc));
}

static void say(struct run *run, size_t size)
{
	run_say(run, buffer, size);
}

/* Callbacks as the owner of the sandbox. */

static void on_variables_needed(struct sandbox_owner *owner, const struct message_names *names)
{
	struct run *run = container_of(owner, struct run, owner);

	run->variables_id = supervisor_next_id(run->supervisor);
	say(run, message_names_encode(
	                 buffer, sizeof(buffer), MESSAGE_RUN_ENV_GET, run->variables_id, names));
}

static void fill_environment(const struct sandbox *s, struct message_run_ready *m)
{
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(&s->generation->settings->policy); i++) {
		policy_credential(&s->generation->settings->policy, i, &c);
		if (c.env.n == 0)
			continue;
		m->env[m->env_count].name = c.env;
		m->env[m->env_count++].value = slice_from_string(s->generation->placeholders[i]);
	}
}

/* Of all paths; the rest is for the other parts of the message. */
#define FILES_BYTES_MAX (MESSAGE_BYTES_MAX / 2)

/* Returns false if the paths are too long for one message. */
static bool fill_files(const struct sandbox *s, struct message_run_ready *m)
{
	struct policy_credential c;
	struct slice path;
	size_t left = FILES_BYTES_MAX;

	for (uint32_t i = 0; i < policy_credential_count(&s->generation->settings->policy); i++) {
		policy_credential(&s->generation->settings->policy, i, &c);
		for (size_t k = 0; policy_credential_file(&c, k, &path); k++) {
			if (path.n > left || m->file_count == MESSAGE_ENV_MAX)
				return false;
			left -= path.n;
			m->files[m->file_count++] = path;
		}
	}
	return true;
}

/* Bytes of all watched paths together: room for 256 paths of 64 bytes. */
#define WATCHED_BYTES_MAX (MESSAGE_BYTES_MAX / 8)

/* Fills in the files that the policy was read from, for a sidecar to watch. */
static void fill_watched(const struct sandbox *s, struct message_run_ready *m)
{
	const struct settings *settings = s->generation->settings;
	size_t left = WATCHED_BYTES_MAX;

	for (size_t i = 0; s->shared_dns_port && i < settings->file_count; i++) {
		struct slice path = slice_from_string(settings->files[i]);

		if (path.n > left || m->watched.count == MESSAGE_WATCHED_MAX) {
			log_warn("%zu of the policy's %zu files are not watched, because the paths "
			         "take more than %d bytes: send SIGHUP after a change to them",
			        settings->file_count - i, settings->file_count, WATCHED_BYTES_MAX);
			return;
		}
		left -= path.n;
		m->watched.paths[m->watched.count++] = path;
	}
}

/* Logs a fault of a credential's file before the command starts. */
static void warn(void *context, const char *fault)
{
	(void)context;
	log_warn("%s", fault);
}

void run_tell_ready(struct run *run, struct sandbox *s, uint64_t id)
{
	static struct message_run_ready m;

	m = (struct message_run_ready){.sandbox = slice_from_string(s->name),
	        .audit_path = slice_from_string(s->audit_path),
	        .gate4 = s->gate.gate4,
	        .gate6 = s->gate.gate6,
	        .proxy_port = s->generation->settings->config.proxy_port,
	        .root_pem = slice_from_string(s->root_pem)};
	fill_environment(s, &m);
	if (!fill_files(s, &m)) {
		sandbox_fail(s,
		        "the credentials name more than %d files, or paths of more than %d bytes "
		        "together",
		        MESSAGE_ENV_MAX, FILES_BYTES_MAX);
		return;
	}
	fill_watched(s, &m);
	sources_examine(&s->current->sources, warn, NULL);
	sources_remember_covered(&s->current->sources);
	say(run, message_run_ready_encode(buffer, sizeof(buffer), MESSAGE_RUN_READY, id, &m));
}

static void on_ready(struct sandbox_owner *owner, struct sandbox *s)
{
	struct run *run = container_of(owner, struct run, owner);

	run_tell_ready(run, s, run->start_id);
}

static void on_failed(struct sandbox_owner *owner, const char *text)
{
	struct run *run = container_of(owner, struct run, owner);
	struct message_text m = {slice_from_string(text)};

	if (m.text.n > MESSAGE_TEXT_MAX)
		m.text.n = MESSAGE_TEXT_MAX;
	run->supervisor->status = 125;
	say(run, message_text_encode(buffer, sizeof(buffer), MESSAGE_FAILED, run->start_id, &m));
}

static void on_summary(struct sandbox_owner *owner, const struct message_summary *summary)
{
	struct run *run = container_of(owner, struct run, owner);

	say(run, message_summary_encode(
	                 buffer, sizeof(buffer), MESSAGE_RUN_SUMMARY, run->start_id, summary));
}

static void on_ended(struct sandbox_owner *owner, struct sandbox *s)
{
	struct run *run = container_of(owner, struct run, owner);

	run->sandbox = NULL;
	sandbox_free(s);
	supervisor_finish(run->supervisor, 0);
}

/* Messages from `vethguard run`. */

bool run_copy_path(struct slice from, char *to, size_t size)
{
	if (from.n >= size || (from.n && from.p[0] != '/'))
		return false;
	memcpy(to, from.p, from.n);
	to[from.n] = 0;
	return true;
}

/* The worker already runs, labeled without a sandbox name: sets the name in both places. */
static bool set_name(struct sandbox *s, struct slice name)
{
	uint32_t number;

	if (name.n > 0 && !message_name_is_plain(name))
		return false;
	random_bytes(&number, sizeof(number));
	snprintf(s->name, sizeof(s->name), "run-%08x", number);
	if (name.n > 0)
		snprintf(s->name, sizeof(s->name), "%.*s", SLICE_ARG(name));
	snprintf(s->current->worker.label, sizeof(s->current->worker.label), "the worker of %s",
	        s->name);
	return true;
}

static void set_identity(struct sandbox *s, const struct message_run_start *m)
{
	/* A user namespace of a rootless run has only one id, whatever START says. */
	s->generation->identity = (struct identity){
	        .uid = m->user_id, .gid = m->group_id, .fixed = m->rootless, .lends = !m->rootless};
}

static void begin(struct run *run, const struct message_run_start *m)
{
	struct sandbox *s = run->sandbox;
	char policy_path[MESSAGE_PATH_MAX + 1], config_path[MESSAGE_PATH_MAX + 1], *text;

	if (!set_name(s, m->name)) {
		sandbox_fail(s, MESSAGE_NAME_RULE, MESSAGE_NAME_MAX);
		return;
	}
	if (m->policy_path.n == 0) {
		sandbox_fail(s, "no policy was given");
		return;
	}
	if (!run_copy_path(m->policy_path, policy_path, sizeof(policy_path)) ||
	        !run_copy_path(m->config_path, config_path, sizeof(config_path)) ||
	        !run_copy_path(m->audit_path, s->audit_path, sizeof(s->audit_path)) ||
	        !run_copy_path(m->directory, s->directory, sizeof(s->directory))) {
		sandbox_fail(s, "the paths of policy, configuration, audit file and directory must "
		                "be absolute");
		return;
	}
	s->generation = generation_new(1);
	if (!s->generation) {
		sandbox_fail(s, "no memory");
		return;
	}
	set_identity(s, m);
	snprintf(run->config_path, sizeof(run->config_path), "%s", config_path);
	run->supervisor->leases.config_path = run->config_path;
	s->generation->settings =
	        settings_load(NULL, &s->generation->identity, policy_path, config_path,
	                &(struct policy_load_options){.observe = m->observe,
	                        .variables = m->variables,
	                        .variable_count = m->variable_count},
	                NULL, &text);
	if (s->generation->settings) {
		if (!s->audit_path[0] && s->generation->settings->config.audit_file[0]) {
			snprintf(s->audit_path, sizeof(s->audit_path), "%s",
			        s->generation->settings->config.audit_file);
			s->audit_own = true;
		}
		sandbox_event(s, SANDBOX_START);
		return;
	}
	sandbox_refuse(s, text ? text : "no memory");
	free(text);
}

static int on_start(struct run *run, struct ipc_message *message)
{
	struct message_run_start m;

	if (run->started || message_run_start_decode(&message->body, &m) != 0)
		return -EBADMSG;
	if (message->fd_count != 1 && (message->fd_count != 2 || !m.shared_dns_port))
		return -EBADMSG;
	run->started = true;
	run->start_id = message->head.id;
	if (!run->sandbox) /* its worker has died before */
		return 0;
	log_open("vethguardd",
	        m.log_level > LOG_LEVEL_DEBUG ? LOG_LEVEL_DEBUG : (enum log_level)m.log_level);
	run->sandbox->netns = message->fds[0];
	message->fds[0] = -1;
	run->sandbox->shared_dns_port = m.shared_dns_port;
	run->sandbox->shared_udp_count = m.shared_udp_count;
	memcpy(run->sandbox->shared_udp_ports, m.shared_udp_ports, sizeof(m.shared_udp_ports));
	if (message->fd_count == 2) {
		run->sandbox->shared_packets = message->fds[1];
		message->fds[1] = -1;
	}
	begin(run, &m);
	return 0;
}

/* Gives the pipe to the first credential that reads this variable and has no pipe yet. Returns
 * false if no credential does. */
static bool give_variable(struct sandbox *s, struct slice name, int fd)
{
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(&s->generation->settings->policy); i++) {
		policy_credential(&s->generation->settings->policy, i, &c);
		if (c.source != POLICY_SOURCE_ENV || s->current->sources.variables[i] >= 0 ||
		        !slice_equals(c.location, name))
			continue;
		s->current->sources.variables[i] = fd;
		return true;
	}
	return false;
}

static int on_variables(struct run *run, struct ipc_message *message)
{
	struct sandbox *s = run->sandbox;
	struct message_names m;

	if (!s)
		return 0;
	if (run->variables_id == 0 || message->head.id != run->variables_id ||
	        message_names_decode(&message->body, &m) != 0 || m.count != message->fd_count)
		return -EBADMSG;
	run->variables_id = 0;
	for (size_t i = 0; i < m.count; i++) {
		if (!give_variable(s, m.names[i], message->fds[i]))
			return -EBADMSG;
		message->fds[i] = -1;
	}
	sandbox_event(s, SANDBOX_GIVEN);
	return 0;
}

static void tell_roles(
        void *context, uint64_t id, const struct confinement_report *reports, size_t count)
{
	struct run *run = context;

	for (size_t i = 0; i < count; i++) {
		struct message_role m = {.left = (uint32_t)(count - 1 - i),
		        .pid = (uint32_t)reports[i].pid,
		        .name = slice_from_string(reports[i].label),
		        .text = slice_from_string(reports[i].text ? reports[i].text : "")};

		say(run, message_role_encode(buffer, sizeof(buffer), MESSAGE_RUN_ROLE, id, &m));
	}
}

static int on_roles(struct run *run, struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->fd_count > 0)
		return -EBADMSG;
	return confinement_ask(run->supervisor, message->head.id, tell_roles, run);
}

static int on_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct run *run = container_of(peer, struct run, peer);
	struct message_status status;

	switch (message->head.type) {
	case MESSAGE_RUN_START:
		return on_start(run, message);
	case MESSAGE_RUN_ENV:
		return on_variables(run, message);
	case MESSAGE_RUN_END:
		if (message_status_decode(&message->body, &status) != 0)
			return -EBADMSG;
		run_end(run);
		return 0;
	case MESSAGE_RUN_RELOAD:
		return run_reload(run, message);
	case MESSAGE_RUN_ROLES:
		return on_roles(run, message);
	case MESSAGE_FAILED:
		run_end(run);
		return 0;
	default:
		return -EBADMSG;
	}
}

static void on_end(struct ipc_peer *peer, int error)
{
	struct run *run = container_of(peer, struct run, peer);

	if (error)
		log_error("`vethguard run` is cut off: %s", strerror(-error));
	run_end(run);
}

int run_open(struct run *run, struct supervisor *sv, int fd)
{
	static const struct sandbox_owner owner = {.variables_needed = on_variables_needed,
	        .ready = on_ready,
	        .failed = on_failed,
	        .summary = on_summary,
	        .replaced = run_replaced,
	        .ended = on_ended};

	memset(run, 0, sizeof(*run));
	run->supervisor = sv;
	run->owner = owner;
	int rc = ipc_peer_open(sv->loop, &run->peer, fd, "vethguard run", on_message, on_end);
	if (rc)
		return rc;
	run->sandbox = sandbox_new(sv, &run->owner, false);
	return run->sandbox ? 0 : -errno;
}

void run_end(struct run *run)
{
	if (run->sandbox)
		sandbox_event(run->sandbox, SANDBOX_END);
	else
		supervisor_finish(run->supervisor, 0);
}

void run_close(struct run *run)
{
	ipc_peer_close(&run->peer);
}
