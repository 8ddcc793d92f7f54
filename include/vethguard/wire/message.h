/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message: what the programs send each other over SOCK_SEQPACKET pairs, and its encoding. One datagram is one
 * message: type (u16), id (u64), body. A reply repeats the id of its question. Descriptors travel beside the message
 * (SCM_RIGHTS) in the order that each struct names. Decoding is strict: an unknown type, a length out of bounds or a
 * trailing byte is -EBADMSG, and the peer that sent it is cut off.
 */
#ifndef VETHGUARD_WIRE_MESSAGE_H
#define VETHGUARD_WIRE_MESSAGE_H

#include "vethguard/policy/config.h"
#include "vethguard/policy/load.h"
#include "vethguard/wire/event.h"
#include "vethguard/wire/message_gateway.h"
#include "vethguard/wire/message_rules.h"

#define MESSAGE_BYTES_MAX 131072 /* one message; a credential or a CA fits with room to spare */
#define MESSAGE_FDS_MAX 160      /* a worker with every UDP port a policy may name; Linux allows 253 */
#define MESSAGE_TEXT_MAX 32768   /* every diagnostic of a policy (DIAG_MAX) fits into one text */
#define MESSAGE_NAME_MAX 64      /* sandbox, policy and credential names: at least one byte */
/* The rule for sandbox names as a sentence, with a %d for MESSAGE_NAME_MAX. */
#define MESSAGE_NAME_RULE                                                                                      \
	"a sandbox name is up to %d letters, digits, '.', '_' and '-', beginning with a letter or digit, and " \
	"neither " MESSAGE_NAME_DAEMON " nor " MESSAGE_NAME_LEFT
/* The audit log's names for events of no sandbox, and of a sandbox that is not known any more. */
#define MESSAGE_NAME_DAEMON "vethguardd"
#define MESSAGE_NAME_LEFT "left-behind"
#define MESSAGE_PATH_MAX 4095        /* of absolute paths, without NUL */
#define MESSAGE_CERTIFICATE_MAX 4096 /* DER */
#define MESSAGE_KEY_MAX 1024         /* PKCS#8 */
#define MESSAGE_CHAIN_MAX 3          /* certificates between an intermediate and its root */
#define MESSAGE_PEM_MAX 8192         /* of all roots that a sandbox is to trust */
#define MESSAGE_PAPERS_MAX 32768     /* PEM of certificates that an operator gives */
#define MESSAGE_FINGERPRINT_BYTES 32
#define MESSAGE_CAS_MAX 4 /* CAs of a keeper: the current one and those that are still trusted */
#define MESSAGE_SUBJECT_MAX 255
#define MESSAGE_VALUE_MAX 65536  /* one credential value */
#define MESSAGE_VARIABLE_MAX 255 /* name of an environment variable: no '=', no NUL */
#define MESSAGE_WHAT_MAX 1024    /* one line of a summary */
#define MESSAGE_ENV_MAX POLICY_CREDENTIALS_MAX

/* A number is never reused for another message, because programs of two versions talk during an upgrade. */
enum message_type {
	/* supervisor -> any role, and the replies */
	MESSAGE_STOP = 1, /* finish what is under way, flush, reply STOPPED, exit 0 */
	MESSAGE_STOPPED = 2,
	MESSAGE_FAILED = 3, /* any direction: text says why; the sender is about to exit or cannot go on.
	                       From keeper or recorder with a sandbox's id: the sandbox's worker broke the
	                       protocol with them */

	/* supervisor -> worker */
	MESSAGE_WORKER_START = 4,      /* struct message_worker_start + fds as below; PAUSE, HOLD and KEEPER may
	                                  precede it */
	MESSAGE_WORKER_READY = 5,      /* worker -> supervisor: the worker serves */
	MESSAGE_WORKER_PAUSE = 6,      /* struct message_worker_pause */
	MESSAGE_WORKER_HOLD = 7,       /* no body: begin nothing new until RESUME, because no recorder is running */
	MESSAGE_WORKER_RESUME = 8,     /* struct message_worker_resume */
	MESSAGE_WORKER_RETIRE = 9,     /* struct message_worker_retire + fd: policy image (sealed memfd) */
	MESSAGE_WORKER_RETIRED = 10,   /* worker -> supervisor: reply to RETIRE: struct message_worker_retired. Once
	                                  nothing is left, the worker sends STOPPED with the id of the latest RETIRE
	                                  and exits */
	MESSAGE_WORKER_KEEPER = 11,    /* no body + fd: the worker's pair to the keeper, at the start and when
	                                  another keeper takes over */
	MESSAGE_WORKER_STATS_GET = 12, /* no body; answered once the worker serves, also by a retiring worker */
	MESSAGE_WORKER_STATS = 13,     /* worker -> supervisor: the reply: struct message_worker_stats */

	/* worker -> keeper, and the replies */
	MESSAGE_CA_GET = 14,         /* no body */
	MESSAGE_CA = 15,             /* struct message_ca; comes again, with the question's id, when the worker is to
	                                sign with another intermediate from now on */
	MESSAGE_CREDENTIAL_GET = 16, /* struct message_credential_get */
	MESSAGE_CREDENTIAL = 17,     /* struct message_credential */

	/* supervisor <-> keeper */
	MESSAGE_KEEPER_START = 18, /* no body; + fd of the root CA's file if the root CA is kept in one
	                              (keeper/authority.h) */
	MESSAGE_KEEPER_READY = 19,
	MESSAGE_KEEPER_SANDBOX = 20, /* struct message_keeper_sandbox: the sandbox of a WORKER from now on;
	                                repeated before the worker retires under another policy: the keeper reads
	                                every value anew from then on */
	MESSAGE_KEEPER_ROOT = 21,    /* keeper -> supervisor: reply to SANDBOX: the root certificate (PEM) */
	MESSAGE_SOURCE_OPEN = 22,    /* keeper -> supervisor: struct message_source_open */
	MESSAGE_SOURCE = 23,         /* supervisor -> keeper: struct message_source + fd to read the value from
	                                until its end */

	/* supervisor <-> recorder */
	MESSAGE_RECORDER_START = 24, /* struct message_recorder_start + fds: log for append, log for reading, journal */
	MESSAGE_RECORDER_READY = 25,
	MESSAGE_RECORDER_SANDBOX = 26,      /* struct message_recorder_sandbox + fd if has_packets: NFLOG socket */
	MESSAGE_RECORDER_RING = 27,         /* struct message_recorder_ring + fds: ring memory, its two eventfds; of a
	                                       sandbox announced before */
	MESSAGE_RECORDER_RING_END = 28,     /* struct message_recorder_ring: the ring's writer is gone: drain the ring,
	                                       reply DRAINED */
	MESSAGE_RECORDER_RING_DRAINED = 29, /* recorder -> supervisor, same id: all of the ring is in the log; its
	                                       memory may go */
	MESSAGE_RECORDER_REOPEN = 30,   /* use another log file, for rotation; fds: log for append, log for reading */
	MESSAGE_RECORDER_REOPENED = 31, /* recorder -> supervisor, same id: nothing more is written to the previous
	                                   file */
	MESSAGE_RECORDER_EVENT = 32,    /* an event of the supervisor itself: struct message_recorder_event; ids grow */
	MESSAGE_RECORDER_TAKEN = 33,    /* recorder -> supervisor: that EVENT, and the earlier ones of its sandbox,
	                                   are in the log */
	MESSAGE_RECORDER_STALLED = 34,  /* recorder -> supervisor: the log cannot be written: text */
	MESSAGE_RECORDER_FLOWING = 35,  /* recorder -> supervisor: the log can be written again */
	MESSAGE_RECORDER_END = 36,      /* struct message_sandbox: drain the sandbox's rings and packets, reply
	                                   SUMMARY with the same id */
	MESSAGE_RECORDER_SUMMARY = 37,  /* struct message_summary */

	/* vethguard run <-> its supervisor */
	MESSAGE_RUN_START = 38,   /* struct message_run_start + fds: network namespace of the
	                                 sandbox; shared: perhaps an NFLOG socket */
	MESSAGE_RUN_ENV_GET = 39, /* supervisor -> run: names of the variables that env: sources need: struct
	                                 message_names */
	MESSAGE_RUN_ENV = 40,     /* run -> supervisor: struct message_names (those that are set) + one pipe
	                                 each */
	MESSAGE_RUN_READY = 41,   /* struct message_run_ready */
	MESSAGE_RUN_END = 42,     /* the command has exited: struct message_status */
	MESSAGE_RUN_SUMMARY = 43, /* struct message_summary */

	/* how each role is confined (vethguard doctor --roles) */
	MESSAGE_DESCRIBE = 44,    /* supervisor -> any role after its start: no body */
	MESSAGE_DESCRIPTION = 45, /* the reply: struct message_text with the text of jail_describe() */
	MESSAGE_RUN_ROLES = 46,   /* run -> supervisor: no body */
	MESSAGE_RUN_ROLE = 47,    /* supervisor -> run: struct message_role, one per role, each with the
	                                 question's id */

	/* a daemon <-> the daemon of another version that takes over from it (supervisor/daemon/upgrade.h) */
	MESSAGE_UPGRADE = 48, /* struct message_upgrade; descriptors as the step says */

	/* supervisor <-> recorder, continued */
	MESSAGE_RECORDER_COUNT_GET = 49, /* recorder -> supervisor: struct message_sandbox, dropped 0: how many
	                                    packets has its fence counted? */
	MESSAGE_RECORDER_COUNT = 50,     /* the reply, which may also come unasked: struct message_sandbox */
	MESSAGE_RECORDER_ENDED = 51,   /* recorder -> supervisor: another recorder ended the log's file: send REOPEN */
	MESSAGE_RECORDER_REFUSED = 52, /* recorder -> supervisor, no body, with the id of SANDBOX's sandbox: it
	                                  could not be opened for reading */

	/* supervisor <-> keeper, continued */
	MESSAGE_KEEPER_WORKER = 53, /* struct message_keeper_worker, or no body: as with an empty root; with the id that
	                               the worker's sandbox will have here, + fd: the keeper's end of the worker's
	                               pair. The worker may have its CA now, and everything else after SANDBOX.
	                               Refused: FAILED with this id */
	MESSAGE_KEEPER_CHECK = 54,  /* no body: are you alive? */
	MESSAGE_KEEPER_HERE = 55,   /* keeper -> supervisor: the reply */

	/* supervisor <-> recorder, continued */
	MESSAGE_RECORDER_HEAD_GET = 56, /* no body: which line was written last? */
	MESSAGE_RECORDER_HEAD = 57,     /* recorder -> supervisor, same id: struct message_text: the line's
	                                   fingerprint, or empty: no line yet */

	/* supervisor <-> keeper, continued */
	MESSAGE_KEEPER_CA_ASK = 58,  /* struct message_keeper_ca_ask + fds: a new, empty file for what the keeper
	                                keeps, unless only looked at; with CHECK then the configuration's
	                                files, as `configured` says */
	MESSAGE_KEEPER_CA = 59,      /* keeper -> supervisor, same id: struct message_keeper_ca. If changed, the new
	                                file is on the disk, and the keeper waits for KEPT */
	MESSAGE_KEEPER_CA_KEPT = 60, /* no body, with CA_ASK's id: the new file has its name: what it says holds from
	                                now on. Without it, CA_ASK changes nothing */

	/* supervisor <-> fetch */
	MESSAGE_FETCH = 61,   /* struct message_fetch + fds: trusted CAs, pipe for the value, the secrets, and
	                         an empty file if stores */
	MESSAGE_FETCHED = 62, /* the reply, when the value is in the pipe: struct message_fetched */

	/* supervisor <-> worker, continued: ports that the policy exposes */
	MESSAGE_WORKER_LISTEN = 63,  /* struct message_listen + fd: the host's listener for a port; after START */
	MESSAGE_WORKER_REACH = 64,   /* worker -> supervisor: struct message_reach: connections into the sandbox */
	MESSAGE_WORKER_REACHED = 65, /* the reply: struct message_reached + at most as many fds, connecting */
	MESSAGE_WORKER_CALL = 66,   /* worker -> supervisor: struct message_call: a port that another sandbox exposes */
	MESSAGE_WORKER_CALLED = 67, /* the reply, no body: + fd, one end of a connected pair, unless it is refused */
	MESSAGE_WORKER_VISIT = 68, /* struct message_visit + fd, the pair's other end: another sandbox calls this one */
	/* an operator's questions about credentials (vethguard credential) */
	MESSAGE_WORKER_CREDENTIAL = 69,  /* supervisor -> worker: struct message_credential_ask */
	MESSAGE_WORKER_CREDENTIALS = 70, /* the reply: struct message_worker_credentials */
	MESSAGE_KEEPER_CREDENTIAL = 71,  /* supervisor -> keeper: struct message_credential_ask */
	MESSAGE_KEEPER_CREDENTIALS = 72, /* the reply, which may take as long as the source: struct
	                                    message_keeper_credentials */

	/* supervisor <-> fetch, continued */
	MESSAGE_FETCH_FAILED = 73, /* fetch -> supervisor: instead of FETCHED: struct message_fetch_failed */
	/* supervisor <-> token, and the keeper's pair to it */
	MESSAGE_TOKEN_START = 74,  /* struct message_token_start + fd: the PIN is read from it */
	MESSAGE_TOKEN_LOGIN = 75,  /* token -> supervisor, no body: the token gets the PIN now. The supervisor does not
	                              try a PIN again that was not accepted, because the token would lock itself */
	MESSAGE_TOKEN_READY = 76,  /* token -> supervisor: struct message_text: the key that was found */
	MESSAGE_TOKEN_KEEPER = 77, /* no body + fd: one end of a pair to the keeper; sent again for each new keeper */
	MESSAGE_TOKEN_SIGN = 78,   /* keeper -> token: struct message_token_sign */
	MESSAGE_TOKEN_SIGNATURE = 79,   /* token -> keeper, same id: struct message_token_signature */
	MESSAGE_KEEPER_TOKEN = 80,      /* supervisor -> keeper, no body + fd: the other end of that pair */
	MESSAGE_KEEPER_TOKEN_SAYS = 81, /* keeper -> supervisor: struct message_text. Empty: the key was tried, ask
	                                   again (CA_ASK); otherwise why the token process has to end */

	/* supervisor <-> gateway */
	MESSAGE_GATEWAY_START = 82,       /* struct message_gateway_start + fds: certificate chain and key (PEM) if
	                                     has_certificate, then one per listener */
	MESSAGE_GATEWAY_READY = 83,       /* gateway -> supervisor: it is ready to accept */
	MESSAGE_GATEWAY_CERTIFICATE = 84, /* no body + fds: the new certificate chain and key */
	MESSAGE_GATEWAY_SESSION = 85,     /* struct message_gateway_session: a new session, or a changed one */
	MESSAGE_GATEWAY_SESSION_END = 86, /* struct message_gateway_session_end: cut its connections and forget it */
	MESSAGE_GATEWAY_ENTER = 87,   /* gateway -> supervisor: struct message_gateway_enter: lead this authenticated
	                                 connection to its session's worker */
	MESSAGE_GATEWAY_ENTERED = 88, /* the reply: struct message_gateway_entered + fd if entered */
	MESSAGE_GATEWAY_GUESSES = 89, /* gateway -> supervisor: struct message_gateway_guesses */
	MESSAGE_GATEWAY_HOLD = 90,    /* no body: accept nothing until RESUME; new connections wait in the backlog. The
	                                 gateway starts in this state */
	MESSAGE_GATEWAY_RESUME = 91,  /* no body */

	/* supervisor -> worker, continued */
	MESSAGE_WORKER_ENTER = 92, /* struct message_worker_enter + fd: a connection that the gateway has led here */
	/* worker -> keeper: struct message_credential_seal: a login inside has got a token; no reply */
	MESSAGE_CREDENTIAL_SEAL = 93,

	/* vethguard sidecar run <-> its supervisor, continued */
	MESSAGE_RUN_RELOAD = 94, /* struct message_run_start, no fd: put this policy in force. The reply with
	                                the same id: READY, with what holds now, or KEPT */
	MESSAGE_RUN_KEPT = 95,   /* struct message_text: why the policy before stays in force */
	/* supervisor <-> gateway, continued */
	MESSAGE_GATEWAY_SIGNER = 96,  /* struct message_gateway_signer */
	MESSAGE_GATEWAY_TOKEN = 97,   /* gateway -> supervisor: struct message_gateway_token: whose session is it? */
	MESSAGE_GATEWAY_VERDICT = 98, /* the reply: struct message_gateway_verdict */

	/* supervisor -> worker, before a START or RETIRE whose policy has limits: struct message_worker_limits +
	 * one fd for each memory of counters */
	MESSAGE_WORKER_LIMITS = 99,
	/* supervisor <-> worker: what a person has to approve */
	MESSAGE_WORKER_ASK = 100,     /* worker -> supervisor: struct message_worker_ask; the id is the event's */
	MESSAGE_WORKER_ASK_END = 101, /* worker -> supervisor, no body: the request with this id waits no longer */
	MESSAGE_WORKER_ANSWER = 102,  /* the reply to ASK, once a person has decided: struct message_worker_answer */
	MESSAGE_WORKER_GRANT = 103,   /* supervisor -> worker, also before START: struct message_worker_grant; the id is
	                                that of the request that was asked about */
	MESSAGE_TYPE_COUNT
};
/* "WORKER_START", for logs; "?" if type is not a message. */
const char *message_type_name(enum message_type type);

struct message_text { /* STOPPED, FAILED, STALLED, ... */
	struct slice text;
};

/* fds: policy image (sealed memfd), trusted CAs (memfd, PEM), ring memory (memfd), ring data eventfd, ring space
 * eventfd, memory of synthetic names (dns/responder.h), then one per listener in the order of listeners[]. */
#define MESSAGE_WORKER_FDS_BEFORE_LISTENERS 6
enum message_listener {
	MESSAGE_LISTEN_TCP = 0,
	MESSAGE_LISTEN_DNS_UDP = 1,
	MESSAGE_LISTEN_DNS_TCP = 2,
	MESSAGE_LISTEN_UDP = 3,
	MESSAGE_LISTEN_UNIX = 4,      /* port 0 */
	MESSAGE_LISTEN_REWRITTEN = 5, /* TCP; the destination was rewritten (fence/shared.h) */
	MESSAGE_LISTEN_VSOCK = 6,     /* port 0; cid: the only machine that may connect, by its vsock CID */
	MESSAGE_LISTENER_KINDS
};
#define MESSAGE_SOCKET_PATH_MAX 107 /* unix(7): sun_path without its NUL */
#define MESSAGE_LISTENERS_MAX 134   /* both families of: TCP, DNS over UDP, DNS over TCP, POLICY_UDP_PORTS_MAX ports */
struct message_worker_start {
	struct slice sandbox; /* name */
	uint64_t sandbox_id;
	uint64_t generation;           /* of the policy; grows with each reload */
	struct ip gate4, gate6;        /* the gate's addresses, for DNS and the explicit proxy */
	struct ip_prefix pool4, pool6; /* synthetic addresses are taken from here, except the link's own */
	uint16_t proxy_port;
	size_t server_count; /* resolvers, from the configuration or /etc/resolv.conf */
	struct config_server servers[CONFIG_SERVERS_MAX];
	size_t host_count;         /* static hosts, from the configuration and /etc/hosts */
	struct config_host *hosts; /* when decoded: malloc'd, freed by message_worker_start_fini() */
	size_t permit_count;
	struct ip_prefix permit[CONFIG_PREFIXES_MAX];
	struct config_egress egress;
	struct slice egress_pair; /* "user:password" for the proxy, or empty */
	struct config_limits limits;
	struct config_timeouts timeouts;
	uint8_t log_level;
	size_t placeholder_count;
	struct {
		uint32_t credential;
		struct slice text;
	} placeholders[MESSAGE_ENV_MAX];
	size_t listener_count;
	struct {
		enum message_listener kind;
		uint16_t port;
		uint32_t cid; /* VSOCK; others: 0 */
	} listeners[MESSAGE_LISTENERS_MAX];
};

struct message_listen {
	uint16_t port; /* of the sandbox; not 0 */
};
#define MESSAGE_REACH_MAX 32
struct message_reach {
	uint16_t port;
	uint32_t count; /* 1 to MESSAGE_REACH_MAX */
};
struct message_reached {
	uint16_t port;
	struct ip address;  /* the sandbox's address */
	struct slice error; /* why there are fewer sockets; empty: there are all */
};

struct message_call {
	struct slice sandbox; /* its name, in any case of letters */
	uint16_t port;
};
#define MESSAGE_LABELS_MAX 16384
struct message_visit {
	uint16_t port;
	struct slice sandbox; /* the caller's name */
	struct slice labels;  /* the caller's: "KEY=VALUE" lines */
};

/* Reasons to refuse new work. Each ends with a RESUME of its own, except MESSAGE_PAUSE_WAY_OUT. */
enum message_pause {
	MESSAGE_PAUSE_RECORDER = 0, /* the log cannot be written: new work is refused, what is under way goes on.
	                           Its RESUME ends HOLD as well */
	MESSAGE_PAUSE_EGRESS = 1,   /* sent before RETIRE if the configuration's way out has changed: what is under
	                            way is closed at once, too. No RESUME follows */
	MESSAGE_PAUSE_OPERATOR = 2  /* the kill switch: what is under way is closed at once, too */
};
struct message_worker_pause {
	enum message_pause why;
	struct slice text; /* one sentence for refused clients */
};
struct message_worker_resume {
	enum message_pause why;
};

/* The worker accepts what is queued, closes its listeners, judges everything under way by the new policy and closes
 * what that policy denies. May come again with a later policy. */
struct message_worker_retire {
	uint64_t generation; /* of the policy sent with this message */
};
struct message_worker_retired {
	uint64_t generation;
	uint64_t closed; /* streams, connections and flows that the new policy does not allow */
	uint64_t left;   /* those that go on under the new policy */
};

/* What one worker has done since its start, and what it holds now (_open, _idle, _kept, _bytes). The supervisor adds
 * up the workers of a sandbox. */
enum message_stats_kind {
	MESSAGE_STATS_HTTP = 0,
	MESSAGE_STATS_CONNECTION = 1,
	MESSAGE_STATS_DNS = 2,
	MESSAGE_STATS_INBOUND = 3,
	MESSAGE_STATS_KINDS
};
struct message_worker_stats {
	uint64_t generation; /* of the worker's policy */
	struct {
		uint64_t allowed, denied, failed; /* as in struct message_summary; observed ones count as allowed */
	} kinds[MESSAGE_STATS_KINDS];             /* requests; tunnels and UDP flows; queries;
	                                             visits to exposed ports */
	uint64_t findings;
	uint64_t bytes_out, bytes_in;           /* payload from and to the sandbox, of what has ended */
	uint64_t connections, connections_open; /* from the sandbox */
	uint64_t streams_open, exchanges_open;  /* HTTP/2 streams; requests under way, of any version */
	uint64_t flows_open;                    /* UDP */
	uint64_t visits_open;                   /* to exposed ports */
	uint64_t upstreams_open, upstreams_idle;
	uint64_t names_kept;       /* synthetic addresses assigned */
	uint64_t backlog_bytes;    /* events that the recorder has no room for yet */
	uint64_t heap_bytes;       /* in use */
	uint64_t queries_refused;  /* above the limit: answered REFUSED and not logged one by one */
	uint64_t refusals_delayed; /* requests whose refusal had to wait its turn */
	uint64_t limits_met;       /* how often a limit of the policy refused or ended something */
};

struct message_ca {                /* DER; key is secret: the receiver wipes the datagram */
	struct slice root;         /* certificate */
	struct slice intermediate; /* certificate, signed by root, for this sandbox only */
	struct slice key;          /* intermediate's private key, PKCS#8 */
	size_t above_count;
	struct slice above[MESSAGE_CHAIN_MAX]; /* certificates between it and root, the one above it first */
};

struct message_credential_get {
	uint32_t credential; /* index in the policy */
	uint64_t generation; /* generation of that policy */
	bool renew;          /* the worker has a valid value and wants the next one */
};

struct message_credential { /* the reply; value is secret: the receiver wipes the datagram */
	uint32_t credential;
	bool available;
	uint32_t ttl_ms;    /* 0: does not expire */
	uint32_t renew_ms;  /* after that the worker asks for the next value, and uses this one meanwhile; 0: never */
	struct slice value; /* if available */
	struct slice error; /* if not available: one sentence without any byte of the value */
};

enum { MESSAGE_SEALED_MAX = 8192, MESSAGE_SEALED_END_MAX = 192 }; /* bytes, as JAR_TOKEN_MAX and JAR_END_MAX */
struct message_credential_seal {       /* the value is secret; jwt, end: as in struct jar_token (credential/jar.h) */
	struct slice name, end, value; /* name: of the credential, since numbers may just be changing */
	bool jwt;
};

#define MESSAGE_CA_NAMES_MAX 1200 /* CA_NAMES_MAX */
struct message_keeper_sandbox {
	uint64_t sandbox_id;  /* the worker's sandbox */
	uint64_t owner;       /* the sandbox, which may have several workers: they share what logins gave */
	uint64_t generation;  /* of the policy with these credentials */
	struct slice sandbox; /* name, for messages */
	struct slice names;   /* what its worker's CA may sign for (tls/ca_names.h); empty: anything */
	uint32_t credential_count;
	struct {
		struct slice name;
		uint32_t ttl_s;
		uint32_t timeout_ms;
		bool revoked; /* an operator has revoked the credential */
		bool sealed;  /* its values come by CREDENTIAL_SEAL */
	} credentials[POLICY_CREDENTIALS_MAX];
};

/* What an operator wants. The keeper does it before the workers: a worker forgets a value only after the keeper has
 * stopped giving it out. */
enum message_credential_what {
	MESSAGE_CREDENTIAL_LOOK = 0,   /* only tells what is known */
	MESSAGE_CREDENTIAL_CHECK = 1,  /* keeper: fetches a value; it is kept only where none is held */
	MESSAGE_CREDENTIAL_ROTATE = 2, /* keeper: fetches a value and holds it; worker: forgets the one before */
	MESSAGE_CREDENTIAL_REVOKE = 3, /* keeper: wipes the value and gives out none; worker: also ends what uses it */
	MESSAGE_CREDENTIAL_FORGET = 4, /* keeper: wipes the value and fetches another one on demand */
	MESSAGE_CREDENTIAL_WHATS
};
struct message_credential_ask {
	uint64_t sandbox_id; /* to the keeper: the sandbox's id; to a worker: 0 */
	uint64_t generation;
	uint8_t what;
	uint32_t credential; /* LOOK: 0 */
};

struct message_worker_credentials {
	uint64_t ended; /* REVOKE: requests that were ended */
	uint32_t count; /* 0: the worker has a policy of another generation */
	struct {
		uint64_t uses;         /* how many requests got the value since the worker's start */
		uint64_t last_used_ms; /* Unix time; 0: never */
	} credentials[POLICY_CREDENTIALS_MAX];
};

#define MESSAGE_CREDENTIAL_MARK_BYTES 8
#define MESSAGE_CREDENTIAL_ERROR_MAX 255
struct message_keeper_credentials {
	struct slice error; /* why CHECK or ROTATE failed, one sentence; empty: it succeeded */
	struct slice mark;  /* CHECK, ROTATE: of the value that was fetched; empty: nothing was fetched */
	uint32_t ttl_s;     /* how long that value may be used; 0: for ever */
	uint32_t count;
	struct {
		bool held, fetching, revoked;
		uint32_t fetches, failures;
		uint64_t fetched_ms, ends_ms, failed_ms; /* Unix time; 0: never */
		struct slice error;                      /* why the last fetch failed, or empty */
		/* MAC of the held value under a key that only this keeper has, of MESSAGE_CREDENTIAL_MARK_BYTES. Marks
		 * tell whether two values are the same, and help nobody to guess one. Empty: no value is held. */
		struct slice mark;
	} credentials[POLICY_CREDENTIALS_MAX];
};

struct message_keeper_root {
	struct slice root_pem; /* the CA certificates that the sandbox is to trust, its own root first */
	struct slice root, ca; /* fingerprints: of the root that its worker's chain ends at, and of the CA that
	                          signed its worker's intermediate */
};

struct message_keeper_worker {
	struct slice root; /* fingerprint of the root that the sandbox knows; empty: the current one; zeros: the
	                      oldest there is. One that is not kept any more counts as the current one */
	bool waits;        /* it gets its CA only when its sandbox is told, which says what the CA may sign for */
};

enum message_ca_what {
	MESSAGE_CA_LOOK = 0,    /* tells only */
	MESSAGE_CA_CHECK = 1,   /* reads the configured files, renews and drops what is due */
	MESSAGE_CA_REQUEST = 2, /* makes a key and a request for a certificate (PKCS#10) */
	MESSAGE_CA_INSTALL = 3, /* takes the certificate for that key */
	MESSAGE_CA_ROTATE = 4,  /* a new root; or a new request; or new intermediates for all workers */
	MESSAGE_CA_WHATS
};
/* Bits of message_keeper_ca_ask.configured, and the order of the descriptors. */
#define MESSAGE_CA_ROOT_FILE 1u             /* PEM: the roots that are trusted */
#define MESSAGE_CA_CERTIFICATE_FILE 2u      /* PEM: the CA that signs, and what is above it; absent: the first root */
#define MESSAGE_CA_KEY_FILE 4u              /* PEM: its key; absent: certificates are installed */
#define MESSAGE_CA_TOKEN_KEY 8u             /* its key is in a token: no descriptor for it; excludes KEY_FILE */
#define MESSAGE_CA_OVERLAP_MAX_S 315360000u /* ten years */
struct message_keeper_ca_ask {
	uint8_t what;
	uint8_t configured;       /* CHECK */
	struct slice problem;     /* CHECK: why the configured files cannot be opened: none of them is sent */
	uint32_t overlap_s;       /* how long CAs that are replaced stay trusted */
	struct slice name;        /* REQUEST, ROTATE: common name for a request */
	struct slice certificate; /* INSTALL: PEM, with what is above it */
	struct slice root;        /* INSTALL: PEM; empty: the configuration's, or the one in certificate */
};

#define MESSAGE_DIGEST_BYTES 32
#define MESSAGE_SIGNATURE_MAX 1024 /* RSA of 8192 bits */
#define MESSAGE_TOKEN_PAIRS_MAX 16
/* The process that speaks to the module of a PKCS #11 token (src/token). */
struct message_token_start {
	struct slice uri, module;
	struct slice user;     /* the user whose rights the process has; empty: _vethguard-token */
	size_t variable_count; /* "NAME=VALUE" */
	struct slice variables[MESSAGE_TOKEN_PAIRS_MAX];
	size_t writable_count; /* paths below which the module may write */
	struct slice writable[MESSAGE_TOKEN_PAIRS_MAX];
};
struct message_token_sign {
	struct slice digest; /* SHA-256 */
};
enum message_token_key { MESSAGE_TOKEN_EC = 1, MESSAGE_TOKEN_RSA = 2, MESSAGE_TOKEN_KEYS = 3 };
struct message_token_signature {
	uint8_t kind;           /* enum message_token_key */
	struct slice signature; /* EC: r and s, of equal length; RSA: PKCS #1 1.5; empty: error says why */
	struct slice error;
};

enum message_ca_origin { MESSAGE_CA_OWN = 0, MESSAGE_CA_INSTALLED = 1, MESSAGE_CA_CONFIGURED = 2, MESSAGE_CA_ORIGINS };
struct message_keeper_ca {
	bool changed;
	struct slice error;   /* one or more sentences; empty: it is done */
	struct slice notes;   /* what people should know, a line each */
	struct slice request; /* PEM of the request that waits for its certificate; empty: none */
	struct slice trusted; /* PEM of all roots that sandboxes are to trust */
	size_t count;         /* the first is the current one, unless unusable */
	bool unusable;        /* no CA can sign for new sandboxes: notes say why */
	bool trying; /* CHECK: reply to CHECK: the keeper is trying the token's key; KEEPER_TOKEN_SAYS follows */
	struct {
		uint8_t origin;
		struct slice fingerprint, root; /* of the CA and of its root, which may be the same */
		struct slice subject, root_subject;
		uint64_t from_s, until_s; /* validity; seconds since the epoch */
		uint64_t root_until_s;
		uint64_t retires_s; /* 0: the current one */
	} cas[MESSAGE_CAS_MAX];
};

struct message_source_open {
	uint64_t sandbox_id;
	uint32_t credential;
	uint64_t generation;
	bool renew;   /* the keeper holds a valid value; extending its life is as good as another value */
	bool discard; /* the fetched value will not be used: an operator checks the source while another value is in use
	               */
};

struct message_source {
	bool opened;        /* true: one fd comes with it */
	bool same;          /* nothing was opened: the value that the keeper holds may be used for ttl_s from now on */
	uint32_t ttl_s;     /* if opened: how long the value may be used; 0: as the policy says */
	uint32_t retry_s;   /* with an error: how long to wait before asking again; 0: as usual */
	struct slice error; /* empty: the sandbox is ending, which is not a fault */
};

#define MESSAGE_FETCH_ARGUMENTS_MAX POLICY_ARGV_MAX
#define MESSAGE_FETCH_ARGUMENT_MAX 8192
#define MESSAGE_FETCH_ADDRESSES_MAX 8
#define MESSAGE_FETCH_SECRETS_MAX 2
#define MESSAGE_FETCH_SITES_MAX 3
struct message_fetch_site {
	struct slice url;
	uint32_t address_count; /* of its host, from /etc/hosts or the configuration; 0: the resolvers are asked */
	struct ip addresses[MESSAGE_FETCH_ADDRESSES_MAX];
};
struct message_fetch {
	uint32_t secret_count; /* one for each argument whose value comes from a file, in the order of the arguments */
	bool stores;           /* an empty file is sent too, for the secret that replaces "refresh_token" */
	uint32_t argument_count; /* at least 1: as struct policy_credential has them, "file:" values without a path */
	struct slice arguments[MESSAGE_FETCH_ARGUMENTS_MAX];
	uint32_t site_count; /* at least 1: the service, then those where the login to it is */
	struct message_fetch_site sites[MESSAGE_FETCH_SITES_MAX];
	uint32_t server_count; /* resolvers */
	struct config_server servers[CONFIG_SERVERS_MAX];
};

#define MESSAGE_FETCHED_TTL_MAX_S (30u * 24 * 3600)
#define MESSAGE_LEASE_MAX 512
struct message_fetched {
	uint32_t ttl_s; /* how long the value may be used, at most the bound above; 0: the service does not tell */
	bool same;      /* the pipe is empty: the previous value may be used for ttl_s */
	bool renewable; /* its lease can be renewed */
	bool stored;    /* the file that was empty has the next secret; it must replace the old one before the value is
	                   used */
	struct slice lease; /* id of the value's lease at the service, which is no secret; empty: none */
};
#define MESSAGE_RETRY_MAX_S 3600u
struct message_fetch_failed {
	uint32_t retry_s; /* how long the service wants no request, at most the bound above; 0: it does not say */
	bool stored;      /* as in FETCHED; may be set although the rest of the answer was useless */
	struct slice text;
};

struct message_recorder_start {
	struct slice path; /* of the log, for messages */
	uint8_t log_level;
};

struct message_recorder_sandbox {
	uint64_t sandbox_id;
	struct slice sandbox, policy, fingerprint;
	struct ip gate4, gate6;
	struct slice socket; /* path of the Unix socket that is its only way out, or empty */
	bool has_packets;    /* the fd is sent */
	uint64_t dropped;    /* packets that the fence had counted when this recorder got the sandbox, and
	                        that another recorder reported; MESSAGE_DROPPED_UNKNOWN: both recorders read
	                        the same copies */
};
#define MESSAGE_DROPPED_UNKNOWN UINT64_MAX

/* One writer of a sandbox's events. Workers of a sandbox come and go, each with its own ring. */
struct message_recorder_ring {
	uint64_t sandbox_id;
	uint64_t ring; /* unique in its sandbox, even across restarts of the supervisor */
};

/* Sandboxes that the recorder has room for, including those that have ended and are not drained yet. */
#define MESSAGE_RECORDER_SANDBOXES_MAX 8192
#define MESSAGE_RECORDER_RINGS_ALL_MAX 20480 /* rings of all sandboxes: its notes of them fit into its journal */
/* What the recorder can hold of one sandbox while the log cannot be written: rings that are not drained, and bytes of
 * supervisor events that are not TAKEN, each with a fixed cost besides its own bytes. */
#define MESSAGE_RECORDER_RINGS_MAX 16
#define MESSAGE_RECORDER_AHEAD_MAX (64u << 10)
#define MESSAGE_RECORDER_EVENT_COST 32

struct message_recorder_event {
	uint64_t sandbox_id;
	struct slice event; /* as event_encode() made it; the rest of the message */
};

struct message_sandbox { /* RECORDER_END, RECORDER_COUNT */
	uint64_t sandbox_id;
	uint64_t dropped; /* packets that the fence has counted so far; 0: unknown */
};

struct message_status {
	int32_t status;
};

/* True for a permitted sandbox name. Names appear in logs, tables and file names of the operator, so they have no
 * characters with a meaning there, and none is one of the log's own names. */
bool message_name_is_plain(struct slice name);

#define MESSAGE_UNUSUAL_MAX 8
struct message_summary {
	uint64_t allowed, denied, dropped, findings, observed;
	uint64_t failed;      /* allowed by the policy, but failed in the network: counted neither as allowed
	                         nor as denied */
	uint64_t lines;       /* lines written to the log */
	size_t unusual_count; /* the most frequent refused destinations */
	struct {
		struct slice what; /* escaped: "POST https://paste.example/" */
		uint64_t count;
	} unusual[MESSAGE_UNUSUAL_MAX];
};

#define MESSAGE_SHARED_UDP_MAX 8 /* FENCE_SHARED_PORTS_MAX */
struct message_run_start {
	struct slice name;                                 /* of the sandbox; empty: the supervisor makes one up */
	struct slice policy_path, config_path, audit_path; /* absolute; empty: none */
	struct slice directory;                            /* absolute working directory, for exec: sources */
	uint32_t user_id, group_id; /* the invoking user: runs exec: sources, owns the audit file */
	bool observe;
	bool rootless;
	uint16_t shared_dns_port; /* port of the name service in a namespace that guard and sandbox share
	                             (fence/shared.h); 0: the sandbox has a namespace of its own */
	size_t shared_udp_count;
	uint16_t
	        shared_udp_ports[MESSAGE_SHARED_UDP_MAX]; /* ports at which that fence lets datagrams reach the guard */
	uint8_t log_level;
	size_t variable_count;
	struct policy_variable variables[POLICY_VARIABLES_MAX]; /* of the policy; policy_load() checks them */
};

#define MESSAGE_ROLE_NAME_MAX 127
struct message_role {
	uint32_t left;     /* number of messages that follow */
	uint32_t pid;      /* as the supervisor sees it */
	struct slice name; /* "the worker of x" */
	struct slice text; /* jail_describe(); empty: the role did not reply in time */
};

struct message_names {
	size_t count;
	struct slice names[MESSAGE_ENV_MAX];
};

struct message_run_ready {
	struct slice sandbox; /* its name */
	struct slice audit_path;
	struct ip gate4, gate6;
	uint16_t proxy_port;
	struct slice root_pem;
	size_t env_count;
	struct {
		struct slice name, value; /* variable and its placeholder */
	} env[MESSAGE_ENV_MAX];
	size_t file_count;
	struct slice files[MESSAGE_ENV_MAX]; /* files of file: sources, absolute; the command can see none of them */
};

struct message_head {
	enum message_type type;
	uint64_t id;
};

/* Reads the head and leaves body on the rest. Returns 0 or -EBADMSG. */
int message_open(const uint8_t *p, size_t n, struct message_head *head, struct reader *body);
/* Encodes a message without a body. Returns the size, or 0 if it does not fit cap. */
size_t message_empty(uint8_t *out, size_t cap, enum message_type type, uint64_t id);

/* Steps of an upgrade. The two programs may be of different versions: steps keep their numbers, and an unknown step
 * ends the upgrade. old: the daemon that serves so far; new: the daemon that takes over. id: the message's id. */
enum message_upgrade_step {
	MESSAGE_UPGRADE_HELLO = 1, /* new: its roles are ready; id: its set of recording files */
	MESSAGE_UPGRADE_GIVE = 2,  /* old: everything is paused; id: how many upgrades are draining already; text: what
	                              service_describe() says; fds: lock of the state directory, control socket, the
	                              gateway's listening sockets */
	MESSAGE_UPGRADE_WANT = 3,  /* new: asks for the sandbox id */
	MESSAGE_UPGRADE_SANDBOX = 4, /* old, reply: fd: NFLOG socket, or the Unix socket that is its only way out;
	                            no fd: there is none to give */
	MESSAGE_UPGRADE_SERVES = 5,  /* new: its worker serves the sandbox id */
	MESSAGE_UPGRADE_FAILS = 6,   /* new: the sandbox id cannot be served: text says why */
	MESSAGE_UPGRADE_DONE = 7,    /* new: everything possible is done */
	MESSAGE_UPGRADE_YOURS = 8,   /* old: its last message: from now on it only finishes what it has */
	MESSAGE_UPGRADE_REOPEN = 9,  /* new: the audit log was moved away */
	MESSAGE_UPGRADE_END = 10     /* new: what is not finished has to end now */
};
struct message_upgrade {
	uint8_t step;
	struct slice text;
};

/* One encoder and one decoder per struct. Encoders return the message's size, or 0 if it does not fit cap or a field
 * is out of its bounds. Decoders return 0, -EBADMSG or -ENOMEM; on failure they leave *m zeroed. Slices borrow the
 * input. */
#define MESSAGE_CODEC(name)                                                                                     \
	size_t message_##name##_encode(                                                                         \
	        uint8_t *out, size_t cap, enum message_type type, uint64_t id, const struct message_##name *m); \
	int message_##name##_decode(struct reader *body, struct message_##name *m)
MESSAGE_CODEC(text);
MESSAGE_CODEC(worker_start);
MESSAGE_CODEC(listen);
MESSAGE_CODEC(reach);
MESSAGE_CODEC(reached);
MESSAGE_CODEC(call);
MESSAGE_CODEC(visit);
MESSAGE_CODEC(worker_limits);
MESSAGE_CODEC(worker_ask);
MESSAGE_CODEC(worker_answer);
MESSAGE_CODEC(worker_grant);
MESSAGE_CODEC(worker_pause);
MESSAGE_CODEC(worker_resume);
MESSAGE_CODEC(worker_retire);
MESSAGE_CODEC(worker_retired);
MESSAGE_CODEC(worker_stats);
MESSAGE_CODEC(ca);
MESSAGE_CODEC(credential_get);
MESSAGE_CODEC(credential_seal);
MESSAGE_CODEC(credential);
MESSAGE_CODEC(keeper_sandbox);
MESSAGE_CODEC(keeper_root);
MESSAGE_CODEC(keeper_worker);
MESSAGE_CODEC(keeper_ca_ask);
MESSAGE_CODEC(keeper_ca);
MESSAGE_CODEC(source_open);
MESSAGE_CODEC(source);
MESSAGE_CODEC(fetch);
MESSAGE_CODEC(fetched);
MESSAGE_CODEC(fetch_failed);
MESSAGE_CODEC(credential_ask);
MESSAGE_CODEC(worker_credentials);
MESSAGE_CODEC(keeper_credentials);
MESSAGE_CODEC(token_start);
MESSAGE_CODEC(token_sign);
MESSAGE_CODEC(token_signature);
MESSAGE_CODEC(gateway_start);
MESSAGE_CODEC(gateway_session);
MESSAGE_CODEC(gateway_session_end);
MESSAGE_CODEC(gateway_enter);
MESSAGE_CODEC(gateway_entered);
MESSAGE_CODEC(gateway_guesses);
MESSAGE_CODEC(gateway_signer);
MESSAGE_CODEC(gateway_token);
MESSAGE_CODEC(gateway_verdict);
MESSAGE_CODEC(worker_enter);
MESSAGE_CODEC(recorder_start);
MESSAGE_CODEC(recorder_sandbox);
MESSAGE_CODEC(recorder_ring);
MESSAGE_CODEC(recorder_event);
MESSAGE_CODEC(sandbox);
MESSAGE_CODEC(status);
MESSAGE_CODEC(summary);
MESSAGE_CODEC(run_start);
MESSAGE_CODEC(names);
MESSAGE_CODEC(role);
MESSAGE_CODEC(run_ready);
MESSAGE_CODEC(upgrade);
#undef MESSAGE_CODEC
/* Frees what the decoder allocated. A worker keeps the struct until it exits. */
void message_worker_start_fini(struct message_worker_start *m);
#endif
