/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions and their connections. For each connection the gateway sends only the id of its session
 * and its source address. This file makes a socket pair: one end goes to the session's worker, the
 * other to the gateway. So no role sends a descriptor, no byte of the connection passes through
 * this process, and a compromised gateway can reach only the sessions that it serves anyway.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/process/gateway.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

void gateway_tell_session(struct supervisor *sv, const struct sandbox *s)
{
	const struct session_token *token = s->session;
	struct message_gateway_session m = {.sandbox_id = s->id,
	        .token_hash = slice_of(token->hash,
	                token->is_signed || token->by_address ? 0 : sizeof(token->hash)),
	        .from_count = token->from_count,
	        .by_address = token->by_address,
	        .callback = token->callback};

	memcpy(m.from, token->from, sizeof(m.from));
	role_send(&sv->gateway.role, buffer,
	        message_gateway_session_encode(
	                buffer, sizeof(buffer), MESSAGE_GATEWAY_SESSION, 0, &m),
	        NULL, 0);
}

void gateway_admit(struct supervisor *sv, struct sandbox *s)
{
	s->gateway.admitted = true;
	if (role_runs(&sv->gateway.role))
		gateway_tell_session(sv, s);
}

void gateway_cut(struct supervisor *sv, struct sandbox *s)
{
	const struct message_gateway_session_end m = {s->id};

	if (!s->gateway.admitted)
		return;
	s->gateway.admitted = false;
	if (role_runs(&sv->gateway.role))
		role_send(&sv->gateway.role, buffer,
		        message_gateway_session_end_encode(
		                buffer, sizeof(buffer), MESSAGE_GATEWAY_SESSION_END, 0, &m),
		        NULL, 0);
}

static struct instance *server_of(const struct sandbox *s)
{
	struct instance *i =
	        s && s->gateway.admitted && s->state == SANDBOX_SERVING ? s->current : NULL;

	return i && i->state == INSTANCE_SERVING && role_runs(&i->worker) ? i : NULL;
}

/* Gives the worker one end of a connection. Returns the other end, or -errno. */
static int lead(struct supervisor *sv, struct instance *i, const struct message_gateway_enter *m)
{
	const struct message_worker_enter enter = {m->source, m->source_port, m->reached, m->form};
	int pair[2], rc = 0;
	size_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	n = message_worker_enter_encode(
	        buffer, sizeof(buffer), MESSAGE_WORKER_ENTER, supervisor_next_id(sv), &enter);
	/* A worker that does not read its messages gets no more connections; it is not cut off for
	 * that. */
	rc = ipc_peer_has_room(&i->worker.peer, n, 1) ? role_send(&i->worker, buffer, n, pair, 1)
	                                              : -EAGAIN;
	close(pair[0]);
	if (!rc)
		return pair[1];
	close(pair[1]);
	return rc;
}

/* Connects the gateway to the session's worker, or answers that none serves. s NULL: there is no
 * such session. */
static void enter(struct supervisor *sv, struct sandbox *s, uint64_t question,
        const struct message_gateway_enter *m)
{
	struct message_gateway_entered answer = {0};
	struct instance *i = server_of(s);
	int fd = -1;
	size_t n;

	if (i && ipc_peer_has_room(&sv->gateway.role.peer, sizeof(buffer), 1))
		fd = lead(sv, i, m);
	answer.entered = fd >= 0;
	n = message_gateway_entered_encode(
	        buffer, sizeof(buffer), MESSAGE_GATEWAY_ENTERED, question, &answer);
	role_send(&sv->gateway.role, buffer, n, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	if (s && fd >= 0)
		s->gateway.entered++;
}

/* --- connections that wait for a worker --- */

static bool will_serve(const struct sandbox *s)
{
	return s->state == SANDBOX_ASLEEP || (s->state == SANDBOX_RESTARTING && s->current);
}

static bool wait_for_worker(
        struct sandbox *s, uint64_t question, const struct message_gateway_enter *m)
{
	struct gateway_session *session = &s->gateway;
	struct gateway_waiting *w =
	        session->waiting_count < GATEWAY_WAITING_MAX ? malloc(sizeof(*w)) : NULL;

	if (!w)
		return false;
	*w = (struct gateway_waiting){
	        .question = {s->supervisor->gateway.starts, question}, .enter = *m};
	DL_APPEND(session->waiting, w);
	session->waiting_count++;
	return true;
}

static void drop(struct gateway_session *session, struct gateway_waiting *w)
{
	DL_DELETE(session->waiting, w);
	session->waiting_count--;
	free(w);
}

void gateway_session_forget(struct sandbox *s)
{
	while (s->gateway.waiting)
		drop(&s->gateway, s->gateway.waiting);
}

void gateway_session_changed(struct sandbox *s)
{
	const struct gateway_life *life = &s->supervisor->gateway;
	struct gateway_waiting *w;

	if (will_serve(s))
		return;
	while ((w = s->gateway.waiting) != NULL) {
		if (w->question.starts == life->starts && role_runs(&life->role))
			enter(s->supervisor, s, w->question.id, &w->enter);
		drop(&s->gateway, w);
	}
}

int gateway_on_enter(struct supervisor *sv, struct ipc_message *message)
{
	struct message_gateway_enter m;
	struct sandbox *s;

	if (message_gateway_enter_decode(&message->body, &m) != 0)
		return -EBADMSG;
	s = supervisor_find(sv, m.sandbox_id);
	/* Answers to callbacks have credentials in them. A compromised gateway must not get them
	 * for sessions that are not for callbacks. */
	if (s && s->session && s->session->callback != message_form_is_asked(m.form))
		return -EBADMSG;
	if (!s || !s->gateway.admitted || !will_serve(s) ||
	        !wait_for_worker(s, message->head.id, &m))
		enter(sv, s, message->head.id, &m);
	else
		sandbox_event(s, SANDBOX_WAKE); /* if it is asleep */
	return 0;
}

int gateway_on_guesses(struct supervisor *sv, struct ipc_message *message)
{
	struct message_gateway_guesses m;
	char text[IP_TEXT_MAX + 256], from[IP_TEXT_MAX];

	if (message_gateway_guesses_decode(&message->body, &m) != 0)
		return -EBADMSG;
	if (!rate_take(&sv->gateway.findings, loop_now_ms(sv->loop)))
		return 0;
	snprintf(text, sizeof(text),
	        "%llu wrong tokens were shown to the gateway from %s%s. Its answers to that "
	        "address "
	        "are slowed.",
	        (unsigned long long)m.count, ip_format(&m.source, from),
	        m.source.family == 6 ? "/64" : "");
	log_warn("%s", text);
	outbox_finding(sv, NULL, EVENT_FINDING_GUESSED_TOKENS, text);
	return 0;
}
