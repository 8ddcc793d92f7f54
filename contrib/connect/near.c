/* SPDX-License-Identifier: Apache-2.0 */
/* The program's side of a link: reads HTTP to a proxy, or SOCKS5, and answers it. */
#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "link.h"
#include "vethguard/base/log.h"
#include "vethguard/policy/url.h"
#include "vethguard/wire/socks5.h"

#define PROOF_FIELD "Proxy-Authorization"

static void put(struct link *l, const void *p, size_t n)
{
	bufferevent_write(l->near, p, n);
	bufferevent_enable(l->near, EV_WRITE);
}

static void put_reply(struct link *l, enum socks5_reply reply)
{
	uint8_t answer[SOCKS5_ANSWER_BYTES];

	socks5_answer(reply, answer);
	put(l, answer, sizeof(answer));
}

static void refuse(struct link *l, unsigned status, const char *why)
{
	char body[256], answer[512];
	const int n = snprintf(body, sizeof(body), "vethguard-connect: %s\n", why);
	const int m = snprintf(answer, sizeof(answer),
	        "HTTP/1.1 %u %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: "
	        "close\r\n\r\n%s",
	        status, status == 502 ? "Bad Gateway" : "Bad Request", n, body);

	put(l, answer, (size_t)m);
	link_finish(l);
}

/* Resets the connection of a program that knows nothing of a proxy. */
static void reset(struct link *l)
{
	const struct linger now = {.l_onoff = 1};

	setsockopt(bufferevent_getfd(l->near), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	link_free(l);
}

void near_refuse(struct link *l, bool by_policy)
{
	put_reply(l, by_policy ? SOCKS5_NOT_ALLOWED : SOCKS5_FAILURE);
	link_finish(l);
}

void near_fail(struct link *l, const char *why)
{
	if (l->speaks == NEAR_REDIRECTED) {
		reset(l);
	} else if (l->speaks == NEAR_SOCKS) {
		near_refuse(l, false);
	} else {
		refuse(l, 502, why);
	}
}

static void begin_tunnel(struct link *l, struct evbuffer *from, size_t head_n)
{
	if (l->speaks == NEAR_HTTP)
		evbuffer_remove_buffer(from, bufferevent_get_output(l->near), head_n);
	else
		evbuffer_drain(from, head_n);
	if (l->speaks == NEAR_SOCKS)
		put_reply(l, SOCKS5_SUCCEEDED);
	link_enter(l, LINK_TUNNEL);
	bufferevent_enable(l->near, EV_READ | EV_WRITE);
	link_pass(l->far, l->near);
	near_read(l);
}

void near_answer(struct link *l, struct evbuffer *from, size_t head_n, unsigned status)
{
	if (status / 100 == 2) {
		begin_tunnel(l, from, head_n);
		return;
	}
	if (status == 407)
		log_warn("the gateway does not take the token: it is wrong, has expired, or was "
		         "revoked");
	else
		log_debug("link %p: the gateway answers %u", (void *)l, status);
	if (l->speaks == NEAR_REDIRECTED) {
		reset(l);
	} else if (l->speaks == NEAR_SOCKS) {
		near_refuse(l, status == 403 || status == 407);
	} else { /* the answer says why; it ends with the connection */
		link_enter(l, LINK_REFUSED);
		bufferevent_enable(l->near, EV_WRITE);
		link_pass(l->far, l->near);
	}
}

/* Tells SOCKS5 from HTTP by the first byte. */
static bool take_first(struct link *l, struct evbuffer *in)
{
	const unsigned char *first = evbuffer_pullup(in, 1);

	if (!first)
		return false;
	l->speaks = *first == SOCKS5_VERSION ? NEAR_SOCKS : NEAR_HTTP;
	link_enter(l, l->speaks == NEAR_SOCKS ? LINK_GREETING : LINK_HEAD);
	return true;
}

static bool take_greeting(struct link *l, struct evbuffer *in)
{
	const size_t n = evbuffer_get_length(in);
	struct socks5_greeting greeting;

	switch (socks5_greeting_parse(evbuffer_pullup(in, -1), n, &greeting)) {
	case SOCKS5_MORE:
		return false;
	case SOCKS5_DONE:
		break;
	default:
		link_free(l);
		return false;
	}
	evbuffer_drain(in, greeting.used);
	put(l, greeting.no_authentication ? "\5\0" : "\5\xff", 2);
	if (!greeting.no_authentication) {
		link_finish(l);
		return false;
	}
	link_enter(l, LINK_REQUEST);
	return true;
}

/* Writes the request's destination as "host:port". Returns false if its name is invalid. */
static bool name_destination(const struct socks5_request *request, char *out, size_t size)
{
	char host[POLICY_HOST_MAX + 1], address[IP_TEXT_MAX];
	size_t n;

	if (!request->name.n)
		snprintf(out, size, request->address.family == 6 ? "[%s]:%u" : "%s:%u",
		        ip_format(&request->address, address), request->port);
	else if (url_canonical_host(request->name, host, &n))
		snprintf(out, size, "%s:%u", host, request->port);
	else
		return false;
	return true;
}

/* The port that the program announces counts only with a loopback or unspecified address. */
static bool take_association(
        struct link *l, struct evbuffer *in, const struct socks5_request *request)
{
	const enum ip_class class = ip_classify(&request->address);
	const bool counts = !request->name.n && (class == IP_LOOPBACK || class == IP_UNSPECIFIED);
	const uint16_t port = counts ? request->port : 0;

	evbuffer_drain(in, request->used);
	if (!near_udp_open(l, port))
		return false;
	link_enter(l, LINK_ASSOCIATING);
	return true;
}

static bool take_request(struct link *l, struct evbuffer *in)
{
	const size_t n = evbuffer_get_length(in);
	char destination[POLICY_HOST_MAX + sizeof(":65535")];
	struct socks5_request request = {.reply = SOCKS5_FAILURE};

	switch (socks5_request_parse(evbuffer_pullup(in, -1), n, &request)) {
	case SOCKS5_MORE:
		return false;
	case SOCKS5_DONE:
		request.reply = SOCKS5_FAILURE;
		if (request.command == SOCKS5_UDP_ASSOCIATE) {
			if (!take_association(l, in, &request))
				break;
			return evbuffer_get_length(in) > 0;
		}
		if (name_destination(&request, destination, sizeof(destination))) {
			evbuffer_drain(in, request.used);
			far_ask(l, destination);
			return false;
		}
		break;
	default:
		break;
	}
	put_reply(l, request.reply);
	link_finish(l);
	return false;
}

/* Sends the head to the gateway, with this session's proof instead of the program's. */
static bool put_head(struct link *l, const uint8_t *p, const struct proxy_head *head)
{
	const char *end = memchr(p, '\n', head->used);
	struct slice line, name;
	size_t at = 0;

	far_put(l, p, (size_t)(end - (const char *)p) + 1);
	if (!far_put_proof(l))
		return false;
	while (proxy_head_next_field(p, head, &at, &line, &name))
		if (!slice_equals_ignoring_case(name, SLICE(PROOF_FIELD)))
			far_put(l, line.p, line.n);
	if (head->form == PROXY_FORM_CONNECT) /* so that a refusal ends with the connection */
		far_put(l, "Connection: close\r\n", 19);
	far_put(l, "\r\n", 2);
	return true;
}

static bool take_head(struct link *l, struct evbuffer *in)
{
	const size_t there = evbuffer_get_length(in),
	             n = there < PROXY_HEAD_MAX ? there : PROXY_HEAD_MAX;
	const uint8_t *p = evbuffer_pullup(in, (ev_ssize_t)n);
	struct proxy_head head;

	switch (proxy_head_parse(p, n, &l->looked, &head)) {
	case PROXY_HEAD_MORE:
		if (there < PROXY_HEAD_MAX)
			return false;
		head.why = "the head is too long";
		/* fall through */
	case PROXY_HEAD_BAD:
		refuse(l, 400, head.why);
		return false;
	case PROXY_HEAD_DONE:
		break;
	}
	l->looked = 0;
	if (head.form == PROXY_FORM_ORIGIN) {
		refuse(l, 400, "this is a proxy: send a whole URL, or CONNECT");
		return false;
	}
	if (!l->far && !l->waiting && !far_open(l)) {
		near_fail(l, "no memory");
		return false;
	}
	if (!put_head(l, p, &head)) {
		near_fail(l, "the token cannot be read; the log of vethguard-connect says why");
		return false;
	}
	body_meter_begin(&l->meter, &head);
	evbuffer_drain(in, head.used);
	if (head.form == PROXY_FORM_CONNECT) {
		link_enter(l, LINK_ASKED);
		bufferevent_disable(l->near, EV_READ);
		return false;
	}
	link_enter(l, head.upgrade ? LINK_TUNNEL : LINK_BODY);
	return true;
}

static bool take_body(struct link *l, struct evbuffer *in)
{
	struct evbuffer_iovec piece;
	size_t n;

	while (l->meter.state != BODY_METER_DONE) {
		if (evbuffer_peek(in, -1, NULL, &piece, 1) < 1)
			return false;
		n = body_meter_take(&l->meter, piece.iov_base, piece.iov_len);
		if (l->meter.state == BODY_METER_BAD) {
			link_free(l);
			return false;
		}
		far_put(l, piece.iov_base, n);
		evbuffer_drain(in, n);
	}
	link_enter(l, LINK_HEAD);
	return evbuffer_get_length(in) > 0;
}

static bool pass(struct link *l, struct evbuffer *in)
{
	if (l->waiting)
		evbuffer_add_buffer(l->waiting, in);
	else if (l->far)
		link_pass(l->near, l->far);
	return false;
}

static bool wait_on(struct link *l, struct evbuffer *in)
{
	(void)l, (void)in;
	return false;
}

/* The program has nothing to send here: any byte ends the association. */
static bool end_association(struct link *l, struct evbuffer *in)
{
	if (evbuffer_get_length(in))
		link_free(l);
	return false;
}

/* Each returns true if the next state's handler is to go on with the bytes that are there. */
static bool (*const handlers[LINK_STATE_COUNT])(struct link *l, struct evbuffer *in) = {
        [LINK_FIRST] = take_first,
        [LINK_GREETING] = take_greeting,
        [LINK_REQUEST] = take_request,
        [LINK_HEAD] = take_head,
        [LINK_BODY] = take_body,
        [LINK_ASKED] = wait_on,
        [LINK_TUNNEL] = pass,
        [LINK_ASSOCIATING] = end_association,
        [LINK_ASSOCIATED] = end_association,
        [LINK_REFUSED] = wait_on,
        [LINK_CLOSED] = wait_on,
};

void near_read(struct link *l)
{
	while (handlers[l->state](l, bufferevent_get_input(l->near)))
		;
}
