/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real proxy on loopback with everything it needs: policy, names, mint, trust, resolver,
 * credentials, and scripted peers on both sides. All of it runs in one thread on one loop; pump()
 * lets it run. Synthetic addresses lie in 127.77.0.0/16, so a client of a name connects to the
 * listener at the name's own address, as in a sandbox.
 */
#ifndef VETHGUARD_TESTS_UNIT_PROXY_WORLD_H
#define VETHGUARD_TESTS_UNIT_PROXY_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/exchange/exchange.h"
#include "vethguard/base/clock.h"
#include "vethguard/policy/load.h"
#include "vethguard/tls/ca.h"

#define SECRET_VALUE "s3cr3t-TOKEN-value/0123456789"
#define PLACEHOLDER "vethguard-key-0123456789abcdef0123456789abcdef"
#define EVENTS_MAX 64
#define PATIENCE_MS 30000 /* valgrind beside other tests takes its time */
#define ANSWER_MS 4000

enum { NAME_A, NAME_C, NAME_D, NAME_P, NAME_T, NAME_S, NAME_Q, NAME_COUNT };
static const char *const world_names[NAME_COUNT] = {
        "a.test", "c.test", "d.test", "p.test", "t.test", "s.test", "q.test"};

struct world {
	struct loop *loop;
	struct loop_timer stop;
	struct socket_shared sockets;
	uint8_t *image;
	struct policy policy;
	struct names *names;
	struct resolver *resolver;
	struct ca *root, *issuer, *origin_root;
	struct ca_leaf_key *leaf_key;
	struct tls_identity *identity;
	struct tls_trust *trust, *sandbox_trust;
	struct buf trust_pem, sandbox_trust_pem;
	struct tls_server *origin_tls;
	struct tls_client *sandbox_tls;
	struct credential_store *store;
	struct leaf_issuer *leaf_issuer;
	struct proxy *proxy;
	struct ip_prefix permit;
	int origin_fd;
	uint16_t port, proxy_port;
	unsigned asked;
	bool keeper_silent;
	const char *keeper_error;
	const char *value; /* of every credential; NULL: SECRET_VALUE */
	struct event events[EVENTS_MAX];
	uint8_t records[EVENTS_MAX][2048];
	size_t event_count; /* kept: the first ones */
	size_t event_total;
	bool idle;
};

/* One scripted end: a client in the sandbox, or an origin's connection. */
struct peer {
	struct world *world;
	struct socket socket;
	struct buf in;
	bool shaking, eof, failed;
	bool deaf; /* reads nothing */
	char head[70000];
};

struct world_options {
	bool observe;
	const char *policy;                   /* instead of the usual one; %1$u is the port */
	const struct config_server *resolver; /* the names are asked of it; NULL: they are known */
	struct config_timeouts timeouts;
	struct config_limits limits;
	int send_bytes;          /* the kernel's buffer towards the sandbox; 0: as it comes */
	const struct team *team; /* other workers of its sandbox; NULL: none */
};

static const char usual_policy[] =
        "vethguard: 1\n"
        "on_leak: alert\n"
        "name: test\n"
        "credentials:\n"
        "  key: {source: \"env:KEY\", inject: bearer, env: KEY}\n"
        "  par: {source: \"env:PAR\", inject: query, query: api_key}\n"
        "allow:\n"
        "  - {name: a, to: \"https://a.test:%1$u\", methods: [GET, HEAD, POST, PUT, DELETE, "
        "OPTIONS, TRACE]}\n"
        "  - {name: c, to: \"https://c.test:%1$u\", credential: key}\n"
        "  - {name: q, to: \"https://q.test:%1$u\", credential: par}\n"
        "  - {name: p, to: \"http://p.test:%1$u\"}\n"
        "  - {name: t, to: \"tcp://t.test:%1$u\"}\n"
        "  - {name: s, to: \"https://s.test:%1$u\", tls: passthrough}\n"
        "deny:\n"
        "  - {name: no, to: \"https://a.test:%1$u\", methods: [DELETE], reason: never}\n";

/* For tests of what happens when a time is over; a busy machine needs more for anything else. */
#define HASTY_TIMEOUTS                                                                     \
	{                                                                                  \
		.hello_ms = 1500, .header_ms = 300, .idle_ms = 500, .connect_ms = 500,     \
		.response_ms = 500, .request_ms = 0, .resolve_ms = 100, .udp_idle_ms = 200 \
	}
__attribute__((unused)) static const struct config_timeouts hasty_timeouts = HASTY_TIMEOUTS;
#define PATIENT_TIMEOUTS                                                                   \
	{                                                                                  \
		.hello_ms = PATIENCE_MS, .header_ms = PATIENCE_MS, .idle_ms = PATIENCE_MS, \
		.connect_ms = PATIENCE_MS, .response_ms = PATIENCE_MS, .request_ms = 0,    \
		.resolve_ms = PATIENCE_MS, .udp_idle_ms = PATIENCE_MS                      \
	}
__attribute__((unused)) static const struct config_timeouts patient_timeouts = PATIENT_TIMEOUTS;
#define USUAL_LIMITS                                                                        \
	{                                                                                   \
		.connections = 32, .upstream_connections = 16, .upstream_idle = 4,          \
		.streams = 1000, .udp_flows = 4, .dns_names = 64, .leaf_certificates = 16,  \
		.header_bytes = 8192, .dns_queries_per_s = 100, .blocked_mints_per_min = 60 \
	}
static const struct config_limits usual_limits = USUAL_LIMITS;

/* --- running --- */

static void world_on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static inline void pump(struct world *w, int ms)
{
	loop_timer_set(&w->stop, ms);
	loop_run(w->loop);
}

#define UNTIL(w, condition)                                                                     \
	do {                                                                                    \
		int64_t until_end = clock_boot_ms() + PATIENCE_MS; /* still_clock.h: goes on */ \
		while (!(condition)) {                                                          \
			if (clock_boot_ms() > until_end)                                        \
				fail_msg("%s:%d: in vain: %s", __FILE__, __LINE__, #condition); \
			pump((w), 1);                                                           \
		}                                                                               \
	} while (0)

/* --- the proxy's surroundings --- */

static void world_record(void *context, const struct event *event)
{
	struct world *w = context;
	uint8_t *record = w->records[w->event_count];
	size_t n = event_encode(event, record, sizeof(w->records[0]));

	assert_true(n > 0);
	assert_null(memmem(record, n, SECRET_VALUE, sizeof(SECRET_VALUE) - 1));
	assert_int_equal(event_decode(record, n, &w->events[w->event_count]), 0);
	if (w->event_count < EVENTS_MAX - 1)
		w->event_count++;
	w->event_total++;
}

static int world_ask(void *context, uint32_t credential, bool renew)
{
	struct world *w = context;

	(void)renew;
	w->asked++;
	if (!w->keeper_silent)
		credential_store_answer(w->store, credential,
		        w->value ? slice_from_string(w->value) : SLICE(SECRET_VALUE), 0, 0,
		        w->keeper_error);
	return 0;
}

static struct tls_identity *world_identity(void *context, struct slice sni, enum tls_key_kind kind)
{
	struct world *w = context;
	const struct ip none = {0};

	(void)kind; /* the proxy, which is the client, has room for either */
	tls_identity_release(w->identity);
	w->identity = ca_leaf_new(w->origin_root, w->leaf_key, sni, &none);
	return w->identity;
}

/* Trusts one root, whose text is kept in pem. */
static inline struct tls_trust *world_trust(const struct ca *ca, struct buf *pem)
{
	buf_init(pem, 65536);
	ca_pem_append(ca_certificate_der(ca), pem);
	return tls_trust_new(buf_bytes(pem), pem->len);
}

static int world_read_policy(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return 0;
}

static inline void world_load_policy(struct world *w, const char *format, bool observe)
{
	struct policy_load_options options = {.observe = observe};
	struct diag_list diags = {0};
	struct policy_reader reader = {.read = world_read_policy};
	char text[4096];
	size_t n;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), format, w->port);
#pragma GCC diagnostic pop
	reader.context = text;
	if (policy_load(&reader, "/test.yaml", &options, &w->image, &n, &diags) < 0) {
		diag_print(&diags, stderr);
		fail_msg("the policy does not load");
	}
	assert_int_equal(policy_open(&w->policy, w->image, n), 0);
}

static inline int world_listen(struct sockaddr_in *sin, int send_bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	socklen_t n = sizeof(*sin);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (send_bytes) /* accepted sockets inherit it */
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
	assert_int_equal(bind(fd, (struct sockaddr *)sin, sizeof(*sin)), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)sin, &n), 0);
	return fd;
}

static inline struct sockaddr_in loopback(uint8_t b, uint8_t c, uint8_t d, uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
	        .sin_port = htons(port),
	        .sin_addr = {htonl(127u << 24 | (uint32_t)b << 16 | (uint32_t)c << 8 | d)}};
}

static inline void world_open(struct world *w, const struct world_options *o)
{
	const struct ip_prefix pool4 = {{4, {127, 77}}, 16}, pool6 = {{6, {0xfd, 0x77}}, 64};
	const struct leaf_issuer_limits leaf_issuer = {16, 60};
	struct config_host hosts[NAME_COUNT];
	struct sockaddr_in sin = loopback(0, 0, 1, 0);
	struct ip v4[NAME_COUNT], v6;

	memset(w, 0, sizeof(*w));
	memset(hosts, 0, sizeof(hosts));
	w->loop = loop_new();
	loop_timer_open(w->loop, &w->stop, world_on_stop);
	socket_shared_init(&w->sockets, w->loop);
	w->origin_fd = world_listen(&sin, 0);
	w->port = ntohs(sin.sin_port);
	world_load_policy(w, o->policy ? o->policy : usual_policy, o->observe);
	w->names = names_new(&pool4, &pool6, 64);
	for (size_t i = 0; i < NAME_COUNT; i++) {
		snprintf(hosts[i].name, sizeof(hosts[i].name), "%s", world_names[i]);
		hosts[i].address = (struct ip){4, {127, 0, 0, 1}};
		names_assign(w->names, slice_from_string(world_names[i]), 1, &v4[i], &v6);
	}
	w->resolver = resolver_new(w->loop, o->resolver, o->resolver != NULL, hosts,
	        o->resolver ? 0 : NAME_COUNT, o->resolver ? ANSWER_MS : 100);
	w->root = ca_new_root(SLICE("sandbox root"), 30);
	w->issuer = ca_new_intermediate(w->root, SLICE("sandbox"), 10);
	w->origin_root = ca_new_root(SLICE("origin root"), 30);
	w->leaf_key = ca_leaf_key_new(TLS_KEY_ECDSA);
	w->trust = world_trust(w->origin_root, &w->trust_pem);
	w->sandbox_trust = world_trust(w->root, &w->sandbox_trust_pem);
	w->origin_tls = tls_server_new(world_identity, w);
	w->sandbox_tls = tls_client_new(w->sandbox_trust);
	w->store = credential_store_new(w->loop, &w->policy, world_ask, w);
	if (policy_credential_count(&w->policy))
		credential_store_set_placeholder(w->store, 0, SLICE(PLACEHOLDER));
	w->leaf_issuer = leaf_issuer_new(w->issuer, &leaf_issuer);
	w->permit = (struct ip_prefix){{4, {127, 0, 0, 1}}, 32};
	sin = loopback(0, 0, 2, 0);
	int proxy_fd = world_listen(&sin, 0);
	w->proxy_port = ntohs(sin.sin_port);
	struct proxy_config config = {.loop = w->loop,
	        .policy = &w->policy,
	        .names = w->names,
	        .resolver = w->resolver,
	        .leaf_issuer = w->leaf_issuer,
	        .trust = w->trust,
	        .credentials = w->store,
	        .gate4 = {4, {127, 0, 0, 2}},
	        .proxy_port = w->proxy_port,
	        .permit = &w->permit,
	        .permit_count = 1,
	        .team = o->team,
	        .limits = o->limits,
	        .timeouts = o->timeouts,
	        .event_nonce = 7,
	        .record = world_record,
	        .context = w};
	w->proxy = proxy_new(&config);
	assert_non_null(w->proxy);
	assert_int_equal(proxy_serve_tcp(w->proxy, proxy_fd), 0);
	for (size_t i = 0; i < NAME_COUNT; i++) {
		sin = loopback(v4[i].bytes[1], v4[i].bytes[2], v4[i].bytes[3], w->port);
		assert_int_equal(proxy_serve_tcp(w->proxy, world_listen(&sin, o->send_bytes)), 0);
	}
}

static inline void world_close(struct world *w)
{
	proxy_free(w->proxy);
	leaf_issuer_free(w->leaf_issuer);
	credential_store_free(w->store);
	tls_client_free(w->sandbox_tls);
	tls_server_free(w->origin_tls);
	tls_trust_free(w->trust);
	tls_trust_free(w->sandbox_trust);
	buf_fini(&w->trust_pem);
	buf_fini(&w->sandbox_trust_pem);
	tls_identity_release(w->identity);
	ca_leaf_key_free(w->leaf_key);
	ca_free(w->root);
	ca_free(w->origin_root);
	resolver_free(w->resolver);
	names_free(w->names);
	socket_shared_fini(&w->sockets);
	loop_timer_close(&w->stop);
	loop_free(w->loop);
	close(w->origin_fd);
	free(w->image);
}

/* --- peers --- */

static void peer_read(struct peer *p)
{
	static uint8_t bytes[SOCKET_CHUNK];
	size_t n;

	if (p->shaking) {
		enum socket_status status = socket_handshake(&p->socket);

		p->shaking = status == SOCKET_AGAIN;
		p->failed |= status == SOCKET_ERROR || status == SOCKET_EOF;
		if (status != SOCKET_OK)
			return;
	}
	while (!p->deaf && !p->eof && !p->failed) {
		enum socket_status status = socket_read(&p->socket, bytes, sizeof(bytes), &n);

		if (status == SOCKET_AGAIN)
			return;
		p->eof |= status == SOCKET_EOF;
		p->failed |= status == SOCKET_ERROR;
		if (status == SOCKET_OK)
			assert_int_equal(buf_append(&p->in, bytes, n), 0);
	}
}

static void peer_on_event(struct socket *socket)
{
	peer_read(container_of(socket, struct peer, socket));
}

static void peer_on_drained(struct socket *socket)
{
	(void)socket;
}

static inline struct peer *peer_new(struct world *w, int fd)
{
	struct peer *p = calloc(1, sizeof(*p));

	p->world = w;
	buf_init(&p->in, 64u << 20);
	assert_int_equal(
	        socket_open(&w->sockets, &p->socket, fd, NULL, peer_on_event, peer_on_drained), 0);
	return p;
}

static inline void hang_up(struct peer *p, bool reset)
{
	socket_close(&p->socket, reset);
	buf_fini(&p->in);
	free(p);
}

static inline int connect_to(const struct sockaddr_in *sin)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = 32768;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));

	assert_int_equal(connect(fd, (const struct sockaddr *)sin, sizeof(*sin)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/* alpn: protocols in wire form, static. */
static inline void start_tls_for(struct peer *p, const char *sni, const char *alpn)
{
	struct world *w = p->world;
	const struct ip none = {0};
	struct tls *tls = tls_connect_new(w->sandbox_tls, slice_from_string(sni), &none,
	        slice_from_string(alpn), SLICE(""), &w->sockets.tx);

	socket_start_tls(&p->socket, tls, SLICE(""));
	p->shaking = true;
	peer_read(p);
	UNTIL(w, !p->shaking);
}

static inline void start_tls(struct peer *p, const char *sni)
{
	start_tls_for(p, sni, "\x08http/1.1");
}

/* A client in the sandbox, connected to a name; with TLS when sni is given. */
static inline struct peer *client(struct world *w, unsigned name, const char *sni)
{
	struct sockaddr_in sin = loopback(77, 1, (uint8_t)name, w->port);
	struct peer *p = peer_new(w, connect_to(&sin));

	if (sni)
		start_tls(p, sni);
	return p;
}

static inline struct peer *proxy_client(struct world *w)
{
	struct sockaddr_in sin = loopback(0, 0, 2, w->proxy_port);

	return peer_new(w, connect_to(&sin));
}

/* Reads one small piece at a time until the end: a client that is slow, but takes its response. */
static inline void take_slowly(struct peer *p)
{
	uint8_t bytes[4096];
	ssize_t n;

	p->deaf = true;
	for (;;) {
		pump(p->world, 1);
		n = recv(p->socket.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n > 0)
			assert_int_equal(buf_append(&p->in, bytes, (size_t)n), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
	}
	p->eof = n == 0;
	p->failed = n < 0;
}

/* The origin's side of the proxy's next connection. */
static inline struct peer *origin(struct world *w, bool tls)
{
	static const char alpn[] = "\x08http/1.1";
	struct peer *p;
	int fd = -1;

	UNTIL(w, (fd = accept4(w->origin_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	p = peer_new(w, fd);
	if (tls) {
		socket_start_tls(&p->socket,
		        tls_accept_new(w->origin_tls, SLICE(alpn), &w->sockets.tx), SLICE(""));
		p->shaking = true;
		UNTIL(w, !p->shaking);
		assert_false(p->failed);
	}
	return p;
}

static inline bool origin_is_asked(struct world *w)
{
	int fd;

	pump(w, 20);
	fd = accept(w->origin_fd, NULL, NULL);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static inline void say_n(struct peer *p, const void *bytes, size_t n)
{
	socket_write(&p->socket, bytes, n);
	socket_flush(&p->socket);
}

static inline void say(struct peer *p, const char *text)
{
	say_n(p, text, strlen(text));
}

/* Among what has come and was not taken. */
static inline bool has(const struct peer *p, const char *text, size_t n)
{
	return p->in.len && memmem(buf_bytes(&p->in), p->in.len, text, n);
}

/* The next bytes have to be exactly these. */
static inline void expect(struct peer *p, const char *text)
{
	size_t n = strlen(text);

	UNTIL(p->world, p->in.len >= n || p->eof || p->failed);
	if (p->in.len < n || memcmp(buf_bytes(&p->in), text, n) != 0)
		fail_msg("expected \"%s\", got \"%.*s\"", text, (int)p->in.len,
		        (const char *)buf_bytes(&p->in));
	buf_consume(&p->in, n);
}

/* Takes a head; borrowed until the next one. */
static inline const char *take_head(struct peer *p)
{
	const uint8_t *end = NULL;
	size_t n;

	UNTIL(p->world,
	        (p->in.len && (end = memmem(buf_bytes(&p->in), p->in.len, "\r\n\r\n", 4))) ||
	                p->eof || p->failed);
	if (!end)
		fail_msg("no head but \"%.*s\"", (int)p->in.len,
		        p->in.len ? (const char *)buf_bytes(&p->in) : "");
	n = (size_t)(end - buf_bytes(&p->in)) + 4;
	assert_true(n < sizeof(p->head));
	memcpy(p->head, buf_bytes(&p->in), n);
	p->head[n] = '\0';
	buf_consume(&p->in, n);
	return p->head;
}

static inline bool head_has(const struct peer *p, const char *text)
{
	return strcasestr(p->head, text) != NULL;
}

/* Takes a head that begins so. */
static inline void expect_head(struct peer *p, const char *start)
{
	take_head(p);
	if (strncmp(p->head, start, strlen(start)) != 0)
		fail_msg("expected \"%s\", got \"%s\"", start, p->head);
}

static inline void expect_end(struct peer *p)
{
	UNTIL(p->world, p->eof || p->failed);
	assert_true(p->eof);
	assert_int_equal(p->in.len, 0);
}

static inline void expect_reset(struct peer *p)
{
	UNTIL(p->world, p->eof || p->failed);
	if (p->eof && !p->socket.truncated)
		fail_msg("a clean end instead of a reset");
}

static inline size_t count_events(const struct world *w, enum event_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < w->event_count; i++)
		n += w->events[i].kind == kind;
	return n;
}

static inline const struct event *find_event(const struct world *w, enum event_kind kind)
{
	for (size_t i = w->event_count; i-- > 0;)
		if (w->events[i].kind == kind)
			return &w->events[i];
	return NULL;
}

static inline const struct event *find_finding(const struct world *w, enum event_finding finding)
{
	for (size_t i = w->event_count; i-- > 0;)
		if (w->events[i].kind == EVENT_FINDING && w->events[i].finding == finding)
			return &w->events[i];
	return NULL;
}

/* A network of this test's own, where that is permitted; loopback only in any case. */
static inline void world_network(void)
{
	struct ifreq ifr = {.ifr_name = "lo"};
	int fd;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) == 0) {
		ifr.ifr_flags |= IFF_UP;
		ioctl(fd, SIOCSIFFLAGS, &ifr);
	}
	close(fd);
}

#endif
