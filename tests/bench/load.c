/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load of the benchmark. It reads commands from its standard input, one per line, and answers
 * each with one line of JSON, so that the measuring program can look at the proxy's clocks between
 * two commands:
 *
 *   open  target=HOST:PORT name=SNI conns=N [through=HOST:PORT]   connections, one request on each
 *         [proof=TOKEN]
 *   go    requests=N [bytes=N]   requests over the open connections, one at a time each
 *   close                        closes them
 *   new   target= name= conns=N requests=N [resume=1] [through=]   a connection for each request
 *   open2, go2 (also streams=N: so many at once on each connection), close2: the same over HTTP/2
 *
 * through: an explicit proxy that is asked to CONNECT to target, with proof as a Bearer token.
 * bytes: length of the body that is asked for and insisted on. Every response is checked: status
 * 200, length as asked.
 *
 *   load CPU
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

#define IN_BYTES (64u << 10)
#define HEAD_MAX 8192
#define EVENTS 256
#define SESSIONS_MAX 64
#define CONNS_MAX 4096

enum state { CONNECTING, TUNNEL, HANDSHAKE, SENDING, HEAD, BODY, IDLE };

struct conn {
	int fd;
	SSL *ssl;
	enum state state;
	uint32_t watched;
	char head[HEAD_MAX];
	size_t head_n;
	uint64_t left;
	struct conn *next;
};

static struct load_order order;

static int epoll;
static SSL_CTX *ctx;
static struct net_address dial_to;
static struct conn *conns[CONNS_MAX];
static unsigned conn_count;
static char request[1024];
static size_t request_n;
static SSL_SESSION *sessions[SESSIONS_MAX];
static unsigned session_count;
static bool once; /* each connection serves one request */
static unsigned begun, done, resumed, wanted;
static uint64_t body_bytes;
static char issuer[128];

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	if (!order.resume || session_count == SESSIONS_MAX)
		return 0;
	sessions[session_count++] = session;
	return 1;
}

static void watch(struct conn *c, uint32_t events)
{
	if (c->watched != events)
		net_watch(epoll, c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, events, c);
	c->watched = events;
}

static void conn_open(struct conn *c)
{
	c->fd = net_connect(&dial_to);
	c->ssl = SSL_new(ctx);
	c->state = CONNECTING;
	c->watched = 0;
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_tlsext_host_name(c->ssl, order.name);
	if (order.resume && session_count > 0) {
		SSL_SESSION *session = sessions[--session_count];

		SSL_set_session(c->ssl, session);
		SSL_SESSION_free(session);
	}
	SSL_set_connect_state(c->ssl);
	watch(c, EPOLLOUT);
}

static void conn_close(struct conn *c)
{
	SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	close(c->fd);
	c->ssl = NULL;
	c->fd = -1;
}

/* True: wait for the socket. */
static bool wait_for(struct conn *c, int result, const char *what)
{
	int error = SSL_get_error(c->ssl, result);

	if (error == SSL_ERROR_WANT_READ)
		watch(c, EPOLLIN);
	else if (error == SSL_ERROR_WANT_WRITE)
		watch(c, EPOLLOUT);
	else
		net_die("%s: TLS error %d, %s (request %u)", what, error, strerror(errno), done);
	return true;
}

static void note_issuer(struct conn *c)
{
	X509 *peer = SSL_get0_peer_certificate(c->ssl);

	if (SSL_session_reused(c->ssl))
		resumed++;
	if (peer && !issuer[0])
		X509_NAME_get_text_by_NID(
		        X509_get_issuer_name(peer), NID_commonName, issuer, sizeof(issuer));
}

/* An explicit proxy's answer to CONNECT, byte by byte: what follows is TLS. */
static bool tunnel_answered(struct conn *c)
{
	for (;;) {
		ssize_t r = read(c->fd, c->head + c->head_n, 1);

		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (r <= 0 || ++c->head_n >= sizeof(c->head))
			net_die("the proxy ended during CONNECT");
		if (net_head_length(c->head, c->head_n)) {
			if (strncmp(c->head, "HTTP/1.", 7) != 0 ||
			        strncmp(c->head + 8, " 200", 4) != 0)
				net_die("CONNECT was refused: %.60s", c->head);
			return true;
		}
	}
}

static void ask_tunnel(struct conn *c)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n",
	        order.target, order.target, order.proof[0] ? "Proxy-Authorization: Bearer " : "",
	        order.proof, order.proof[0] ? "\r\n" : "");

	if (write(c->fd, text, (size_t)n) != n)
		net_die("CONNECT: %s", strerror(errno));
	c->head_n = 0;
	watch(c, EPOLLIN);
}

static bool read_head(struct conn *c, const char *p, size_t n, size_t *used)
{
	size_t room = sizeof(c->head) - c->head_n;
	size_t take = n < room ? n : room;
	size_t before = c->head_n;

	memcpy(c->head + c->head_n, p, take);
	c->head_n += take;
	size_t head_n = net_head_length(c->head, c->head_n);
	if (head_n == 0) {
		if (c->head_n == sizeof(c->head))
			net_die("a response head beyond %u bytes", HEAD_MAX);
		*used = take;
		return false;
	}
	int64_t length = net_content_length(c->head, head_n);
	if (strncmp(c->head, "HTTP/1.1 200", 12) != 0 || length != (int64_t)order.bytes)
		net_die("not the response that was asked for:\n%.*s", (int)head_n, c->head);
	c->left = (uint64_t)length;
	*used = head_n - before;
	return true;
}

/* Takes what has come; true: the response is whole. */
static bool take(struct conn *c, const char *p, size_t n)
{
	if (c->state == HEAD) {
		size_t used;

		if (!read_head(c, p, n, &used))
			return false;
		p += used;
		n -= used;
		c->state = BODY;
	}
	if (n > c->left)
		net_die("more bytes than the response may have");
	c->left -= n;
	body_bytes += n;
	return c->left == 0;
}

static bool receive(struct conn *c)
{
	static char in[IN_BYTES];

	for (;;) {
		int r = SSL_read(c->ssl, in, sizeof(in));

		if (r <= 0) {
			wait_for(c, r, "response");
			return false;
		}
		if (take(c, in, (size_t)r))
			return true;
	}
}

/* The response is whole: the next one, another connection, or nothing. */
static bool next_request(struct conn *c)
{
	done++;
	c->state = IDLE;
	if (begun == wanted) {
		if (once)
			conn_close(c);
		else
			watch(c, EPOLLIN);
		return false;
	}
	begun++;
	if (once) {
		conn_close(c);
		conn_open(c);
		return false;
	}
	c->state = SENDING;
	return true;
}

static void step(struct conn *c)
{
	for (;;) {
		int r;

		switch (c->state) {
		case CONNECTING:
			c->state = order.through[0] ? TUNNEL : HANDSHAKE;
			if (c->state == TUNNEL) {
				ask_tunnel(c);
				return;
			}
			break;
		case TUNNEL:
			if (!tunnel_answered(c))
				return;
			c->state = HANDSHAKE;
			break;
		case HANDSHAKE:
			r = SSL_do_handshake(c->ssl);
			if (r != 1) {
				wait_for(c, r, "handshake");
				return;
			}
			note_issuer(c);
			c->state = SENDING;
			break;
		case SENDING:
			r = SSL_write(c->ssl, request, (int)request_n);
			if (r <= 0) {
				wait_for(c, r, "request");
				return;
			}
			c->head_n = 0;
			c->state = HEAD;
			watch(c, EPOLLIN);
			return; /* the response takes longer than a look at the socket */
		case HEAD:
		case BODY:
			if (!receive(c) || !next_request(c))
				return;
			break;
		case IDLE: { /* tickets may come, nothing else */
			char byte;

			r = SSL_read(c->ssl, &byte, 1);
			if (r > 0 || SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ)
				net_die("an idle connection was ended");
			return;
		}
		}
	}
}

static void run_until_done(void)
{
	while (done < wanted) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(epoll, events, EVENTS, 30000);

		if (n == 0)
			net_die("nothing happened for 30 s: %u of %u done", done, wanted);
		for (int i = 0; i < n; i++)
			step(events[i].data.ptr);
	}
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static void make_request(void)
{
	request_n = (size_t)snprintf(request, sizeof(request),
	        "GET /bytes/%llu HTTP/1.1\r\nHost: %s\r\nUser-Agent: load/1.0\r\nAccept: */*\r\n"
	        "Accept-Encoding: gzip, deflate\r\n\r\n",
	        order.bytes, order.name);
}

static void begin(unsigned count)
{
	begun = done = resumed = 0;
	body_bytes = 0;
	wanted = count;
	make_request();
}

static void open_all(void)
{
	if (order.conns > CONNS_MAX)
		net_die("at most %u connections", CONNS_MAX);
	dial_to = net_resolve(order.through[0] ? order.through : order.target);
	while (conn_count < order.conns) {
		struct conn *c = calloc(1, sizeof(*c));

		if (!c)
			net_die("no memory");
		conns[conn_count++] = c;
	}
}

/* Opens in small groups: the listener's queue is not what is measured. */
static void command_open(void)
{
	open_all();
	once = false;
	begin(0);
	for (unsigned i = 0; i < order.conns; i++) {
		begun++;
		wanted++;
		conn_open(conns[i]);
		if (wanted % 16 == 0 || i + 1 == order.conns) {
			unsigned so_far = wanted;

			run_until_done();
			wanted = so_far;
		}
	}
}

static void command_go(void)
{
	begin(order.requests);
	for (unsigned i = 0; i < conn_count && begun < wanted; i++) {
		begun++;
		conns[i]->state = SENDING;
		step(conns[i]);
	}
	run_until_done();
}

static void command_close(void)
{
	while (conn_count > 0) {
		struct conn *c = conns[--conn_count];

		if (c->ssl)
			conn_close(c);
		free(c);
	}
}

static void command_new(void)
{
	open_all();
	once = true;
	begin(order.requests);
	for (unsigned i = 0; i < conn_count && begun < wanted; i++) {
		begun++;
		conn_open(conns[i]);
	}
	run_until_done();
	command_close();
}

static void parse(char *line)
{
	memset(&order, 0, offsetof(struct load_order, conns));
	order.resume = false;
	order.conns = order.requests = order.streams = 1;
	for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value++ = 0;
		if (strcmp(word, "target") == 0)
			snprintf(order.target, sizeof(order.target), "%s", value);
		else if (strcmp(word, "name") == 0)
			snprintf(order.name, sizeof(order.name), "%s", value);
		else if (strcmp(word, "through") == 0)
			snprintf(order.through, sizeof(order.through), "%s", value);
		else if (strcmp(word, "proof") == 0)
			snprintf(order.proof, sizeof(order.proof), "%s", value);
		else if (strcmp(word, "conns") == 0)
			order.conns = (unsigned)atoi(value);
		else if (strcmp(word, "requests") == 0)
			order.requests = (unsigned)atoi(value);
		else if (strcmp(word, "streams") == 0)
			order.streams = (unsigned)atoi(value);
		else if (strcmp(word, "bytes") == 0)
			order.bytes = strtoull(value, NULL, 10);
		else if (strcmp(word, "resume") == 0)
			order.resume = atoi(value) != 0;
		else
			net_die("no such word: %s", word);
	}
}

static void forget_sessions(void)
{
	while (session_count > 0)
		SSL_SESSION_free(sessions[--session_count]);
}

static void http2(const char *verb)
{
	struct load_count count = {0};

	if (strcmp(verb, "open2") == 0)
		load_http2_open(&order, &count);
	else if (strcmp(verb, "go2") == 0)
		load_http2_go(&order, &count);
	else
		load_http2_close();
	done = count.done;
	resumed = 0;
	body_bytes = count.bytes;
}

static void carry_out(const char *verb)
{
	static const struct {
		const char *verb;
		void (*run)(void);
	} commands[] = {{"open", command_open}, {"go", command_go}, {"close", command_close},
	        {"new", command_new}};

	if (strcmp(verb, "open2") == 0 || strcmp(verb, "go2") == 0 || strcmp(verb, "close2") == 0) {
		http2(verb);
		return;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(verb, commands[i].verb) == 0) {
			commands[i].run();
			return;
		}
	net_die("no such command: %s", verb);
}

static void obey(char *line)
{
	static char name[256]; /* "go" goes on with what "open" named */
	struct rusage before, after;
	struct timespec t0, t1;
	char verb[8] = "";

	sscanf(line, "%7s", verb);
	parse(line);
	if (order.name[0])
		snprintf(name, sizeof(name), "%s", order.name);
	else
		snprintf(order.name, sizeof(order.name), "%s", name);
	issuer[0] = 0;
	getrusage(RUSAGE_SELF, &before);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	carry_out(verb);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	getrusage(RUSAGE_SELF, &after);
	forget_sessions();
	printf("{\"done\": %u, \"bytes\": %llu, \"resumed\": %u, \"wall_s\": %.6f, \"load_cpu_s\": "
	       "%.6f, "
	       "\"issuer\": \"%s\"}\n",
	        done, (unsigned long long)body_bytes, resumed,
	        (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9,
	        seconds(&after.ru_utime) + seconds(&after.ru_stime) - seconds(&before.ru_utime) -
	                seconds(&before.ru_stime),
	        issuer);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[1024];

	if (argc != 2)
		net_die("usage: load CPU");
	net_pin(atoi(argv[1]));
	epoll = net_epoll();
	ctx = net_client_context(NULL);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_read_buffer_len(ctx, IN_BYTES);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
