/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing gracefully: the state LINGER of client.c. The output has ended. Input is discarded until
 * the client has taken the response and ended its side, so that no reset overtakes the response.
 */
#include "proxy/client/client.h"

/* Discards further input. The end waits until the client has taken the response. */
enum client_state client_linger_input(struct client *c)
{
	uint64_t before = c->socket.received;

	while (c->lingered < LINGER_BYTES && !c->half_closed) {
		struct slice input;
		enum socket_status status;

		if (socket_turn_is_over(&c->socket, before)) {
			client_wake(c);
			return CLIENT_LINGER;
		}
		status = client_input(c, &input);
		if (status == SOCKET_AGAIN)
			return CLIENT_LINGER;
		if (status == SOCKET_EOF)
			c->half_closed = true;
		else if (status != SOCKET_OK)
			return CLIENT_CLOSED;
		c->lingered += input.n;
		client_used(c, input, input.n);
	}
	return socket_unsent(&c->socket) && !c->socket.broken ? CLIENT_LINGER : CLIENT_CLOSED;
}

/* Resets the connection if not all of the response is sent, and only if the sandbox has stopped
 * reading it. */
enum client_state client_linger_timeout(struct client *c)
{
	if (!socket_unsent(&c->socket))
		return CLIENT_CLOSED;
	if (client_takes_bytes(c) || (!c->slow && c->proxy->state == PROXY_SERVING)) {
		c->slow = true;
		loop_deadline_set(&c->proxy->waits[c->proxy->state == PROXY_SERVING ? WAIT_IDLE
		                                                                    : WAIT_LINGER],
		        &c->deadline);
		return CLIENT_LINGER;
	}
	c->reset = true;
	return CLIENT_CLOSED;
}

enum client_state client_end(struct client *c)
{
	socket_end(&c->socket);
	socket_flush(&c->socket);
	c->sent_seen = c->socket.sent;
	return CLIENT_LINGER;
}
