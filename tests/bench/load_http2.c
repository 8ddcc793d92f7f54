/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP/2 half of the load: connections with several streams at once. Every response is checked:
 * status 200, length as asked, no stream reset.
 */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "load.h"

#define IN_BYTES (64u << 10)
#define EVENTS 256
#define CONNS_MAX 8192
#define WINDOW (1 << 20)
#define OPENED_AT_ONCE 16 /* the listener's queue is not what is measured */

enum state { CONNECTING, HANDSHAKE, OPEN };

struct conn {
	int fd;
	SSL *ssl;
	nghttp2_session *session;
	enum state state;
	uint32_t watched;
	unsigned streams; /* under way */
};

/* A response while it comes in: the stream's user data. */
struct answer {
	bool ok;
	uint64_t bytes;
};

static struct conn *conns[CONNS_MAX];
static unsigned conn_count;
static int epoll = -1;
static SSL_CTX *ctx;
static struct net_address dial_to;
static const struct load_order *order;
static struct load_count *count;
static unsigned begun, wanted, at_once;
static char path[64], host[256];

static void watch(struct conn *c, uint32_t events)
{
	if (c->watched != events)
		net_watch(epoll, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, events, c);
	c->watched = events;
}

static void ask(struct conn *c)
{
#define NV(name, value)                                                                 \
	{                                                                               \
		(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, strlen(value), \
		        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE    \
	}
	const nghttp2_nv fields[] = {NV(":method", "GET"), NV(":scheme", "https"),
	        NV(":authority", host), NV(":path", path), NV("user-agent", "load/1.0"),
	        NV("accept", "*/*"), NV("accept-encoding", "gzip, deflate")};
	struct answer *a = calloc(1, sizeof(*a));

	if (!a || nghttp2_submit_request(
	                  c->session, NULL, fields, sizeof(fields) / sizeof(*fields), NULL, a) < 0)
		net_die("a request cannot be sent");
	begun++;
	c->streams++;
}

static void fill(struct conn *c)
{
	while (c->streams < at_once && begun < wanted)
		ask(c);
}

/* --- nghttp2 --- */

static ssize_t on_send(
        nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *context)
{
	struct conn *c = context;
	int r = SSL_write(c->ssl, p, (int)n);

	(void)session, (void)flags;
	if (r > 0)
		return r;
	if (SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_WRITE)
		net_die("HTTP/2 request: %s", strerror(errno));
	watch(c, EPOLLIN | EPOLLOUT);
	return NGHTTP2_ERR_WOULDBLOCK;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
        size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *context)
{
	struct answer *a = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags, (void)context;
	if (a && name_n == 7 && memcmp(name, ":status", 7) == 0)
		a->ok = value_n == 3 && memcmp(value, "200", 3) == 0;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
        void *context)
{
	struct answer *a = nghttp2_session_get_stream_user_data(session, id);

	(void)flags, (void)p, (void)context;
	a->bytes += n;
	count->bytes += n;
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	struct answer *a = nghttp2_session_get_stream_user_data(session, id);
	struct conn *c = context;

	if (!a->ok || code || a->bytes != order->bytes)
		net_die("not the response that was asked for: reset %u, %llu bytes", code,
		        (unsigned long long)a->bytes);
	free(a);
	c->streams--;
	count->done++;
	return 0;
}

static nghttp2_session *session_new(struct conn *c)
{
	const nghttp2_settings_entry settings[] = {
	        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW}};
	nghttp2_session_callbacks *on;
	nghttp2_session *session;

	if (nghttp2_session_callbacks_new(&on))
		net_die("no memory");
	nghttp2_session_callbacks_set_send_callback(on, on_send);
	nghttp2_session_callbacks_set_on_header_callback(on, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(on, on_close);
	if (nghttp2_session_client_new(&session, on, c))
		net_die("no memory");
	nghttp2_session_callbacks_del(on);
	nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2);
	nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, 16 * WINDOW);
	return session;
}

/* --- connections --- */

static void conn_open(struct conn *c)
{
	static const uint8_t alpn[] = "\x02h2";

	c->fd = net_connect(&dial_to);
	c->ssl = SSL_new(ctx);
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_tlsext_host_name(c->ssl, order->name);
	SSL_set_alpn_protos(c->ssl, alpn, sizeof(alpn) - 1);
	SSL_set_connect_state(c->ssl);
	watch(c, EPOLLOUT);
}

static void conn_close(struct conn *c)
{
	nghttp2_session_del(c->session);
	SSL_free(c->ssl);
	close(c->fd);
	free(c);
}

static bool shake_hands(struct conn *c)
{
	const uint8_t *chosen;
	unsigned n;
	int r = SSL_do_handshake(c->ssl);

	if (r != 1) {
		if (SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ)
			net_die("handshake: %s", strerror(errno));
		watch(c, EPOLLIN);
		return false;
	}
	SSL_get0_alpn_selected(c->ssl, &chosen, &n);
	if (n != 2 || memcmp(chosen, "h2", 2) != 0)
		net_die("HTTP/2 was not chosen");
	c->session = session_new(c);
	c->state = OPEN;
	return true;
}

static void receive(struct conn *c)
{
	static uint8_t in[IN_BYTES];

	for (;;) {
		int r = SSL_read(c->ssl, in, sizeof(in));

		if (r <= 0) {
			if (SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ)
				net_die("an HTTP/2 connection was ended (request %u)", count->done);
			return;
		}
		if (nghttp2_session_mem_recv(c->session, in, (size_t)r) != r)
			net_die("the peer broke the HTTP/2 protocol");
	}
}

static void send_all(struct conn *c)
{
	watch(c, EPOLLIN);
	fill(c);
	if (nghttp2_session_send(c->session))
		net_die("HTTP/2 cannot be sent");
}

static void step(struct conn *c)
{
	if (c->state == CONNECTING)
		c->state = HANDSHAKE;
	if (c->state == HANDSHAKE && !shake_hands(c))
		return;
	receive(c);
	send_all(c);
}

static void run_until_done(unsigned until)
{
	while (count->done < until) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(epoll, events, EVENTS, 30000);

		if (n == 0)
			net_die("nothing happened for 30 s: %u of %u done", count->done, until);
		for (int i = 0; i < n; i++)
			step(events[i].data.ptr);
	}
}

static void begin(const struct load_order *o, struct load_count *c)
{
	order = o;
	count = c;
	begun = wanted = 0;
	snprintf(path, sizeof(path), "/bytes/%llu", o->bytes);
	if (o->name[0])
		snprintf(host, sizeof(host), "%s", o->name);
	at_once = o->streams ? o->streams : 1;
}

void load_http2_open(const struct load_order *o, struct load_count *c)
{
	const char *port = strrchr(o->target, ':');

	begin(o, c);
	if (port && strcmp(port, ":443") != 0)
		snprintf(host, sizeof(host), "%s%s", o->name, port);
	at_once = 1;
	if (epoll < 0)
		epoll = net_epoll();
	if (!ctx)
		ctx = net_client_context(NULL);
	dial_to = net_resolve(o->target);
	for (unsigned i = 0; i < o->conns; i++) {
		if (conn_count == CONNS_MAX)
			net_die("at most %u connections", CONNS_MAX);
		conns[conn_count] = calloc(1, sizeof(**conns));
		if (!conns[conn_count])
			net_die("no memory");
		wanted++;
		conn_open(conns[conn_count++]);
		if (wanted % OPENED_AT_ONCE == 0 || i + 1 == o->conns)
			run_until_done(wanted);
	}
}

void load_http2_go(const struct load_order *o, struct load_count *c)
{
	char kept[256];

	snprintf(kept, sizeof(kept), "%s", host); /* with the port that "open2" named */
	begin(o, c);
	snprintf(host, sizeof(host), "%s", kept);
	wanted = o->requests;
	for (unsigned i = 0; i < conn_count; i++)
		send_all(conns[i]);
	run_until_done(wanted);
}

void load_http2_close(void)
{
	while (conn_count > 0)
		conn_close(conns[--conn_count]);
}
