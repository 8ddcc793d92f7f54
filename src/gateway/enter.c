/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a connection that has proved its session gets to the session's worker.
 *
 * A tunnel (CONNECT, SOCKS5, transparent TLS) carries one client only, so the gateway need not read
 * more of it: the worker gets the client's own connection, with the state of its TLS. All other
 * connections are relayed (relay.c): requests, because each head proves itself and the worker must
 * not see the proof; streams of HTTP/2; connections whose records OpenSSL still reads (TLS 1.2).
 */
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/visitor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/secret.h"

#define GREETING 3 /* bytes of the SOCKS5 greeting that the gateway wrote (proof.c, hello.c) */

/* Returns the address to which a client of SOCKS5 may send datagrams: the local one of its
 * connection. Returns none for other clients, and behind a load balancer. */
static struct ip reached(const struct visitor *c)
{
	struct sockaddr_storage at = {0};
	socklen_t n = sizeof(at);
	uint16_t port;

	if (!c->socks || c->balanced || getsockname(c->front.fd, (struct sockaddr *)&at, &n) < 0)
		return (struct ip){0};
	return ip_from_sockaddr((struct sockaddr *)&at, &port);
}

/* Fills in what the worker needs to go on, if the connection can be handed over. state holds the
 * secrets that *out borrows. */
static void offer(const struct visitor *c, struct tls_state *state, struct message_handover *out)
{
	const size_t skip = c->socks || c->tls_inside ? GREETING : 0;
	const struct slice first = buf_slice(&c->back.unsent);

	*out = (struct message_handover){0};
	if (!c->tunnel || first.n < skip || first.n - skip > MESSAGE_FIRST_MAX || c->in.len ||
	        !front_may_leave(&c->front))
		return;
	if (c->front.tls) {
		if (!tls_state_read(c->front.tls, state))
			return;
		out->reading = slice_of(state->reading, state->secret_n);
		out->writing = slice_of(state->writing, state->secret_n);
		out->suite = state->suite;
		out->reading_next = state->reading_next;
		out->writing_next = state->writing_next;
	}
	out->first = slice_of(first.p + skip, first.n - skip);
	out->handed = c->tls_inside  ? MESSAGE_HANDED_TRANSPARENT
	              : !c->socks    ? MESSAGE_HANDED_PROXY
	              : c->certified ? MESSAGE_HANDED_SOCKS
	                             : MESSAGE_HANDED_SOCKS_LOGIN;
}

static bool send_question(struct visitor *c)
{
	static uint8_t message[MESSAGE_FIRST_MAX + 1024];
	struct message_gateway_enter m = {.sandbox_id = c->session->id,
	        .source = c->source,
	        .source_port = c->source_port,
	        .reached = reached(c),
	        .form = c->form,
	        .admission = c->session->admission};
	struct ipc_peer *supervisor = &c->gateway->supervisor;
	struct tls_state state;
	int rc;

	/* A message whose queue is full ends the gateway. A connection with its first bytes takes
	 * more room than a question, so half of the queue is for questions only. */
	if (ipc_peer_has_room(supervisor, IPC_QUEUE_MAX / 2, 1))
		offer(c, &state, &m.handover);
	c->handing = m.handover.handed != MESSAGE_HANDED_NOT;
	rc = ipc_send_secret(supervisor, message,
	        message_gateway_enter_encode(
	                message, sizeof(message), MESSAGE_GATEWAY_ENTER, c->question, &m),
	        &c->front.fd, c->handing);
	secret_wipe(&state, sizeof(state));
	return rc == 0;
}

bool visitor_ask(struct visitor *c)
{
	struct gateway *g = c->gateway;
	const int64_t now_ms = clock_monotonic_ms();

	if (!rate_take(&c->session->enters, now_ms) || !rate_take(&g->enters, now_ms))
		return false;
	c->question = ++g->last_question;
	HASH_ADD(hh, g->entering, question, sizeof(c->question), c);
	if (!c->hh.tbl || !send_question(c))
		return false;
	loop_deadline_set(&g->waits[WAIT_ENTER], &c->deadline);
	return true;
}

/* A SOCKS client learns only now, when there is a worker, that its login was good. */
static int begin_relay(struct visitor *c, int fd)
{
	static const uint8_t good[] = {1, 0}; /* RFC 1929 section 2 */
	int rc = visitor_take_back(c, fd);

	if (!rc && c->socks && !c->certified)
		front_write(&c->front, good, sizeof(good));
	return rc;
}

/* No worker serves the session: asks again later, and gives up after VISITOR_ASKED_MAX times. */
static void ask_later(struct visitor *c)
{
	if (++c->asked < VISITOR_ASKED_MAX)
		loop_deadline_set(&c->gateway->waits[WAIT_RETRY], &c->deadline);
	else
		visitor_answer(c, ANSWER_AWAY, 0, "");
}

static void relay_to(struct visitor *c, int fd)
{
	if (begin_relay(c, fd) != 0) {
		if (c->back.fd < 0)
			close(fd);
		visitor_close(c);
	} else {
		visitor_enter(c, VISITOR_RELAY);
		visitor_go_on(c);
	}
}

bool visitor_entered(struct gateway *g, uint64_t question, bool entered, int fd)
{
	struct visitor *c;

	HASH_FIND(hh, g->entering, &question, sizeof(question), c);
	if (!c || c->state != VISITOR_ENTERING) { /* the connection has ended meanwhile */
		if (fd >= 0)
			close(fd);
		return true;
	}
	if (entered && c->handing != (fd < 0)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	visitor_leave_question(c);
	loop_deadline_clear(&c->deadline);
	if (!entered)
		ask_later(c);
	else if (c->handing)
		visitor_close(c); /* closes our descriptor; the worker has its own */
	else
		relay_to(c, fd);
	return true;
}
