/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of the benchmark share: addresses, sockets, TLS contexts. They measure the
 * proxies and are no part of them, so nothing of the product is used here: a mistake there cannot
 * hide itself.
 */
#ifndef VETHGUARD_TESTS_BENCH_NET_H
#define VETHGUARD_TESTS_BENCH_NET_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct net_address {
	struct sockaddr_storage storage;
	socklen_t n;
};

/* Says what went wrong and ends the program: a benchmark with a failed part has no figures. */
void net_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* "HOST:PORT", a name or an IPv4 address. */
struct net_address net_resolve(const char *text);
int net_listen(const char *text);
/* Non-blocking, TCP_NODELAY. */
int net_connect(const struct net_address *to);
int net_accept(int listener);
int net_epoll(void);
/* op: EPOLL_CTL_ADD or EPOLL_CTL_MOD. */
void net_watch(int epoll, int op, int fd, uint32_t events, void *what);
void net_pin(int cpu);

/* TLS 1.3 with AES-128-GCM and X25519 only: every proxy is measured with the same. (P-256 is
 * offered, without a key share, because sslsplit has no other group.) */
SSL_CTX *net_server_context(const char *certificate_file, const char *key_file);
/* ca_file NULL: the peer is not verified. */
SSL_CTX *net_client_context(const char *ca_file);

/* Length of the head in p (through the empty line), 0 where it is not whole. */
size_t net_head_length(const char *p, size_t n);
/* The value of content-length in a head; -1: none. */
int64_t net_content_length(const char *head, size_t n);

#endif
