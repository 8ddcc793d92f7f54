/* SPDX-License-Identifier: Apache-2.0 */
/* A client of SOCKS5, over TCP to the proxy port or over a Unix socket that the proxy serves as
 * well; for tests over a whole proxy. */
#ifndef VETHGUARD_TESTS_UNIT_PROXY_CLIENT_SOCKS_CLIENT_H
#define VETHGUARD_TESTS_UNIT_PROXY_CLIENT_SOCKS_CLIENT_H

#include <sys/un.h>

#include "vethguard/wire/socks5.h"
#include "../fixture.h"

#define GREETING "\5\1\0"
#define GREETED "\5\0"
#define SUCCEEDED "\5\0\0\1\0\0\0\0\0\0"
#define BYTES(text) (text), sizeof(text) - 1

static struct sockaddr_un unix_at;
static socklen_t unix_at_n;

/* A Unix socket, whose name the kernel chooses. */
static int listen_unix(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const struct sockaddr_un any = {.sun_family = AF_UNIX};

	assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)), 0);
	assert_int_equal(listen(fd, 64), 0);
	unix_at_n = sizeof(unix_at);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&unix_at, &unix_at_n), 0);
	return fd;
}

/* The proxy also serves one. */
MAY_BE_UNUSED static void serve_unix(void)
{
	assert_int_equal(proxy_serve_unix(w.proxy, listen_unix()), 0);
}

MAY_BE_UNUSED static struct peer *unix_client(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&unix_at, unix_at_n), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return peer_new(&w, fd);
}

static void expect_bytes(struct peer *p, const char *bytes, size_t n)
{
	UNTIL(&w, p->in.len >= n || p->eof || p->failed);
	assert_true(p->in.len >= n);
	assert_memory_equal(buf_bytes(&p->in), bytes, n);
	buf_consume(&p->in, n);
}

static void expect_reply(struct peer *p, enum socks5_reply reply)
{
	char answer[] = SUCCEEDED;

	answer[1] = (char)reply;
	expect_bytes(p, answer, sizeof(answer) - 1);
}

/* Writes the request for a name. Returns its size. */
static size_t request_for(const char *name, uint16_t port, char out[SOCKS5_REQUEST_MAX])
{
	size_t n = strlen(name);

	memcpy(out, "\5\1\0\3", 4);
	out[4] = (char)n;
	memcpy(out + 5, name, n);
	out[5 + n] = (char)(port >> 8);
	out[6 + n] = (char)port;
	return 7 + n;
}

MAY_BE_UNUSED static void ask_socks(struct peer *p, const char *name)
{
	char request[SOCKS5_REQUEST_MAX];

	say_n(p, BYTES(GREETING));
	expect_bytes(p, BYTES(GREETED));
	say_n(p, request, request_for(name, w.port, request));
}

MAY_BE_UNUSED static void get_through(struct peer *c, const char *name, bool tls)
{
	struct peer *o;

	if (tls)
		start_tls(c, name);
	ask(c, "GET /x", name, "");
	o = origin(&w, tls);
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 OK");
	assert_int_equal(only(EVENT_HTTP)->upstream_port, w.port);
	hang_up(c, false);
	hang_up(o, false);
}

#endif
