/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conversation with the supervisor. It consists only of questions and answers, so blocking
 * calls do. The values of variables that env: sources read go out through pipes, never in a
 * message, and are wiped from this process's environment before the sandbox is forked from it.
 *
 * A supervisor that fails says why and ends, perhaps before it was asked anything. Its message is
 * then still in the socket, after the error that sending or receiving returns (unix(7)).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/supervisor.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "vethguard/jail/spawn.h"

#define SESSION_READY_TIMEOUT_MS 60000
#define SESSION_SUMMARY_TIMEOUT_MS 15000
#define SESSION_LEAVE_TIMEOUT_MS 5000
#define SESSION_DEATH_TIMEOUT_MS 200

int run_supervisor_open(
        struct run_supervisor *s, const struct privilege *p, struct failure *failure)
{
	char name[] = "vethguardd", flag[] = "--run", debug[] = "-vv";
	char *argv[] = {name, flag, log_level() >= LOG_LEVEL_DEBUG ? debug : NULL, NULL};
	char why[FAILURE_TEXT_MAX];
	int pair[2], rc;

	*s = (struct run_supervisor){.pid = -1, .pidfd = -1, .control = -1};
	s->buffer = malloc(MESSAGE_BYTES_MAX);
	if (!s->buffer)
		return failure_set(failure, -ENOMEM, "cannot start the supervisor");
	rc = ipc_pair(pair);
	if (rc != 0)
		return failure_set(failure, rc, "cannot make a pair of sockets");
	s->control = pair[0];
	s->pid = spawn_program(name, argv, pair[1], -1, -1, &s->pidfd);
	close(pair[1]);
	if (s->pid < 0) {
		spawn_explain(name, s->pid, p->rootless ? p->uid : geteuid(), why, sizeof(why));
		return failure_set(failure, 0, "%s", why);
	}
	return 0;
}

static int absolute(const char *path, char out[PATH_MAX], const char *what, struct failure *failure)
{
	out[0] = '\0';
	if (!path)
		return 0;
	if (!realpath(path, out))
		return failure_set(failure, -errno, "%s %s", what, path);
	return 0;
}

/* The audit file need not exist yet, but its directory must. */
static int absolute_new(
        const char *path, const char *directory, char out[PATH_MAX], struct failure *failure)
{
	int n = 0;

	out[0] = '\0';
	if (path && path[0] == '/')
		n = snprintf(out, PATH_MAX, "%s", path);
	else if (path)
		n = snprintf(out, PATH_MAX, "%s/%s", directory, path);
	return n < PATH_MAX ? 0 : failure_set(failure, -ENAMETOOLONG, "--audit %.64s...", path);
}

/* A supervisor that is gone is not an error here: its last message is received next. */
static int send_to(const struct run_supervisor *s, const uint8_t *message, size_t n, const int *fds,
        size_t count)
{
	int rc = ipc_send_blocking(s->control, message, n, fds, count);

	return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}

/* type: RUN_START with the sandbox's namespace, or RUN_RELOAD without any descriptor. */
static int send_start(struct run_supervisor *s, const struct run_options *o,
        const struct privilege *p, enum message_type type, int netns, struct failure *failure)
{
	char policy[PATH_MAX], config[PATH_MAX], audit[PATH_MAX], directory[PATH_MAX];
	struct message_run_start m = {.user_id = p->rootless ? 0 : p->uid,
	        .group_id = p->rootless ? 0 : p->gid,
	        .observe = o->observe,
	        .rootless = p->rootless,
	        .shared_dns_port = o->shared_dns_port,
	        .shared_udp_count = o->shared_udp_count,
	        .log_level = (uint8_t)log_level(),
	        .name = slice_from_string(o->name),
	        .variable_count = o->variable_count};
	const int fds[] = {netns, o->shared_packets};
	size_t n, count = o->shared_dns_port && o->shared_packets >= 0 ? 2 : 1;
	int rc;

	if (!getcwd(directory, sizeof(directory)))
		return failure_set(failure, -errno, "the working directory");
	rc = absolute(o->policy, policy, "--policy", failure);
	if (rc == 0)
		rc = absolute(o->config, config, "--config", failure);
	if (rc == 0)
		rc = absolute_new(o->audit, directory, audit, failure);
	if (rc != 0)
		return rc;
	memcpy(m.shared_udp_ports, o->shared_udp_ports, sizeof(m.shared_udp_ports));
	memcpy(m.variables, o->variables, o->variable_count * sizeof(m.variables[0]));
	m.policy_path = slice_from_string(policy);
	m.config_path = slice_from_string(config);
	m.audit_path = slice_from_string(audit);
	m.directory = slice_from_string(directory);
	n = message_run_start_encode(s->buffer, MESSAGE_BYTES_MAX, type, 1, &m);
	if (n == 0)
		return failure_set(failure, -EMSGSIZE, "paths are too long for the supervisor");
	rc = send_to(s, s->buffer, n, fds, type == MESSAGE_RUN_START ? count : 0);
	return rc == 0 ? 0 : failure_set(failure, rc, "the supervisor does not listen");
}

/* Makes a pipe that holds the value and ends after it. Returns the reading end or -errno. */
static int value_pipe(const char *value)
{
	size_t n = strlen(value);
	int fds[2], rc;

	if (n > SECRET_MAX || pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
		return n > SECRET_MAX ? -EMSGSIZE : -errno;
	fcntl(fds[1], F_SETPIPE_SZ, SECRET_MAX);
	rc = write(fds[1], value, n) == (ssize_t)n ? fds[0] : -EMSGSIZE;
	close(fds[1]);
	if (rc < 0) {
		close(fds[0]);
		return rc;
	}
	fcntl(fds[0], F_SETFL, 0);
	return rc;
}

/* Puts the variables that exist into answer and a pipe for each into fds. Returns their number or
 * -errno. */
static int collect_values(const struct message_names *asked, struct message_names *answer, int *fds)
{
	for (size_t i = 0; i < asked->count; i++) {
		const char *value = environment_own(asked->names[i]);
		int fd;

		if (!value)
			continue;
		/* One message carries only this many descriptors, and more variables are not
		 * asked for at once. */
		fd = answer->count == MESSAGE_FDS_MAX ? -E2BIG : value_pipe(value);
		if (fd < 0)
			return fd;
		fds[answer->count] = fd;
		answer->names[answer->count++] = asked->names[i];
	}
	return (int)answer->count;
}

/* Keeps the names beyond the message: the command must not get these variables either. */
static int remember_wiped(struct run_supervisor *s, const struct message_names *asked)
{
	for (size_t i = 0; i < asked->count && s->wiped.count < MESSAGE_ENV_MAX; i++) {
		char *copy = strndup(asked->names[i].p, asked->names[i].n);

		if (!copy)
			return -ENOMEM;
		s->wiped.names[s->wiped.count++] = slice_from_string(copy);
		environment_wipe_own(asked->names[i]);
	}
	return 0;
}

static int answer_variables(
        struct run_supervisor *s, struct ipc_message *question, struct failure *failure)
{
	struct message_names asked, answer = {0};
	uint8_t *reply = malloc(MESSAGE_BYTES_MAX);
	int fds[MESSAGE_FDS_MAX], rc = 0;
	size_t n;

	if (!reply || message_names_decode(&question->body, &asked) != 0)
		rc = failure_set(failure, reply ? -EBADMSG : -ENOMEM,
		        "the supervisor's question for variables");
	if (rc == 0 && (rc = collect_values(&asked, &answer, fds)) < 0)
		failure_set(failure, rc, "a variable that a credential is read from is too long");
	if (rc >= 0) {
		n = message_names_encode(
		        reply, MESSAGE_BYTES_MAX, MESSAGE_RUN_ENV, question->head.id, &answer);
		rc = n == 0 ? -EMSGSIZE : send_to(s, reply, n, fds, answer.count);
		if (rc == 0)
			rc = remember_wiped(s, &asked);
		if (rc != 0)
			failure_set(failure, rc, "cannot answer the supervisor");
	}
	for (size_t i = 0; i < answer.count; i++)
		close(fds[i]);
	free(reply);
	return rc;
}

/* Says for people how the supervisor ended. */
static void supervisor_gone(struct run_supervisor *s, struct failure *failure)
{
	struct pollfd end = {.fd = s->pidfd, .events = POLLIN};
	int status = 0;

	if (poll(&end, 1, SESSION_DEATH_TIMEOUT_MS) == 1 &&
	        waitpid(s->pid, &status, WNOHANG) == s->pid)
		s->pid = -1;
	if (s->pid == -1 && WIFSIGNALED(status))
		failure_set(failure, 0, "the supervisor vethguardd was ended by signal %d (%s)",
		        WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		failure_set(failure, 0,
		        "the supervisor vethguardd ended without saying why: run again with -vv to "
		        "see what it did last");
}

/* Takes the text of MESSAGE_FAILED. A policy's diagnostics have many lines: they are kept whole,
 * and the failure gets what fits. */
static void take_refusal(struct run_supervisor *s, struct ipc_message *m, struct failure *failure)
{
	struct message_text text;

	if (message_text_decode(&m->body, &text) != 0)
		text.text = SLICE("the supervisor failed and its message cannot be read");
	failure_set(failure, 0, "%.*s", SLICE_ARG(text.text));
	free(s->refusal);
	s->refusal = strndup(text.text.p, text.text.n);
}

bool run_supervisor_print_refusal(const struct run_supervisor *s)
{
	const char *line = s->refusal;

	while (line && *line != '\0') {
		size_t n = strcspn(line, "\n");

		log_error("%.*s", (int)n, line);
		line += n;
		line += *line == '\n';
	}
	return s->refusal != NULL;
}

static int receive(
        struct run_supervisor *s, int timeout_ms, struct ipc_message *m, struct failure *failure)
{
	int rc = ipc_receive_blocking(s->control, timeout_ms, s->buffer, m);

	if (rc == -ECONNRESET)
		rc = ipc_receive_blocking(s->control, timeout_ms, s->buffer, m);
	if (rc == -ETIMEDOUT)
		return failure_set(failure, rc, "the supervisor did not answer in time");
	if (rc != 0) {
		supervisor_gone(s, failure);
		return rc;
	}
	if (m->head.type == MESSAGE_FAILED) {
		take_refusal(s, m, failure);
		return -ECANCELED;
	}
	return 0;
}

int run_supervisor_start(struct run_supervisor *s, const struct run_options *options,
        const struct privilege *privilege, int netns, struct message_run_ready *ready,
        struct failure *failure)
{
	struct ipc_message m;
	int rc = send_start(s, options, privilege, MESSAGE_RUN_START, netns, failure);

	/* From the next message on this process handles secrets. */
	prctl(PR_SET_DUMPABLE, 0);
	while (rc == 0) {
		rc = receive(s, SESSION_READY_TIMEOUT_MS, &m, failure);
		if (rc != 0)
			break;
		for (size_t i = 0; i < m.fd_count; i++)
			close(m.fds[i]);
		if (m.head.type == MESSAGE_RUN_ENV_GET) {
			rc = answer_variables(s, &m, failure);
			continue;
		}
		if (m.head.type == MESSAGE_RUN_READY &&
		        message_run_ready_decode(&m.body, ready) == 0)
			return 0;
		rc = failure_set(failure, -EBADMSG, "the supervisor sent an unexpected message");
	}
	return rc;
}

int run_supervisor_reload(struct run_supervisor *s, const struct run_options *options,
        const struct privilege *privilege, struct message_run_ready *ready, struct failure *failure)
{
	struct ipc_message m;
	int rc;

	free(s->refusal);
	s->refusal = NULL;
	if (send_start(s, options, privilege, MESSAGE_RUN_RELOAD, -1, failure) != 0)
		return 1; /* a file is missing: nothing was sent */
	rc = receive(s, SESSION_READY_TIMEOUT_MS, &m, failure);
	if (rc != 0)
		return rc;
	if (m.head.type == MESSAGE_RUN_KEPT) {
		take_refusal(s, &m, failure);
		return 1;
	}
	if (m.head.type == MESSAGE_RUN_READY && message_run_ready_decode(&m.body, ready) == 0)
		return 0;
	return failure_set(failure, -EBADMSG, "the supervisor sent an unexpected message");
}

int run_supervisor_roles(struct run_supervisor *s,
        void (*tell)(void *context, const struct message_role *role), void *context,
        struct failure *failure)
{
	struct message_role role = {.left = 1};
	struct ipc_message m;
	int rc = send_to(s, s->buffer,
	        message_empty(s->buffer, MESSAGE_BYTES_MAX, MESSAGE_RUN_ROLES, 3), NULL, 0);

	if (rc != 0) {
		supervisor_gone(s, failure);
		return rc;
	}
	while (role.left > 0) {
		rc = receive(s, SESSION_READY_TIMEOUT_MS, &m, failure);
		if (rc != 0)
			return rc;
		if (m.head.type != MESSAGE_RUN_ROLE || message_role_decode(&m.body, &role) != 0)
			return failure_set(
			        failure, -EBADMSG, "the supervisor's report cannot be read");
		tell(context, &role);
	}
	return 0;
}

void run_supervisor_broken(struct run_supervisor *s, struct failure *failure)
{
	struct ipc_message m;

	if (receive(s, 0, &m, failure) == 0)
		failure_set(failure, -EBADMSG, "the supervisor sent an unexpected message");
}

int run_supervisor_end(struct run_supervisor *s, int status, struct message_summary *summary,
        struct failure *failure)
{
	struct message_status end = {.status = status};
	struct ipc_message m;
	size_t n = message_status_encode(s->buffer, MESSAGE_BYTES_MAX, MESSAGE_RUN_END, 2, &end);
	int rc = n == 0 ? -EMSGSIZE : send_to(s, s->buffer, n, NULL, 0);

	if (rc != 0) {
		supervisor_gone(s, failure);
		return rc;
	}
	rc = receive(s, SESSION_SUMMARY_TIMEOUT_MS, &m, failure);
	if (rc != 0)
		return rc;
	if (m.head.type != MESSAGE_RUN_SUMMARY || message_summary_decode(&m.body, summary) != 0)
		return failure_set(failure, -EBADMSG, "the supervisor's summary cannot be read");
	return 0;
}

void run_supervisor_close(struct run_supervisor *s)
{
	struct pollfd end = {.fd = s->pidfd, .events = POLLIN};

	if (s->control >= 0)
		close(s->control); /* this alone ends the supervisor */
	if (s->pid > 0 && poll(&end, 1, SESSION_LEAVE_TIMEOUT_MS) != 1)
		kill(s->pid, SIGKILL);
	if (s->pid > 0)
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	if (s->pidfd >= 0)
		close(s->pidfd);
	for (size_t i = 0; i < s->wiped.count; i++)
		free((char *)(uintptr_t)s->wiped.names[i].p);
	free(s->refusal);
	free(s->buffer);
	*s = (struct run_supervisor){.pid = -1, .pidfd = -1, .control = -1};
}
