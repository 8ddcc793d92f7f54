/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the worker together, and takes it down. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/linux.h"
#include "vethguard/base/log.h"
#include "vethguard/credential/inject.h"
#include "worker/worker.h"

/* The order of descriptors in WORKER_START (wire/message.h). */
enum { FD_POLICY, FD_TRUST, FD_RING, FD_RING_DATA, FD_RING_SPACE, FD_NAMES };
_Static_assert(FD_NAMES + 1 == MESSAGE_WORKER_FDS_BEFORE_LISTENERS,
        "descriptors as wire/message.h counts them");

/* Maps a whole memfd read-only; the mapping lives as long as the program. */
static int map(int fd, const void **p, size_t *n)
{
	struct stat st;
	void *m;

	if (fstat(fd, &st) < 0)
		return -errno;
	*n = (size_t)st.st_size;
	*p = "";
	if (*n == 0)
		return 0;
	m = mmap(NULL, *n, PROT_READ, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return -errno;
	*p = m;
	return 0;
}

static void record(void *context, const struct event *event)
{
	struct worker *w = context;

	worker_count(w, event);
	events_put(&w->events, event);
}

/* Records a finding about a query. */
static void record_finding(struct worker *w, const struct event *query, enum event_finding finding,
        struct slice host, struct slice detail)
{
	const struct event e = {
	        .id = proxy_event_id(w->proxy),
	        .kind = EVENT_FINDING,
	        .time_ms = clock_real_ms(),
	        .decision = EVENT_DENIED,
	        .finding = finding,
	        .about = query->id,
	        .src = query->src,
	        .src_port = query->src_port,
	        .dst = query->dst,
	        .dst_port = query->dst_port,
	        .protocol = query->protocol,
	        .host = host,
	        .detail = detail,
	};

	record(w, &e);
}

/* Records a finding if a queried name looks like carried data. */
static void look_for_tunnel(struct worker *w, const struct event *query, struct slice name)
{
	struct slice parent;
	enum dns_tunnel_sign sign =
	        dns_tunnel_observe(w->tunnel_signs, name, loop_now_ms(w->loop), &parent);

	if (sign != DNS_TUNNEL_NONE)
		record_finding(w, query, EVENT_FINDING_DNS_TUNNEL, parent,
		        slice_from_string(dns_tunnel_sign_text(sign)));
}

/* Records a finding if a queried name holds a placeholder. The query is not forwarded in any case.
 */
static void look_for_placeholder(struct worker *w, const struct event *query)
{
	if (credential_store_name_mentions(w->credentials, query->host))
		record_finding(w, query, EVENT_FINDING_PLACEHOLDER_LEAK, query->host,
		        SLICE("a credential's placeholder was sent where it does not belong: in "
		              "the name of a DNS query"));
}

/* Records a DNS query and looks at its name. A name made by a search list is looked at in its two
 * parts: an agent that asks for many allowed names asks for as many below each domain of its list,
 * and that is not data. Names that carry data vary in one of the parts. */
static void on_query(void *context, struct event *event, struct slice search_domain)
{
	struct worker *w = context;
	struct slice name = event->host;

	event->id = proxy_event_id(w->proxy);
	record(w, event);
	look_for_placeholder(w, event);
	if (search_domain.n) {
		look_for_tunnel(w, event, search_domain);
		name.n -= search_domain.n + 1;
	}
	look_for_tunnel(w, event, name);
}

int worker_map_policy(int fd, struct policy *policy)
{
	const void *p;
	size_t n;
	int rc = map(fd, &p, &n);

	close(fd);
	return rc < 0 ? rc : policy_open(policy, p, n);
}

int worker_open_policy(struct worker *w)
{
	int rc = worker_map_policy(w->fds[FD_POLICY], &w->policy);

	w->policy_in_force = &w->policy;
	w->generation = w->start.generation;
	return rc;
}

static int open_trust(struct worker *w)
{
	const void *p;
	size_t n;
	int rc = map(w->fds[FD_TRUST], &p, &n);

	close(w->fds[FD_TRUST]);
	if (rc == 0)
		w->trust = tls_trust_new(p, n);
	return rc < 0 ? rc : w->trust ? 0 : -ENOMEM;
}

static int open_credentials(struct worker *w)
{
	int rc = 0;

	w->credentials = credential_store_new(w->loop, &w->policy, keeper_ask, w);
	if (!w->credentials)
		return -ENOMEM;
	credential_store_on_seal(w->credentials, keeper_seal);
	credential_store_on_sign(w->credentials, keeper_sign);
	for (size_t i = 0; i < w->start.placeholder_count && rc == 0; i++)
		rc = credential_store_set_placeholder(w->credentials,
		        w->start.placeholders[i].credential, w->start.placeholders[i].text);
	return rc;
}

/* Renders the credentials for the egress proxy, which stay in locked memory only. */
static int open_egress(struct worker *w)
{
	const struct policy_credential basic = {.inject = POLICY_INJECT_BASIC};
	struct slice *pair = &w->start.egress_pair;
	int rc;

	if (!pair->n)
		return 0;
	rc = inject_render(&basic, *pair, &w->egress_authorization);
	secret_wipe((void *)(uintptr_t)pair->p, pair->n); /* wipes them in start_message */
	*pair = SLICE("");
	return rc;
}

/* Takes over the names of the worker before this one, so that its addresses stay the same. The
 * shared memory may hold anything. */
static int open_names(struct worker *w)
{
	const struct message_worker_start *s = &w->start;
	uint32_t dropped;
	int rc;

	w->names = names_new(&s->pool4, &s->pool6, s->limits.dns_names);
	if (!w->names)
		return -ENOMEM;
	rc = worker_share_names(w, w->fds[FD_NAMES], &dropped);
	if (rc == 0 && dropped)
		log_warn("%u names of the earlier worker are invalid and dropped", dropped);
	return rc;
}

static void on_idle(void *context)
{
	struct worker *w = context;
	const struct message_text text = {SLICE("")};
	uint8_t message[64];

	responder_free(w->responder);
	w->responder = NULL;
	proxy_free(w->proxy); /* records the flows */
	w->proxy = NULL;
	events_close(&w->events);
	ipc_send(&w->supervisor, message,
	        message_text_encode(message, sizeof(message), MESSAGE_STOPPED, w->stop_id, &text),
	        NULL, 0);
	loop_stop(w->loop);
}

static void on_finish(struct loop_task *task)
{
	struct worker *w = container_of(task, struct worker, finish);

	on_idle(w);
}

int worker_prepare(struct worker *w)
{
	const struct message_worker_start *s = &w->start;
	int rc = open_trust(w);

	w->finish.run = on_finish;
	if (rc == 0)
		rc = open_credentials(w);
	if (rc == 0)
		rc = open_egress(w);
	if (rc == 0)
		rc = events_open(&w->events, w, w->fds[FD_RING], w->fds[FD_RING_DATA],
		        w->fds[FD_RING_SPACE]);
	if (rc < 0)
		return rc;
	rc = open_names(w);
	if (rc < 0)
		return rc;
	w->resolver = resolver_new(w->loop, s->servers, s->server_count, s->hosts, s->host_count,
	        s->timeouts.resolve_ms);
	w->tunnel_signs = dns_tunnel_new();
	if (!w->resolver || !w->tunnel_signs)
		return -ENOMEM;
	rc = w->keeper_fd < 0 ? 0 : keeper_open(w, w->keeper_fd); /* else another one will come */
	w->keeper_fd = -1;
	return rc == 0 && w->issuer ? worker_serve(w) : rc;
}

static int make_proxy(struct worker *w)
{
	const struct message_worker_start *s = &w->start;
	const struct leaf_issuer_limits leaf_issuer = {
	        s->limits.leaf_certificates, s->limits.blocked_mints_per_min};
	const struct responder_config responder = {
	        .loop = w->loop,
	        .policy = &w->policy_in_force,
	        .names = w->names,
	        .on_query = on_query,
	        .context = w,
	        .queries_per_s = s->limits.dns_queries_per_s,
	};
	struct proxy_config proxy = {
	        .loop = w->loop,
	        .policy = &w->policy,
	        .names = w->names,
	        .resolver = w->resolver,
	        .trust = w->trust,
	        .credentials = w->credentials,
	        .gate4 = s->gate4,
	        .gate6 = s->gate6,
	        .proxy_port = s->proxy_port,
	        .permit = s->permit,
	        .permit_count = s->permit_count,
	        .egress = &s->egress,
	        .egress_authorization = secret_slice(&w->egress_authorization),
	        .counters = &w->counters,
	        .team = w->team.memory ? &w->team : NULL,
	        .tools = w->tools.memory ? &w->tools : NULL,
	        .limits = s->limits,
	        .timeouts = s->timeouts,
	        .record = record,
	        .reach = worker_reach,
	        .call = worker_call,
	        .associate = worker_associate,
	        .associate_end = worker_associate_end,
	        .ask = worker_ask,
	        .ask_end = worker_ask_end,
	        .propose = worker_propose,
	        .context = w,
	};

	random_bytes(&proxy.event_nonce, sizeof(proxy.event_nonce));
	w->leaf_issuer = leaf_issuer_new(w->issuer, &leaf_issuer);
	w->issuer = NULL;
	proxy.leaf_issuer = w->leaf_issuer;
	w->proxy = w->leaf_issuer ? proxy_new(&proxy) : NULL;
	if (w->proxy)
		proxy_hold(w->proxy, w->events.held);
	worker_apply_pauses(w);
	worker_apply_grants(w);
	w->responder = w->proxy ? responder_new(&responder) : NULL;
	return w->responder ? 0 : -ENOMEM;
}

static int listen_on(struct worker *w, size_t i)
{
	int fd = w->fds[MESSAGE_WORKER_FDS_BEFORE_LISTENERS + i];

	switch (w->start.listeners[i].kind) {
	case MESSAGE_LISTEN_TCP:
		return proxy_serve_tcp(w->proxy, fd);
	case MESSAGE_LISTEN_REWRITTEN:
		return proxy_serve_rewritten(w->proxy, fd);
	case MESSAGE_LISTEN_DNS_UDP:
		return responder_serve_udp(w->responder, fd);
	case MESSAGE_LISTEN_DNS_TCP:
		return responder_serve_tcp(w->responder, fd);
	case MESSAGE_LISTEN_UDP:
		return proxy_serve_udp(w->proxy, fd, w->start.listeners[i].port);
	case MESSAGE_LISTEN_UNIX:
		return proxy_serve_unix(w->proxy, fd);
	case MESSAGE_LISTEN_VSOCK:
		return proxy_serve_vsock(w->proxy, fd, w->start.listeners[i].cid);
	case MESSAGE_LISTENER_KINDS:
		break;
	}
	return -EBADMSG;
}

static const char *const state_names[] = {
        [WORKER_STARTING] = "STARTING",
        [WORKER_SERVING] = "SERVING",
        [WORKER_RETIRING] = "RETIRING",
        [WORKER_STOPPING] = "STOPPING",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == WORKER_STATE_COUNT, "a name per state");

void worker_set_state(struct worker *w, enum worker_state state)
{
	if (w->state != state)
		log_debug("worker: %s -> %s", state_names[w->state], state_names[state]);
	w->state = state;
}

int worker_serve(struct worker *w)
{
	uint8_t message[64];
	int rc = make_proxy(w);

	for (size_t i = 0; i < w->start.listener_count && rc == 0; i++)
		rc = listen_on(w, i);
	if (rc == 0)
		rc = worker_serve_exposed(w);
	if (rc < 0)
		return rc;
	worker_set_state(w, WORKER_SERVING);
	ipc_send(&w->supervisor, message,
	        message_empty(message, sizeof(message), MESSAGE_WORKER_READY, w->start_id), NULL,
	        0);
	/* Give back what the start needed: most workers are idle most of the time. */
	malloc_trim(0);
	return 0;
}

/* --- the end --- */

void worker_when_idle(void *context)
{
	struct worker *w = context;

	loop_task_queue(w->loop, &w->finish);
}

void worker_stop(struct worker *w, uint64_t id)
{
	worker_set_state(w, WORKER_STOPPING);
	w->stop_id = id;
	if (w->proxy)
		proxy_drain(w->proxy, worker_when_idle, w);
	else
		loop_task_queue(w->loop, &w->finish);
}
