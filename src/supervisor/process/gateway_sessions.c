/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions and their connections. For each connection the gateway sends the id of its session and
 * its source address. If the gateway relays the connection, this file makes a socket pair: one end
 * goes to the session's worker, the other to the gateway. If the gateway hands the connection over,
 * its descriptor comes with the message and goes to the worker, with the state of its TLS. This is
 * the only descriptor that a role may send, and this file accepts none but TCP connections. No byte
 * of a connection passes through this process, and a compromised gateway can reach only the
 * sessions that it serves anyway.
 */
#include <errno.h>
#include <netinet/in.h>
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
	        .callback = token->callback,
	        .admission = s->gateway.admission};

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

/* Has the session's workers close the connections that were handed over. One that is starting has
 * none, and expects other messages. */
static void cut_handed(const struct sandbox *s)
{
	struct supervisor *sv = s->supervisor;
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if ((i->state != INSTANCE_SERVING && i->state != INSTANCE_RETIRED) ||
		        !role_runs(&i->worker))
			continue;
		role_send(&i->worker, buffer,
		        message_empty(
		                buffer, sizeof(buffer), MESSAGE_WORKER_CUT, supervisor_next_id(sv)),
		        NULL, 0);
	}
}

void gateway_cut(struct supervisor *sv, struct sandbox *s)
{
	const struct message_gateway_session_end m = {s->id};

	if (!s->gateway.admitted)
		return;
	s->gateway.admitted = false;
	s->gateway.admission++;
	cut_handed(s);
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

/* Gives the worker fd, a connection, and wipes the message. A worker that does not read its
 * messages gets no more connections; it is not cut off for that. Returns 0 or -errno. */
static int give(
        struct supervisor *sv, struct instance *i, const struct message_gateway_enter *m, int fd)
{
	const struct message_worker_enter enter = {
	        m->source, m->source_port, m->reached, m->form, m->handover};
	const size_t n = message_worker_enter_encode(
	        buffer, sizeof(buffer), MESSAGE_WORKER_ENTER, supervisor_next_id(sv), &enter);

	if (ipc_peer_has_room(&i->worker.peer, n, 1))
		return role_send_secret(&i->worker, buffer, n, &fd, 1);
	secret_wipe(buffer, n);
	return -EAGAIN;
}

/* Gives the worker one end of a new pair. Returns the other end, or -errno. */
static int lead(struct supervisor *sv, struct instance *i, const struct message_gateway_enter *m)
{
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	rc = give(sv, i, m, pair[0]);
	close(pair[0]);
	if (!rc)
		return pair[1];
	close(pair[1]);
	return rc;
}

/* Gives the session's worker the client's connection (handed), or one end of a pair whose other end
 * goes to the gateway (handed -1). Answers that no worker serves if that is not possible. s NULL:
 * there is no such session. */
static void enter(struct supervisor *sv, struct sandbox *s, uint64_t question,
        const struct message_gateway_enter *m, int handed)
{
	struct message_gateway_entered answer = {0};
	struct instance *i = server_of(s);
	int fd = -1;
	size_t n;

	if (i && m->admission == s->gateway.admission &&
	        ipc_peer_has_room(&sv->gateway.role.peer, sizeof(buffer), 1)) {
		if (handed < 0)
			fd = lead(sv, i, m);
		answer.entered = handed < 0 ? fd >= 0 : give(sv, i, m, handed) == 0;
	}
	n = message_gateway_entered_encode(
	        buffer, sizeof(buffer), MESSAGE_GATEWAY_ENTERED, question, &answer);
	role_send(&sv->gateway.role, buffer, n, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	if (s && answer.entered)
		s->gateway.entered++;
}

/* --- connections that wait for a worker --- */

static bool will_serve(const struct sandbox *s)
{
	return s->state == SANDBOX_ASLEEP || (s->state == SANDBOX_RESTARTING && s->current);
}

/* Keeps a copy of the message, in locked memory. Returns false without memory. */
static bool keep(struct secret *out, uint64_t question, const struct message_gateway_enter *m)
{
	const size_t n = message_gateway_enter_encode(
	        buffer, sizeof(buffer), MESSAGE_GATEWAY_ENTER, question, m);
	const int rc = n ? secret_copy(out, buffer, n) : -EINVAL;

	secret_wipe(buffer, n);
	return rc == 0;
}

static void waiting_free(struct gateway_waiting *w)
{
	secret_free(&w->message);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

/* Takes *handed if it returns true. */
static bool wait_for_worker(
        struct sandbox *s, uint64_t question, const struct message_gateway_enter *m, int *handed)
{
	struct gateway_session *session = &s->gateway;
	struct gateway_waiting *w =
	        session->waiting_count < GATEWAY_WAITING_MAX ? malloc(sizeof(*w)) : NULL;

	if (!w)
		return false;
	*w = (struct gateway_waiting){
	        .question = {s->supervisor->gateway.starts, question}, .fd = -1};
	if (!keep(&w->message, question, m)) {
		waiting_free(w);
		return false;
	}
	w->fd = *handed;
	*handed = -1;
	DL_APPEND(session->waiting, w);
	session->waiting_count++;
	return true;
}

static void drop(struct gateway_session *session, struct gateway_waiting *w)
{
	DL_DELETE(session->waiting, w);
	session->waiting_count--;
	waiting_free(w);
}

static void enter_waiting(struct sandbox *s, const struct gateway_waiting *w)
{
	struct message_gateway_enter m;
	struct message_head head;
	struct reader body;

	if (message_open(w->message.p, w->message.n, &head, &body) == 0 &&
	        message_gateway_enter_decode(&body, &m) == 0)
		enter(s->supervisor, s, w->question.id, &m, w->fd);
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
			enter_waiting(s, w);
		drop(&s->gateway, w);
	}
}

static int option(int fd, int name)
{
	int value = -1;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &n) == 0 ? value : -1;
}

/* True for a TCP socket as the gateway accepts them. With SO_LINGER set, close(2) would block the
 * process that calls it last. */
static bool is_client(int fd)
{
	struct linger linger = {.l_onoff = 1};
	socklen_t n = sizeof(linger);

	return option(fd, SO_TYPE) == SOCK_STREAM && option(fd, SO_PROTOCOL) == IPPROTO_TCP &&
	       option(fd, SO_ACCEPTCONN) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &n) == 0 && !linger.l_onoff;
}

int gateway_on_enter(struct supervisor *sv, struct ipc_message *message)
{
	struct message_gateway_enter m;
	struct sandbox *s;
	bool handed;

	if (message_gateway_enter_decode(&message->body, &m) != 0)
		return -EBADMSG;
	handed = m.handover.handed != MESSAGE_HANDED_NOT;
	if (message->lost) { /* no room for descriptors: the gateway asks again */
		enter(sv, NULL, message->head.id, &m, -1);
		return 0;
	}
	if (message->fd_count != handed || (handed && !is_client(message->fds[0])))
		return -EBADMSG;
	if (!handed)
		message->fds[0] = -1;
	s = supervisor_find(sv, m.sandbox_id);
	/* Answers to callbacks have credentials in them. A compromised gateway must not get them
	 * for sessions that are not for callbacks. */
	if (s && s->session && s->session->callback != message_form_is_asked(m.form))
		return -EBADMSG;
	if (!s || !s->gateway.admitted || !will_serve(s) ||
	        !wait_for_worker(s, message->head.id, &m, &message->fds[0]))
		enter(sv, s, message->head.id, &m, message->fds[0]);
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
