/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy as a whole: its shared means, its listeners, its bounds, holding, pausing and draining.
 */
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/exchange.h"

#define ACCEPT_BATCH 64
_Static_assert(LINK_CHUNK <= SECRET_MAX, "what was read fits secret memory");

/* --- deadlines: each list knows what it holds --- */

#define CLIENT_WAIT(name, wait)                                                     \
	static void name(struct loop_deadline *d)                                   \
	{                                                                           \
		client_on_deadline(container_of(d, struct client, deadline), wait); \
	}
#define UPSTREAM_WAIT(name, wait)                                                       \
	static void name(struct loop_deadline *d)                                       \
	{                                                                               \
		upstream_on_deadline(container_of(d, struct upstream, deadline), wait); \
	}
CLIENT_WAIT(on_hello, WAIT_HELLO)
CLIENT_WAIT(on_silent, WAIT_SILENT)
CLIENT_WAIT(on_header, WAIT_HEADER)
CLIENT_WAIT(on_client_idle, WAIT_IDLE)
CLIENT_WAIT(on_dial, WAIT_DIAL)
CLIENT_WAIT(on_linger, WAIT_LINGER)
UPSTREAM_WAIT(on_connect, WAIT_CONNECT)
UPSTREAM_WAIT(on_response, WAIT_RESPONSE)
UPSTREAM_WAIT(on_pooled, WAIT_POOLED)

static void on_request(struct loop_deadline *d)
{
	exchange_on_deadline(container_of(d, struct exchange, whole));
}

static int open_waits(struct proxy *p)
{
	const struct config_timeouts *t = &p->config.timeouts;
	const struct {
		int64_t delay_ms;
		void (*on_time)(struct loop_deadline *);
	} waits[WAIT_COUNT] = {
	        [WAIT_HELLO] = {t->hello_ms, on_hello},
	        [WAIT_SILENT] = {t->hello_ms < SILENT_MS ? t->hello_ms : SILENT_MS, on_silent},
	        [WAIT_HEADER] = {t->header_ms, on_header},
	        [WAIT_IDLE] = {t->idle_ms, on_client_idle},
	        [WAIT_DIAL] = {(int64_t)t->connect_ms + t->resolve_ms, on_dial},
	        [WAIT_LINGER] = {LINGER_MS, on_linger},
	        [WAIT_STREAM] = {t->idle_ms, http2_stream_on_deadline},
	        [WAIT_STREAM_LINGER] = {LINGER_MS, http2_stream_on_deadline},
	        [WAIT_CONNECT] = {(int64_t)t->connect_ms + t->resolve_ms, on_connect},
	        [WAIT_RESPONSE] = {t->response_ms, on_response},
	        [WAIT_POOLED] = {t->idle_ms, on_pooled},
	        [WAIT_REQUEST] = {t->request_ms ? t->request_ms : REQUEST_FOREVER_MS, on_request},
	        [WAIT_TUNNEL] = {t->idle_ms, tunnel_on_deadline},
	        [WAIT_DOUBT] = {DOUBT_MS, tunnel_on_doubt},
	        [WAIT_DATAGRAM] = {t->udp_idle_ms, flow_on_deadline},
	};

	for (size_t i = 0; i < WAIT_COUNT; i++)
		if (loop_deadlines_open(
		            p->config.loop, &p->waits[i], waits[i].delay_ms, waits[i].on_time) < 0)
			return -ENOMEM;
	return 0;
}

/* --- certificates for the connection whose handshake goes on right now --- */

static struct tls_identity *identity_for(void *context, struct slice sni)
{
	struct proxy *p = context;
	const struct client *c = p->shaking_hands;
	struct policy_request q = {.port = c->destination.port};
	struct policy_decision decision;
	bool mentioned;

	(void)sni; /* client.c has read it from the ClientHello already */
	q.host = c->sni_n ? slice_of(c->sni, c->sni_n) : destination_host(&c->destination);
	q.address = q.host.n ? (struct ip){0} : c->destination.address;
	mentioned =
	        q.host.n ? policy_mentions_host(p->config.policy, q.host)
	                 : policy_decide_tls(p->config.policy, &q, &decision) != POLICY_TLS_REFUSE;
	return mint_get(p->config.mint, q.host, &q.address, mentioned, loop_now_ms(p->config.loop));
}

/* Made when they are first needed: half a megabyte and five milliseconds that a sandbox which is
 * idle does not cost. */
struct tls_server *proxy_tls_server(struct proxy *p)
{
	if (!p->tls_server)
		p->tls_server = tls_server_new(identity_for, p);
	return p->tls_server;
}

struct tls_client *proxy_tls_client(struct proxy *p)
{
	if (!p->tls_client)
		p->tls_client = tls_client_new(p->config.trust);
	return p->tls_client;
}

/* --- life --- */

static void on_accept_again(struct loop_timer *timer);
static void on_give_back(struct loop_timer *timer);

struct proxy *proxy_new(const struct proxy_config *config)
{
	struct proxy *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->config = *config;
	list_init(&p->clients);
	list_init(&p->upstreams);
	buf_init(&p->text, LINK_OUT_MAX);
	buf_init(&p->target, LINK_OUT_MAX);
	buf_init(&p->unpacked, LINK_OUT_MAX);
	if (link_shared_init(&p->links, config->loop) < 0)
		goto fail;
	if (secret_alloc(&p->plain_memory, LINK_CHUNK) < 0)
		goto fail;
	p->plain = p->plain_memory.p;
	p->datagrams = datagram_relay_new(p);
	if (record_silent_open(p) < 0 || refusals_open(p) < 0 ||
	        loop_timer_open(config->loop, &p->accept_again, on_accept_again) < 0 ||
	        loop_timer_open(config->loop, &p->give_back, on_give_back) < 0)
		goto fail;
	if (!p->datagrams || open_waits(p) < 0 || secret_alloc(&p->secret_text, SECRET_MAX) < 0)
		goto fail;
	return p;
fail:
	proxy_free(p);
	return NULL;
}

void proxy_free(struct proxy *p)
{
	if (!p)
		return;
	p->draining = true; /* nothing begins anew while all ends */
	p->on_idle = NULL;
	while (!list_is_empty(&p->clients)) {
		struct client *c = container_of(p->clients.next, struct client, list);

		client_close(c);
		loop_task_cancel(p->config.loop, &c->bury);
		c->bury.run(&c->bury);
	}
	while (!list_is_empty(&p->upstreams)) {
		struct carrier *c = container_of(p->upstreams.next, struct carrier, all);

		carrier_close(c);
		loop_task_cancel(p->config.loop, &c->bury);
		c->bury.run(&c->bury);
	}
	upstream_http2_free_kept(p);
	datagram_relay_free(p->datagrams);
	record_silent_close(p);
	refusals_close(p);
	proxy_stop_listening(p, false);
	loop_timer_close(&p->accept_again);
	loop_timer_close(&p->give_back);
	while (p->free_exchanges) {
		struct exchange *ex = p->free_exchanges;

		p->free_exchanges = ex->next_free;
		free(ex);
	}
	http2_streams_forget(p);
	for (size_t i = 0; i < p->pipe_count; i++) {
		close(p->pipes[i][0]);
		close(p->pipes[i][1]);
	}
	for (size_t i = 0; i < WAIT_COUNT; i++)
		loop_deadlines_close(&p->waits[i]);
	tls_server_free(p->tls_server);
	tls_client_free(p->tls_client);
	secret_free(&p->secret_text);
	link_shared_fini(&p->links);
	buf_fini(&p->text);
	buf_fini(&p->target);
	buf_fini(&p->unpacked);
	secret_free(&p->plain_memory);
	free(p);
}

/* --- accepting --- */

static bool may_accept(const struct proxy *p)
{
	return !p->draining && !p->held && p->client_count < p->config.limits.connections;
}

/* A connection beyond the bound waits in the kernel's backlog until another one ends. */
static void on_accept(struct loop_io *io, unsigned events)
{
	struct listener *l = container_of(io, struct listener, io);

	(void)events;
	for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
		struct sockaddr_storage from;
		socklen_t n = sizeof from;
		int fd;

		if (!may_accept(l->proxy)) {
			l->paused = true;
			return;
		}
		fd = accept4(l->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == ECONNABORTED || errno == EINTR)
				continue;
			/* Out of descriptors or memory: tried again when a connection ends, or
			 * soon. */
			l->paused = errno != EAGAIN && errno != EWOULDBLOCK;
			if (l->paused)
				loop_timer_set(&l->proxy->accept_again, ACCEPT_AGAIN_MS);
			return;
		}
		client_open(l->proxy, fd, (struct sockaddr *)&from);
	}
	loop_task_queue(l->proxy->config.loop, &l->more);
}

static void on_more(struct loop_task *task)
{
	struct listener *l = container_of(task, struct listener, more);

	on_accept(&l->io, LOOP_READ);
}

static void resume_accepting(struct proxy *p)
{
	if (!may_accept(p))
		return;
	for (size_t i = 0; i < p->listener_count; i++)
		if (p->listeners[i].paused) {
			p->listeners[i].paused = false;
			loop_task_queue(p->config.loop, &p->listeners[i].more);
		}
}

static void on_accept_again(struct loop_timer *timer)
{
	resume_accepting(container_of(timer, struct proxy, accept_again));
}

int proxy_serve_tcp(struct proxy *p, int fd)
{
	const int one = 1;
	struct listener *l;

	if (p->listener_count == PROXY_LISTENERS_MAX) {
		close(fd);
		return -ENOSPC;
	}
	l = &p->listeners[p->listener_count];
	l->proxy = p;
	l->fd = fd;
	l->more.run = on_more;
	/* Accepted sockets inherit both (tcp(7), socket(7)). */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	if (loop_io_open(p->config.loop, &l->io, fd, LOOP_READ, on_accept) < 0) {
		close(fd);
		return -ENOMEM;
	}
	p->listener_count++;
	return 0;
}

int proxy_serve_udp(struct proxy *p, int fd, uint16_t port)
{
	return datagram_relay_serve(p->datagrams, fd, port);
}

/* --- holding, pausing, draining --- */

/* Of what some thousand connections needed malloc() would keep nearly all: something younger mostly
 * lies above it. */
static void on_give_back(struct loop_timer *timer)
{
	struct proxy *p = container_of(timer, struct proxy, give_back);

	p->giving_back = false;
	p->client_peak = p->client_count;
	tls_buffers_release();
	malloc_trim(0);
}

void proxy_client_came(struct proxy *p)
{
	p->client_count++;
	p->accepted++;
	if (p->client_count > p->client_peak)
		p->client_peak = p->client_count;
}

void proxy_client_gone(struct proxy *p)
{
	p->client_count--;
	if (!p->giving_back && p->client_peak >= GIVE_BACK_LEAST &&
	        p->client_count <= p->client_peak / 2) {
		p->giving_back = true;
		loop_timer_set(&p->give_back, GIVE_BACK_MS);
	}
	resume_accepting(p);
	proxy_maybe_idle(p);
}

void proxy_hold(struct proxy *p, bool hold)
{
	if (p->held == hold)
		return;
	p->held = hold;
	if (hold)
		return;
	resume_accepting(p);
	for (struct list *l = p->clients.next; l != &p->clients; l = l->next)
		client_wake(container_of(l, struct client, list));
}

void proxy_stop_listening(struct proxy *p, bool first)
{
	for (size_t i = 0; i < p->listener_count; i++) {
		struct listener *l = &p->listeners[i];

		if (first)
			on_accept(&l->io, LOOP_READ);
		loop_io_close(&l->io);
		loop_task_cancel(p->config.loop, &l->more);
		close(l->fd);
	}
	p->listener_count = 0;
}

void proxy_pause(struct proxy *p, const char *why)
{
	if (p->paused && !why) /* what was refused because of it is judged anew */
		datagram_relay_end_revised(p->datagrams);
	p->paused = why != NULL;
	snprintf(p->pause_text, sizeof p->pause_text, "%s", why ? why : "");
}

void proxy_maybe_idle(struct proxy *p)
{
	void (*on_idle)(void *context) = p->on_idle;

	if (!p->draining || !on_idle || p->client_count)
		return;
	if (p->retiring && datagram_relay_count(p->datagrams))
		return;
	p->on_idle = NULL;
	on_idle(p->on_idle_context);
}

void proxy_drain(struct proxy *p, void (*on_idle)(void *context), void *context)
{
	struct list *next;

	p->draining = true;
	p->on_idle = on_idle;
	p->on_idle_context = context;
	p->retiring = false;
	refusals_answer_all(p);
	proxy_stop_listening(p, false);
	while (pool_evict(p))
		;
	for (struct list *l = p->clients.next; l != &p->clients; l = next) {
		struct client *c = container_of(l, struct client, list);

		next = l->next;
		if (c->state == CLIENT_HTTP2 && !client_http2_drain(c))
			continue;
		if (c->state != CLIENT_EXCHANGE && c->state != CLIENT_LINGER &&
		        c->state != CLIENT_CLOSED)
			client_close(c);
	}
	proxy_maybe_idle(p);
}
