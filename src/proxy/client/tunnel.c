/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a client's connection into a tunnel. Bytes that the sandbox has sent already, and bytes
 * that wait to be sent to it (the answer to CONNECT), go first. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "proxy/client/client.h"
#include "proxy/tunnel/tunnel.h"

static void record(void *context, enum event_cause cause, const char *detail, uint64_t from_sandbox,
        uint64_t to_sandbox)
{
	const struct client *c = context;

	audit_connection(c, &c->decision, c->decision.observed ? EVENT_OBSERVED : EVENT_ALLOWED,
	        cause, detail, from_sandbox, to_sandbox, &c->tunnel_address);
}

static void closed(void *context)
{
	struct client *c = context;

	if (c->state != CLIENT_CLOSED)
		client_close(c);
}

const char *client_find_leak(struct client *c, const uint8_t *p, size_t n, const char *where)
{
	if (c->leak_told || !c->scan ||
	        !credential_store_scan(c->proxy->config.credentials, c->scan, p, n, 0))
		return NULL;
	c->leak_told = true;
	audit_finding(c->proxy, c, EVENT_FINDING_PLACEHOLDER_LEAK, 0, SLICE(""), where);
	return policy_refuses_leaks(c->proxy->config.policy) ? where : NULL;
}

/* Looks for a placeholder in what the sandbox sends, and records the first. Returns NULL, or why
 * the tunnel ends. */
static const char *inspect(void *context, const uint8_t *p, size_t n)
{
	static const char where[] = "a credential's placeholder was sent where it does not belong: "
	                            "over a connection that is relayed";

	return client_find_leak(context, p, n, where);
}

/* The text is borrowed until the next call: the tunnel records it at once. */
static size_t grant(void *context, bool from_sandbox, size_t n, const char **why)
{
	static char text[LIMIT_TEXT_MAX];
	const struct client *c = context;
	struct limit_hit hit = {0};
	uint64_t granted = limit_add_some(c->proxy, c->decision.rule,
	        from_sandbox ? POLICY_LIMIT_UPLOAD : POLICY_LIMIT_DOWNLOAD, n, &hit);

	if (granted < n && granted == 0)
		*why = limit_text(c->proxy, &hit, text);
	return (size_t)granted;
}

static void take_back(void *context, bool from_sandbox, size_t n)
{
	const struct client *c = context;

	limit_take_back(c->proxy, c->decision.rule,
	        from_sandbox ? POLICY_LIMIT_UPLOAD : POLICY_LIMIT_DOWNLOAD,
	        c->proxy->limits.added_ms, n);
}

static const struct tunnel_owner owner = {.record = record,
        .closed = closed,
        .grant = grant,
        .take_back = take_back,
        .inspect = inspect};

static void take_client(struct client *c, struct tunnel_side sides[2])
{
	sides[0].events =
	        (c->socket.readable ? LOOP_READ : 0) | (c->socket.hung_up ? LOOP_CLOSED : 0);
	sides[0].doubtful = c->socket.doubtful;
	sides[0].first = c->input_buf;
	buf_init(&c->input_buf, 2 * SOCKET_CHUNK);
	sides[0].fd = socket_release(&c->socket, &sides[1].first, sides[0].io, NULL);
	sides[0].outer = socket_take_outer(&c->socket);
}

int client_tunnel(struct client *c, const struct dial_result *upstream)
{
	struct loop_io io = {0};
	struct tunnel_side sides[2] = {{.io = &io}, {.io = upstream->io}};
	/* Bytes of TLS are encrypted. */
	const bool inspects = c->content != TUNNEL_TLS &&
	                      credential_store_has_placeholders(c->proxy->config.credentials);
	struct tunnel *t;

	if (inspects)
		c->scan = calloc(1, sizeof(*c->scan));
	t = inspects && !c->scan ? NULL : tunnel_new(c->proxy, &owner, c);
	if (!t) {
		loop_io_close(upstream->io);
		close(upstream->fd);
		return -ENOMEM;
	}
	c->tunnel_address = upstream->address;
	take_client(c, sides);
	sides[1].fd = upstream->fd;
	sides[1].events = upstream->events;
	c->tunnel = t;
	if (inspects)
		tunnel_inspect(t);
	loop_deadline_clear(&c->deadline);
	tunnel_run(t, sides);
	return 0;
}
