/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy as a whole: shared resources, bounds, holding, pausing and draining. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "vethguard/dlp/scan.h"
#include "proxy/dial/dial.h"
#include "proxy/exchange/exchange.h"
#include "proxy/http/http2_memory.h"
#include "proxy/inbound/inbound.h"
#include "proxy/tunnel/tunnel.h"
#include "proxy/tunnel/udp_relay.h"

_Static_assert(SOCKET_CHUNK <= SECRET_MAX, "what was read fits secret memory");

/* --- deadlines: each list knows the type of its owners --- */

#define CLIENT_WAIT(name, wait)                                                     \
	static void name(struct loop_deadline *d)                                   \
	{                                                                           \
		client_on_deadline(container_of(d, struct client, deadline), wait); \
	}
#define UPSTREAM_WAIT(name, wait)                                                 \
	static void name(struct loop_deadline *d)                                 \
	{                                                                         \
		upstream_stream_on_deadline(                                      \
		        container_of(d, struct upstream_stream, deadline), wait); \
	}
CLIENT_WAIT(on_hello, WAIT_HELLO)
CLIENT_WAIT(on_silent, WAIT_SILENT)
CLIENT_WAIT(on_header, WAIT_HEADER)
CLIENT_WAIT(on_client_idle, WAIT_IDLE)
CLIENT_WAIT(on_dial, WAIT_DIAL)
CLIENT_WAIT(on_linger, WAIT_LINGER)
UPSTREAM_WAIT(on_connect, WAIT_CONNECT)
UPSTREAM_WAIT(on_prior, WAIT_PRIOR)
UPSTREAM_WAIT(on_response, WAIT_RESPONSE)
UPSTREAM_WAIT(on_pooled, WAIT_POOLED)

static void on_request(struct loop_deadline *d)
{
	exchange_on_deadline(container_of(d, struct exchange, whole));
}

static void on_held(struct loop_deadline *d)
{
	exchange_release_held(container_of(d, struct exchange, redacting.held));
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
	        [WAIT_STREAM] = {t->idle_ms, client_http2_stream_on_deadline},
	        [WAIT_STREAM_LINGER] = {LINGER_MS, client_http2_stream_on_deadline},
	        [WAIT_CONNECT] = {(int64_t)t->connect_ms + t->resolve_ms, on_connect},
	        [WAIT_PRIOR] = {PRIOR_MS, on_prior},
	        [WAIT_RESPONSE] = {t->response_ms, on_response},
	        [WAIT_POOLED] = {t->idle_ms, on_pooled},
	        [WAIT_REQUEST] = {t->request_ms ? t->request_ms : REQUEST_FOREVER_MS, on_request},
	        [WAIT_HELD] = {HELD_MS, on_held},
	        [WAIT_TUNNEL] = {t->idle_ms, tunnel_on_deadline},
	        [WAIT_DOUBT] = {DOUBT_MS, tunnel_on_doubt},
	        [WAIT_DATAGRAM] = {t->udp_idle_ms, udp_flow_on_deadline},
	        [WAIT_VISIT] = {t->connect_ms, visit_on_deadline},
	        [WAIT_REST] = {REST_MS, http2_memory_on_deadline},
	};

	for (size_t i = 0; i < WAIT_COUNT; i++)
		if (loop_deadlines_open(
		            p->config.loop, &p->waits[i], waits[i].delay_ms, waits[i].on_time) < 0)
			return -ENOMEM;
	return 0;
}

/* --- certificates for the connection that is shaking hands now --- */

static struct tls_identity *identity_for(void *context, struct slice sni, enum tls_key_kind kind)
{
	struct proxy *p = context;
	const struct client *c = p->shaking_hands;
	struct policy_request q = {.port = c->destination.port};
	struct policy_decision decision;
	bool mentioned;

	(void)sni; /* peek.c has read it from the ClientHello already */
	q.host = c->sni_n ? slice_of(c->sni, c->sni_n) : destination_host(&c->destination);
	q.address = q.host.n ? (struct ip){0} : c->destination.address;
	mentioned =
	        q.host.n ? policy_mentions_host(p->config.policy, q.host)
	                 : policy_decide_tls(p->config.policy, &q, &decision) != POLICY_TLS_REFUSE;
	return leaf_issuer_get(p->config.leaf_issuer, q.host, &q.address, kind, mentioned,
	        loop_now_ms(p->config.loop));
}

/* Made when first needed: an idle sandbox saves half a megabyte and five milliseconds. */
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

static void on_give_back(struct loop_timer *timer);

struct proxy *proxy_new(const struct proxy_config *config)
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->config = *config;
	list_init(&p->clients);
	list_init(&p->upstreams);
	list_init(&p->calls);
	rate_init(&p->associations, ASSOCIATIONS_PER_S, ASSOCIATIONS_BURST_S, clock_monotonic_ms());
	buf_init(&p->text, SOCKET_OUT_MAX);
	buf_init(&p->target, SOCKET_OUT_MAX);
	buf_init(&p->decompressed, SOCKET_OUT_MAX);
	buf_init(&p->redacted, SOCKET_OUT_MAX);
	if (socket_shared_init(&p->sockets, config->loop) < 0)
		goto fail;
	if (hmac_init(&p->hmac) < 0 || secret_alloc(&p->plain_memory, SOCKET_CHUNK) < 0)
		goto fail;
	p->plain = p->plain_memory.p;
	p->datagrams = udp_relay_new(p);
	limits_renew(p);
	inquiry_open(p);
	tool_memory_init(&p->tool_memory, config->tools);
	if (asking_open(p) < 0 || audit_silent_open(p) < 0 || deny_throttle_open(p) < 0 ||
	        accept_open(p) < 0 ||
	        loop_timer_open(config->loop, &p->give_back, on_give_back) < 0)
		goto fail;
	if (!p->datagrams || open_waits(p) < 0 || dial_calls_open(p) < 0 ||
	        secret_alloc(&p->secret_text, SECRET_MAX) < 0)
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
	proxy_set_state(p, PROXY_DRAINING); /* nothing new begins while everything ends */
	p->on_idle = NULL;
	while (!list_is_empty(&p->clients)) {
		struct client *c = container_of(p->clients.next, struct client, list);

		client_close(c);
		loop_task_cancel(p->config.loop, &c->deferred_free);
		c->deferred_free.run(&c->deferred_free);
	}
	while (!list_is_empty(&p->upstreams)) {
		struct upstream_conn *c =
		        container_of(p->upstreams.next, struct upstream_conn, all);

		upstream_conn_close(c);
		loop_task_cancel(p->config.loop, &c->deferred_free);
		c->deferred_free.run(&c->deferred_free);
	}
	inbound_free(p->inbound);
	upstream_http2_free_kept(p);
	udp_relay_free(p->datagrams);
	audit_silent_close(p);
	deny_throttle_close(p);
	asking_close(p);
	inquiry_close(p);
	tool_memory_fini(&p->tool_memory);
	accept_close(p);
	dial_calls_close(p);
	loop_timer_close(&p->give_back);
	while (p->free_exchanges) {
		struct exchange *ex = p->free_exchanges;

		p->free_exchanges = ex->next_free;
		free(ex);
	}
	client_http2_streams_forget(p);
	limits_close(p);
	for (size_t i = 0; i < p->pipe_count; i++) {
		close(p->pipes[i][0]);
		close(p->pipes[i][1]);
	}
	for (size_t i = 0; i < WAIT_COUNT; i++)
		loop_deadlines_close(&p->waits[i]);
	tls_server_free(p->tls_server);
	tls_client_free(p->tls_client);
	secret_free(&p->secret_text);
	secret_free(&p->canonical);
	dlp_scanner_free(p->scanner);
	hmac_fini(&p->hmac);
	socket_shared_fini(&p->sockets);
	buf_fini(&p->text);
	buf_fini(&p->target);
	buf_fini(&p->decompressed);
	buf_fini(&p->redacted);
	secret_free(&p->plain_memory);
	free(p);
}

int proxy_serve_udp(struct proxy *p, int fd, uint16_t port)
{
	return udp_relay_serve(p->datagrams, fd, port);
}

/* --- holding, pausing, draining --- */

static const char *const state_names[] = {
        [PROXY_SERVING] = "SERVING",
        [PROXY_RETIRING] = "RETIRING",
        [PROXY_DRAINING] = "DRAINING",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == PROXY_STATE_COUNT, "a name per state");

void proxy_set_state(struct proxy *p, enum proxy_state state)
{
	if (p->state != state)
		log_debug("proxy: %s -> %s", state_names[p->state], state_names[state]);
	p->state = state;
}

/* Without this, malloc() would keep nearly all memory of some thousand ended connections, because
 * something younger usually lies above it. */
static void on_give_back(struct loop_timer *timer)
{
	struct proxy *p = container_of(timer, struct proxy, give_back);

	p->giving_back = false;
	p->client_peak = p->client_count;
	tls_buffers_release();
	http2_memory_release();
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
	accept_resume(p);
	proxy_maybe_idle(p);
}

void proxy_hold(struct proxy *p, bool hold)
{
	if (p->held == hold)
		return;
	p->held = hold;
	if (hold)
		return;
	accept_resume(p);
	if (p->inbound)
		inbound_resume(p->inbound);
	for (struct list *l = p->clients.next; l != &p->clients; l = l->next)
		client_wake(container_of(l, struct client, list));
}

void proxy_pause(struct proxy *p, enum event_cause cause, const char *why)
{
	if (p->paused && !why) /* authorize anew what was refused because of the pause */
		udp_relay_end_reauthorized(p->datagrams);
	p->paused = why != NULL;
	p->pause_cause = cause;
	snprintf(p->pause_text, sizeof(p->pause_text), "%s", why ? why : "");
}

void proxy_maybe_idle(struct proxy *p)
{
	void (*on_idle)(void *context) = p->on_idle;

	if (p->state == PROXY_SERVING || !on_idle || p->client_count)
		return;
	if (p->state == PROXY_RETIRING &&
	        (udp_relay_count(p->datagrams) || (p->inbound && p->inbound->count)))
		return;
	p->on_idle = NULL;
	on_idle(p->on_idle_context);
}

void proxy_drain(struct proxy *p, void (*on_idle)(void *context), void *context)
{
	struct list *next;

	proxy_set_state(p, PROXY_DRAINING);
	p->on_idle = on_idle;
	p->on_idle_context = context;
	deny_throttle_answer_all(p);
	accept_stop(p, false);
	if (p->inbound) {
		inbound_retire(p->inbound);
		inbound_end(p->inbound, EVENT_CAUSE_CLOSING, NULL);
	}
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

struct buf proxy_secret_text(struct proxy *proxy, enum secret_part part)
{
	static const struct {
		size_t at, n;
	} parts[] = {
	        [SECRET_TEXT] = {0, SECRET_MAX / 4},
	        [SECRET_HEAD] = {SECRET_MAX / 4, SECRET_MAX - SECRET_MAX / 4},
	};

	return (struct buf){.mem = proxy->secret_text.p + parts[part].at,
	        .cap = parts[part].n,
	        .max = parts[part].n};
}
