/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams that the kernel brings here (--redirect), of programs that know nothing of it. A flow
 * is what one socket of a program exchanges with one destination; it is carried by an association
 * with the gateway. Answers of an association name their destination and not the program's socket,
 * so an association carries any number of flows with different destinations, and two programs with
 * the same destination need two.
 */
#ifndef VETHGUARD_CONTRIB_CONNECT_UDP_H
#define VETHGUARD_CONTRIB_CONNECT_UDP_H

#include <event2/event.h>

#include "connect.h"
#include "vethguard/base/ip.h"
#include "vethguard/base/list.h"

#define FLOWS_MAX 256
#define FLOW_IDLE_MS 180000   /* an idle flow ends */
#define FLOW_YIELDS_MS 10000  /* one idle for so long makes room for another */
#define CHANNEL_IDLE_MS 30000 /* an association without flows ends */
/* For so long the gateway is not asked again after it has refused an association, after it has
 * refused the token, and after it was not reached. */
#define REFUSED_MS 2000
#define UNKNOWN_MS 10000
#define FAILED_MS 1000

struct association;

struct udp {
	struct connect *connect;
	int fds[LISTENERS]; /* -1: none */
	uint16_t ports[LISTENERS];
	struct event *readable[LISTENERS];
	struct event *sweep;
	struct list flows; /* the least recently used first */
	size_t flow_count;
	struct list channels;
	int64_t closed_until_ms; /* until then no association is opened */
	bool is_refused;         /* ... because the gateway refuses them */
	const char *warned;      /* the last reason that was logged */
	bool warned_of_bound;
};

struct endpoint {
	struct ip address;
	uint16_t port;
};

/* An association for flows. */
struct channel {
	struct udp *udp;
	struct association *association;
	struct list place;
	size_t flow_count;
	int64_t used_ms; /* when a flow joined or left it last */
};

struct flow {
	struct udp *udp;
	struct list place;
	struct channel *channel; /* NULL: the next datagram takes one */
	struct endpoint client, destination;
	char host[GATEWAY_NAME_MAX +
	          1]; /* the destination's name; "": it has none, and the address counts */
	int fd;       /* bound to the destination, connected to the client */
	struct event *readable;
	int64_t used_ms;
};

/* --- udp.c: flows --- */
/* Opens the sockets. Returns NULL after a message. */
struct udp *udp_serve(struct connect *c);
/* NULL is allowed. */
void udp_end(struct udp *u);
/* The port to which the kernel has to bring datagrams of the family (4 or 6); 0: it cannot. */
uint16_t udp_port(const struct udp *u, int family);
/* Takes a program's datagram: begins a flow, or goes on with one. */
void udp_take(struct udp *u, const struct endpoint *client, const struct endpoint *destination,
        const uint8_t *p, size_t n);
/* Takes a datagram of this flow. */
void udp_take_of(struct flow *f, const uint8_t *p, size_t n);

bool endpoint_equals(const struct endpoint *a, const struct endpoint *b);
/* The flow was used now: it ends, or makes room, after all others. */
void flow_touch(struct flow *f);
void flow_free(struct flow *f);

/* --- channel.c: associations --- */
/* Gives the flow a channel. Returns false if there is none at the moment. */
bool channel_join(struct flow *f);
/* Takes the flow out of its channel, if it has one. */
void channel_leave(struct flow *f);
/* Call this when no flow has the channel any more. */
void channel_free(struct channel *k);
/* True while the gateway is not asked again, after it has refused an association or was not
 * reached. */
bool udp_is_closed(const struct udp *u);
void udp_warn_of_bound(struct udp *u);

/* --- capture.c: sockets towards programs --- */
/* Opens a socket at which datagrams for any destination arrive, at 127.0.0.1 or ::1 and a port of
 * the kernel's choice. Returns -1 with errno. */
int capture_open(int family, uint16_t *port);
/* Gives all datagrams that are there, up to a bound, to udp_take(). */
void capture_read(struct udp *u, int fd);
/* Opens a socket whose datagrams come from the destination, for the client alone. Returns -1 with
 * errno. */
int capture_open_flow(const struct endpoint *client, const struct endpoint *destination);
/* Gives the flow's datagrams to udp_take_of(). Returns false if the client's socket is closed. */
bool capture_read_flow(struct flow *f);
/* True if no socket has the client's address and port any more. */
bool capture_is_gone(const struct endpoint *client);

/* --- unreachable.c: refusals --- */
#define UNREACHABLE_MAX 56 /* bytes of an ICMP message of either family, without its IP header */
/* Writes the ICMP message "administratively prohibited" (RFC 1812 section 5.2.7.1, RFC 4443 section
 * 3.1) about a datagram with n bytes of payload. Both endpoints have one family. Returns the size.
 * The kernel adds the checksum of ICMPv6. */
size_t unreachable_write(const struct endpoint *client, const struct endpoint *destination,
        size_t n, uint8_t out[UNREACHABLE_MAX]);
/* Sends it to the client, so that its socket fails at once. Errors are ignored: the datagram is
 * dropped in any case. */
void unreachable_send(const struct endpoint *client, const struct endpoint *destination, size_t n);

#endif
