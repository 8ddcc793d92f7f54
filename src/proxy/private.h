/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of the proxy share: struct proxy, the delays, and the functions that each room
 * offers to the others. client/client.h describes a connection from the sandbox,
 * exchange/exchange.h one request and its response, upstream/upstream.h a connection to an
 * upstream. docs/architecture.md tells what each room holds.
 */
#ifndef VETHGUARD_SRC_PROXY_PRIVATE_H
#define VETHGUARD_SRC_PROXY_PRIVATE_H

#include "proxy/deny/deny_throttle.h"
#include "proxy/destination.h"
#include "proxy/exchange/asking.h"
#include "proxy/exchange/audit.h"
#include "proxy/inquiry/inquiry.h"
#include "proxy/limit/limit.h"
#include "proxy/rewrite/tool_memory.h"
#include "proxy/transport/socket.h"
#include "vethguard/base/list.h"
#include "vethguard/base/rate.h"
#include "vethguard/credential/decompress.h"
#include "vethguard/proxy/proxy.h"
#include "vethguard/sign/hmac.h"

struct client;
struct exchange;
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
	/* struct visit */
	WAIT_VISIT, /* struct visit: for a connection into the sandbox */
	/* struct http2_memory */
	WAIT_REST, /* while a session may be idle */
	WAIT_COUNT
};
#define SILENT_MS 1000
#define LINGER_MS 2000
#define PRIOR_MS 2000
#define DOUBT_MS 1000
/* Longer than the gap between the parts of a piece that was cut on its way; short enough for a
 * client that waits for a text that stops in the middle. */
#define HELD_MS 500
#define REST_MS 2000             /* after this time an idle session gives memory back */
#define LINGER_BYTES (16u << 20) /* in practice LINGER_MS is the bound */
#define REQUEST_FOREVER_MS INT32_MAX

struct listener {
	struct proxy *proxy;
	struct loop_io io;
	int fd;
	bool paused;    /* the bound on connections is reached: accept again when one ends */
	bool local;     /* a Unix socket, or a vsock */
	uint32_t cid;   /* a vsock: the machine that may connect; else 0 */
	bool rewritten; /* destinations were rewritten: client/original.c */
	/* Of a connection that came through the gateway: */
	enum message_form form;
	struct ip reached; /* where its client may send datagrams; family 0: nowhere */
	const struct message_handover *handover; /* NULL: the gateway relays */
	struct loop_task more;
};
#define PROXY_LISTENERS_MAX 16
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
/* Bounds on messages about calls to other sandboxes. */
#define DIAL_CALLS_PER_S 16
#define DIAL_CALLS_BURST_S 8

/* Bounds on messages about UDP sockets for clients of SOCKS5. */
#define ASSOCIATIONS_PER_S 4
#define ASSOCIATIONS_BURST_S 8

enum proxy_state {
	PROXY_SERVING,
	PROXY_RETIRING, /* another worker serves; work under way may end by itself */
	PROXY_DRAINING, /* tunnels, flows and idle connections are closed, requests end */
	PROXY_STATE_COUNT
};

/* Each room has a part, which only its files change. */
struct proxy {
	struct proxy_config config;
	struct socket_shared sockets;
	struct loop_deadlines waits[WAIT_COUNT];
	struct tls_server *tls_server; /* proxy_tls_server() */
	struct tls_client *tls_client; /* proxy_tls_client() */
	struct loop_timer give_back;
	size_t client_peak;         /* the highest count since memory was given back */
	uint8_t *plain;             /* SOCKET_CHUNK bytes: the plain bytes read last */
	struct secret plain_memory; /* ... locked: an upstream may echo a credential */
	struct buf text;            /* scratch: heads and frames to be sent */
	/* Scratch: masked bodies. Not `text`, because a delayed head may be written before them. */
	struct buf redacted;
	struct buf target; /* target of the request that is being recorded */
	struct buf decompressed;
	struct decompress_memory decoders; /* of compressed content */
	struct secret secret_text; /* a head with a credential in it; wiped after each use */
	enum proxy_state state;
	/* Not states of the proxy: the recorder and the operator set these flags, whatever else
	 * happens. */
	bool held, paused;
	bool giving_back;     /* the timer is set */
	uint32_t policy_turn; /* how often the policy was replaced */
	enum event_cause pause_cause;
	char pause_text[256];
	void (*on_idle)(void *context);
	void *on_idle_context;

	/* accept.c */
	struct listener listeners[PROXY_LISTENERS_MAX];
	size_t listener_count;
	struct loop_timer accept_again, accept_paced;
	/* Rate of connections of which nothing was let out; exhausted during a flood of them. */
	struct rate unproductive;
	struct rate local_connections; /* connections over Unix sockets and vsock */
	struct rate strangers;         /* findings about connections of other machines */
	uint64_t strangers_untold;     /* connections of other machines since the last finding */
	uint64_t accepted;             /* connections since the proxy was made */

	/* client/ */
	struct list clients;
	size_t client_count;
	struct client *shaking_hands; /* for which tls_server asks for a certificate */
	size_t stream_count;          /* HTTP/2 streams of all clients */
	size_t association_count;  /* clients of SOCKS5 that have a UDP socket, or wait for one */
	uint64_t last_association; /* id of the last question to the supervisor for a UDP socket */
	struct rate associations;  /* bound on these questions */
	struct client_http2_stream *free_streams;
	size_t free_stream_count;

	/* exchange/ */
	struct audit_silent silent;
	struct deny_throttle deny_throttle;
	struct asking_all asking;
	struct inquiry inquiry;
	struct tool_memory tool_memory; /* what MCP servers said of their tools */
	bool tools_overflowed; /* ... and the finding that there are too many was recorded */
	uint64_t next_event;
	struct secret canonical; /* as secret_text, of a request that is signed; made for the
	                            first one */
	struct hmac hmac;        /* computes signatures */
	struct dlp_scanner
	        *scanner; /* made for the first request in which secrets are looked for */
	size_t body_held; /* bytes of bodies that are held: exchange/holding.h */
	size_t exchanges; /* exchanges under way */
	size_t kept;      /* bytes of requests that are kept for a second try */
	struct exchange *free_exchanges; /* kept for later requests, to save allocations */
	size_t free_exchange_count;

	/* limit/ */
	struct limits limits;

	/* upstream/ */
	struct list upstreams; /* all of them; the idle ones are in order of age */
	size_t upstream_count, idle_count;
	struct pool_entry *pool;                 /* hash table: upstream/pool.c */
	struct no_prior no_prior[NO_PRIOR_KEPT]; /* upstream/prior_knowledge.c: a ring */
	unsigned next_no_prior;
	struct upstream_http2_stream *free_upstreams; /* kept for later streams, likewise */
	size_t free_upstream_count;
	uint32_t grown; /* bytes of HTTP/2 upstreams' windows beyond UPSTREAM_HTTP2_WIDE_WINDOW */

	/* dial/ */
	struct not_own not_own[DIAL_NOT_OWN_KEPT]; /* dial/dial.c, by a sum of the address */
	struct list calls; /* dials that wait for another sandbox: dial/call.c */
	struct rate call_rate;
	struct loop_timer call_again;
	uint64_t last_call;

	/* inbound/ */
	struct inbound *inbound; /* owned; NULL: no port was exposed yet */

	/* tunnel/ */
	struct udp_relay *datagrams;
	int pipes[TUNNEL_PIPES_KEPT][2]; /* empty pipes for splice(2) */
	size_t pipe_count;
};

/* --- proxy.c --- */

/* Returns locked scratch memory for text with a credential. The buffer never grows, so nothing
 * moves to ordinary memory. The caller wipes what it wrote. */
enum secret_part { SECRET_TEXT, SECRET_HEAD };
struct buf proxy_secret_text(struct proxy *proxy, enum secret_part part);
/* The TLS state shared by all connections on the sandbox's side, and on the upstreams' side. NULL:
 * no memory. */
struct tls_server *proxy_tls_server(struct proxy *proxy);
struct tls_client *proxy_tls_client(struct proxy *proxy);
void proxy_client_came(struct proxy *proxy);
void proxy_client_gone(struct proxy *proxy);
void proxy_maybe_idle(struct proxy *proxy);
/* Sets the state; nothing else does. */
void proxy_set_state(struct proxy *proxy, enum proxy_state state);

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
