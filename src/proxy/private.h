/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of the proxy share: struct proxy, the delays, and the functions that each room
 * offers to the others. client/client.h describes a connection from the sandbox,
 * exchange/exchange.h one request and its response, upstream/upstream.h a connection to an
 * upstream. docs/architecture.md tells what each room holds.
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

/* One list of deadlines per kind of wait. Delays come from config_timeouts or from the constants
 * below. */
enum proxy_wait {
	/* struct client */
	WAIT_HELLO,  /* for the first bytes and the TLS handshake */
	WAIT_SILENT, /* for the first bytes, if the connection could only be refused */
	WAIT_HEADER, /* for the rest of a request head, from its first byte on */
	WAIT_IDLE,   /* between requests, or while body or response make no progress */
	WAIT_DIAL,   /* for a tunnel's other end */
	WAIT_LINGER, /* while closing gracefully */
	/* struct client_http2_stream */
	WAIT_STREAM,        /* while body or response make no progress */
	WAIT_STREAM_LINGER, /* answered before the whole request had come */
	/* struct upstream_stream */
	WAIT_CONNECT,  /* while dialing and in the TLS handshake */
	WAIT_PRIOR,    /* for the upstream's settings in HTTP/2 without TLS */
	WAIT_RESPONSE, /* for a silent upstream while a request is under way */
	WAIT_POOLED,   /* idle in the pool, or upgraded and without traffic */
	/* struct exchange */
	WAIT_REQUEST, /* for the exchange as a whole */
	WAIT_HELD,    /* for more of a response whose end could be the beginning of a value */
	/* struct tunnel */
	WAIT_TUNNEL, /* without traffic */
	WAIT_DOUBT,  /* a reset may have come unseen after the last bytes */
	/* struct flow */
	WAIT_DATAGRAM, /* without traffic */
	WAIT_COUNT
};
#define SILENT_MS 1000
#define LINGER_MS 2000
#define PRIOR_MS 2000
#define DOUBT_MS 1000
/* Longer than the gap between the parts of a piece that was cut on its way; short enough for a
 * client that waits for a text that stops in the middle. */
#define HELD_MS 500
#define LINGER_BYTES (16u << 20) /* in practice LINGER_MS is the bound */
#define REQUEST_FOREVER_MS INT32_MAX

struct listener {
	struct proxy *proxy;
	struct loop_io io;
	int fd;
	bool paused; /* the bound on connections is reached: accept again when one ends */
	struct loop_task more;
};
#define PROXY_LISTENERS_MAX 8
/* When half of a peak of at least this many connections are gone, their memory is given back to the
 * system. */
#define GIVE_BACK_LEAST 256
#define GIVE_BACK_MS 1000
#define EXCHANGES_KEPT 64
#define STREAMS_KEPT 64
#define TUNNEL_PIPES_KEPT 16

/* An address that was checked recently and is not one of this host's. */
struct not_own {
	struct ip address;
	int64_t until_ms;
};
#define DIAL_NOT_OWN_KEPT 64

/* An origin that answered the beginning of HTTP/2 without TLS with something else. */
struct no_prior {
	struct destination destination;
	int64_t until_ms;
};
#define NO_PRIOR_KEPT 16

/* Counts connections that ended without a byte, in the second that began with the first of them. */
struct audit_silent {
	struct loop_timer second;
	bool counting;
	uint32_t told;      /* recorded with a line each */
	uint64_t count;     /* further ones */
	struct ip src, dst; /* of the last one */
	uint16_t src_port, dst_port;
};

/* Limits the rate of refusals (exchange/deny_throttle.c): refused requests that are recorded and
 * wait for their answer. */
struct deny_throttle {
	struct rate rate;
	struct list waiting; /* struct exchange, by turn */
	struct loop_timer turn;
	bool due;
	uint64_t delayed; /* since the proxy was made */
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
	/* Connections for which nothing was let out; empty during a flood of them. */
	struct rate unproductive;
	struct udp_relay *datagrams;
	struct list clients;
	size_t client_count, client_peak; /* peak: the highest count since memory was given back */
	uint64_t accepted;                /* connections since the proxy was made */
	struct audit_silent silent;
	struct deny_throttle deny_throttle;
	struct list upstreams; /* all of them; the idle ones are in order of age */
	size_t upstream_count, idle_count;
	struct pool_entry *pool;         /* hash table: upstream/pool.c */
	uint8_t *plain;                  /* SOCKET_CHUNK bytes: the plain bytes read last */
	struct secret plain_memory;      /* ... locked: an upstream may echo a credential */
	struct client *shaking_hands;    /* for which tls_server asks for a certificate */
	int pipes[TUNNEL_PIPES_KEPT][2]; /* empty pipes for splice(2) */
	size_t pipe_count;
	struct not_own not_own[DIAL_NOT_OWN_KEPT]; /* dial/dial.c, by a sum of the address */
	struct no_prior no_prior[NO_PRIOR_KEPT];   /* upstream/prior_knowledge.c: a ring */
	unsigned next_no_prior;
	struct buf text; /* scratch: heads and frames on their way out */
	/* Scratch: masked bodies. Not `text`, because a delayed head may be written before them. */
	struct buf redacted;
	struct buf target; /* target of the request that is being recorded */
	struct buf decompressed;
	struct secret secret_text; /* a head with a credential in it; wiped after each use */
	uint64_t next_event;
	size_t exchanges;                /* under way */
	size_t kept;                     /* bytes of requests that are kept for a second try */
	struct exchange *free_exchanges; /* kept for later requests, to save allocations */
	size_t free_exchange_count;
	size_t stream_count;                          /* HTTP/2 streams of all clients */
	struct upstream_http2_stream *free_upstreams; /* the same, for HTTP/2 upstreams */
	uint32_t grown; /* bytes of HTTP/2 upstreams' windows beyond UPSTREAM_HTTP2_WIDE_WINDOW */
	size_t free_upstream_count;
	struct client_http2_stream *free_streams;
	size_t free_stream_count;
	bool held, draining, giving_back;
	bool retiring;        /* draining, while tunnels and flows may end by themselves */
	uint32_t policy_turn; /* how often the policy was replaced */
	bool paused;
	enum event_cause pause_cause;
	char pause_text[256];
	void (*on_idle)(void *context);
	void *on_idle_context;
};

/* --- exchange/upgrade.c --- */

enum upgrade_verdict {
	UPGRADE_NONE,    /* no protocol is named */
	UPGRADE_DROPPED, /* only protocols that a client can do without */
	UPGRADE_DENIED,  /* no protocol that the rule allows */
	UPGRADE_ALLOWED
};
extern const char upgrade_not_passed_on[]; /* audit text for UPGRADE_DROPPED */
/* Reads what a request asks for in its Upgrade fields. *protocol: the first protocol that is
 * allowed, else the first that is not. */
enum upgrade_verdict upgrade_authorize(const struct policy *policy, uint32_t rule,
        const struct http_fields *fields, struct slice *protocol);
/* Checks a 101 to a request that asked for the protocol `asked`. Returns NULL, or what is wrong. */
const char *upgrade_check_answer(struct slice asked, const struct http_fields *response);

/* --- exchange/authorize.c --- */

/* A verdict on a request, and what the rest of the proxy has to know about it. */
struct verdict {
	struct policy_decision decision;
	bool allowed;
	bool searched; /* a search list has appended a domain to the name before it was dialed */
	enum event_cause cause; /* why not allowed, if the policy is not the reason */
	enum event_finding finding;
	const char *detail; /* one sentence, static, or NULL */
	/* If denied or observed: bit i is set if credential i belongs to the destination. */
	uint64_t own;
	/* The credential whose placeholder the request carries, or POLICY_NONE. */
	uint32_t shown;
	/* The protocol that is upgraded to, or that was refused; points into the fields. */
	struct slice upgrade;
};
void authorize_request(const struct policy *policy, const struct client *client,
        const struct http_request *request, struct destination *destination, struct verdict *out);
/* True for a field by which a request can ask for another method or path. */
bool authorize_is_override(struct slice name);
/* The verdict on a connection whose content is not looked at (opaque TCP). */
void authorize_opaque(const struct policy *policy, const struct destination *destination,
        enum policy_scheme scheme, struct verdict *out);
/* True if an address that a name resolved to may be dialed. */
bool authorize_address(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address);

/* --- dial/ --- */

/* False for an address of this host itself, because a name that leads there would reach services
 * that trust local callers. A rule or a `permit` in the configuration that names exactly this
 * address permits it; a network that contains it does not. That an address is not one of this
 * host's may have been found out up to five seconds ago. */
bool dial_may_connect(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address);
/* Dials a destination: resolves its name on the host's side and connects to the addresses that
 * authorize_address() permits, IPv6 and IPv4 in turn, starting a further attempt every 250 ms (RFC
 * 8305). */
struct dial;
struct dial_result {
	int fd;                 /* connected, non-blocking, owned by the callee; -1: failed */
	struct loop_io *io;     /* of fd, watching SOCKET_EVENTS: the callee moves or closes it */
	unsigned events;        /* those that io has reported so far */
	struct ip address;      /* the refused address, if cause is ADDRESS */
	enum event_cause cause; /* of a failure: RESOLVE, ADDRESS, CONNECT or TIMEOUT */
	const char *detail;     /* one sentence, static */
};
typedef void (*dial_done)(void *context, const struct dial_result *result);
/* Starts a dial. Returns NULL if there is no memory. done is never called from within
 * dial_start(). */
struct dial *dial_start(struct proxy *proxy, const struct destination *destination,
        const struct policy_decision *decision, dial_done done, void *context);
void dial_cancel(struct dial *dial); /* no callback follows */

/* --- exchange/request.c --- */

/* Returns locked scratch memory for text with a credential. The buffer never grows, so nothing
 * moves to ordinary memory. The caller wipes what it wrote. */
enum secret_part { SECRET_QUERY, SECRET_HEAD };
struct buf proxy_secret_text(struct proxy *proxy, enum secret_part part);

/* --- exchange/deny_throttle.c --- */

int deny_throttle_open(struct proxy *proxy);
void deny_throttle_close(struct proxy *proxy);
/* True: there are too many refusals, and ex will be answered when its turn comes. */
bool deny_throttle_waits(struct exchange *ex);
/* Answers all that wait at once. */
void deny_throttle_answer_all(struct proxy *proxy);

/* --- tunnel/tunnel.c --- */

/* Moves bytes between the client's socket and the dialed one until both directions have ended, then
 * closes the client and records the connection. What the client has sent already (its input buffer)
 * goes first. Takes the dialed socket. Returns 0, or -errno with the dialed socket closed and the
 * client still owned by the caller. */
int tunnel_start(struct client *client, const struct dial_result *upstream);
/* Records the tunnel's event, once. */
void tunnel_record(struct tunnel *tunnel, enum event_cause cause, const char *detail);
/* Ends the tunnel and records why. tunnel_free() follows with the client. */
void tunnel_close(struct tunnel *tunnel, enum event_cause cause, const char *detail);
void tunnel_free(struct tunnel *tunnel);
void tunnel_on_deadline(struct loop_deadline *deadline);
void tunnel_on_doubt(struct loop_deadline *deadline);

/* --- tunnel/udp_relay.c, tunnel/udp_flow.c --- */

struct udp_relay;
struct udp_relay *udp_relay_new(struct proxy *proxy);
void udp_relay_free(struct udp_relay *relay);
int udp_relay_serve(struct udp_relay *relay, int fd, uint16_t port);
void udp_flow_on_deadline(struct loop_deadline *deadline);
/* Step one of reauthorize.c for all flows. next NULL: end all. Returns how many will end. */
size_t udp_relay_reauthorize(struct udp_relay *relay, const struct policy *next,
        enum event_cause cause, const char *detail);
/* Step three. Flows that were refused end as well, so that their traffic is authorized anew. */
void udp_relay_end_reauthorized(struct udp_relay *relay);
/* Takes the datagrams that have arrived and no more; existing flows still get their answers. */
void udp_relay_retire(struct udp_relay *relay);
size_t udp_relay_count(const struct udp_relay *relay);

/* --- exchange/audit.c --- */

/* Converts to an event's duration: clamps to UINT32_MAX, and to 0 if negative (a clock set
 * back). */
uint32_t audit_duration_us(int64_t us);
/* Records a connection that the sandbox ended without sending anything. The first
 * AUDIT_SILENT_PER_S of a second get a line each, the others one line with their number. */
#define AUDIT_SILENT_PER_S 50
int audit_silent_open(struct proxy *proxy);
/* Records what is still counted. */
void audit_silent_close(struct proxy *proxy);
void audit_silent(const struct client *client, const struct policy_decision *decision,
        enum event_decision outcome);
/* Marks a failure as observed if the policy would have refused the request anyway. */
void audit_failure_as_observed(struct event *event, const struct policy_decision *decision);
/* Records the exchange's event, once; a later call only records an echo found since. */
void audit_exchange(struct exchange *ex);
/* Records a connection without any request that vethguard read. */
void audit_connection(const struct client *client, const struct policy_decision *decision,
        enum event_decision outcome, enum event_cause cause, const char *detail, uint64_t bytes_out,
        uint64_t bytes_in, const struct ip *upstream);
void audit_finding(struct proxy *proxy, const struct client *client, enum event_finding finding,
        uint64_t about, struct slice rule, const char *detail);
/* Records a finding about an exchange that the finding does not end. */
void audit_remark(struct exchange *exchange, enum event_finding finding, struct slice rule,
        const char *detail);

/* --- proxy.c --- */
/* The TLS state shared by all connections on the sandbox's side, and on the upstreams' side. NULL:
 * no memory. */
struct tls_server *proxy_tls_server(struct proxy *proxy);
struct tls_client *proxy_tls_client(struct proxy *proxy);
void proxy_client_came(struct proxy *proxy);
void proxy_client_gone(struct proxy *proxy);
void proxy_maybe_idle(struct proxy *proxy);

/* --- accept.c (and proxy_serve_tcp()) --- */
int accept_open(struct proxy *proxy);
void accept_close(struct proxy *proxy);
/* Counts a connection that ended although nothing of it was let out. */
void accept_was_unproductive(struct proxy *proxy);
/* Accepts connections again, if allowed. */
void accept_resume(struct proxy *proxy);
/* Closes the listeners. first: accepts waiting connections before that. */
void accept_stop(struct proxy *proxy, bool first);

#endif
