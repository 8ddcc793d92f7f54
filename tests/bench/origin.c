/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The origin behind every proxy of the benchmark: TLS, HTTP/1.1 with keep-alive, `GET /bytes/N`
 * gives N bytes of text. Its cost counts for nobody; it has to be fast enough to keep a proxy busy.
 *
 *   origin ADDRESS:PORT CERTIFICATE KEY CPU
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net.h"

#define HEAD_MAX 8192
#define TEXT_BYTES (1u << 20) /* a multiple of what one record takes */
#define RECORD 16384u
#define EVENTS 256

struct conn {
	int fd;
	SSL *ssl;
	char in[HEAD_MAX];
	size_t in_n;
	char head[256];
	size_t head_n, head_sent;
	uint64_t left, at; /* of the body */
	bool answering, wants_write;
};

static int epoll;
static char *text;

static void conn_close(struct conn *c)
{
	SSL_free(c->ssl);
	ERR_clear_error(); /* else the next connection's would-block looks like this one's failure
	                    */
	close(c->fd);
	free(c);
}

static bool may_go_on(struct conn *c, int result)
{
	int error = SSL_get_error(c->ssl, result);

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
		bool write = error == SSL_ERROR_WANT_WRITE;

		if (write != c->wants_write)
			net_watch(epoll, EPOLL_CTL_MOD, c->fd, write ? EPOLLOUT : EPOLLIN, c);
		c->wants_write = write;
		return true;
	}
	return false;
}

/* The response so far as the socket takes it. 1: all of it; 0: more later; -1: the connection is
 * lost. */
static int answer(struct conn *c)
{
	while (c->left > 0 || c->head_sent < c->head_n) {
		char first[RECORD];
		const char *p = text + c->at % TEXT_BYTES;
		size_t n = c->left < RECORD ? (size_t)c->left : RECORD;
		size_t head = c->head_n - c->head_sent;

		if (head > 0) { /* head and body in one record, as servers do */
			if (n > RECORD - head)
				n = RECORD - head;
			memcpy(first, c->head + c->head_sent, head);
			memcpy(first + head, p, n);
			p = first;
		} else if (n > TEXT_BYTES - c->at % TEXT_BYTES) {
			n = TEXT_BYTES - c->at % TEXT_BYTES;
		}
		int r = SSL_write(c->ssl, p, (int)(head + n));
		if (r <= 0)
			return may_go_on(c, r) ? 0 : -1;
		size_t of_head = (size_t)r < head ? (size_t)r : head;
		c->head_sent += of_head;
		c->at += (size_t)r - of_head;
		c->left -= (size_t)r - of_head;
	}
	return 1;
}

static bool begin(struct conn *c, size_t head_n)
{
	static const char get[] = "GET /bytes/";

	if (strncmp(c->in, get, sizeof(get) - 1) != 0)
		return false;
	c->left = strtoull(c->in + sizeof(get) - 1, NULL, 10);
	c->at = 0;
	c->head_n = (size_t)snprintf(c->head, sizeof(c->head),
	        "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Mon, 01 Jun 2026 12:00:00 GMT\r\n"
	        "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"
	        "Content-Length: %llu\r\n\r\n",
	        (unsigned long long)c->left);
	c->head_sent = 0;
	memmove(c->in, c->in + head_n, c->in_n - head_n);
	c->in_n -= head_n;
	return true;
}

static bool serve(struct conn *c)
{
	for (;;) {
		if (c->answering) {
			int r = answer(c);
			if (r <= 0)
				return r == 0;
			c->answering = false;
		}
		size_t head_n = net_head_length(c->in, c->in_n);
		if (head_n > 0) {
			if (!begin(c, head_n))
				return false;
			c->answering = true;
			continue;
		}
		int r = SSL_read(c->ssl, c->in + c->in_n, (int)(sizeof(c->in) - c->in_n));
		if (r <= 0)
			return may_go_on(c, r);
		c->in_n += (size_t)r;
	}
}

static void make_text(void)
{
	static const char letters[] = "etaoin shrdlu, cmfwyp vbgkjq: 0123456789 ABCDEFGHIJ /._-=\n";
	uint32_t x = 2463534242u;

	text = malloc(TEXT_BYTES);
	for (size_t i = 0; text && i < TEXT_BYTES; i++) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		text[i] = letters[x % (sizeof(letters) - 1)];
	}
}

static void accept_all(int listener, SSL_CTX *ctx)
{
	int fd;

	while ((fd = net_accept(listener)) >= 0) {
		struct conn *c = calloc(1, sizeof(*c));

		if (!c)
			net_die("no memory");
		c->fd = fd;
		c->ssl = SSL_new(ctx);
		SSL_set_fd(c->ssl, fd);
		SSL_set_accept_state(c->ssl);
		net_watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, c);
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		net_die("usage: origin ADDRESS:PORT CERTIFICATE KEY CPU");
	net_pin(atoi(argv[4]));
	int listener = net_listen(argv[1]);
	SSL_CTX *ctx = net_server_context(argv[2], argv[3]);

	make_text();
	epoll = net_epoll();
	net_watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;

			if (!c)
				accept_all(listener, ctx);
			else if (!serve(c))
				conn_close(c);
		}
	}
}
