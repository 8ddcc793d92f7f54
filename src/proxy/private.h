/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of the proxy share: struct proxy, the delays, and what each of them offers to the
 * others. A connection from the sandbox is described in client/client.h, one request and its
 * response in exchange/exchange.h, a connection to an upstream in upstream/upstream.h.
 * docs/architecture.md tells what each room holds.
 */
#ifndef VETHGUARD_SRC_PROXY_PRIVATE_H
#define VETHGUARD_SRC_PROXY_PRIVATE_H

#include "proxy/destination.h"
#include "proxy/transport/socket.h"
#include "vethguard/base/list.h"
#include "vethguard/base/rate.h"
#include "vethguard/proxy/proxy.h"

struct client;
struct exchange;
struct http_fields;
struct http_request;
struct client_http2_stream;
struct tunnel;

/* One list of deadlines per kind of waiting; config_timeouts gives the delays. */
enum proxy_wait {
	/* struct client */
	WAIT_HELLO,  /* first bytes, TLS handshake */
	WAIT_SILENT, /* first bytes on a connection that could only be refused */
	WAIT_HEADER, /* request head from its first byte */
	WAIT_IDLE,   /* between requests; body or response without progress */
	WAIT_DIAL,   /* a tunnel's other end */
	WAIT_LINGER, /* closing politely */
	/* struct client_http2_stream */
	WAIT_STREAM,        /* body or response without progress */
	WAIT_STREAM_LINGER, /* answered before all of the request had come */
	/* struct upstream_stream */
	WAIT_CONNECT,  /* dialling and TLS */
	WAIT_PRIOR,    /* HTTP/2 without TLS: the upstream's settings */
	WAIT_RESPONSE, /* upstream silent while a request is under way */
	WAIT_POOLED,   /* idle in the pool; an upgraded connection without traffic */
	/* struct exchange */
	WAIT_REQUEST, /* exchange as a whole */
	WAIT_HELD,    /* the end of a response's text that could be a value's beginning */
	/* struct tunnel */
	WAIT_TUNNEL, /* no traffic */
	WAIT_DOUBT,  /* a reset may have come unseen behind the last bytes */
	/* struct flow */
	WAIT_DATAGRAM, /* no traffic */
	WAIT_COUNT
};
#define SILENT_MS 1000
#define LINGER_MS 2000
#define PRIOR_MS 2000
#define DOUBT_MS 1000
/* Longer than what arrives in one piece takes when it is cut on its way; and so short that whoever
 * waits for text that ends in the middle does not mind. */
#define HELD_MS 500
#define LINGER_BYTES (16u << 20) /* LINGER_MS is what bounds it */
#define REQUEST_FOREVER_MS INT32_MAX

struct listener {
	struct proxy *proxy;
	struct loop_io io;
	int fd;
	bool paused; /* the bound on connections is reached: tried again when one ends */
	struct loop_task more;
};
#define PROXY_LISTENERS_MAX 8
/* When half of at least so many connections are gone, their memory goes back to the system. */
#define GIVE_BACK_LEAST 256
#define GIVE_BACK_MS 1000
#define EXCHANGES_KEPT 64
#define STREAMS_KEPT 64
#define TUNNEL_PIPES_KEPT 16

/* An address that was looked at lately and was not one of this host's. */
struct not_own {
	struct ip address;
	int64_t until_ms;
};
#define DIAL_NOT_OWN_KEPT 64

/* An origin that answered to the beginning of HTTP/2 without TLS with something else. */
struct no_prior {
	struct destination destination;
	int64_t until_ms;
};
#define NO_PRIOR_KEPT 16

/* Connections that ended without a byte, in the second that began with the first of them. */
struct audit_silent {
	struct loop_timer second;
	bool counting;
	uint32_t told;      /* by a line each */
	uint64_t count;     /* beyond them */
	struct ip src, dst; /* of the last one */
	uint16_t src_port, dst_port;
};

/* Requests that were refused and told to the log, and wait for their answer. */
struct deny_throttle {
	struct rate rate;
	struct list waiting; /* struct exchange, turn */
	struct loop_timer turn;
	bool due;
	uint64_t delayed; /* since the beginning */
};

struct proxy {
	struct proxy_config config;
	struct socket_shared sockets;
	struct loop_deadlines waits[WAIT_COUNT];
	struct tls_server *tls_server; /* proxy_tls_server() */
	struct tls_client *tls_client; /* proxy_tls_client() */
	struct listener listeners[PROXY_LISTENERS_MAX];
	size_t listener_count;
	struct loop_timer accept_again, accept_paced, give_back;
	struct rate unproductive; /* connections that came to nothing; empty: a flood of them */
	struct udp_relay *datagrams;
	struct list clients;
	size_t client_count, client_peak; /* the most since memory was given back */
	uint64_t accepted;                /* of them, since the beginning */
	struct audit_silent silent;
	struct deny_throttle deny_throttle;
	struct list upstreams; /* all; the idle ones among them in order of their age */
	size_t upstream_count, idle_count;
	struct pool_entry *pool;         /* hash table: pool.c */
	uint8_t *plain;                  /* SOCKET_CHUNK bytes: what was read last, plain */
	struct secret plain_memory;      /* ... locked: an upstream may echo a credential */
	struct client *shaking_hands;    /* whose certificate tls_server asks for */
	int pipes[TUNNEL_PIPES_KEPT][2]; /* empty ones, for splice(2) */
	size_t pipe_count;
	struct not_own not_own[DIAL_NOT_OWN_KEPT]; /* dial.c, by a sum of the address */
	struct no_prior no_prior[NO_PRIOR_KEPT]; /* upstream/prior_knowledge.c, the oldest ones are
	                                            replaced */
	unsigned next_no_prior;
	struct buf text;     /* heads and frames on their way out */
	struct buf redacted; /* bodies: a head that waited may be written before them */
	struct buf target;   /* of the request that is being recorded */
	struct buf decompressed;
	struct secret secret_text; /* a head with a credential in it, wiped after each use */
	uint64_t next_event;
	size_t exchanges; /* under way */
	size_t kept;      /* bytes of their requests that are kept for a second try */
	struct exchange
	        *free_exchanges; /* kept for the next requests, so that these cost no allocation */
	size_t free_exchange_count;
	size_t stream_count;                          /* HTTP/2 streams of all clients */
	struct upstream_http2_stream *free_upstreams; /* the same, of HTTP/2 upstreams */
	uint32_t grown; /* bytes of their windows beyond UPSTREAM_HTTP2_WIDE_WINDOW */
	size_t free_upstream_count;
	struct client_http2_stream *free_streams;
	size_t free_stream_count;
	bool held, draining, giving_back;
	bool retiring;        /* draining, and tunnels and flows may end by themselves */
	uint32_t policy_turn; /* how often the policy has changed */
	bool paused;
	enum event_cause pause_cause;
	char pause_text[256];
	void (*on_idle)(void *context);
	void *on_idle_context;
};

/* --- exchange/upgrade.c --- */

enum upgrade_verdict {
	UPGRADE_NONE,    /* no protocol is named */
	UPGRADE_DROPPED, /* only such as a client can do without */
	UPGRADE_DENIED,  /* none that the rule allows */
	UPGRADE_ALLOWED
};
extern const char upgrade_not_passed_on[]; /* what is said of UPGRADE_DROPPED */
/* What a request asks for in its Upgrade fields; protocol: the first that is allowed, or that is
 * not. */
enum upgrade_verdict upgrade_authorize(const struct policy *policy, uint32_t rule,
        const struct http_fields *fields, struct slice *protocol);
/* NULL, or what is wrong with a 101 to a request that asked for that. */
const char *upgrade_check_answer(struct slice asked, const struct http_fields *response);

/* --- exchange/authorize.c --- */

/* A verdict, and what else has to be said about it. */
struct verdict {
	struct policy_decision decision;
	bool allowed;
	bool searched; /* a search list has put a domain behind the name before it was dialled */
	enum event_cause cause; /* why not, where the policy did not say it */
	enum event_finding finding;
	const char *detail; /* one sentence, static, or NULL */
	uint64_t own; /* denied or observed: bit i where credential i belongs to the destination */
	uint32_t shown;       /* of these, whose placeholder the request carries, or POLICY_NONE */
	struct slice upgrade; /* the protocol that the request is upgraded to, or was refused for;
	                         in its fields */
};
void authorize_request(const struct policy *policy, const struct client *client,
        const struct http_request *request, struct destination *destination, struct verdict *out);
/* A field by which a request can ask for another method or path. */
bool authorize_is_override(struct slice name);
/* A connection whose content is not looked at (opaque TCP). */
void authorize_opaque(const struct policy *policy, const struct destination *destination,
        enum policy_scheme scheme, struct verdict *out);
/* An address that a name resolved to: may it be dialled? */
bool authorize_address(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address);

/* --- dial/dial.c --- */

/* False for an address of this host itself: a name that leads there would reach services that trust
 * local callers. A rule that names exactly this address permits it, and so does the configuration
 * when it permits exactly this address; no network that has it. That an address is not the host's
 * may have been found out up to five seconds ago. */
bool dial_may_connect(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address);
/* From a destination to a connected socket. The name is resolved on this side; only addresses that
 * authorize_address() lets pass are tried, IPv6 and IPv4 in turn, a further one every 250 ms (RFC
 * 8305). */
struct dial;
struct dial_result {
	int fd;                 /* connected, non-blocking, the callee's; -1: failed */
	struct loop_io *io;     /* of fd, for SOCKET_EVENTS: the callee moves it or closes it */
	unsigned events;        /* what it has told so far */
	struct ip address;      /* of a failure with ADDRESS: one that was refused */
	enum event_cause cause; /* of the failure: RESOLVE, ADDRESS, CONNECT, TIMEOUT */
	const char *detail;     /* one sentence, static */
};
typedef void (*dial_done)(void *context, const struct dial_result *result);
/* The dial, or NULL: no memory. done is never called from within. */
struct dial *dial_start(struct proxy *proxy, const struct destination *destination,
        const struct policy_decision *decision, dial_done done, void *context);
void dial_cancel(struct dial *dial); /* no callback follows */

/* --- exchange/request.c --- */

/* Locked scratch memory for what holds a credential. It never grows, so nothing moves to ordinary
 * memory; whoever filled it wipes it. */
enum secret_part { SECRET_QUERY, SECRET_HEAD };
struct buf proxy_secret_text(struct proxy *proxy, enum secret_part part);

/* --- exchange/deny_throttle.c --- */

int deny_throttle_open(struct proxy *proxy);
void deny_throttle_close(struct proxy *proxy);
/* True: there are too many, and it will be answered when its turn comes. */
bool deny_throttle_waits(struct exchange *ex);
/* All that wait are answered at once. */
void deny_throttle_answer_all(struct proxy *proxy);

/* --- tunnel/tunnel.c --- */

/* Moves bytes between the client's socket and the dialled one (taken) until both have ended; then
 * the client is closed and the connection recorded. What the client had sent already (its input
 * buffer) goes first. 0 or -errno: the dialled socket is closed, the client still the caller's. */
int tunnel_start(struct client *client, const struct dial_result *upstream);
/* Its event, once. */
void tunnel_record(struct tunnel *tunnel, enum event_cause cause, const char *detail);
/* Ends it, recording why; it is freed with its client. */
void tunnel_close(struct tunnel *tunnel, enum event_cause cause, const char *detail);
void tunnel_free(struct tunnel *tunnel);
void tunnel_on_deadline(struct loop_deadline *deadline);
void tunnel_on_doubt(struct loop_deadline *deadline);

/* --- tunnel/udp_relay.c --- */

struct udp_relay;
struct udp_relay *udp_relay_new(struct proxy *proxy);
void udp_relay_free(struct udp_relay *relay);
int udp_relay_serve(struct udp_relay *relay, int fd, uint16_t port);
void udp_flow_on_deadline(struct loop_deadline *deadline);
/* Step one of reauthorize.c for all flows: how many will end. next NULL: all. */
size_t udp_relay_reauthorize(struct udp_relay *relay, const struct policy *next,
        enum event_cause cause, const char *detail);
/* Step three. Flows that were refused go as well: what they stand for is judged anew. */
void udp_relay_end_reauthorized(struct udp_relay *relay);
/* What has arrived is taken, and no more; the answers of the flows there are still leave. */
void udp_relay_retire(struct udp_relay *relay);
size_t udp_relay_count(const struct udp_relay *relay);

/* --- exchange/audit.c --- */

/* A duration as events hold it: longer ones become the longest, negative ones (a clock set back)
 * none. */
uint32_t audit_duration_us(int64_t us);
/* A connection that the sandbox ended without having said anything. The first ones of a second are
 * told by a line each, the rest of it by one with their number. */
#define AUDIT_SILENT_PER_S 50
int audit_silent_open(struct proxy *proxy);
/* Tells what is still to be told. */
void audit_silent_close(struct proxy *proxy);
void audit_silent(const struct client *client, const struct policy_decision *decision,
        enum event_decision outcome);
/* What the policy would have refused is told as that, though it failed outside. */
void audit_failure_as_observed(struct event *event, const struct policy_decision *decision);
/* Once; called again, only what has been found since. */
void audit_exchange(struct exchange *ex);
/* A connection that carried no request vethguard read. */
void audit_connection(const struct client *client, const struct policy_decision *decision,
        enum event_decision outcome, enum event_cause cause, const char *detail, uint64_t bytes_out,
        uint64_t bytes_in, const struct ip *upstream);
void audit_finding(struct proxy *proxy, const struct client *client, enum event_finding finding,
        uint64_t about, struct slice rule, const char *detail);
/* About an exchange that the finding itself does not end. */
void audit_remark(struct exchange *exchange, enum event_finding finding, struct slice rule,
        const char *detail);

/* --- proxy.c --- */
/* What all TLS connections share, of the sandbox's side and of the upstreams'. NULL: no memory. */
struct tls_server *proxy_tls_server(struct proxy *proxy);
struct tls_client *proxy_tls_client(struct proxy *proxy);
void proxy_client_came(struct proxy *proxy);
void proxy_client_gone(struct proxy *proxy);
void proxy_maybe_idle(struct proxy *proxy);

/* --- accept.c (and proxy_serve_tcp()) --- */
int accept_open(struct proxy *proxy);
void accept_close(struct proxy *proxy);
/* One has ended for which nothing was let out. */
void accept_was_unproductive(struct proxy *proxy);
/* Connections may be accepted again. */
void accept_resume(struct proxy *proxy);
/* Closes the listeners; first: takes what waits there already. */
void accept_stop(struct proxy *proxy, bool first);

#endif
