/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that the gateway has handed over. The gateway has read the proof; the bytes that it
 * received after the proof come with the connection. From here on this worker speaks to the client
 * itself, and goes on with the TLS that the client began with the gateway, if there is one.
 */
#include "proxy/client/client.h"

static bool read_state(const struct message_handover *h, struct tls_state *out)
{
	*out = (struct tls_state){.suite = h->suite,
	        .secret_n = (uint8_t)h->reading.n,
	        .reading_next = h->reading_next,
	        .writing_next = h->writing_next};
	if (h->reading.n > sizeof(out->reading) || h->writing.n != h->reading.n)
		return false;
	memcpy(out->reading, h->reading.p, h->reading.n);
	memcpy(out->writing, h->writing.p, h->writing.n);
	return true;
}

static bool start_outer(struct client *c, const struct message_handover *h)
{
	struct tls_server *server = proxy_tls_server(c->proxy);
	struct outer *outer = NULL;
	struct tls_state state;

	if (server && read_state(h, &state))
		outer = outer_new(&c->proxy->sockets.outer, server, &state);
	secret_wipe(&state, sizeof(state));
	if (outer)
		socket_start_outer(&c->socket, outer);
	return outer;
}

bool client_take_over(struct client *c, const struct message_handover *h)
{
	static const char logged_in[] = {1, 0}; /* RFC 1929 section 2 */

	if (h->reading.n && !start_outer(c, h))
		return false;
	if (buf_append_slice(&c->input_buf, h->first) != 0)
		return false;
	c->handed = true;
	c->quiet = h->handed == MESSAGE_HANDED_TRANSPARENT;
	if (h->handed == MESSAGE_HANDED_SOCKS_LOGIN)
		socket_write(&c->socket, logged_in, sizeof(logged_in));
	return true;
}

void client_cut_handed(struct proxy *proxy)
{
	struct list *next;

	for (struct list *l = proxy->clients.next; l != &proxy->clients; l = next) {
		struct client *c = container_of(l, struct client, list);

		next = l->next;
		if (!c->handed || c->state == CLIENT_CLOSED)
			continue;
		c->reset = true;
		client_close(c);
	}
}
