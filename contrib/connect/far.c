/* SPDX-License-Identifier: Apache-2.0 */
/* A link's connection to the gateway. */
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "link.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"

#define TRIES_MAX 6
#define TRY_AGAIN_MS 100 /* doubled for each try */
#define CONNECT_S 10     /* for TCP and TLS */
#define ANSWER_HEAD_MAX (32u << 10)
#define UNSENT_FEW (64u << 10)

static void try(struct link *l);

/* The gateway has ended: only the bytes that the program has not got yet are still sent. */
static void end(struct link *l)
{
	l->far_over = true;
	link_finish(l);
}

static bool head_is_whole(struct evbuffer *in, size_t *n, unsigned *status)
{
	struct evbuffer_ptr at = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	char line[13] = "";

	if (at.pos < 0)
		return false;
	*n = (size_t)at.pos + 4;
	evbuffer_copyout(in, line, sizeof(line) - 1);
	if (sscanf(line, "HTTP/1.%*1[01] %3u", status) != 1)
		*status = 0;
	return true;
}

static void on_read(struct bufferevent *far, void *context)
{
	struct link *l = context;
	struct evbuffer *in = bufferevent_get_input(far);
	unsigned status;
	size_t n;

	if (l->state == LINK_ASKED) {
		if (head_is_whole(in, &n, &status))
			near_answer(l, in, n, status);
		else if (evbuffer_get_length(in) > ANSWER_HEAD_MAX)
			near_fail(l, "the gateway's answer is too long");
		return;
	}
	link_pass(far, l->near);
}

static void end_sending(struct link *l)
{
	SSL *ssl = bufferevent_openssl_get_ssl(l->far);

	if (l->near_over && !l->waiting && !evbuffer_get_length(bufferevent_get_output(l->far)) &&
	        !(SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN))
		SSL_shutdown(ssl);
}

static void on_sent(struct bufferevent *far, void *context)
{
	struct link *l = context;

	(void)far;
	end_sending(l);
	if (l->state != LINK_ASKED && !l->near_over)
		bufferevent_enable(l->near, EV_READ);
}

static void on_again(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	try(context);
}

/* Handles a failure to reach the gateway: tries again later, or tells the program if no try is
 * left. final: another try is in vain (the certificate is not the gateway's). Within far_open() it
 * only plans the next try, so that far_open()'s caller keeps its link. */
static void fail(struct link *l, const char *why, bool final)
{
	struct connect *c = l->connect;
	struct timeval wait = {0};

	if (l->far)
		bufferevent_free(l->far);
	l->far = NULL;
	gateway_try_next(c);
	if (!final && ++l->tries < TRIES_MAX) {
		wait.tv_usec = (TRY_AGAIN_MS << l->tries) % 1000 * 1000;
		wait.tv_sec = (TRY_AGAIN_MS << l->tries) / 1000;
		evtimer_add(l->again, &wait);
		return;
	}
	log_error("%s cannot be reached: %s", c->arguments.gateway, why);
	near_fail(l, why);
}

static void on_event(struct bufferevent *far, short what, void *context)
{
	struct link *l = context;

	if (what & BEV_EVENT_CONNECTED) {
		gateway_connected(far);
		bufferevent_set_timeouts(far, NULL, NULL);
		bufferevent_setwatermark(far, EV_WRITE, UNSENT_FEW, 0);
		bufferevent_write_buffer(far, l->waiting);
		evbuffer_free(l->waiting);
		l->waiting = NULL;
		bufferevent_enable(far, EV_READ | EV_WRITE);
		on_sent(far, l);
	} else if (l->waiting) {
		fail(l, gateway_why_not(far, what),
		        SSL_get_verify_result(bufferevent_openssl_get_ssl(far)) != X509_V_OK);
	} else if (l->state == LINK_ASKED) {
		near_fail(l, "the gateway has closed the connection");
	} else {
		link_pass(far, l->near);
		end(l);
	}
}

static void try(struct link *l)
{
	static const struct timeval limit = {.tv_sec = CONNECT_S};

	l->far = gateway_connection(l->connect);
	if (!l->far) {
		fail(l, "no memory", false);
		return;
	}
	bufferevent_setcb(l->far, on_read, on_sent, on_event, l);
	bufferevent_set_timeouts(l->far, &limit, &limit);
	if (!gateway_connect(l->connect, l->far) && l->far) /* else fail() was called */
		fail(l, "no connection can be begun", false);
}

bool far_open(struct link *l)
{
	l->waiting = evbuffer_new();
	l->again = evtimer_new(l->connect->base, on_again, l);
	if (!l->waiting || !l->again)
		return false;
	try(l);
	return true;
}

void far_put(struct link *l, const void *p, size_t n)
{
	if (l->waiting)
		evbuffer_add(l->waiting, p, n);
	else if (l->far) {
		bufferevent_write(l->far, p, n);
		end_sending(l);
	}
}

bool far_put_proof(struct link *l)
{
	static char token[PROXY_PROOF_MAX + 1];
	const size_t n = gateway_token(l->connect, token, sizeof(token));

	if (!n)
		return false;
	far_put(l, "Proxy-Authorization: Bearer ", 28);
	far_put(l, token, n);
	far_put(l, "\r\n", 2);
	secret_wipe(token, n);
	return true;
}

void far_ask(struct link *l, const char *destination)
{
	char head[2 * GATEWAY_NAME_MAX + 64];
	const int n = snprintf(head, sizeof(head), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n",
	        destination, destination);

	log_debug("link %p: %s", (void *)l, destination);
	link_enter(l, LINK_ASKED);
	bufferevent_disable(l->near, EV_READ);
	if (!far_open(l)) {
		near_fail(l, "no memory");
		return;
	}
	far_put(l, head, (size_t)n);
	if (far_put_proof(l))
		far_put(l, "Connection: close\r\n\r\n", 21);
	else
		near_fail(l, "the token cannot be read; the log of vethguard-connect says why");
}
