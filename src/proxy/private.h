/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of proxy/ share. The road of a request:
 *
 *   listener.c  accepts, finds the original destination
 *   client.c    one connection from the sandbox: peek, TLS, HTTP/1, tunnel: a state table
 *   judge.c     who is asked for, by every name that was said; the policy's verdict
 *   exchange.c  one request and its response, between a client and an upstream; request.c what goes
 * upstream; transform.c what changes on the way back; placeholder.c what the sandbox must not send;
 * websocket.c frames after an upgrade dial.c      name -> addresses that may be dialled ->
 * connection (and TLS) pool.c      upstream connections and those kept for reuse upstream.c  one
 * connection to an upstream speaking HTTP/1 tunnel.c    raw bytes between two sockets denial.c what
 * a refused client is told record.c    events for the audit log datagram.c  the UDP relay
 */
#ifndef VETHGUARD_SRC_PROXY_PRIVATE_H
#define VETHGUARD_SRC_PROXY_PRIVATE_H

#include "proxy/http1.h"
#include "proxy/link.h"
#include "proxy/websocket.h"
#include "vethguard/policy/placeholder.h"
#include "vethguard/proxy/proxy.h"

struct client;
struct exchange;
struct tunnel;
struct upstream;
struct pool_entry;

/* One list of deadlines per kind of waiting; config_timeouts gives the delays. */
enum proxy_wait {
	/* struct client */
	WAIT_HELLO,  /* first bytes, TLS handshake */
	WAIT_SILENT, /* first bytes on a connection that could only be refused */
	WAIT_HEADER, /* request head from its first byte */
	WAIT_IDLE,   /* between requests; body or response without progress */
	WAIT_DIAL,   /* a tunnel's other end */
	WAIT_LINGER, /* closing politely */
	/* struct upstream */
	WAIT_CONNECT,  /* dialling and TLS */
	WAIT_RESPONSE, /* upstream silent while a request is under way */
	WAIT_POOLED,   /* idle in the pool; an upgraded connection without traffic */
	/* struct exchange */
	WAIT_REQUEST, /* exchange as a whole */
	/* struct tunnel */
	WAIT_TUNNEL, /* no traffic */
	/* struct flow */
	WAIT_DATAGRAM, /* no traffic */
	WAIT_COUNT
};
#define SILENT_MS 1000
#define LINGER_MS 2000
#define LINGER_BYTES (256u << 10)
#define REQUEST_FOREVER_MS INT32_MAX

struct list {
	struct list *prev, *next;
};
static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}
static inline bool list_is_empty(const struct list *l)
{
	return l->next == l;
}
static inline void list_append(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}
static inline void list_remove(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

struct listener {
	struct proxy *proxy;
	struct loop_io io;
	int fd;
	bool paused; /* the bound on connections is reached: tried again when one ends */
	struct loop_task more;
};
#define PROXY_LISTENERS_MAX 8
#define ACCEPT_AGAIN_MS 200 /* after running out of descriptors */
#define EXCHANGES_KEPT 32
#define TUNNEL_PIPES_KEPT 16

struct proxy {
	struct proxy_config config;
	struct link_shared links;
	struct loop_deadlines waits[WAIT_COUNT];
	struct tls_server *tls_server;
	struct tls_client *tls_client;
	struct listener listeners[PROXY_LISTENERS_MAX];
	size_t listener_count;
	struct loop_timer accept_again;
	struct datagram_relay *datagrams;
	struct list clients;
	size_t client_count;
	struct list upstreams; /* all; the idle ones among them in order of their age */
	size_t upstream_count, idle_count;
	struct pool_entry *pool;         /* hash table: pool.c */
	uint8_t *plain;                  /* LINK_CHUNK bytes: what was read last, plain */
	struct secret plain_memory;      /* ... locked: an upstream may echo a credential */
	struct client *shaking_hands;    /* whose certificate tls_server asks for */
	int pipes[TUNNEL_PIPES_KEPT][2]; /* empty ones, for splice(2) */
	size_t pipe_count;
	struct buf text; /* heads and covered bodies on their way out */
	struct buf unpacked;
	struct secret secret_text; /* a head with a credential in it, wiped after each use */
	uint64_t next_event;
	size_t exchanges; /* under way */
	struct exchange
	        *free_exchanges; /* kept for the next requests, so that these cost no allocation */
	size_t free_exchange_count;
	bool held, draining;
	bool paused;
	char pause_text[256];
	void (*on_idle)(void *context);
	void *on_idle_context;
};

/* Who a connection is for: everything that was said about its destination. */
struct destination {
	char host[POLICY_HOST_MAX + 1]; /* canonical name, or empty */
	size_t host_n;
	struct ip address; /* address literal where there is no name; family 0: none */
	uint16_t port;
};
static inline struct slice destination_host(const struct destination *d)
{
	return slice_of(d->host, d->host_n);
}
/* "host:port" or "[addr]:port" for people (port 0: without); out has POLICY_HOST_MAX + 16 bytes. */
const char *destination_text(const struct destination *d, char *out);
bool destination_set_host(struct destination *d, struct slice host);
bool destination_equals(const struct destination *a, const struct destination *b);

/* --- judge.c --- */

/* A verdict, and what else has to be said about it. */
struct judgement {
	struct policy_decision decision;
	bool allowed;
	enum event_cause cause; /* why not, where the policy did not say it */
	enum event_finding finding;
	const char *detail; /* one sentence, static, or NULL */
};
void judge_request(struct proxy *proxy, const struct client *client,
        const struct http_request *request, struct destination *destination, struct judgement *out);
/* A connection whose content is not looked at (opaque TCP). */
void judge_opaque(struct proxy *proxy, const struct destination *destination,
        enum policy_scheme scheme, struct judgement *out);
/* An address that a name resolved to: may it be dialled? */
bool judge_address(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address);

/* --- dial.c --- */

/* False for an address of this host itself: a name that leads there would reach services that trust
 * local callers. A rule that names the address permits it, and so does the configuration when it
 * permits exactly this address. */
bool dial_may_connect(const struct proxy *proxy, const struct policy_decision *decision,
        const struct ip *address);
/* From a destination to a connected socket. The name is resolved on this side; only addresses that
 * judge_address() lets pass are tried, IPv6 and IPv4 in turn, a further one every 250 ms (RFC
 * 8305). */
struct dial;
struct dial_result {
	int fd; /* connected, non-blocking, the callee's; -1: failed */
	struct ip address;
	enum event_cause cause; /* of the failure: RESOLVE, ADDRESS, CONNECT, TIMEOUT */
	const char *detail;     /* one sentence, static */
};
typedef void (*dial_done)(void *context, const struct dial_result *result);
/* The dial, or NULL: no memory. done is never called from within. */
struct dial *dial_start(struct proxy *proxy, const struct destination *destination,
        const struct policy_decision *decision, dial_done done, void *context);
void dial_cancel(struct dial *dial); /* no callback follows */

/* --- pool.c and upstream.c --- */

#define UPSTREAM_KEY_MAX (POLICY_HOST_MAX + 32)

/* What an upstream connection may be shared among: same host, port, TLS and credential. */
struct upstream_key {
	char bytes[UPSTREAM_KEY_MAX];
	size_t n;
};
void upstream_key_make(
        struct upstream_key *key, const struct destination *d, bool tls, uint32_t credential);

enum upstream_state {
	UPSTREAM_DIALING,
	UPSTREAM_TLS,
	UPSTREAM_BUSY,
	UPSTREAM_IDLE,
	UPSTREAM_CLOSED
};

struct upstream {
	struct proxy *proxy;
	struct list all, idle;
	struct pool_entry *entry; /* where it goes when idle */
	enum upstream_state state;
	struct destination destination;
	bool tls;
	bool reused;       /* has served an exchange before */
	struct ip address; /* dialled */
	struct dial *dial;
	struct link link;
	struct http1 http1;
	struct http_response response;
	struct exchange *exchange; /* while DIALING, TLS, BUSY */
	bool raw;                  /* after 101: bytes pass as they are */
	bool response_begun;       /* a byte of the response has come */
	uint64_t sent_seen;        /* link.sent when last looked at */
	struct loop_deadline deadline;
	struct loop_task go_on; /* reading goes on in a later turn */
	struct loop_task bury;
};

/* A connection for the exchange: an idle one (state BUSY at return), or one being made
 * (exchange_upstream_ready() or exchange_upstream_failed() follows). NULL: the bound on connections
 * is reached, or no memory. */
struct upstream *upstream_get(struct exchange *exchange, bool fresh);
/* The exchange is over: back to the pool where reusable, else closed. */
void upstream_put(struct upstream *upstream, bool reusable);
void upstream_resume(struct upstream *upstream); /* the client takes bytes again */
void upstream_touch(
        struct upstream *upstream); /* the request makes progress: its silence is counted anew */
void upstream_close(struct upstream *upstream);
void upstream_on_deadline(struct upstream *upstream, enum proxy_wait wait);

struct upstream *pool_take(struct proxy *proxy, struct pool_entry *entry);
/* The entry for a key, made where needed; counted. NULL: no memory. */
struct pool_entry *pool_entry_get(struct proxy *proxy, const struct upstream_key *key);
void pool_entry_release(struct proxy *proxy, struct pool_entry *entry);
void pool_add_idle(struct upstream *upstream);
void pool_remove_idle(struct upstream *upstream);
struct slice pool_entry_key(const struct pool_entry *entry);
/* Closes the least recently used idle connection; false: there is none. */
bool pool_evict(struct proxy *proxy);

/* --- exchange.c --- */

/* How an exchange answers whoever asked: an HTTP/1 connection, later an HTTP/2 stream. */
struct exchange_client {
	/* Sends a head; final ones (not 1xx) once. upgrade: the protocol of a 101 or empty. */
	void (*response_head)(
	        struct exchange *ex, const struct http_response *response, struct slice upgrade);
	void (*response_body)(struct exchange *ex, const uint8_t *p, size_t n);
	void (*response_end)(struct exchange *ex, struct slice trailers);
	/* The upstream can take (more of) the request's body. */
	void (*request_resume)(struct exchange *ex);
	bool (*congested)(struct exchange *ex);
	/* The exchange is over and gone after this call. complete: the response was sent as a
	 * whole; else the client's stream is to be cut off so that it cannot be taken for whole. */
	void (*done)(struct exchange *ex, bool complete);
};

enum exchange_state {
	EXCHANGE_NEW,
	EXCHANGE_CREDENTIAL, /* the keeper is asked */
	EXCHANGE_DIAL,       /* an upstream connection is made */
	EXCHANGE_ACTIVE,     /* the request is on its way or sent */
	EXCHANGE_UPGRADED,   /* after 101 */
	EXCHANGE_REFUSED,    /* answered by vethguard */
	EXCHANGE_DONE
};

struct exchange {
	struct proxy *proxy;
	struct client *client;
	const struct exchange_client *ops;
	struct exchange *next_free;
	enum exchange_state state;
	uint64_t id; /* of its event */
	int64_t start_ms, start_us;
	struct destination destination;
	struct judgement judgement;
	struct credential_wait waiting;
	struct credential_value *credential;
	struct mask_stream mask;
	bool masking;
	struct unpack *unpack;
	struct buf packed; /* compressed input that the client has no room for yet */
	bool unpack_more;  /* the decoder holds more for which there was no room */
	bool packed_any;   /* a byte of the body has come */
	bool damaged;      /* the body cannot be unpacked or covered */
	bool ending;       /* the upstream has sent all; some of it is still in packed */
	struct upstream *upstream;
	struct ip upstream_address;
	bool request_done; /* the client has sent all of it */
	bool request_sent; /* the head has gone out */
	bool head_sent;    /* a final response head was sent to the client */
	bool no_retry;
	uint16_t status;
	uint8_t client_version;
	enum event_cause cause;
	enum event_decision outcome;
	const char *detail;
	uint64_t bytes_out, bytes_in;
	struct loop_deadline whole;
	struct websocket frames_out, frames_in; /* once UPGRADED */
	bool placeholder_seen;
	size_t scanned_n;
	char scanned[PLACEHOLDER_MAX]; /* the last bytes of the request's body */
	struct slice scheme;
	enum http_body client_body; /* framing towards the client */
	bool head_request;
	/* From here on nothing is cleared between exchanges. */
	struct http_request request;
};

struct exchange *exchange_new(
        struct proxy *proxy, struct client *client, const struct exchange_client *ops);
/* The request's head is in ex->request. */
void exchange_start(struct exchange *ex);
void exchange_request_body(struct exchange *ex, const uint8_t *p, size_t n);
void exchange_request_end(struct exchange *ex, struct slice trailers);
/* The client's side is able to take bytes again. */
void exchange_client_drained(struct exchange *ex);
/* The client is gone, broke the protocol or took too long. */
void exchange_abort(struct exchange *ex, enum event_cause cause, const char *detail);
/* Nothing was asked yet: no event. */
void exchange_drop(struct exchange *ex);
/* Answers with an explanation (a refused request, a failed upstream). */
void exchange_refuse(
        struct exchange *ex, uint16_t status, enum event_cause cause, const char *detail);
/* True where the request's body may be passed on now. */
bool exchange_takes_body(const struct exchange *ex);

void exchange_upstream_ready(struct exchange *ex);
void exchange_upstream_failed(struct exchange *ex, enum event_cause cause, const char *detail);
/* A head from the upstream. False: the exchange has let go of the upstream. */
bool exchange_response_head(struct exchange *ex, struct http_response *response);
void exchange_response_body(struct exchange *ex, const uint8_t *p, size_t n);
void exchange_response_end(struct exchange *ex, struct slice trailers);
void exchange_upstream_drained(struct exchange *ex);

/* --- denial.c --- */

/* The RFC 9457 body that explains a refusal, onto out. */
void denial_body(const struct exchange *ex, uint16_t status, struct buf *out);

/* --- client.c --- */

enum client_state {
	CLIENT_PEEK,     /* what is it? */
	CLIENT_TLS,      /* handshake with the sandbox */
	CLIENT_HTTP,     /* a request head is awaited or read */
	CLIENT_EXCHANGE, /* a request is being served */
	CLIENT_DIAL,     /* a tunnel's other end is dialled */
	CLIENT_LINGER, /* the last response was sent; the rest of what comes is read and thrown away
	                */
	CLIENT_CLOSED,
	CLIENT_STATE_COUNT
};

/* One connection from the sandbox. */
struct client {
	struct proxy *proxy;
	struct list list;
	enum client_state state;
	struct link link;
	struct loop_deadline deadline;
	struct loop_task wake; /* goes on with input, or with the end of an exchange */
	struct ip src, dst;    /* dst: as the sandbox dialled it */
	uint16_t src_port, dst_port;
	struct destination destination; /* what that stands for: synthetic address -> name,
	                                   CONNECT's authority */
	bool holds_name;                /* the synthetic address is held */
	bool explicit_proxy;            /* the connection was made to the proxy port */
	bool connected;                 /* ... and CONNECT was accepted */
	bool tls;                       /* terminated here */
	char sni[POLICY_HOST_MAX + 1];
	size_t sni_n;
	struct buf stash; /* plain bytes not used up: first bytes, pipelined requests */
	struct http1 http1;
	struct exchange *exchange;
	bool exchange_over;     /* it has ended; told in the next turn */
	bool exchange_complete; /* ... with a whole response */
	bool request_whole;     /* ... after a whole request */
	bool reset;             /* close with a TCP reset */
	struct loop_task bury;
	bool keep_alive;
	bool half_closed;
	bool answered; /* at least one request was answered */
	bool slow;     /* it has not taken its last response within LINGER_MS */
	uint64_t lingered;
	uint64_t sent_seen; /* link.sent when last looked at */
	struct dial *dial;
	struct tunnel *tunnel;
	struct policy_decision decision; /* of a tunnel */
	struct destination tunnelled;    /* where it goes */
	bool passthrough;
	uint16_t tls_version;
	int64_t start_ms;
};

int client_open(struct proxy *proxy, int fd, const struct sockaddr *from);
void client_close(struct client *client);
/* Held work may go on. */
void client_wake(struct client *client);
extern const struct exchange_client client_http1;

/* --- tunnel.c --- */

/* Moves bytes between the client's socket and upstream_fd (taken) until both have ended; then the
 * client is closed and the connection recorded. What the client had sent already (its stash) goes
 * first. 0 or -errno: upstream_fd is closed, the client still the caller's. */
int tunnel_start(struct client *client, int upstream_fd, const struct ip *address);
/* Ends it, recording why; it is freed with its client. */
void tunnel_close(struct tunnel *tunnel, enum event_cause cause, const char *detail);
void tunnel_free(struct tunnel *tunnel);
void tunnel_on_deadline(struct loop_deadline *deadline);
void client_on_deadline(struct client *client, enum proxy_wait wait);
void exchange_on_deadline(struct exchange *ex);

/* --- datagram.c --- */

struct datagram_relay;
struct datagram_relay *datagram_relay_new(struct proxy *proxy);
void datagram_relay_free(struct datagram_relay *relay);
int datagram_relay_serve(struct datagram_relay *relay, int fd, uint16_t port);
void flow_on_deadline(struct loop_deadline *deadline);

/* --- record.c --- */

/* A duration as events hold it: longer ones become the longest, negative ones (a clock set back)
 * none. */
uint32_t record_duration_us(int64_t us);
/* Endpoints and TLS facts of a client's connection. */
void record_client(const struct client *client, struct event *event);
void record_exchange(struct exchange *ex);
/* A connection that carried no request vethguard read. */
void record_connection(const struct client *client, const struct policy_decision *decision,
        enum event_decision outcome, enum event_cause cause, const char *detail, uint64_t bytes_out,
        uint64_t bytes_in, const struct ip *upstream);
void record_finding(struct proxy *proxy, const struct client *client, enum event_finding finding,
        uint64_t about, struct slice rule, const char *detail);

/* --- proxy.c --- */
void proxy_client_gone(struct proxy *proxy);
void proxy_maybe_idle(struct proxy *proxy);

#endif
