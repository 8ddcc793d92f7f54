/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message_type: every message between the programs by its number, what all of them have in common, and bounds that
 * several share. One datagram is one message: type (u16), id (u64), body. A reply repeats the id of its question.
 * Descriptors travel beside the message (SCM_RIGHTS) in the order that each struct names. Decoding is strict: an
 * unknown type, a length out of bounds or a trailing byte is -EBADMSG, and the peer that sent it is cut off.
 */
#ifndef VETHGUARD_WIRE_MESSAGE_TYPE_H
#define VETHGUARD_WIRE_MESSAGE_TYPE_H

#include "vethguard/base/cursor.h"
#include "vethguard/policy/load.h"

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
#define MESSAGE_PATH_MAX 4095 /* of absolute paths, without NUL */
#define MESSAGE_FINGERPRINT_BYTES 32
#define MESSAGE_VALUE_MAX 65536  /* one credential value */
#define MESSAGE_VARIABLE_MAX 255 /* name of an environment variable: no '=', no NUL */
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
	                                 connection to its session's worker. The only message of a role with an fd */
	MESSAGE_GATEWAY_ENTERED = 88, /* the reply: struct message_gateway_entered */
	MESSAGE_GATEWAY_GUESSES = 89, /* gateway -> supervisor: struct message_gateway_guesses */
	MESSAGE_GATEWAY_HOLD = 90,    /* no body: accept nothing until RESUME; new connections wait in the backlog. The
	                                 gateway starts in this state. The reply: HELD */
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
	/* supervisor <-> worker, continued: UDP sockets for clients of the gateway (SOCKS5 UDP ASSOCIATE) */
	MESSAGE_WORKER_ASSOCIATE = 104,     /* worker -> supervisor: struct message_worker_associate */
	MESSAGE_WORKER_ASSOCIATED = 105,    /* the reply: struct message_worker_associated + fd unless port is 0 */
	MESSAGE_WORKER_ASSOCIATE_END = 106, /* worker -> supervisor, no body: the socket of one ASSOCIATED is closed */
	/* supervisor <-> worker, continued: rules that the sandbox proposes */
	MESSAGE_WORKER_PROPOSAL = 107, /* worker -> supervisor: struct message_worker_proposal: the sandbox proposes a
	                                  rule; the id is that of the request's event */
	MESSAGE_WORKER_PROPOSED = 108, /* supervisor -> worker, also before START: struct message_worker_proposed: what
	                                  has become of the proposal with this id */
	/* client certificates whose key is in a token (inject: client-certificate with key) */
	MESSAGE_CREDENTIAL_SIGN = 109,   /* worker -> keeper: struct message_credential_sign */
	MESSAGE_CREDENTIAL_SIGNED = 110, /* the reply, same id: struct message_token_signature */
	MESSAGE_TOKEN_KEY_SIGN = 111,    /* keeper -> token: struct message_token_key_sign; the reply is
	                                    TOKEN_SIGNATURE */
	MESSAGE_KEEPER_KEY_TOKEN = 112,  /* supervisor -> keeper: struct message_key_token + fd: one end of a pair to
	                                    that token's process; a later one replaces it */
	MESSAGE_KEEPER_KEY_TOKEN_LATE = 113, /* keeper -> supervisor: struct message_key_token: the token's process has
	                                        to end, and why */
	/* supervisor <-> gateway, continued */
	MESSAGE_GATEWAY_HELD = 114, /* no body: the reply to HOLD once each accepted connection has its worker or has
	                               ended; there is none if RESUME comes before */
	/* supervisor -> worker, no body: close all connections that the gateway has handed over, because their proof
	 * has become invalid */
	MESSAGE_WORKER_CUT = 115,
	/* supervisor -> worker, before START, if the sandbox has several workers: struct message_worker_team + the
	 * memory that they share (ipc/team.h) */
	MESSAGE_WORKER_TEAM = 116,
	/* supervisor -> worker, before a START whose policy has rules with mcp; no body, one fd: the memory of what
	 * servers said of their tools, a table of ipc/shared_names.h */
	MESSAGE_WORKER_TOOLS = 117,
	/* supervisor <-> vethguard-quota: budgets that several hosts share */
	MESSAGE_QUOTA_START = 118,   /* struct message_quota_start + fds as there */
	MESSAGE_QUOTA_BUDGETS = 119, /* struct message_quota_budgets + fd: a memory of quotas */
	MESSAGE_QUOTA_END = 120,     /* struct message_quota_end: nobody uses that memory any more */
	MESSAGE_QUOTA_SAYS = 121,    /* vethguard-quota -> supervisor: struct message_text. Empty: the server answers;
	                                otherwise why it does not */
	MESSAGE_TYPE_COUNT
};
/* "WORKER_START", for logs; "?" if type is not a message. */
const char *message_type_name(enum message_type type);

struct message_text { /* STOPPED, FAILED, STALLED, ... */
	struct slice text;
};

/* True for a permitted sandbox name. Names appear in logs, tables and file names of the operator, so they have no
 * characters with a meaning there, and none is one of the log's own names. */
bool message_name_is_plain(struct slice name);

struct message_head {
	enum message_type type;
	uint64_t id;
};

/* Reads the head and leaves body on the rest. Returns 0 or -EBADMSG. */
int message_open(const uint8_t *p, size_t n, struct message_head *head, struct reader *body);
/* Encodes a message without a body. Returns the size, or 0 if it does not fit cap. */
size_t message_empty(uint8_t *out, size_t cap, enum message_type type, uint64_t id);

/* One encoder and one decoder per struct. Encoders return the message's size, or 0 if it does not fit cap or a field
 * is out of its bounds. Decoders return 0, -EBADMSG or -ENOMEM; on failure they leave *m zeroed. Slices borrow the
 * input. */
#define MESSAGE_CODEC(name)                                                                                     \
	size_t message_##name##_encode(                                                                         \
	        uint8_t *out, size_t cap, enum message_type type, uint64_t id, const struct message_##name *m); \
	int message_##name##_decode(struct reader *body, struct message_##name *m)
MESSAGE_CODEC(text);

#endif
