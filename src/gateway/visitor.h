/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection. Until it has proved its session it may hold GATEWAY_FIRST bytes and the time of
 * WAIT_PROOF; then it waits for a socket to its worker, and is relayed until either side ends.
 *
 *   FIRST -> HEAD -----------------> ENTERING -> RELAY -> LINGER -> CLOSED
 *     \-> GREETING -> LOGIN -/  \-> REFUSING -> LINGER
 *
 * On a kept connection of requests each head proves itself (request.c). One that is not for the
 * same session, or proves nothing, begins anew once the worker has answered those before it:
 *
 *   RELAY -> TURNING -> HEAD
 */
#ifndef VETHGUARD_SRC_GATEWAY_VISITOR_H
#define VETHGUARD_SRC_GATEWAY_VISITOR_H

#include "gateway/front.h"
#include "vethguard/wire/base_url.h"
#include "vethguard/wire/body_meter.h"

enum visitor_state {
	VISITOR_FIRST,    /* waiting for the first byte, perhaps behind a TLS handshake */
	VISITOR_HEAD,     /* the head of a request to an HTTP proxy */
	VISITOR_GREETING, /* of SOCKS5 */
	VISITOR_LOGIN,    /* ... user and password */
	VISITOR_REFUSING, /* a wrong proof, whose answer waits */
	VISITOR_ENTERING, /* proved; waiting for its worker */
	VISITOR_RELAY,
	VISITOR_TURNING, /* the worker answers the requests before one that begins anew */
	VISITOR_LINGER,  /* the last bytes are on their way to the client */
	VISITOR_CLOSED,
	VISITOR_STATE_COUNT
};

/* What a client is told. */
enum answer {
	ANSWER_PROVE,     /* 407, to a base URL 401: no proof, or none that counts */
	ANSWER_MALFORMED, /* as head says */
	ANSWER_AWAY,      /* 503: no worker serves the session at the moment */
	ANSWER_NO_METHOD, /* SOCKS5: the client offers no password */
	ANSWER_KINDS
};

/* What the client's bytes are, once it is relayed. */
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
	uint64_t swallow; /* bytes of the worker's that the client is not to see */
	bool ended, over; /* what is sent; what is read */
};

struct visitor {
	struct gateway *gateway;
	struct front front;
	struct back back;
	enum visitor_state state;
	struct loop_deadline deadline;
	struct loop_task wake, deferred_free;
	struct list place; /* among those that have proved nothing */
	struct list of_session;
	struct address *address; /* until it has proved its session; NULL: it has */
	struct session *session; /* from then on */
	UT_hash_handle hh;       /* while ENTERING, by question */
	uint64_t question;
	unsigned asked; /* how often the supervisor had no worker for it */
	struct ip source;
	uint16_t source_port;
	struct buf in; /* bytes that cannot be used yet */
	size_t looked;
	bool socks;
	enum message_form form; /* what the worker is told that it gets */
	enum carry carry;
	struct body_meter meter; /* the body of the last request that was passed on */
	enum answer answer;      /* REFUSING */
	bool front_over;         /* the client sends nothing more */
	size_t unsent_seen;      /* LINGER: what was unsent at the last look */
};

/* Takes fd. */
void visitor_open(struct gateway *g, int fd, const struct sockaddr *from, bool tls);
/* Its session is over: closes both sides at once. */
void visitor_cut(struct visitor *c);
/* The supervisor's answer to the question; takes fd, -1: no worker serves it. */
void visitor_entered(struct gateway *g, uint64_t question, int fd);
void visitor_on_deadline(struct loop_deadline *deadline);
/* proof.c. Asks the supervisor for its worker. Returns false if that cannot be asked. */
bool visitor_ask(struct visitor *c);
/* All connections end. */
void visitors_close(struct gateway *g);

/* --- its parts --- */

/* Changes the state; the deadline is the caller's. */
void visitor_enter(struct visitor *c, enum visitor_state state);
void visitor_close(struct visitor *c);
/* The supervisor's answer is not waited for any more. */
void visitor_leave_question(struct visitor *c);
/* answer.c. Writes an answer and lets the connection end. status and why: ANSWER_MALFORMED. */
void visitor_answer(struct visitor *c, enum answer answer, unsigned status, const char *why);
/* proof.c: handlers; each returns whether another state may go on with what is there. */
bool visitor_first(struct visitor *c);
bool visitor_greeting(struct visitor *c);
bool visitor_login(struct visitor *c);
/* Appends what has come to c->in. Returns false if nothing has, or the connection is closed. */
bool visitor_take_in(struct visitor *c);
/* The session is proved: what is in c->back.unsent goes to its worker. */
void visitor_prove(struct visitor *c, struct session *s);
/* A wrong proof: its answer waits, the same time whatever is wrong with it. */
void visitor_refuse(struct visitor *c);
/* Makes it one that has proved nothing. Returns false if its address may have no more of them. */
bool visitor_begin_anew(struct visitor *c);
/* request.c: a handler, as above. */
bool visitor_head(struct visitor *c);
/* What became of the next head on a kept connection. */
enum next_request {
	NEXT_SENT, /* it is in c->back.unsent */
	NEXT_MORE, /* it is not whole */
	NEXT_ANEW  /* it is not the same session's, or cannot be read */
};
enum next_request visitor_next_request(struct visitor *c);
/* answer.c. Answers a question of a browser whether a page may send a request (CORS preflight). */
void visitor_answer_preflight(struct visitor *c, struct slice method, struct slice fields);
/* relay.c: what the worker still sends goes to the client. Returns false: the connection is broken.
 */
bool visitor_drain(struct visitor *c);
/* relay.c: what is read of either side goes to the other. Returns false: over. */
bool visitor_relay(struct visitor *c);

#endif
