/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox calls a port that another one exposes. The caller's worker has checked that the
 * caller's policy allows the name. This file finds the other sandbox, and checks that policy and
 * users permit the call. Then the two workers get the ends of a socket pair, and the other
 * sandbox's worker authorizes, records and relays the visit.
 *
 * Every refusal looks the same to the caller, so a call does not reveal whether a sandbox exists.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

#define LABELS_MAX 32

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* Returns the sandbox with that name, without regard to case, as for host names. NULL: there is
 * none, or there are several. */
static struct sandbox *find(const struct supervisor *sv, struct slice name)
{
	struct sandbox *found = NULL;

	for (struct sandbox *s = sv->sandboxes; s; s = s->hh.next) {
		if (!slice_equals_ignoring_case(slice_from_string(s->name), name))
			continue;
		if (found)
			return NULL;
		found = s;
	}
	return found;
}

/* Splits "KEY=VALUE" lines. */
static size_t split(const char *lines, struct slice labels[LABELS_MAX])
{
	size_t count = 0;

	while (lines && *lines && count < LABELS_MAX) {
		size_t n = strcspn(lines, "\n");

		labels[count++] = slice_of(lines, n);
		lines += n + (lines[n] == '\n');
	}
	return count;
}

/* True if both policies belong to the same user, or the caller's to root. Otherwise a user could
 * give a sandbox the name or the labels that another user's policy trusts. */
static bool users_agree(const struct sandbox *caller, const struct sandbox *s)
{
	uid_t uid = caller->generation->identity.uid;

	return uid == 0 || uid == s->generation->identity.uid;
}

static bool serves(const struct sandbox *s)
{
	return s->state == SANDBOX_SERVING && !s->paused && s->current && s->generation;
}

static bool admits(const struct sandbox *s, uint32_t index, const struct sandbox *caller)
{
	struct slice labels[LABELS_MAX];
	const struct policy_peer peer = {.sandbox = slice_from_string(caller->name),
	        .labels = labels,
	        .label_count = split(caller->labels, labels)};

	return policy_expose_admits(&s->generation->settings->policy, index, &peer);
}

/* Sends the visit to the other sandbox's worker, which also records refused visits. Takes fd. */
static int tell(const struct sandbox *s, const struct sandbox *caller, uint16_t port, int fd)
{
	const struct message_visit m = {.port = port,
	        .sandbox = slice_from_string(caller->name),
	        .labels = slice_from_string(caller->labels)};
	struct role *worker = &s->current->worker;
	size_t n = message_visit_encode(buffer, sizeof(buffer), MESSAGE_WORKER_VISIT,
	        supervisor_next_id(s->supervisor), &m);
	int rc = -EAGAIN;

	/* A worker that reads nothing must not be cut off because other sandboxes call it. */
	if (ipc_peer_has_room(&worker->peer, n, 1))
		rc = role_send(worker, buffer, n, &fd, 1);
	close(fd);
	return rc;
}

/* Returns the caller's end of a pair, or -errno. */
static int call(const struct sandbox *caller, const struct message_call *m)
{
	struct sandbox *s = find(caller->supervisor, m->sandbox);
	int pair[2], rc;
	uint32_t index;

	if (!s || !serves(caller) || !serves(s) || !users_agree(caller, s))
		return -ENOENT;
	index = policy_expose_find(&s->generation->settings->policy, m->port);
	if (index == POLICY_NONE || gate_cannot_reach(&s->gate))
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	rc = tell(s, caller, m->port, pair[1]);
	if (!rc && admits(s, index, caller))
		return pair[0];
	close(pair[0]);
	return rc ? rc : -EACCES;
}

int instance_on_call(struct instance *i, struct ipc_message *message)
{
	const struct sandbox *s = i->sandbox;
	struct message_call m;
	int fd = -ENOENT, rc;

	if (message_call_decode(&message->body, &m) != 0 || !i->generation)
		return -EBADMSG;
	if (i == s->current || i->state == INSTANCE_RETIRED)
		fd = call(s, &m);
	rc = role_send(&i->worker, buffer,
	        message_empty(buffer, sizeof(buffer), MESSAGE_WORKER_CALLED, message->head.id), &fd,
	        fd >= 0);
	if (fd >= 0)
		close(fd);
	if (rc)
		log_sandbox(LOG_LEVEL_WARN, s->name, "its worker: %s", strerror(-rc));
	return 0;
}
