/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exchange: one request and its response, between any two protocols. First what a client's side
 * and an upstream's have of it; then what its parts know of each other: exchange.c (its life),
 * exchange/deny.c (refusing), request.c (what goes upstream), retry.c (when it may go out again),
 * exchange/redact.c (what changes on the way back), placeholder.c (what the sandbox must not send),
 * websocket_relay.c (frames after an upgrade).
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_EXCHANGE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_EXCHANGE_H

#include "proxy/exchange/charset.h"
#include "proxy/client/client.h"
#include "proxy/http/http.h"
#include "proxy/upstream/upstream.h"
#include "vethguard/credential/decompress.h"
#include "vethguard/policy/placeholder.h"

struct inspection;
struct websocket_relay;

/* How an exchange answers whoever asked: an HTTP/1 connection or an HTTP/2 stream. */
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

#define EXCHANGE_INTERIMS_MAX 64
#define EXCHANGE_RETRIES_MAX 4 /* times that one request is sent again */
/* Bytes of a request's body that are kept until its response begins, so that it can be sent again;
 * a longer body is sent once. */
#define EXCHANGE_KEPT_MAX (64u << 10)
#define EXCHANGE_KEPT_ALL_MAX (16u << 20) /* of all requests of a worker together */
/* A request that may not be sent again takes an idle HTTP/1 connection only where that has been
 * idle for no longer: servers close theirs after two seconds at the earliest, as a rule. */
#define EXCHANGE_RISK_MS 1000

enum exchange_state {
	EXCHANGE_NEW,
	EXCHANGE_CREDENTIAL, /* the keeper is asked */
	EXCHANGE_DIAL,       /* an upstream connection is made */
	EXCHANGE_ACTIVE,     /* the request is on its way or sent */
	EXCHANGE_UPGRADED,   /* after 101 */
	EXCHANGE_REFUSED,    /* answered by vethguard */
	EXCHANGE_DONE,
	EXCHANGE_STATE_COUNT
};

struct exchange {
	struct proxy *proxy;
	struct client *client;
	struct client_http2_stream *stream; /* which of the client's, where it speaks HTTP/2 */
	const struct exchange_client *ops;
	struct exchange *next_free;
	enum exchange_state state;
	uint64_t id; /* of its event */
	int64_t start_ms, start_us;
	struct destination destination;
	struct verdict verdict;
	struct credential_wait waiting;
	struct credential_value *credential;
	struct mask_stream mask;
	unsigned waits_told; /* of mask.waited and its like, to the store of credentials */
	bool masking;
	bool may_decompress;        /* whoever asks takes gzip, and does not forbid to change it */
	bool uncovered;             /* the credential was found where it could not be covered */
	struct charset_start start; /* of the response's content */
	struct inspection *inspection; /* of gzip that goes on as it came */
	struct decompress *decompress; /* of gzip that goes on decompressed */
	char *etag;                    /* owned; the entity tag of such a response */
	struct buf compressed;         /* compressed input that the client has no room for yet */
	bool decompress_more;          /* the decoder holds more for which there was no room */
	bool compressed_any;           /* a byte of the body has come */
	bool undecodable;              /* the body cannot be decompressed, searched or covered */
	const char *undecodable_why;   /* why */
	bool ending; /* the upstream has sent all; some of it is still in packed */
	struct upstream_stream *upstream;
	struct ip upstream_address;
	bool request_done; /* the client has sent all of it */
	bool request_sent; /* the head has gone out */
	bool head_sent;    /* a final response head was sent to the client */
	bool no_retry;     /* the upstream may have done something with the request */
	unsigned retries;
	bool begins_again; /* reauthorize.c: with the credential's value of now */
	bool unprocessed;  /* it failed, and no upstream has done anything with it */
	bool continued;    /* the client was told to send its body */
	struct buf kept;   /* the body so far, while the request could be sent again */
	struct buf kept_trailers;
	bool head_waits; /* it is kept until the end of this turn, or until content is right */
	struct loop_task head_task;
	bool http1_only;     /* upstream: HTTP/2 is not offered */
	bool http1_required; /* ... because the upstream said so */
	bool prior;          /* upstream: HTTP/2 without TLS, as the client has it */
	bool prior_in_vain;  /* ... which the upstream does not speak */
	uint16_t status;
	uint8_t client_version;
	enum event_cause cause;
	enum event_decision outcome;
	const char *detail;
	uint64_t bytes_out, bytes_in;
	struct loop_deadline whole;
	struct loop_deadline held; /* what the mask keeps back waits no longer than that */
	struct list turn;          /* exchange/deny_throttle.c: waits for its answer */
	char *kept_detail;         /* owned; what detail points to then */
	bool delayed;
	struct websocket_relay *relay; /* once UPGRADED */
	bool placeholder_seen;
	bool recorded; /* its event has been put; an echo found later is told apart */
	bool echo_told;
	bool cut;          /* it is to end: reauthorize.c */
	bool counted;      /* the response's length is known to the client */
	uint64_t length;   /* ... which it is */
	unsigned interims; /* responses before the final one */
	size_t scanned_n;
	/* The end of the request's body that may be the beginning of a placeholder. */
	uint8_t scanned[MASK_BEGINNING_MAX(PLACEHOLDER_MAX)];
	struct slice scheme;
	enum http_body client_body; /* framing towards the client */
	bool head_request;
	/* From here on nothing is cleared between exchanges. */
	struct http_request request;
};

struct exchange *exchange_new(
        struct proxy *proxy, struct client *client, const struct exchange_client *ops);
/* For an event and a denial before the head was read: which version the client speaks
 * (struct http_request), and the connection's destination and scheme. */
void exchange_introduce(struct exchange *ex, uint8_t client_version);
/* The client has sent all of the request, or no more of it counts. */
void exchange_request_is_whole(struct exchange *ex);
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
/* exchange/deny.c: records and answers with an explanation (a refused request, a failed upstream):
 * at once, or when its turn comes. */
void exchange_refuse(
        struct exchange *ex, uint16_t status, enum event_cause cause, const char *detail);
/* The answer itself. The exchange is gone afterwards. */
void exchange_answer_refusal(struct exchange *ex);
/* Fills in what the event and the answer of a refusal say; status 0: as the cause has it. */
void exchange_will_refuse(struct exchange *ex, uint16_t status);
/* A gRPC call over HTTP/2. */
bool exchange_is_grpc(const struct exchange *ex);
/* True where the request's body may be passed on now. */
bool exchange_takes_body(const struct exchange *ex);

/* The exchange goes on over this stream, of a connection that was made for another one or that has
 * turned out to speak HTTP/2. */
void exchange_move_upstream(struct exchange *ex, struct upstream_stream *upstream);
/* The upstream does not speak HTTP/2 without TLS: HTTP/1.1 is next. */
void exchange_prior_in_vain(struct exchange *ex);
void exchange_upstream_ready(struct exchange *ex);
/* What was to be sent with another credential's value, or failed before anything was done with it,
 * begins anew: the credential is fetched again, and a connection too. */
void exchange_begin_again(struct exchange *ex);
/* The client may send the body that it asked about (RFC 9110 section 10.1.1). */
void exchange_continue(struct exchange *ex);
void exchange_upstream_failed(struct exchange *ex, enum event_cause cause, const char *detail);
/* A head from the upstream. False: the exchange has let go of the upstream. */
bool exchange_response_head(struct exchange *ex, struct http_response *response);
void exchange_response_body(struct exchange *ex, const uint8_t *p, size_t n);
void exchange_response_end(struct exchange *ex, struct slice trailers);
void exchange_upstream_drained(struct exchange *ex);
void exchange_on_deadline(struct exchange *ex);

/* --- exchange/reauthorize.c --- */

/* Decides anew by the policy that is about to be in force; NULL: nothing may go on. What may not is
 * recorded, with this cause, and marked. True: marked. */
bool exchange_reauthorize(
        struct exchange *ex, const struct policy *next, enum event_cause cause, const char *detail);
/* True: exchange_take_step() has to follow, once the policies have changed. */
bool exchange_is_marked(const struct exchange *ex);
/* Ends it, or begins it again with the credential's value of now. policy_is_new: indices of rules
 * and credentials that it holds are the old policy's. */
void exchange_take_step(struct exchange *ex, bool policy_is_new);
/* What was begun under one decision can go on under another one as it is. */
bool exchange_decision_stands(const struct policy *policy, const struct policy_decision *before,
        const struct policy *next, const struct policy_decision *now);

/* --- retry.c --- */

/* The request has content: "Content-Length: 0" is none. */
bool exchange_has_body(const struct exchange *ex);
/* All of the request could be kept, as far as it has told. */
bool exchange_can_be_kept(const struct exchange *ex);
/* It could be sent again, though an upstream may have done what it asks for (RFC 9110 section
 * 9.2.2). */
bool exchange_is_repeatable(const struct exchange *ex);
/* How long a connection may have been idle that it takes. */
int64_t exchange_idle_ms(const struct exchange *ex);
/* Before these bytes of the body, or the trailers, are given to the upstream. */
void exchange_keep_body(struct exchange *ex, const uint8_t *p, size_t n);
void exchange_keep_trailers(struct exchange *ex, struct slice trailers);
/* It will not be sent again. */
void exchange_forget_body(struct exchange *ex);
/* Its upstream has failed: whether it may be sent again. */
bool exchange_may_retry(const struct exchange *ex, enum event_cause cause);
/* No body and no trailers follow the head. */
bool exchange_ends_with_head(const struct exchange *ex);
/* Behind the head: what is kept. */
void exchange_send_kept(struct exchange *ex);

/* --- its parts --- */

/* The one place where an exchange changes its state. */
void exchange_enter(struct exchange *ex, enum exchange_state state);

/* Sends the head. 0 or -errno (-EBADMSG: the credential cannot be put in). */
int exchange_send_plain(struct exchange *ex);
int exchange_send_with_credential(struct exchange *ex);
/* For the upstream: the trailer lines that may pass. They lie where trailers did, which are no
 * more. */
struct slice exchange_request_trailers(struct exchange *ex, struct slice trailers);
/* For the client: those that may pass, covered; the same. */
struct slice exchange_response_trailers(struct exchange *ex, struct slice trailers);
/* The one end: the upstream is given back, the client told. complete: the response was sent as a
 * whole; reusable: so is the upstream's connection. The exchange is gone afterwards. */
void exchange_finish(struct exchange *ex, bool complete, bool reusable);
/* Something failed behind the verdict: told to the client where nothing was sent yet, else the
 * stream is cut. The exchange is gone afterwards. */
void exchange_fail(struct exchange *ex, enum event_cause cause, const char *detail);
/* Looks for placeholders where they do not belong, and takes away those that the injection
 * replaces. */
void exchange_check_placeholders(struct exchange *ex);
/* Records that one was found. */
void exchange_found_placeholder(struct exchange *ex, const char *where);
/* Looks for one in a text that comes in pieces; where is what the finding says. */
void exchange_scan_text(struct exchange *ex, const uint8_t *p, size_t n, const char *where);
/* The same for a request's body. */
void exchange_scan_request(struct exchange *ex, const uint8_t *p, size_t n);

/* Prepares covering the credential in the response; covers it in the head. -1: why and cause tell
 * why not. */
int exchange_begin_masking(
        struct exchange *ex, struct http_response *r, enum event_cause *cause, const char **why);
/* A response that had a credential: its head waits as long as this turn of the loop for content
 * that shows whether it may go on at all, so that a refusal can say why. */
void exchange_keep_head(struct exchange *ex);
/* The head that was kept goes out now: before what it points into changes. */
void exchange_release_head(struct exchange *ex);
/* The response's content cannot go on; why is static. */
void exchange_mark_undecodable(struct exchange *ex, const char *why);
/* False, and the exchange is damaged: the content says at its beginning that it is written in a
 * character set that cannot be searched. */
bool exchange_start_is_right(struct exchange *ex, const uint8_t *p, size_t n);
/* Content for the client. */
void exchange_send_body(struct exchange *ex, const uint8_t *p, size_t n);
/* The response is whole with its head. */
bool exchange_has_no_content(const struct exchange *ex, const struct http_response *r);
/* Chooses the framing towards the client. */
void exchange_frame_response(struct exchange *ex, struct http_response *r);
void exchange_pass_interim(struct exchange *ex, struct http_response *r);
/* 101: the connection becomes a pipe. False: it was refused. */
bool exchange_upgrade(struct exchange *ex, struct http_response *r);
/* Goes on with what was kept for want of room. True: nothing is kept any more. */
bool exchange_decompress_more(struct exchange *ex);
/* The mask has taken text: what it keeps back waits for more, but not for ever. */
void exchange_await_more(struct exchange *ex);
/* Nothing more came in time. The exchange may be gone afterwards. */
void exchange_release_held(struct exchange *ex);
/* True where the credential is being guessed (credential_store_waited()): nothing more is passed on
 * of a response to a request that had it. */
bool exchange_is_guessed(struct exchange *ex);
/* More may pass over an upgraded connection that is relayed unread. False: its credential is being
 * guessed, and the exchange is gone. */
bool exchange_may_relay(struct exchange *ex);
/* The end of an exchange that was upgraded; detail: why it did not end by itself, or NULL. The
 * exchange is gone afterwards. */
void exchange_end_upgraded(struct exchange *ex, enum event_cause cause, const char *detail);
/* What masking and decompressing kept back goes out. 0, or -EBADMSG: compressed data ended early.
 */
int exchange_flush_body(struct exchange *ex);

#endif
