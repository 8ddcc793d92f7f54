/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway: the supervisor's side of the gateway: its listeners, certificate, sessions and end; and
 * passing a connection that has proved its session to the session's worker. It exists only in the
 * daemon, and only if the configuration names a place to listen at.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_GATEWAY_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_GATEWAY_H

#include <sys/stat.h>

#include "vethguard/base/rate.h"
#include "vethguard/base/secret.h"
#include "vethguard/policy/config.h"
#include "vethguard/tls/signed_token.h"
#include "vethguard/wire/message.h"
#include "supervisor/config/key_fetch.h"
#include "supervisor/process/role.h"

struct sandbox;
struct supervisor;

#define GATEWAY_LOOK_MS 5000  /* interval of looks at the certificate's files */
#define GATEWAY_AGAIN_MS 1000 /* before one that died, or could not listen, is started again */
#define GATEWAY_KEYS_AGAIN_MS 15000 /* before a URL that failed is asked again */
#define GATEWAY_FILES 2             /* certificate, key */
#define GATEWAY_SETTLE_MS 5000      /* most that a hold waits for connections without a worker */
/* A gateway that sends more messages than it should (gateway/gateway.h) is at fault; further
 * findings are dropped. */
#define GATEWAY_BURST 8192
#define GATEWAY_PER_S 4096
#define GATEWAY_UDP_SOCKETS_MAX 1024 /* for SOCKS5 UDP ASSOCIATE, of all sessions */
#define GATEWAY_FINDINGS_PER_S 1
#define GATEWAY_FINDINGS_BURST_S 40

/* The signers of the configuration, in its order. */
struct gateway_signers {
	size_t count;
	struct token_signer *items[CONFIG_SIGNERS_MAX]; /* owned */
	struct stat files[CONFIG_SIGNERS_MAX];          /* the file's state when it was read */
	bool quiet[CONFIG_SIGNERS_MAX]; /* it was logged that the file cannot be read */
	struct signer_fetch {
		struct supervisor *supervisor;
		size_t index;
		struct key_fetch *running; /* owned; NULL: none */
		bool over;                 /* running has ended */
		int64_t again_ms;          /* when its URL is asked again: loop_now_ms() */
		char etag[KEY_ETAG_MAX];   /* of the set that is in use; empty: none */
	} fetches[CONFIG_SIGNERS_MAX];
};

/* A question of the gateway about a token. */
struct gateway_question {
	uint64_t starts; /* which gateway has asked */
	uint64_t id;
};

struct gateway_life {
	struct role role;
	struct config_gateway config; /* no listeners: there is no gateway */
	bool open;                    /* it is meant to run */
	bool ready, held;
	bool settled;          /* held: the gateway has answered HELD */
	uint64_t hold_id;      /* of the last HOLD */
	int64_t settled_by_ms; /* held: loop_now_ms(); it is not waited for any longer */
	bool quiet;            /* a lasting fault was logged already */
	int listeners[CONFIG_GATEWAY_LISTENERS_MAX]; /* sockets, in the configuration's order */
	size_t listener_count;
	int inherited[CONFIG_GATEWAY_LISTENERS_MAX]; /* listeners of the previous daemon, until the
	                                                gateway is open */
	size_t inherited_count;
	struct stat files[GATEWAY_FILES]; /* the files as they were when the gateway got them */
	struct loop_timer again, look;
	struct rate findings;
	struct gateway_signers signers;
	uint64_t starts;    /* how many gateways there have been */
	size_t udp_sockets; /* that workers hold for clients of SOCKS5 UDP ASSOCIATE */
	/* Says by gateway_decide(), at once or later, whose session the token is, which the gateway
	 * has verified. text is wiped after the call. NULL: no sessions can be made yet. */
	void (*on_token)(void *owner, const struct gateway_question *q, struct slice text,
	        const struct ip *source);
	void *token_owner;
};

/* A connection that has proved its session and waits for the session's worker to be started. */
struct gateway_waiting {
	struct gateway_waiting *prev, *next;
	struct gateway_question question;
	struct secret message; /* of the gateway, encoded; malloc(3)'s memory */
	int fd;                /* owned: the connection, if it is handed over; else -1 */
};

/* Connections of a session that wait at a time. For further ones the gateway has to ask again. */
#define GATEWAY_WAITING_MAX 256

/* What this file keeps about a session, in its struct sandbox. */
struct gateway_session {
	bool admitted;                   /* its token is accepted */
	uint64_t admission;              /* how often it was cut: earlier proofs are void */
	uint64_t entered;                /* connections that its workers have been given */
	struct gateway_waiting *waiting; /* list, the oldest first */
	size_t waiting_count;
};

/* Starts the gateway if one is configured; may be called again. A failure is logged, and the start
 * is tried again. */
void gateway_open(struct supervisor *sv);
/* Takes a new configuration. A running gateway is replaced if its configuration has changed. */
void gateway_configure(struct supervisor *sv, const struct config_gateway *config);
/* The first function makes the session's token valid; the second makes it invalid and cuts the
 * session's connections. */
void gateway_admit(struct supervisor *sv, struct sandbox *s);
void gateway_cut(struct supervisor *sv, struct sandbox *s);
/* Holds the gateway while another daemon takes over: new connections wait in the kernel's backlog,
 * and those that were accepted still get to their workers. */
void gateway_hold(struct supervisor *sv, bool held);
/* True if the gateway is held, and either no connection is on its way to a worker of this daemon or
 * GATEWAY_SETTLE_MS are over. */
bool gateway_is_settled(const struct supervisor *sv);
/* The first function gives the listening sockets for that daemon; the second takes them there. */
size_t gateway_listeners(const struct supervisor *sv, int fds[CONFIG_GATEWAY_LISTENERS_MAX]);
void gateway_inherit(struct supervisor *sv, const int *fds, size_t count);
/* Closes the listeners because another daemon accepts from now on; relayed connections go on. */
void gateway_give_up(struct supervisor *sv);
/* Ends the gateway with the supervisor. */
void gateway_stop(struct supervisor *sv);
void gateway_close(struct supervisor *sv);

/* gateway_sessions.c */
/* Call when the session's state has changed: gives waiting connections to its worker if one serves
 * now, and refuses them if none will. */
void gateway_session_changed(struct sandbox *s);
/* Forgets the session's waiting connections without an answer. */
void gateway_session_forget(struct sandbox *s);
void gateway_tell_session(struct supervisor *sv, const struct sandbox *s);
/* Messages of the gateway. Return 0, or -EBADMSG. */
int gateway_on_enter(struct supervisor *sv, struct ipc_message *message);
int gateway_on_guesses(struct supervisor *sv, struct ipc_message *message);

/* gateway_udp.c */
/* Opens a UDP socket at an address of the gateway, for one association of SOCKS5. Returns the
 * descriptor, with *told (address and port for the client), or -errno: -EACCES if no listener is at
 * this address; -EADDRINUSE if all ports of the configuration are in use; -EMFILE beyond
 * GATEWAY_UDP_SOCKETS_MAX. */
int gateway_udp_open(
        struct supervisor *sv, const struct ip *at, struct message_worker_associated *told);
/* Call when that many of these sockets are closed. */
void gateway_udp_closed(struct supervisor *sv, size_t count);

/* gateway_signers.c */
/* Makes the signers of the configuration, and reads their keys. Returns 0 or -ENOMEM. */
int gateway_signers_configure(struct supervisor *sv);
/* Looks at the files, and asks the URLs that are due; now: asks all of them. Returns true if keys
 * of files have changed. New keys of a URL are sent once they have come. */
bool gateway_signers_look(struct supervisor *sv, bool now);
/* Gives all signers to the gateway, which then asks again about every token. */
void gateway_signers_send(struct supervisor *sv);
void gateway_signers_free(struct supervisor *sv);
/* Passes a question of the gateway on. Returns 0, or -EBADMSG. */
int gateway_on_token(struct supervisor *sv, struct ipc_message *message);
void gateway_decide(struct supervisor *sv, const struct gateway_question *q,
        const struct message_gateway_verdict *verdict);

/* gateway_files.c */
/* Opens the configuration's listeners; keeps those that are open already. Returns 0, or -errno with
 * why. */
int gateway_listen(struct gateway_life *life, char *why, size_t why_size);
void gateway_unlisten(struct gateway_life *life);
/* Opens certificate and key, if they are configured (else *count is 0). Returns 0, or -errno with
 * why. */
int gateway_files_open(const struct config_gateway *config, int fds[GATEWAY_FILES], size_t *count,
        char *why, size_t why_size);
/* True if these files differ from those that the gateway has. Notes the new ones. */
bool gateway_file_is_same(const struct stat *a, const struct stat *b);
bool gateway_files_changed(struct gateway_life *life, const int fds[GATEWAY_FILES]);

#endif
