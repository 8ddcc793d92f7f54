/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway accepts TCP connections of sandboxes on other machines, each of which proves its
 * session with a token. It parses bytes of unknown senders, so it holds no secret but the
 * operator's TLS key: only the hash of each session's token, public keys of those who may sign
 * tokens, and no policy, CA or credential.
 *
 * A connection that has proved its session goes to the session's worker: with its descriptor, or
 * relayed over a socket pair that the supervisor makes. main.c confines the program and takes the
 * supervisor's messages; receiver.c accepts; address.c and pace.c bound what one address, and all
 * strangers, may do; visitor.c and proof.c hold a connection until it has a worker; signed.c,
 * signers.c and tokens.c are about tokens that others sign; balancer.c reads the header of a load
 * balancer, and hello.c serves transparent TLS; callback.c and replay.c are about questions of
 * other proxies; answer.c writes answers to clients; sessions.c keeps the sessions; enter.c leads
 * connections to workers; front.c and relay.c move bytes; http2.c and its parts make a visitor of
 * each stream of a connection in HTTP/2.
 */
#ifndef VETHGUARD_SRC_GATEWAY_GATEWAY_H
#define VETHGUARD_SRC_GATEWAY_GATEWAY_H

#include "vethguard/base/buf.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/list.h"
#include "vethguard/base/rate.h"
#include "vethguard/base/table.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/tls/digest.h"
#include "vethguard/tls/signed_token.h"
#include "vethguard/tls/tls.h"

#define GATEWAY_CHUNK (64u << 10)  /* bytes per read of a relayed connection */
#define GATEWAY_FIRST (16u << 10)  /* bytes that a connection may send before its proof */
#define GATEWAY_RECORD (16u << 10) /* bytes of a TLS record whose end comes with another read */
#define GATEWAY_PLAIN_MAX (GATEWAY_CHUNK + GATEWAY_RECORD)
#define GATEWAY_ADDRESSES_MAX 16384 /* addresses that are remembered */
#define GATEWAY_SESSIONS_MAX 8192   /* more than there are sessions of a daemon */
#define GATEWAY_ENTERS_PER_S 2000   /* bound on connections passed to workers, of all sessions */
#define GATEWAY_WRONG_SIGNATURES_PER_S 1000 /* bound for all addresses; one costs some 100 us */
#define GATEWAY_ASKS_PER_S 500              /* bound on questions about signed tokens */
#define GATEWAY_CALLBACK_BYTES \
	(16u << 20) /* bound on the bodies of callbacks that their workers do not have yet */
#define GATEWAY_USED_SIGNATURES_MAX                                                           \
	65536                         /* of callbacks, which are remembered until they expire \
	                               */
#define GATEWAY_FILE_MAX (256u << 10) /* bytes of a certificate's or key's file */

struct visitor;
struct gateway;

enum gateway_wait {
	WAIT_PROOF,  /* from the accept until a session is proved */
	WAIT_REFUSE, /* before a wrong proof is answered */
	WAIT_REFUSE_LONG,
	WAIT_ENTER,  /* for the supervisor to connect it to its worker */
	WAIT_RETRY,  /* before the supervisor is asked again */
	WAIT_LINGER, /* for the client to take the last bytes */
	WAIT_IDLE,   /* for a stream on a connection in HTTP/2 */
	WAIT_DOUBT,  /* RELAY, TURNING: before a look for a reset that the loop did not report */
	WAIT_COUNT
};

/* --- sessions.c --- */

struct session {
	UT_hash_handle by_hash, by_id;
	uint64_t id; /* id of its sandbox */
	uint8_t token_hash[MESSAGE_TOKEN_HASH_BYTES];
	size_t from_count;
	struct ip_prefix from[MESSAGE_FROM_MAX];
	struct list visitors;
	struct list tokens; /* signed ones, the oldest first */
	size_t token_count;
	struct rate enters;
	uint64_t admission;     /* as in struct message_gateway_session */
	bool by_signed;         /* its clients show signed tokens: it has no hash */
	bool callback;          /* it is for questions of other proxies only */
	struct list by_address; /* in gateway.by_address, if the client's address proves it */
};

/* Adds a session, or updates one. Returns 0, or -ENOMEM. */
int sessions_set(struct gateway *g, const struct message_gateway_session *m);
/* Cuts the session's connections and forgets it. Does nothing if no session has this id. */
void sessions_end(struct gateway *g, uint64_t id);
void sessions_free(struct gateway *g);
/* Returns the session whose token this is and which may come from this address, or NULL. */
struct session *sessions_find(struct gateway *g, struct slice token, const struct ip *source);
/* Same, but only for sessions for questions of other proxies, which sessions_find() never
 * returns. */
struct session *sessions_find_asking(
        struct gateway *g, struct slice token, const struct ip *source);
/* Returns the session whose client certificate has this hash (SHA-256 of the DER) and which may
 * come from this address, or NULL. callback: true finds only sessions for questions of other
 * proxies, false only the others. */
struct session *sessions_find_certificate(struct gateway *g,
        const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], const struct ip *source, bool callback);
/* Returns the session that this address proves, or NULL. */
struct session *sessions_find_address(struct gateway *g, const struct ip *source);
/* The session with this id, or NULL. */
struct session *sessions_get(const struct gateway *g, uint64_t id);

/* --- signers.c --- */

struct signers {
	size_t count;
	struct token_signer *items[CONFIG_SIGNERS_MAX]; /* owned */
};

/* Takes one of the signers. Returns 0; -EBADMSG: it is not the next one; or -ENOMEM. */
int signers_take(struct gateway *g, const struct message_gateway_signer *m);
/* True if a signer has signed this token, and it is valid. */
bool signers_know(const struct gateway *g, struct slice text);
void signers_free(struct gateway *g);

/* --- tokens.c --- */

struct token {
	UT_hash_handle hh;
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];
	struct session *session;
	struct list of_session;
	int64_t expires_ms; /* clock_real_ms() */
};

/* Notes an accepted token. Returns 0 or -ENOMEM. */
int tokens_add(struct gateway *g, const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], struct session *s,
        int64_t expires_ms);
/* Returns the session of the token with this hash, or NULL: it is not known, or has expired. */
struct session *tokens_find(struct gateway *g, const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES]);
void tokens_forget(struct gateway *g, struct session *s);
void tokens_forget_all(struct gateway *g);

/* --- replay.c --- */

struct used_signature {
	UT_hash_handle hh;
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];
	int64_t until_ms; /* clock_real_ms() */
};

/* Remembers until until_ms (clock_real_ms()) that the signature with this hash was used. Returns
 * false if it was used before, or if there is no room or memory to remember it. */
bool replay_take(struct gateway *g, const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], int64_t until_ms);
void replay_free(struct gateway *g);

/* --- address.c --- */

/* The record of one address (of IPv6: of its /64). */
struct address {
	UT_hash_handle hh;
	struct ip key;
	uint32_t connections; /* open connections that have proved nothing */
	uint32_t failures;    /* wrong proofs since window_ms */
	uint32_t untold;      /* those of them that no finding has reported yet */
	int64_t window_ms, told_ms;
	struct rate fruitless; /* connections that ended without a proof */
	struct rate checks;    /* signatures that were wrong */
};

/* Counts a new connection. Returns the record of its address, or NULL if the address may have no
 * more connections at the moment. */
struct address *address_begin(struct gateway *g, const struct ip *source);
/* Counts a connection that has proved its session (proved) or has ended without a proof. */
void address_end(struct gateway *g, struct address *a, bool proved);
/* Counts a wrong proof. Returns the wait before its answer. */
enum gateway_wait address_failed(struct gateway *g, struct address *a);
/* Returns false if this address, or all addresses together, have shown too many wrong signatures in
 * the last seconds: the caller checks none of it now. */
bool address_may_check(struct gateway *g, struct address *a);
/* Counts a wrong signature, for this address and for all together. */
void address_check_failed(struct gateway *g, struct address *a);
void addresses_free(struct gateway *g);

/* --- pace.c --- */

struct pace {
	int64_t left_us; /* time left for connections that prove nothing; 0 or less: used up */
	int64_t at_ms;   /* when left_us was last refilled */
};

/* Charges the time that a connection without a proof has taken. */
void pace_charge(struct gateway *g, int64_t us);
/* Refills left_us. Returns true if such connections have used up their share. */
bool pace_is_tight(struct gateway *g, int64_t now_ms);

/* --- receiver.c --- */

struct receiver {
	struct gateway *gateway;
	struct loop_io io;
	int fd;
	enum config_gateway_kind kind;
	bool paused;
};

/* Takes fd. Returns 0 or -errno. */
int receiver_open(struct gateway *g, int fd, enum config_gateway_kind kind);
/* Accepts again, if there is room. */
void receivers_resume(struct gateway *g);
/* Accepts again after a pause. */
void receivers_end_pause(struct gateway *g);
void receivers_close(struct gateway *g);

struct gateway {
	struct loop *loop;
	struct ipc_peer supervisor;
	struct message_gateway_start start;
	struct tls_server *tls;        /* NULL: no receiver speaks TLS */
	struct tls_identity *identity; /* NULL: there is none that can be used */
	struct digest digest;
	struct session *by_hash, *by_id;
	struct list by_address;         /* sessions that a client's address proves */
	struct signers signers, coming; /* coming: until all are there */
	struct token *tokens;           /* hash table */
	struct used_signature *used;    /* hash table, the oldest first */
	size_t callback_bytes;          /* counts against GATEWAY_CALLBACK_BYTES */
	struct address *addresses;
	struct receiver receivers[CONFIG_GATEWAY_LISTENERS_MAX];
	size_t receiver_count;
	struct loop_timer accept_again; /* ends a pause */
	bool pausing;                   /* nothing is accepted until then */
	struct pace pace;
	struct list unproved; /* visitors, the oldest first */
	struct list http2;    /* connections in HTTP/2 */
	size_t unproved_count;
	struct visitor *entering; /* hash table by the id of the question to the supervisor */
	uint64_t last_question;
	struct rate enters, findings, asks;
	struct rate checks; /* wrong signatures, of all addresses */
	struct loop_deadlines waits[WAIT_COUNT];
	uint8_t *cipher; /* GATEWAY_CHUNK bytes: the bytes read last */
	uint8_t *plain;  /* GATEWAY_PLAIN_MAX bytes: the same, decrypted */
	uint8_t *frames; /* GATEWAY_PLAIN_MAX bytes: frames of HTTP/2 that are read, or sent */
	struct buf tx;   /* bytes that TLS has written, until they are sent */
	bool held;
	uint64_t hold_id; /* of the HOLD that waits for HELD; 0: none does */
	size_t arriving;  /* visitors that were accepted and have no worker yet */
	int status;       /* exit status */
};

#endif
