/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-connect runs inside of a sandbox whose only way out is a gateway. It serves programs
 * that cannot speak to an authenticated proxy over TLS: on loopback it is an HTTP proxy and a
 * SOCKS5 proxy, and it takes connections that the kernel redirects to it, of programs that know no
 * proxy. For each connection of a program it opens one to the gateway, with the session's token.
 *
 * It is one static program, because nothing is known of the sandbox's system: it needs no library,
 * and no files but those that its arguments name.
 */
#ifndef VETHGUARD_CONTRIB_CONNECT_H
#define VETHGUARD_CONTRIB_CONNECT_H

#include <event2/event.h>
#include <openssl/types.h>

#include "vethguard/base/ip.h"
#include "vethguard/base/list.h"

#define GATEWAY_NAME_MAX 253
#define ADDRESSES_MAX 8
#define LINKS_MAX 4096
#define LISTENERS 2 /* 127.0.0.1 and ::1 */
/* With --redirect: marks of packets, which only CAP_NET_ADMIN or, since Linux 5.17, CAP_NET_RAW can
 * set. */
#define MARK_OWN 0x76670001      /* this program's datagrams to the gateway */
#define MARK_CAPTURED 0x76670002 /* programs' datagrams, which the kernel brings here */

struct bufferevent;
struct event_base;
struct evconnlistener;
struct evdns_base;
struct names;
struct udp;

/* The command line. */
struct arguments {
	char gateway[GATEWAY_NAME_MAX + 1]; /* a name, or an address without brackets */
	uint16_t gateway_port;
	struct ip address;      /* of the gateway; family 0: its name is resolved */
	const char *token_file; /* NULL: VETHGUARD_TOKEN */
	const char *gateway_ca; /* NULL: the system's CAs */
	const char *ca;         /* the session's; NULL: programs get no further CA */
	const char *bundle;     /* where the system's CAs and the session's are written together */
	uint16_t port;          /* on loopback */
	bool redirect, trust, debug;
	char **command; /* NULL: none */
};

struct connect {
	struct arguments arguments;
	struct event_base *base;
	struct evdns_base *dns; /* until the gateway's addresses are known */
	SSL_CTX *tls;
	struct evconnlistener *listeners[LISTENERS];
	struct ip addresses[ADDRESSES_MAX]; /* of the gateway */
	size_t address_count;
	size_t address_at;   /* the one to try: the next one after each failure */
	struct names *names; /* with --redirect: the names behind synthetic addresses */
	struct udp *udp;     /* with --redirect: programs' datagrams; NULL: UDP is refused */
	size_t association_count;
	int dns_fd[LISTENERS]; /* -1: none */
	struct event *dns_event[LISTENERS];
	struct list links;
	size_t link_count;
	struct event *signals[4];
	int command_pid; /* 0: none */
	int status;
};

/* Where programs of the sandbox find this program: "http://127.0.0.1:3128". */
#define PROXY_URL_MAX 32

/* --- arguments.c --- */
/* Returns true, or false after a message; *status is then the exit status (0 after --help). */
bool arguments_read(struct arguments *a, char **argv, int *status);

/* --- gateway.c: the gateway's certificate, addresses and token --- */
/* Returns false after a message. */
bool gateway_open(struct connect *c);
void gateway_close(struct connect *c);
/* Makes a connection over TLS that verifies the gateway's name. Returns NULL without memory. */
struct bufferevent *gateway_connection(struct connect *c);
/* Connects it to the gateway's present address. May call the connection's callback for events.
 * Returns false if no connection can be begun. */
bool gateway_connect(struct connect *c, struct bufferevent *far);
/* Sets the options of the connection's socket, once it is connected. */
void gateway_connected(struct bufferevent *far);
/* After a failure: chooses the gateway's next address. */
void gateway_try_next(struct connect *c);
/* Returns why the connection has failed or ended: a static text. */
const char *gateway_why_not(struct bufferevent *far, short what);
/* Reads the token anew, because its file may have been replaced. The token has to be shorter than
 * max bytes; the caller wipes it. Returns its length, or 0 after a message. */
size_t gateway_token(const struct connect *c, char *out, size_t max);

/* --- link.c: one connection of a program --- */
/* Takes fd. */
void link_open(struct connect *c, int fd);
void links_close(struct connect *c);

/* --- names.c: answers DNS queries with synthetic addresses --- */
/* Returns false after a message. */
bool names_serve(struct connect *c);
void names_end(struct connect *c);
/* Writes the destination of a redirected connection: the name behind a synthetic address, or the
 * address itself. Returns false if no name has this synthetic address. */
bool names_of(const struct connect *c, const struct ip *address, char *out, size_t size);
/* Writes the name behind a synthetic address, or "" if there is none. */
void names_host(const struct connect *c, const struct ip *address, char *out, size_t size);

/* --- redirect.c, rules.c, route.c: the kernel's rules --- */
/* Makes the kernel redirect the TCP connections and DNS queries of this network namespace to this
 * program, and with c->udp all other datagrams. The kernel refuses everything else, except for
 * connections to the gateway and loopback. Frees c->udp if the kernel cannot redirect datagrams.
 * Returns false after a message, with no rule left. */
bool redirect_set(struct connect *c);
void redirect_remove(void);
/* The address to which a redirected connection was meant to go. Returns false if it was not
 * redirected. */
bool redirect_destination(int fd, struct ip *address, uint16_t *port);

/* --- trust.c: the session's CA --- */
/* Writes the bundle. Returns false after a message. */
bool trust_write_bundle(const struct arguments *a);
/* Adds the CA to the system's stores. Returns false after a message. */
bool trust_install(const struct arguments *a);

/* --- command.c: the command whose variables name this program --- */
/* Returns the command's process, or -1 after a message. */
int command_start(const struct connect *c);
/* Runs a program whose output is discarded, and waits. input: its standard input (NULL: empty).
 * Returns its exit status; 127 if it cannot run. */
int command_run(const char *const argv[], const char *input);

#endif
