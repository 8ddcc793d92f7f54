/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The yardstick: a relay that makes the system calls and the crypto that an intercepting proxy
 * cannot do without, and nothing else: no policy, no log, no look at HTTP beyond where a head ends
 * and content-length. What a complete proxy costs above it is the price of its judgment.
 *
 * Intercepted: one recv() and one send() per event through a BIO over shared memory, TLS on both
 * sides, upstream connections kept and their sessions resumed. Passed through: splice(2) both ways.
 * Requests have no body.
 *
 *   relay INTERCEPT PASSTHROUGH ORIGIN CERTIFICATE KEY CA NAME      (the first three ADDRESS:PORT)
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net.h"

#define CHUNK (64u << 10)
#define RECORD 16384u
#define HEAD_MAX 8192
#define EVENTS 256
#define SESSIONS_MAX 8
#define COPIED (64u << 10)
#define PIPE_BYTES (256 << 10)

enum kind { LISTEN_INTERCEPT, LISTEN_PASS, CLIENT, UPSTREAM, RAW };

/* One socket; TLS on it unless RAW. */
struct end {
	enum kind kind;
	int fd;
	SSL *ssl;
	struct end *peer; /* who gets what is read here; NULL: nobody at the moment */
	struct end *next; /* in the pool, or among those to be freed */
	bool shaken, readable, writable, connected, closed;
	char *pending; /* what the socket did not take */
	size_t pending_n, pending_at;
	char *head; /* a head that has not come whole; a request that waits for its upstream */
	size_t head_n;
	uint64_t left; /* of the response's body; RAW: bytes copied so far */
	int pipe[2];   /* RAW: from here to peer */
	size_t in_pipe;
	bool ended, hung_up;
};

static int epoll;
static struct net_address origin;
static SSL_CTX *server_ctx, *client_ctx;
static const char *origin_name;
static struct end *pool, *dead;
static SSL_SESSION *sessions[SESSIONS_MAX];
static unsigned session_count;

/* Shared memory of the BIOs: what was received for the end at work, what it has to send. */
static char rx[CHUNK], plain[CHUNK], tx[4 * CHUNK];
static size_t rx_n, rx_at, tx_n;
static struct end *tx_owner;

static int bio_read(BIO *bio, char *out, size_t cap, size_t *n)
{
	size_t left = rx_n - rx_at;

	BIO_clear_retry_flags(bio);
	if (left == 0) {
		BIO_set_retry_read(bio);
		return 0;
	}
	*n = cap < left ? cap : left;
	memcpy(out, rx + rx_at, *n);
	rx_at += *n;
	return 1;
}

static int bio_write(BIO *bio, const char *p, size_t n, size_t *written)
{
	BIO_clear_retry_flags(bio);
	if (n > sizeof(tx) - tx_n)
		net_die("tx is full");
	memcpy(tx + tx_n, p, n);
	tx_n += n;
	*written = n;
	return 1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *p)
{
	(void)bio, (void)number, (void)p;
	return command == BIO_CTRL_FLUSH;
}

static BIO *bio_new(void)
{
	static BIO_METHOD *method;

	if (!method) {
		method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "shared");
		BIO_meth_set_read_ex(method, bio_read);
		BIO_meth_set_write_ex(method, bio_write);
		BIO_meth_set_ctrl(method, bio_ctrl);
	}
	BIO *bio = BIO_new(method);
	BIO_set_init(bio, 1);
	return bio;
}

static struct end *end_new(enum kind kind, int fd)
{
	struct end *e = calloc(1, sizeof(*e));

	if (!e)
		net_die("no memory");
	e->kind = kind;
	e->fd = fd;
	e->pipe[0] = e->pipe[1] = -1;
	e->readable = e->writable = true;
	if (kind == CLIENT || kind == UPSTREAM) {
		BIO *bio = bio_new();

		e->ssl = SSL_new(kind == CLIENT ? server_ctx : client_ctx);
		SSL_set_bio(e->ssl, bio, bio);
	}
	net_watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, e);
	return e;
}

static void end_close(struct end *e)
{
	if (e->closed)
		return;
	e->closed = true;
	for (struct end **at = &pool; *at; at = &(*at)->next)
		if (*at == e) {
			*at = e->next;
			break;
		}
	if (tx_owner == e)
		tx_owner = NULL, tx_n = 0;
	close(e->fd);
	if (e->pipe[0] >= 0)
		close(e->pipe[0]), close(e->pipe[1]);
	SSL_free(e->ssl);
	ERR_clear_error(); /* else the next connection's would-block looks like this one's failure
	                    */
	free(e->pending);
	free(e->head);
	e->next = dead; /* an event of this turn may still name it */
	dead = e;
	if (e->peer) {
		e->peer->peer = NULL;
		end_close(e->peer);
	}
}

static void keep(struct end *e, const char *p, size_t n)
{
	if (n == 0)
		return;
	memmove(e->pending, e->pending + e->pending_at, e->pending_n - e->pending_at);
	e->pending_n -= e->pending_at;
	e->pending_at = 0;
	e->pending = realloc(e->pending, e->pending_n + n);
	memcpy(e->pending + e->pending_n, p, n);
	e->pending_n += n;
}

static size_t send_some(struct end *e, const char *p, size_t n)
{
	size_t sent = 0;

	while (sent < n && e->writable) {
		ssize_t r = send(e->fd, p + sent, n - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (r > 0)
			sent += (size_t)r;
		else
			e->writable = false;
	}
	return sent;
}

static void tx_flush(void)
{
	struct end *e = tx_owner;
	size_t sent = 0;

	if (!e)
		return;
	if (!e->pending)
		sent = send_some(e, tx, tx_n);
	if (sent < tx_n)
		keep(e, tx + sent, tx_n - sent);
	tx_n = 0;
	tx_owner = NULL;
}

static void tx_claim(struct end *e)
{
	if (tx_owner != e)
		tx_flush();
	tx_owner = e;
}

static void write_plain(struct end *e, const char *p, size_t n)
{
	tx_claim(e);
	while (n > 0) {
		size_t part = n < RECORD ? n : RECORD;

		SSL_write(e->ssl, p, (int)part);
		p += part;
		n -= part;
	}
}

static struct end *upstream_get(void)
{
	struct end *u = pool;

	if (u) {
		pool = u->next;
		u->next = NULL;
		return u;
	}
	u = end_new(UPSTREAM, net_connect(&origin));
	SSL_set_tlsext_host_name(u->ssl, origin_name);
	SSL_set1_host(u->ssl, origin_name);
	if (session_count > 0) {
		SSL_SESSION *session = sessions[--session_count];

		SSL_set_session(u->ssl, session);
		SSL_SESSION_free(session);
	}
	SSL_set_connect_state(u->ssl);
	return u;
}

static void request(struct end *c, const char *p, size_t n)
{
	if (c->head_n + n > HEAD_MAX || c->peer) {
		end_close(c);
		return;
	}
	if (c->head_n == 0 && net_head_length(p, n) == n) {
		c->peer = upstream_get();
		c->peer->peer = c;
		if (c->peer->shaken) {
			write_plain(c->peer, p, n);
			return;
		}
	}
	if (!c->head)
		c->head = malloc(HEAD_MAX);
	memcpy(c->head + c->head_n, p, n);
	c->head_n += n;
	if (!c->peer && net_head_length(c->head, c->head_n) == c->head_n) {
		c->peer = upstream_get();
		c->peer->peer = c;
	}
	if (c->peer && c->peer->shaken) {
		write_plain(c->peer, c->head, c->head_n);
		c->head_n = 0;
	}
}

static void response(struct end *u, const char *p, size_t n)
{
	struct end *c = u->peer;
	uint64_t body = n;

	if (!c) {
		end_close(u);
		return;
	}
	if (u->left == 0) { /* a head; the origin sends it in one record */
		size_t head_n = net_head_length(p, n);
		int64_t length = net_content_length(p, head_n);

		if (head_n == 0 || length < 0) {
			end_close(u);
			return;
		}
		u->left = (uint64_t)length;
		body = n - head_n;
	}
	write_plain(c, p, n);
	u->left -= body;
	if (u->left == 0) {
		u->peer = c->peer = NULL;
		u->next = pool;
		pool = u;
	}
}

static bool shake_hands(struct end *e)
{
	tx_claim(e);
	int r = SSL_do_handshake(e->ssl);

	if (r != 1) {
		if (SSL_get_error(e->ssl, r) != SSL_ERROR_WANT_READ)
			end_close(e);
		return false;
	}
	e->shaken = true;
	if (e->kind == UPSTREAM && e->peer && e->peer->head_n > 0) {
		write_plain(e, e->peer->head, e->peer->head_n);
		e->peer->head_n = 0;
	}
	return true;
}

static bool congested(const struct end *e)
{
	return e->peer && e->peer->pending_n - e->peer->pending_at >= CHUNK;
}

/* All that was received becomes plain and goes on. */
static void digest(struct end *e)
{
	while (!e->closed && (e->shaken || shake_hands(e))) {
		size_t n = 0;

		/* Whole records while they are there; what they hold leaves together. */
		while (n + RECORD <= sizeof(plain)) {
			size_t got;

			if (rx_at == rx_n && !SSL_has_pending(e->ssl))
				break;
			tx_claim(e);
			if (SSL_read_ex(e->ssl, plain + n, sizeof(plain) - n, &got) != 1) {
				int error = SSL_get_error(e->ssl, 0);

				if (error != SSL_ERROR_WANT_READ) {
					end_close(e);
					return;
				}
				break;
			}
			n += got;
		}
		if (n == 0)
			return;
		if (e->kind == CLIENT)
			request(e, plain, n);
		else
			response(e, plain, n);
	}
}

static void readable(struct end *e)
{
	while (!e->closed && e->readable && !congested(e)) {
		ssize_t r = recv(e->fd, rx, sizeof(rx), MSG_DONTWAIT);

		if (r < 0 && errno == EAGAIN) {
			e->readable = false;
			return;
		}
		if (r <= 0) {
			end_close(e);
			return;
		}
		if ((size_t)r < sizeof(rx) && !e->ended)
			e->readable = false;
		rx_n = (size_t)r;
		rx_at = 0;
		digest(e);
		tx_flush();
	}
}

static void drain(struct end *e)
{
	e->pending_at += send_some(e, e->pending + e->pending_at, e->pending_n - e->pending_at);
	if (e->pending_at == e->pending_n) {
		free(e->pending);
		e->pending = NULL;
		e->pending_n = e->pending_at = 0;
	}
	if (e->peer && !congested(e->peer))
		readable(e->peer);
}

/* --- passed through --- */

/* The first bytes are copied, which is cheaper for short connections; then a pipe is made. */
static ssize_t pull(struct end *e)
{
	ssize_t r;

	if (e->left < COPIED) {
		r = recv(e->fd, rx, sizeof(rx), MSG_DONTWAIT);
		if (r > 0) {
			size_t sent = send_some(e->peer, rx, (size_t)r);

			keep(e->peer, rx + sent, (size_t)r - sent);
			e->left += (uint64_t)r;
			e->readable = (size_t)r == sizeof(rx) || e->hung_up;
		}
		return r;
	}
	if (e->pipe[0] < 0) {
		if (pipe2(e->pipe, O_NONBLOCK | O_CLOEXEC) < 0)
			net_die("pipe: %s", strerror(errno));
		fcntl(e->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
	}
	r = splice(e->fd, NULL, e->pipe[1], NULL, 1u << 20, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (r > 0)
		e->in_pipe = (size_t)r;
	return r;
}

/* From e's socket to its peer's, by copying or through its pipe. */
static void pump(struct end *e)
{
	while (e->peer && e->peer->connected && e->connected) {
		if (e->in_pipe == 0) {
			if (!e->readable || e->ended || e->peer->pending)
				return;
			ssize_t r = pull(e);

			if (r == 0) {
				e->ended = true;
				shutdown(e->peer->fd, SHUT_WR);
				if (e->peer->ended)
					end_close(e);
				return;
			}
			if (r < 0) {
				e->readable = false;
				if (errno != EAGAIN)
					end_close(e);
				return;
			}
			if (e->in_pipe == 0)
				continue;
		}
		if (!e->peer->writable)
			return;
		ssize_t r = splice(e->pipe[0], NULL, e->peer->fd, NULL, e->in_pipe,
		        SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (r <= 0) {
			e->peer->writable = false;
			return;
		}
		e->in_pipe -= (size_t)r;
	}
}

static void pass(int fd)
{
	struct end *c = end_new(RAW, fd);
	struct end *u = end_new(RAW, net_connect(&origin));

	c->peer = u;
	u->peer = c;
	c->connected = true;
	u->readable = false;
}

/* --- events --- */

static void accept_all(const struct end *listener)
{
	int fd;

	while ((fd = net_accept(listener->fd)) >= 0) {
		if (listener->kind == LISTEN_PASS) {
			pass(fd);
		} else {
			struct end *c = end_new(CLIENT, fd);

			SSL_set_accept_state(c->ssl);
		}
	}
}

static void on_tls(struct end *e, uint32_t events)
{
	if (events & EPOLLOUT) {
		e->writable = true;
		if (e->kind == UPSTREAM && !e->connected) { /* the ClientHello */
			e->connected = true;
			rx_n = rx_at = 0;
			digest(e);
			tx_flush();
		}
		if (e->pending)
			drain(e);
	}
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		e->readable = true;
		e->ended = e->ended || (events & EPOLLRDHUP);
		readable(e);
	}
}

static void drain_raw(struct end *e)
{
	e->pending_at += send_some(e, e->pending + e->pending_at, e->pending_n - e->pending_at);
	if (e->pending_at < e->pending_n)
		return;
	free(e->pending);
	e->pending = NULL;
	e->pending_n = e->pending_at = 0;
}

static void on_raw(struct end *e, uint32_t events)
{
	if (events & EPOLLERR) {
		end_close(e);
		return;
	}
	if (events & EPOLLOUT) {
		e->connected = e->writable = true;
		if (e->pending)
			drain_raw(e);
		if (e->peer)
			pump(e->peer);
	}
	if (events & (EPOLLRDHUP | EPOLLHUP))
		e->hung_up = true;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
		e->readable = true;
	if (!e->closed)
		pump(e);
}

static void bury(void)
{
	while (dead) {
		struct end *e = dead;

		dead = e->next;
		free(e);
	}
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	if (session_count == SESSIONS_MAX)
		return 0;
	sessions[session_count++] = session;
	return 1;
}

static void set_up(char **argv)
{
	origin = net_resolve(argv[3]);
	server_ctx = net_server_context(argv[4], argv[5]);
	client_ctx = net_client_context(argv[6]);
	origin_name = argv[7];
	SSL_CTX_set_session_cache_mode(
	        client_ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(client_ctx, on_session);
	epoll = net_epoll();
	end_new(LISTEN_PASS, net_listen(argv[2]));
	end_new(LISTEN_INTERCEPT, net_listen(argv[1]));
}

int main(int argc, char **argv)
{
	if (argc != 8)
		net_die("usage: relay INTERCEPT PASSTHROUGH ORIGIN CERTIFICATE KEY CA NAME");
	set_up(argv);
	for (;;) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct end *e = events[i].data.ptr;

			if (e->closed)
				continue;
			if (e->kind == LISTEN_INTERCEPT || e->kind == LISTEN_PASS)
				accept_all(e);
			else if (e->kind == RAW)
				on_raw(e, events[i].events);
			else
				on_tls(e, events[i].events);
		}
		bury();
	}
}
