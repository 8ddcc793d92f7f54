/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection. Until it has proved its session, it may use GATEWAY_FIRST bytes and the time of
 * WAIT_PROOF. Then it waits for its session's worker. A tunnel is handed over (enter.c): the worker
 * has the connection, and the visitor ends. All others are relayed to the worker to their end.
 *
 *   FIRST -> HEAD -----------------> ENTERING -> RELAY -> LINGER -> CLOSED
 *     \-> GREETING -> LOGIN -/  \      \-> CLOSED (handed over)
 *                               \-> REFUSING -> LINGER
 *
 * A connection in HTTP/2 makes a visitor of each stream (http2.h), which begins with HEAD:
 *
 *   FIRST -> HTTP2 -> CLOSED
 *
 * Transparent TLS (hello.c): FIRST -> HELLO -> ENTERING. Behind a load balancer (balancer.c):
 * BALANCED -> FIRST.
 *
 * A callback (callback.c) has a body that is read before its session's worker is asked for:
 * HEAD -> BODY -> ENTERING.
 *
 * A signed token that is not known is asked about (signed.c): HEAD or LOGIN -> ASKING, and back.
 *
 * On a kept connection of requests each head proves itself (request.c). A head that is not for
 * the same session, or proves nothing, begins a new connection once the worker has answered the
 * earlier requests:
 *
 *   RELAY -> TURNING -> HEAD
 */
#ifndef VETHGUARD_SRC_GATEWAY_VISITOR_H
#define VETHGUARD_SRC_GATEWAY_VISITOR_H

#include "gateway/front.h"
#include "vethguard/wire/base_url.h"
#include "vethguard/wire/body_meter.h"

enum visitor_state {
	VISITOR_BALANCED, /* the header of a load balancer */
	VISITOR_FIRST,    /* waiting for the first byte, perhaps behind a TLS handshake */
	VISITOR_HTTP2,    /* its streams are visitors */
	VISITOR_HELLO,    /* transparent TLS: the ClientHello */
	VISITOR_HEAD,     /* the head of a request to an HTTP proxy */
	VISITOR_BODY,     /* the signed body of a callback */
	VISITOR_GREETING, /* SOCKS5: the greeting */
	VISITOR_LOGIN,    /* SOCKS5: user and password */
	VISITOR_ASKING,   /* a signed token: waiting for what the supervisor says about it */
	VISITOR_REFUSING, /* a wrong proof, whose answer waits */
	VISITOR_ENTERING, /* proved; waiting for its worker */
	VISITOR_RELAY,
	VISITOR_TURNING, /* the worker answers the requests before one that begins anew */
	VISITOR_LINGER,  /* the last bytes are on their way to the client */
	VISITOR_CLOSED,
	VISITOR_STATE_COUNT
};

/* How often the supervisor is asked: a worker may be about to be replaced, or the daemon about to
 * hand over. */
#define VISITOR_ASKED_MAX 200

/* What a client is told. */
enum answer {
	ANSWER_PROVE,     /* 407, to a base URL 401: no proof, or one that is not valid */
	ANSWER_MALFORMED, /* with the status and reason of the parsed head */
	ANSWER_AWAY,      /* 503: no worker serves the session now, or too many wrong signatures */
	ANSWER_NO_METHOD  /* SOCKS5: no method of the client's will do: it offers no password */
};

/* The protocol of the client's bytes, once it is relayed. */
enum carry {
	CARRY_TUNNEL,   /* anything */
	CARRY_REQUESTS, /* requests, each with a head that proves itself */
	CARRY_LAST      /* the body of one request; what follows is dropped */
};

/* The worker's side: a Unix socket. */
struct back {
	struct loop_io io;
	int fd; /* -1: none */
	struct buf unsent;
	uint64_t swallow;       /* bytes from the worker that the client must not see */
	bool ended, over;       /* sending has ended; reading has ended */
	bool readable, hung_up; /* as in struct front */
};

struct visitor {
	struct gateway *gateway;
	struct front front;
	struct back back;
	struct http2 *http2; /* HTTP2: the connection */
	enum visitor_state state;
	bool arriving; /* in gateway.arriving */
	struct loop_deadline deadline;
	struct loop_task wake, deferred_free;
	struct list place; /* in gateway.unproved, until the proof */
	struct list of_session;
	struct address *address; /* until it has proved its session; NULL: it has, or is BALANCED */
	int64_t spent_us;        /* time of its turns until then */
	int64_t turn_us;         /* when its turn began; 0: it has none */
	struct session *session; /* from then on */
	UT_hash_handle hh;       /* in gateway.entering while ENTERING or ASKING, by question */
	uint64_t question;
	unsigned asked; /* how often the supervisor answered that it had no worker */
	uint8_t shown[MESSAGE_TOKEN_HASH_BYTES]; /* ASKING: of the token; BODY: of the signature */
	bool decided; /* the supervisor has said what the token is worth */
	struct ip source;
	uint16_t source_port;
	struct buf in; /* received bytes that cannot be used yet */
	size_t looked;
	bool balanced; /* it came by a load balancer, which passes no datagrams on */
	bool socks;
	bool callback; /* on a listener for questions of other proxies */
	size_t body_n; /* of a callback: the body's length, until its worker has the request */
	uint8_t signed_hash[MESSAGE_TOKEN_HASH_BYTES]; /* BODY: the SHA-256 that was signed */
	int64_t signed_until_ms;                       /* BODY: when its signature expires */
	bool transparent;       /* on a listener for transparent TLS: its address is its proof */
	bool tls_inside;        /* its bytes are transparent TLS (hello.c) */
	uint8_t alert;          /* tls_inside: the alert of ANSWER_MALFORMED */
	bool certified;         /* SOCKS5: proved by its certificate, without a login */
	bool tunnel;            /* it carries one client only: the worker may get it (enter.c) */
	bool handing;           /* ENTERING: the last question handed the connection over */
	enum message_form form; /* the protocol that the worker is told */
	enum carry carry;
	struct body_meter meter; /* the body of the last request that was passed on */
	enum answer answer;      /* the answer that REFUSING delays */
	bool front_over;         /* the client sends nothing more */
	bool doubtful;           /* a short read was taken for "nothing left" (WAIT_DOUBT) */
	size_t unsent_seen;      /* LINGER: bytes that were unsent at the last check */
};

/* Takes fd, of a connection to r. Returns false if it was closed at once. */
bool visitor_open(struct receiver *r, int fd, const struct sockaddr *from);
/* Makes the visitor of a stream. Returns NULL without memory, or if the address may have no more
 * connections and streams that have proved nothing. */
struct visitor *visitor_open_stream(struct visitor *connection, struct http2_stream *stream);
/* Goes on with the bytes that are there. */
void visitor_go_on(struct visitor *c);
/* Closes both sides at once, because the session is over. */
void visitor_cut(struct visitor *c);
/* enter.c. Handles the supervisor's answer to the question. entered: a worker serves the session;
 * fd (taken) is the other end to relay to, or -1 if the worker got the connection itself. Returns
 * false if that is not what was asked for. */
bool visitor_entered(struct gateway *g, uint64_t question, bool entered, int fd);
void visitor_on_deadline(struct loop_deadline *deadline);
/* enter.c. Asks the supervisor for the session's worker. Returns false if it cannot ask. */
bool visitor_ask(struct visitor *c);
/* Ends all connections. */
void visitors_close(struct gateway *g);
/* Answers the HOLD if no visitor is arriving any more. */
void visitors_tell_held(struct gateway *g);

/* --- its parts --- */

/* Counts it among those that have proved a session. */
void visitor_count_proved(struct visitor *c);
/* http2.c. Begins HTTP/2 with the bytes in c->in. Returns false if the connection is over. */
bool http2_open(struct visitor *c);
/* Closes the streams of the connection. */
void http2_close(struct visitor *c);
void http2_close_all(struct gateway *g);
/* Tells all clients in HTTP/2 to open further streams on new connections (GOAWAY). */
void http2_refuse_all(struct gateway *g);
/* http2.c: a handler, as those below. */
bool visitor_http2(struct visitor *c);
void visitor_http2_on_deadline(struct visitor *c);
/* http2_stream.c. Call when the stream's visitor has proved its session: opens its window. */
void http2_stream_proved(struct http2_stream *s);
/* Changes the state. The caller sets the deadline. */
void visitor_enter(struct visitor *c, enum visitor_state state);
void visitor_close(struct visitor *c);
/* Takes the socket to the worker. Returns 0, or -errno with fd still the caller's. */
int visitor_take_back(struct visitor *c, int fd);
/* Stops waiting for the supervisor's answer. */
void visitor_leave_question(struct visitor *c);
/* answer.c. Writes an answer and lets the connection end. status and why are used for
 * ANSWER_MALFORMED only. */
void visitor_answer(struct visitor *c, enum answer answer, unsigned status, const char *why);
/* proof.c: handlers of states. Each returns true if the next state may go on with the bytes that
 * are there. */
bool visitor_first(struct visitor *c);
bool visitor_greeting(struct visitor *c);
bool visitor_login(struct visitor *c);
/* Appends received bytes to c->in. Returns false if there are none, or the connection is closed. */
bool visitor_take_in(struct visitor *c);
/* proof.c. Returns the session that the client's certificate proves, or NULL. */
struct session *visitor_certified(const struct visitor *c);
/* Notes that the client has proved session s, with which the connection ends. */
void visitor_belong(struct visitor *c, struct session *s);
/* Same, and asks for the session's worker, which will get the bytes in c->back.unsent. */
void visitor_prove(struct visitor *c, struct session *s);
/* Refuses a wrong proof. The answer waits, for the same time whatever is wrong with the proof. */
void visitor_refuse(struct visitor *c);
/* signed.c. Asks about a token that no session has. Returns false if it is none that a signer has
 * signed: nothing has happened. */
bool visitor_show(struct visitor *c, struct slice token);
/* Reads the proof again. */
void visitor_show_again(struct visitor *c);
/* Handles the supervisor's verdict. Returns false if nobody has asked for one. */
bool visitor_decided(struct gateway *g, uint64_t question, const struct message_gateway_verdict *m);
/* Counts the connection among those that have proved nothing. Returns false if its address may have
 * no more of them. */
bool visitor_begin_anew(struct visitor *c);
/* balancer.c. True if this is the address of a load balancer. */
bool balancer_has(const struct gateway *g, const struct ip *source);
/* balancer.c: a handler, as above. */
bool visitor_balanced(struct visitor *c);
/* hello.c: a handler, as above. */
bool visitor_hello(struct visitor *c);
/* hello.c. Looks at n bytes of the worker's answer to the SOCKS5 request, before they are
 * swallowed, and sends an alert if the worker refuses. */
void visitor_hello_answered(struct visitor *c, const uint8_t *p, size_t n);
/* answer.c. Sends a TLS alert. */
void visitor_alert(struct visitor *c, uint8_t description);
/* request.c: a handler, as above. */
bool visitor_head(struct visitor *c);
/* proof.c. Wipes and drops the head at the start of c->in; what follows it stays. Notes the form,
 * and how the connection goes on. */
void visitor_consume_head(struct visitor *c, const struct proxy_head *head, enum message_form form);
/* callback.c. Takes a whole head on a listener for questions of other proxies. */
void visitor_question(struct visitor *c, const struct proxy_head *head);
/* Takes the next head on a kept connection. Returns true if its request's head is in
 * c->back.unsent; false if it has to begin a new connection. */
bool visitor_next_question(struct visitor *c, const struct proxy_head *head);
/* callback.c: a handler, as above. */
bool visitor_body(struct visitor *c);
/* Gives back the room of GATEWAY_CALLBACK_BYTES that c's body takes. */
void visitor_forget_body(struct visitor *c);
/* visitor.c. Makes an empty buffer for received bytes that cannot be used yet. */
void visitor_init_in(struct buf *in);
/* The result for the next head on a kept connection. */
enum next_request {
	NEXT_SENT, /* it is in c->back.unsent */
	NEXT_MORE, /* it is not whole */
	NEXT_ANEW  /* it is not the same session's, or cannot be read */
};
enum next_request visitor_next_request(struct visitor *c);
/* answer.c. Answers a question of a browser whether a page may send a request (CORS preflight). */
void visitor_answer_preflight(struct visitor *c, struct slice method, struct slice fields);
/* relay.c: moves the worker's last bytes to the client. Returns false if the connection is broken.
 */
bool visitor_drain(struct visitor *c);
/* relay.c: makes the next turn ask the kernel about both sides, whatever the loop has reported. */
void visitor_look_again(struct visitor *c);
/* relay.c: moves bytes between the two sides. Returns false when the connection is over. */
bool visitor_relay(struct visitor *c);

#endif
