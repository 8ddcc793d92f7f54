/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP ASSOCIATE of SOCKS5 (RFC 1928 sections 4, 6, 7), for clients that have come by the gateway:
 * the states ASSOCIATING and ASSOCIATED of client.c. The supervisor opens the UDP socket, and
 * tunnel/udp_association.c serves it. The association ends with its TCP connection, and the TCP
 * connection ends if the association carries nothing for too long.
 *
 * Other clients get no association. A client on a Unix socket or a vsock has no address to send
 * datagrams to, and a sandbox with a link needs none: the proxy relays its datagrams as they are.
 */
#include "proxy/client/client.h"
#include "proxy/tunnel/udp_association.h"
#include "vethguard/base/clock.h"

#define ASSOCIATIONS_MAX 32 /* at a time; the supervisor gives no more */

static const struct policy_decision none = {.rule = POLICY_NONE, .credential = POLICY_NONE};

/* Returns the port from which the client announces to send, or 0. The port counts only if the
 * client names its own address or none with it: behind a NAT the client does not know what arrives
 * here. */
static uint16_t announced_port(const struct client *c, const struct socks5_request *r)
{
	bool own = !r->name.n &&
	           (ip_equals(&r->address, &c->src) || ip_classify(&r->address) == IP_UNSPECIFIED);

	return own ? r->port : 0;
}

/* Returns NULL if the client may have an association; else why not, with *cause, *reply and the
 * decision's reason. */
static const char *find_refusal(const struct client *c, struct policy_decision *decision,
        enum event_cause *cause, enum socks5_reply *reply)
{
	const struct proxy *p = c->proxy;
	uint16_t port;

	*cause = EVENT_CAUSE_CLIENT;
	*reply = SOCKS5_NO_COMMAND;
	if (!c->reached.family || !p->config.associate)
		return "UDP ASSOCIATE is served where a client has reached the gateway itself, and "
		       "nowhere else";
	*reply = SOCKS5_NOT_ALLOWED;
	*cause = EVENT_CAUSE_POLICY;
	decision->reason = POLICY_REASON_DEFAULT;
	if (!policy_udp_ports(p->config.policy, &port, 1))
		return "UDP ASSOCIATE needs a udp:// rule of the policy";
	*reply = SOCKS5_FAILURE;
	*cause = p->paused ? p->pause_cause : EVENT_CAUSE_CLOSING;
	if (p->paused || p->state != PROXY_SERVING)
		return p->paused ? p->pause_text : "this worker serves nothing new";
	*cause = EVENT_CAUSE_LIMIT;
	return p->association_count >= ASSOCIATIONS_MAX ? "too many UDP associations at a time"
	                                                : NULL;
}

enum client_state client_associate(struct client *c, const struct socks5_request *r)
{
	struct proxy *p = c->proxy;
	struct policy_decision decision = none;
	enum socks5_reply reply;
	enum event_cause cause;
	const char *why = find_refusal(c, &decision, &cause, &reply);

	if (!why && !rate_take(&p->associations, clock_monotonic_ms()))
		why = "too many UDP associations in a short time";
	if (!why && p->config.associate(p->config.context, p->last_association + 1, &c->reached))
		why = "the supervisor cannot be asked for a UDP socket";
	if (why)
		return client_socks_refuse(c, &decision, cause, why, reply);
	c->association = (struct client_association){
	        .id = ++p->last_association, .fd = -1, .client_port = announced_port(c, r)};
	p->association_count++;
	buf_consume(&c->input_buf, r->used);
	if (!c->input_buf.len)
		buf_fini(&c->input_buf);
	return CLIENT_ASSOCIATING;
}

static struct client *find(const struct proxy *p, uint64_t id)
{
	for (struct list *l = p->clients.next; l != &p->clients; l = l->next) {
		struct client *c = container_of(l, struct client, list);

		if (c->state == CLIENT_ASSOCIATING && c->association.id == id)
			return c;
	}
	return NULL;
}

void proxy_associated(struct proxy *p, uint64_t id, int fd, const struct ip *address, uint16_t port)
{
	struct client *c = find(p, id);

	if (c && !c->association.answered) {
		c->association.answered = true;
		c->association.fd = fd;
		c->association.address = *address;
		c->association.port = port;
		client_wake(c);
	} else if (fd >= 0) {
		close(fd);
		p->config.associate_end(p->config.context);
	}
}

enum client_state client_associating(struct client *c)
{
	struct client_association *a = &c->association;
	uint8_t answer[SOCKS5_ANSWER_MAX];

	if (!a->answered)
		return CLIENT_ASSOCIATING;
	if (a->fd >= 0) {
		a->relayed =
		        udp_association_new(c->proxy->datagrams, a->fd, &c->src, a->client_port);
		a->fd = -1;
		if (!a->relayed)
			c->proxy->config.associate_end(c->proxy->config.context);
	}
	if (!a->relayed)
		return client_socks_refuse(c, &none, EVENT_CAUSE_LIMIT,
		        "no UDP socket is free: all of the gateway's udp_ports are in use, or "
		        "there "
		        "are too many associations",
		        SOCKS5_FAILURE);
	client_let_out(c);
	socket_write(&c->socket, answer, socks5_answer_association(&a->address, a->port, answer));
	return CLIENT_ASSOCIATED;
}

/* The client has nothing more to send here: its end of the connection, or any byte, ends the
 * association. */
enum client_state client_associated(struct client *c)
{
	struct slice input;

	return client_input(c, &input) == SOCKET_AGAIN ? CLIENT_ASSOCIATED : CLIENT_CLOSED;
}

/* Datagrams do not move the deadline, so an idle association lasts at most twice idle_ms. */
enum client_state client_associated_timeout(struct client *c)
{
	const int64_t idle_ms =
	        clock_monotonic_ms() - udp_association_used_ms(c->association.relayed);

	if (idle_ms >= (int64_t)c->proxy->config.timeouts.idle_ms)
		return CLIENT_CLOSED;
	loop_deadline_set(&c->proxy->waits[WAIT_IDLE], &c->deadline);
	return CLIENT_ASSOCIATED;
}

void client_leave_association(struct client *c)
{
	struct client_association *a = &c->association;

	if (!a->id)
		return;
	c->proxy->association_count--;
	udp_association_free(a->relayed);
	if (a->fd >= 0)
		close(a->fd);
	if (a->relayed || a->fd >= 0)
		c->proxy->config.associate_end(c->proxy->config.context);
	*a = (struct client_association){.fd = -1};
}
