/* SPDX-License-Identifier: Apache-2.0 */
/* Sends responses over an HTTP/1 connection to the sandbox: struct exchange_client over a
 * socket. */
#include "proxy/exchange/exchange.h"

static void response_head(
        struct exchange *ex, const struct http_response *response, struct slice upgrade)
{
	struct client *c = ex->client;
	struct buf *text = &ex->proxy->text;

	/* A response before the end of the request ends the connection, whatever it says: it is
	 * unknown whether the client still sends the rest of the body (RFC 9112 section 9.3). */
	if (response->status >= 200 &&
	        (ex->responding.framing == HTTP_BODY_UNTIL_CLOSE || !ex->request_done ||
	                ex->proxy->state != PROXY_SERVING))
		c->keep_alive = false;
	buf_consume(text, text->len);
	if (message_form_is_base(c->form) && response->status >= 200) {
		if (client_base_response(text, ex, response) < 0)
			socket_close(&c->socket, true);
		else
			socket_write(&c->socket, buf_bytes(text), text->len);
	} else if (http1_write_response(
	                   text, response, ex->client_version, c->keep_alive, upgrade) < 0)
		socket_close(&c->socket, true);
	else
		socket_write(&c->socket, buf_bytes(text), text->len);
}

static void response_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct client *c = ex->client;

	if (ex->responding.framing == HTTP_BODY_CHUNKED) {
		char head[20];
		size_t head_n = http1_chunk_head(head, n);

		socket_write(&c->socket, head, head_n);
		socket_write(&c->socket, p, n);
		socket_write(&c->socket, "\r\n", 2);
	} else {
		socket_write(&c->socket, p, n);
	}
}

static void response_end(struct exchange *ex, struct slice trailers)
{
	struct client *c = ex->client;

	if (ex->responding.framing != HTTP_BODY_CHUNKED)
		return;
	socket_write(&c->socket, "0\r\n", 3);
	socket_write(&c->socket, trailers.p, trailers.n);
	socket_write(&c->socket, "\r\n", 2);
}

static void request_resume(struct exchange *ex)
{
	client_wake(ex->client);
}

/* The caller stops if this is true, so a client that does not read gets WAIT_IDLE from here on. */
static bool congested(struct exchange *ex)
{
	struct client *c = ex->client;

	if (!socket_is_congested(&c->socket))
		return false;
	if (!c->deadline.list) {
		c->sent_seen = c->socket.sent;
		loop_deadline_set(&c->proxy->waits[WAIT_IDLE], &c->deadline);
	}
	return true;
}

static void done(struct exchange *ex, bool complete)
{
	struct client *c = ex->client;

	c->exchange = NULL;
	c->exchange_end = !complete          ? CLIENT_EXCHANGE_INCOMPLETE
	                  : ex->request_done ? CLIENT_EXCHANGE_COMPLETE
	                                     : CLIENT_EXCHANGE_ANSWERED;
	client_wake(c);
}

const struct exchange_client client_http1 = {
        .response_head = response_head,
        .response_body = response_body,
        .response_end = response_end,
        .request_resume = request_resume,
        .congested = congested,
        .done = done,
};
