/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exchange: one request and its response, between any two protocols. First what the client's
 * side and the upstream's side use; then what the exchange's parts share: exchange.c (its life),
 * request_body.c (the request's content), request.c (what goes upstream), retry.c (when a request
 * may go out again), response.c (head, body and end of the response). Parts with rooms of their own
 * have their functions in their headers: deny/, inquiry/, leaks/, inject/, redact/, rewrite/,
 * websocket/, limit/ and signing/.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_EXCHANGE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_EXCHANGE_H

#include "proxy/client/client.h"
#include "proxy/exchange/authorize.h"
#include "proxy/exchange/reauthorize.h"
#include "proxy/exchange/response.h"
#include "proxy/exchange/retry.h"
#include "proxy/http/http.h"
#include "proxy/leaks/placeholder.h"
#include "proxy/limit/limiting.h"
#include "proxy/redact/ranging.h"
#include "proxy/redact/redact.h"
#include "proxy/upstream/upstream.h"
#include "vethguard/policy/placeholder.h"

struct holding;
struct sealing;
struct secrets;
struct signing;
struct substitute;
struct tools_filter;
struct websocket_relay;

/* How an exchange answers its client: an HTTP/1 connection or an HTTP/2 stream. */
struct exchange_client {
	/* Sends a head; a final one (not 1xx) only once. upgrade: the protocol of a 101, or
	 * empty. */
	void (*response_head)(
	        struct exchange *ex, const struct http_response *response, struct slice upgrade);
	void (*response_body)(struct exchange *ex, const uint8_t *p, size_t n);
	void (*response_end)(struct exchange *ex, struct slice trailers);
	/* Tells that the upstream can take (more of) the request's body. */
	void (*request_resume)(struct exchange *ex);
	bool (*congested)(struct exchange *ex);
	/* Ends the exchange, which is freed after this call. complete: the whole response was sent;
	 * otherwise the client's stream has to be cut off so that the response cannot be taken for
	 * complete. */
	void (*done)(struct exchange *ex, bool complete);
};

#define EXCHANGE_INTERIMS_MAX 64
#define EXCHANGE_RETRIES_MAX 4 /* times that one request is sent again */
/* Bytes of a request's body that are kept until its response begins, so that the request can be
 * sent again. A longer body is sent once. */
#define EXCHANGE_KEPT_MAX (64u << 10)
#define EXCHANGE_KEPT_ALL_MAX (16u << 20) /* for all requests of a worker together */
/* A request that may not be sent again takes an idle HTTP/1 connection only if the connection
 * has been idle for at most this long: servers usually close theirs after two seconds at the
 * earliest. */
#define EXCHANGE_RISK_MS 1000

enum exchange_state {
	EXCHANGE_NEW,
	EXCHANGE_HOLDING,    /* waits for the whole body (holding.h) */
	EXCHANGE_ASKING,     /* waits for a person (asking.h) */
	EXCHANGE_CREDENTIAL, /* waiting for the keeper */
	EXCHANGE_DIAL,       /* waiting for an upstream connection */
	EXCHANGE_ACTIVE,     /* the request is being sent or was sent */
	EXCHANGE_UPGRADED,   /* after 101 */
	EXCHANGE_REFUSED,    /* answered by vethguard */
	EXCHANGE_DONE,
	EXCHANGE_STATE_COUNT
};

struct exchange {
	struct proxy *proxy;
	struct client *client;
	struct client_http2_stream *stream; /* the client's stream, if the client speaks HTTP/2 */
	const struct exchange_client *ops;
	struct exchange *next_free;
	enum exchange_state state;
	uint64_t id; /* of its event */
	int64_t start_ms, start_us;
	struct loop_deadline whole;
	struct destination destination;
	struct slice scheme;
	uint8_t client_version;

	/* The verdict, and the credential that the request gets. */
	struct verdict verdict;
	struct credential_wait waiting;
	struct credential_value *credential;

	/* The outcome for the client and for the event. */
	uint16_t status;
	enum event_cause cause;
	enum event_decision outcome;
	const char *detail;
	char *kept_detail; /* owned; detail points to it if it is set */
	uint64_t bytes_out, bytes_in;

	struct upstream_stream *upstream;
	struct ip upstream_address;

	/* The state of each part; see its header. */
	struct asking asking;
	struct auditing auditing;
	struct limiting limiting;
	struct marking marking;
	struct redacting redacting;
	struct responding responding;
	struct scanning scanning;
	struct sending sending;
	struct throttled throttled;
	/* Parts that only some exchanges have; else NULL. */
	struct holding *holding;       /* its body is held */
	struct signing *signing;       /* it is signed (sigv4) */
	struct ranging *ranging;       /* its Range is widened */
	struct sealing *sealing;       /* tokens of its response are sealed */
	struct secrets *secrets;       /* secrets are looked for in it */
	struct tools_filter *tools;    /* its response may list MCP tools */
	struct token_count *tokens;    /* tokens that its response tells are counted */
	struct websocket_relay *relay; /* UPGRADED to a WebSocket */

	/* Facts that are independent of each other and of all states. */
	bool request_done; /* the client has sent the whole request; false from an upgrade on */
	bool continued;    /* the client was told to send its body */
	bool head_request;
	bool value_refused; /* a rule takes the names in the request, and refused a value */
	/* Nothing from here on is cleared between exchanges. */
	struct http_request request;
};

/* stream: the client's stream, if the client speaks HTTP/2; else NULL. */
struct exchange *exchange_new(struct proxy *proxy, struct client *client,
        struct client_http2_stream *stream, const struct exchange_client *ops);
/* Fills in what an event and a denial need before the head was read: the client's version (as in
 * struct http_request), and the connection's destination and scheme. */
void exchange_introduce(struct exchange *ex, uint8_t client_version);
/* The same for a CONNECT request whose head was read; it has no body, and its target is the
 * destination. */
void exchange_introduce_connect(struct exchange *ex, const struct destination *destination);
/* Ends the exchange because the client broke the protocol. The exchange is recorded as denied if it
 * has no verdict yet. */
void exchange_abort_malformed(struct exchange *ex, const char *detail);
/* Notes that the upstream has reset the request's stream. http1_required: the upstream wants
 * HTTP/1.1; processed: the upstream may have processed the request. */
void exchange_note_reset(struct exchange *ex, bool http1_required, bool processed);
/* Notes that the client has sent the whole request, or that the rest of it does not count. */
void exchange_request_is_whole(struct exchange *ex);
/* Starts the exchange; ex->request holds the request's head. */
void exchange_start(struct exchange *ex);
/* Judges the request, with its body if that was held, and goes on with it. */
void exchange_decide(struct exchange *ex);
/* The verdict is final: goes on with the request, or refuses it. ex may be freed. */
void exchange_follow_verdict(struct exchange *ex);
/* The body as far as it is known, for a policy; NULL: the request has none. */
const struct policy_body *exchange_body(struct exchange *ex, const struct policy *policy);
/* Goes on with a request that is allowed, and whose body is there if it has to be signed. */
void exchange_begin(struct exchange *ex);
void exchange_request_body(struct exchange *ex, const uint8_t *p, size_t n);
void exchange_request_end(struct exchange *ex, struct slice trailers);
/* The client's side can take bytes again. */
void exchange_client_drained(struct exchange *ex);
/* Ends the exchange: the client is gone, broke the protocol or took too long. */
void exchange_abort(struct exchange *ex, enum event_cause cause, const char *detail);
/* Frees an exchange for which no request has come; nothing is recorded. */
void exchange_drop(struct exchange *ex);
/* True if the request's body may be passed on now. */
bool exchange_takes_body(const struct exchange *ex);

/* Gives the exchange another upstream stream: one of a connection that was made for another
 * exchange, or of its own connection, which speaks HTTP/2. */
void exchange_move_upstream(struct exchange *ex, struct upstream_stream *upstream);
/* Notes that the upstream does not speak HTTP/2 without TLS: the next attempt uses HTTP/1.1. */
void exchange_prior_in_vain(struct exchange *ex);
void exchange_upstream_ready(struct exchange *ex);
/* Begins anew, with a newly fetched credential and connection: a request that would have been sent
 * with an outdated credential value, or that failed unprocessed. */
void exchange_begin_again(struct exchange *ex);
/* Tells the client to send the body that it asked about (RFC 9110 section 10.1.1). */
void exchange_continue(struct exchange *ex);
void exchange_upstream_failed(struct exchange *ex, enum event_cause cause, const char *detail);
/* Takes a head from the upstream. False: the exchange has let go of the upstream. */
bool exchange_response_head(struct exchange *ex, struct http_response *response);
void exchange_response_body(struct exchange *ex, const uint8_t *p, size_t n);
void exchange_response_end(struct exchange *ex, struct slice trailers);
void exchange_upstream_drained(struct exchange *ex);
void exchange_on_deadline(struct exchange *ex);

/* --- exchange/reauthorize.c --- */

/* Authorizes the exchange by the policy that is about to be in force; next NULL: nothing may go on.
 * An exchange that may not go on is recorded with cause and detail (static), and marked. True:
 * marked. */
bool exchange_reauthorize(
        struct exchange *ex, const struct policy *next, enum event_cause cause, const char *detail);
/* True if exchange_take_step() has to follow once the policies have changed. */
bool exchange_is_marked(const struct exchange *ex);
/* Ends a marked exchange, or begins it again with the credential's current value. policy_is_new:
 * the indices of rules and credentials that the exchange holds belong to the old policy. */
void exchange_take_step(struct exchange *ex, bool policy_is_new);
/* True if what was begun under the decision `before` of `policy` can go on unchanged under the
 * decision `now` of `next`. */
bool exchange_decision_stands(const struct policy *policy, const struct policy_decision *before,
        const struct policy *next, const struct policy_decision *now);

/* --- retry.c --- */

/* True if the request has content; "Content-Length: 0" is none. */
bool exchange_has_body(const struct exchange *ex);
/* True if the whole request could be kept, as far as its head tells. */
bool exchange_can_be_kept(const struct exchange *ex);
/* How long an idle connection that this request takes may have been idle. */
int64_t exchange_idle_ms(const struct exchange *ex);
/* Keep bytes of the body, or the trailers. Call them before these are given to the upstream. */
void exchange_keep_body(struct exchange *ex, const uint8_t *p, size_t n);
void exchange_keep_trailers(struct exchange *ex, struct slice trailers);
/* Forgets what was kept: the request will not be sent again. */
void exchange_forget_body(struct exchange *ex);
/* True if the request may be sent again after its upstream has failed. */
bool exchange_may_retry(const struct exchange *ex, enum event_cause cause);
/* True if neither a body nor trailers follow the head. */
bool exchange_ends_with_head(const struct exchange *ex);
/* Sends what is kept, after the head. */
void exchange_send_kept(struct exchange *ex);

/* --- its parts --- */

/* request.c: moves the trailer lines that may pass to the beginning of their buffer, which is the
 * parser's own. Returns them. */
struct slice exchange_filter_trailers(struct exchange *ex, struct slice trailers);

/* Changes the exchange's state; nothing else does. */
void exchange_enter(struct exchange *ex, enum exchange_state state);

/* Fills in *out for a request with inject: placeholder, except `text`. *out borrows spec. */
void exchange_substitute(
        const struct exchange *ex, const struct policy_credential *spec, struct substitute *out);
/* Send the head. Return 0 or -errno (-EBADMSG: the credential cannot be put in). */
int exchange_send_plain(struct exchange *ex);
int exchange_send_with_credential(struct exchange *ex);
/* Puts the credential's value into the head as spec says. text: locked memory for what is put
 * together; the caller wipes it. Returns 0 or -errno. */
int exchange_inject(struct outgoing *head, const struct http_request *r,
        const struct policy_credential *spec, struct slice value, struct buf *text);
/* Returns the trailer lines that may pass to the upstream. They overwrite the bytes of trailers. */
struct slice exchange_request_trailers(struct exchange *ex, struct slice trailers);
/* Ends the exchange: gives the upstream back and tells the client. complete: the whole response was
 * sent. reusable: the upstream's connection can be reused. ex is freed afterwards. */
void exchange_finish(struct exchange *ex, bool complete, bool reusable);
/* Handles a failure after the verdict: tells the client if no head was sent yet, else cuts off its
 * stream. ex may be freed afterwards. */
void exchange_fail(struct exchange *ex, enum event_cause cause, const char *detail);

/* Sends the delayed head. Call this before the memory it points into changes. */
void exchange_release_head(struct exchange *ex);
/* Sends content to the client. */
void exchange_send_body(struct exchange *ex, const uint8_t *p, size_t n);
/* True if the response is complete with its head. */
bool exchange_has_no_content(const struct exchange *ex, const struct http_response *r);
/* True if more may pass over an upgraded connection that is relayed unread. False: its credential
 * is being guessed, and ex was freed. */
bool exchange_may_relay(struct exchange *ex);
/* Ends an upgraded exchange. detail: why it did not end by itself, or NULL. ex is freed
 * afterwards. */
void exchange_end_upgraded(struct exchange *ex, enum event_cause cause, const char *detail);

#endif
