/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and TLS contexts for the programs of the benchmark. */
#include "net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BACKLOG 4096

void net_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	ERR_print_errors_fp(stderr);
	exit(1);
}

struct net_address net_resolve(const char *text)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	struct net_address out = {.n = 0};
	const char *colon = strrchr(text, ':');
	char host[256];

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		net_die("%s is not HOST:PORT", text);
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = 0;
	int error = getaddrinfo(host, colon + 1, &hints, &found);
	if (error)
		net_die("%s: %s", text, gai_strerror(error));
	memcpy(&out.storage, found->ai_addr, found->ai_addrlen);
	out.n = found->ai_addrlen;
	freeaddrinfo(found);
	return out;
}

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int net_listen(const char *text)
{
	struct net_address at = net_resolve(text);
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&at.storage, at.n) < 0 || listen(fd, BACKLOG) < 0)
		net_die("listen on %s: %s", text, strerror(errno));
	return fd;
}

int net_connect(const struct net_address *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		net_die("socket: %s", strerror(errno));
	no_delay(fd);
	if (connect(fd, (const struct sockaddr *)&to->storage, to->n) < 0 && errno != EINPROGRESS)
		net_die("connect: %s", strerror(errno));
	return fd;
}

int net_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		no_delay(fd);
	return fd;
}

int net_epoll(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		net_die("epoll: %s", strerror(errno));
	return fd;
}

void net_watch(int epoll, int op, int fd, uint32_t events, void *what)
{
	struct epoll_event event = {.events = events, .data.ptr = what};

	if (epoll_ctl(epoll, op, fd, &event) < 0)
		net_die("epoll_ctl: %s", strerror(errno));
}

void net_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		net_die("sched_setaffinity: %s", strerror(errno));
}

static SSL_CTX *context(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
	        !SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") ||
	        !SSL_CTX_set1_groups_list(ctx, "X25519:P-256"))
		net_die("TLS context");
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                              SSL_MODE_RELEASE_BUFFERS);
	return ctx;
}

SSL_CTX *net_server_context(const char *certificate_file, const char *key_file)
{
	SSL_CTX *ctx = context(TLS_server_method());

	if (SSL_CTX_use_certificate_chain_file(ctx, certificate_file) != 1 ||
	        SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1)
		net_die("%s, %s: cannot be used", certificate_file, key_file);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets only */
	return ctx;
}

SSL_CTX *net_client_context(const char *ca_file)
{
	SSL_CTX *ctx = context(TLS_client_method());

	if (ca_file) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
		if (SSL_CTX_load_verify_locations(ctx, ca_file, NULL) != 1)
			net_die("%s: cannot be used", ca_file);
	}
	return ctx;
}

size_t net_head_length(const char *p, size_t n)
{
	const char *end = memmem(p, n, "\r\n\r\n", 4);

	return end ? (size_t)(end - p) + 4 : 0;
}

int64_t net_content_length(const char *head, size_t n)
{
	static const char name[] = "content-length:";
	const char *p = head;
	const char *end = head + n;

	while ((p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		if ((size_t)(end - p) > sizeof(name) && strncasecmp(p, name, sizeof(name) - 1) == 0)
			return strtoll(p + sizeof(name) - 1, NULL, 10);
	}
	return -1;
}
