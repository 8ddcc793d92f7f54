/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's greeting, login and request are sent at once (wire/socks5.h). Then the gateway's
 * answers are read, and the UDP socket is connected to the address in the last one, so that the
 * kernel drops datagrams from elsewhere. After that the association ends with the connection, or
 * with any byte that the gateway sends on it.
 *
 * The event loop tells the owner about the end, never a call by the owner.
 */
#include "association.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "vethguard/wire/proxy_head.h"
#include "vethguard/wire/socks5.h"

#define CONNECT_S 10 /* for TCP and TLS */
#define ANSWER_S 30  /* the gateway may have to start a worker first */
#define WAITING_MAX 64
#define WAITING_BYTES_MAX (128u << 10)
#define BATCH 32

enum association_state { STATE_OPENING, STATE_READY, STATE_ENDED, STATE_COUNT };

struct waiting {
	struct list place;
	size_t n;
	uint8_t bytes[];
};

struct association {
	struct connect *connect;
	const struct association_ops *ops;
	void *context;
	enum association_state state;
	struct bufferevent *control;
	struct ip gateway; /* the address that control connects to */
	int fd;            /* -1: not yet */
	struct event *readable, *over;
	enum association_end end;
	const char *why;
	struct list waiting; /* datagrams, until it is ready */
	size_t waiting_count, waiting_bytes;
};

static const char *const state_names[] = {
        [STATE_OPENING] = "OPENING", [STATE_READY] = "READY", [STATE_ENDED] = "ENDED"};
_Static_assert(sizeof(state_names) / sizeof(state_names[0]) == STATE_COUNT, "a name per state");

static void enter(struct association *a, enum association_state state)
{
	log_debug("association %p: %s -> %s", (void *)a, state_names[a->state], state_names[state]);
	a->state = state;
}

static void drop_waiting(struct association *a)
{
	while (!list_is_empty(&a->waiting)) {
		struct waiting *w = container_of(a->waiting.next, struct waiting, place);

		list_remove(&w->place);
		free(w);
	}
	a->waiting_count = a->waiting_bytes = 0;
}

/* Frees all that reads or writes. */
static void cut(struct association *a)
{
	drop_waiting(a);
	if (a->control)
		bufferevent_free(a->control);
	if (a->readable)
		event_free(a->readable);
	if (a->fd >= 0)
		close(a->fd);
	a->control = NULL;
	a->readable = NULL;
	a->fd = -1;
}

/* why: static. The owner is told by the loop. */
static void end(struct association *a, enum association_end how, const char *why)
{
	if (a->state == STATE_ENDED)
		return;
	a->end = a->state == STATE_READY ? ASSOCIATION_OVER : how;
	a->why = why;
	enter(a, STATE_ENDED);
	cut(a);
	event_active(a->over, EV_TIMEOUT, 0);
}

static void on_over(evutil_socket_t fd, short what, void *context)
{
	struct association *a = context;

	(void)fd, (void)what;
	a->ops->ended(a->context, a->end, a->why);
}

/* --- datagrams --- */

static void on_datagram(evutil_socket_t fd, short what, void *context)
{
	static uint8_t in[DATAGRAM_MAX];
	struct association *a = context;
	struct socks5_header from;

	(void)what;
	for (unsigned i = 0; i < BATCH; i++) {
		const ssize_t n = recv(fd, in, sizeof(in), MSG_DONTWAIT);

		if (n < 0) /* nothing is there, or the relay's port is closed: the connection ends,
		              too */
			return;
		if (socks5_header_parse(in, (size_t)n, &from))
			a->ops->received(a->context, &from, in, (size_t)n);
	}
}

static void put_off(struct association *a, const void *header, size_t header_n, const void *payload,
        size_t payload_n)
{
	const size_t n = header_n + payload_n;
	struct waiting *w = NULL;

	if (a->waiting_count < WAITING_MAX && a->waiting_bytes + n <= WAITING_BYTES_MAX)
		w = malloc(sizeof(*w) + n);
	if (!w)
		return;
	w->n = n;
	memcpy(w->bytes, header, header_n);
	if (payload_n)
		memcpy(w->bytes + header_n, payload, payload_n);
	list_append(&a->waiting, &w->place);
	a->waiting_count++;
	a->waiting_bytes += n;
}

void association_send(struct association *a, const void *header, size_t header_n,
        const void *payload, size_t payload_n)
{
	struct iovec parts[2] = {
	        {(void *)(uintptr_t)header, header_n}, {(void *)(uintptr_t)payload, payload_n}};
	const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

	if (a->state == STATE_OPENING)
		put_off(a, header, header_n, payload, payload_n);
	else if (a->state == STATE_READY)
		sendmsg(a->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_waiting(struct association *a)
{
	for (struct list *at = a->waiting.next; at != &a->waiting; at = at->next) {
		const struct waiting *w = container_of(at, struct waiting, place);

		association_send(a, w->bytes, w->n, NULL, 0);
	}
	drop_waiting(a);
}

/* --- the connection --- */

/* The gateway may name another address of its own, and 0.0.0.0 for the one that was reached. It may
 * not name this machine, an address of the link or one of many receivers, unless that is the
 * address that was reached. */
static bool choose_relay(const struct association *a, struct ip *relay)
{
	switch (ip_classify(relay)) {
	case IP_UNSPECIFIED:
		*relay = a->gateway;
		return true;
	case IP_LOOPBACK:
	case IP_LINK_LOCAL:
	case IP_METADATA:
	case IP_MULTICAST:
	case IP_BROADCAST:
	case IP_MAPPED:
		return ip_equals(relay, &a->gateway);
	default:
		return true;
	}
}

static bool open_socket(struct association *a, const struct ip *relay, uint16_t port)
{
	struct sockaddr_storage to;
	const socklen_t n = ip_to_sockaddr(relay, port, &to);
	const int mark = MARK_OWN;

	a->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0 || (a->connect->arguments.redirect &&
	                         setsockopt(a->fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0))
		return false;
	if (connect(a->fd, (struct sockaddr *)&to, n) < 0)
		return false;
	a->readable = event_new(a->connect->base, a->fd, EV_READ | EV_PERSIST, on_datagram, a);
	return a->readable && event_add(a->readable, NULL) == 0;
}

static void begin(struct association *a, struct socks5_association *answer)
{
	if (!choose_relay(a, &answer->address)) {
		end(a, ASSOCIATION_FAILED, "the gateway names an address that cannot be its own");
		return;
	}
	if (!open_socket(a, &answer->address, answer->port)) {
		end(a, ASSOCIATION_FAILED, "no UDP socket can be opened to the gateway");
		return;
	}
	bufferevent_set_timeouts(a->control, NULL, NULL);
	enter(a, STATE_READY);
	send_waiting(a);
	a->ops->ready(a->context);
}

static void on_read(struct bufferevent *control, void *context)
{
	struct association *a = context;
	struct evbuffer *in = bufferevent_get_input(control);
	struct socks5_association answer;
	enum association_end how = ASSOCIATION_FAILED;

	if (a->state == STATE_READY) {
		end(a, ASSOCIATION_OVER, "the gateway sends what does not belong there");
		return;
	}
	switch (socks5_association_parse(
	        evbuffer_pullup(in, -1), evbuffer_get_length(in), &answer)) {
	case SOCKS5_MORE:
		return;
	case SOCKS5_DONE:
		if (evbuffer_get_length(in) == answer.used) {
			evbuffer_drain(in, answer.used);
			begin(a, &answer);
		} else {
			end(a, ASSOCIATION_FAILED, "the gateway sends more than its answer");
		}
		return;
	default:
		if (answer.login_wrong)
			how = ASSOCIATION_UNKNOWN;
		else if (answer.reply == SOCKS5_NOT_ALLOWED || answer.reply == SOCKS5_NO_COMMAND)
			how = ASSOCIATION_REFUSED;
		end(a, how, answer.why);
	}
}

static void on_event(struct bufferevent *control, short what, void *context)
{
	static const struct timeval limit = {.tv_sec = ANSWER_S};
	struct association *a = context;

	if (what & BEV_EVENT_CONNECTED) {
		gateway_connected(control);
		bufferevent_set_timeouts(control, &limit, &limit);
		bufferevent_enable(control, EV_READ | EV_WRITE);
		return;
	}
	if (a->state == STATE_OPENING)
		gateway_try_next(a->connect);
	end(a, ASSOCIATION_FAILED, gateway_why_not(control, what));
}

/* Puts greeting, login and request into the connection, which sends them once TLS is there. */
static bool ask(struct association *a)
{
	static char token[PROXY_PROOF_MAX + 1];
	static uint8_t out[SOCKS5_ASK_MAX];
	const size_t n = gateway_token(a->connect, token, sizeof(token));
	const size_t size = socks5_ask_association(slice_of(token, n), out);

	if (n && !size)
		log_error("the token has more than %d bytes: SOCKS5 takes no longer ones, so there "
		          "is no UDP",
		        SOCKS5_TOKEN_MAX);
	if (size)
		bufferevent_write(a->control, out, size);
	secret_wipe(token, n);
	secret_wipe((char *)out, size);
	return size > 0;
}

static bool open_control(struct association *a)
{
	static const struct timeval limit = {.tv_sec = CONNECT_S};

	a->gateway = a->connect->addresses[a->connect->address_at];
	a->control = gateway_connection(a->connect);
	if (!a->control || !ask(a))
		return false;
	bufferevent_setcb(a->control, on_read, NULL, on_event, a);
	bufferevent_set_timeouts(a->control, &limit, &limit);
	if (!gateway_connect(a->connect, a->control) && a->control) { /* on_event() is not called */
		gateway_try_next(a->connect);
		end(a, ASSOCIATION_FAILED, "no connection can be begun");
	}
	return true;
}

struct association *association_open(
        struct connect *c, const struct association_ops *ops, void *context)
{
	struct association *a =
	        c->association_count < ASSOCIATIONS_MAX ? calloc(1, sizeof(*a)) : NULL;

	if (!a)
		return NULL;
	a->connect = c;
	a->ops = ops;
	a->context = context;
	a->fd = -1;
	list_init(&a->waiting);
	a->over = evtimer_new(c->base, on_over, a);
	if (!a->over) {
		free(a);
		return NULL;
	}
	c->association_count++;
	if (!open_control(a))
		end(a, ASSOCIATION_FAILED, "the token cannot be used, or there is no memory");
	return a;
}

void association_free(struct association *a)
{
	if (!a)
		return;
	cut(a);
	event_free(a->over);
	a->connect->association_count--;
	free(a);
}
