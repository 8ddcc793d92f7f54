/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message: what the programs say to each other over SOCK_SEQPACKET pairs, and its encoding. One datagram is one
 * message: type (u16), id (u64), body. A reply carries the id of its question. Descriptors travel beside
 * the message (SCM_RIGHTS) in the order that each struct names. Every decode is strict: unknown type, a length out of
 * bounds or a trailing byte is -EBADMSG, and the peer that sent it is cut off.
 */
#ifndef VETHGUARD_WIRE_MESSAGE_H
#define VETHGUARD_WIRE_MESSAGE_H

#include "vethguard/policy/config.h"
#include "vethguard/policy/load.h"
#include "vethguard/wire/event.h"

#define MESSAGE_BYTES_MAX 131072 /* one message; a credential or a CA fits with room to spare */
#define MESSAGE_FDS_MAX 160      /* a worker with every UDP port a policy may name; Linux allows 253 */
#define MESSAGE_TEXT_MAX 32768   /* every diagnostic of a policy (DIAG_MAX) in one text */
#define MESSAGE_NAME_MAX 64      /* sandbox, policy and credential names: at least one byte */
/* What a sandbox may be called, as a sentence with a %d for MESSAGE_NAME_MAX. */
#define MESSAGE_NAME_RULE \
	"a sandbox name is up to %d letters, digits, '.', '_' and '-', beginning with a letter or digit, and neither " \
	MESSAGE_NAME_DAEMON " nor " MESSAGE_NAME_LEFT
/* What the audit log calls what belongs to no sandbox, and to one that is not known any more. */
#define MESSAGE_NAME_DAEMON "vethguardd"
#define MESSAGE_NAME_LEFT "left-behind"
#define MESSAGE_PATH_MAX 4095    /* absolute paths: no NUL in them */
#define MESSAGE_CERTIFICATE_MAX 4096 /* DER */
#define MESSAGE_KEY_MAX 1024     /* PKCS#8 */
#define MESSAGE_PEM_MAX 8192
#define MESSAGE_VALUE_MAX 65536  /* one credential value */
#define MESSAGE_VARIABLE_MAX 255 /* name of an environment variable: no '=', no NUL */
#define MESSAGE_WHAT_MAX 1024    /* one line of a summary */
#define MESSAGE_ENV_MAX POLICY_CREDENTIALS_MAX

/* A number is never given to another message: programs of two versions speak during an upgrade. */
enum message_type {
	/* supervisor -> any role, and the answers */
	MESSAGE_STOP = 1,        /* finish what is under way, flush, answer STOPPED, exit 0 */
	MESSAGE_STOPPED = 2,
	MESSAGE_FAILED = 3,          /* any direction: text says why; the sender is about to exit or is unable to go on. From keeper
	                          * or recorder under a sandbox's id: its worker broke the protocol with them */

	/* supervisor -> worker */
	MESSAGE_WORKER_START = 4,    /* struct message_worker_start + fds as below; PAUSE, HOLD and KEEPER may come before it */
	MESSAGE_WORKER_READY = 5,    /* worker -> supervisor: it serves */
	MESSAGE_WORKER_PAUSE = 6,    /* struct message_worker_pause */
	MESSAGE_WORKER_HOLD = 7,     /* no body: begin nothing new until RESUME (nobody records just now) */
	MESSAGE_WORKER_RESUME = 8,   /* struct message_worker_resume */
	MESSAGE_WORKER_RETIRE = 9,   /* struct message_worker_retire + fd: policy image (sealed memfd) */
	MESSAGE_WORKER_RETIRED = 10,  /* worker -> supervisor: answer to RETIRE: struct message_worker_retired. When nothing of what
	                          * was left is left: STOPPED with the latest RETIRE's id, and it exits */
	MESSAGE_WORKER_KEEPER = 11,   /* no body + fd: its pair to the keeper, to begin with and when another one takes over */
	MESSAGE_WORKER_STATS_GET = 12,/* no body; answered once it serves, also by one that retires */
	MESSAGE_WORKER_STATS = 13,    /* worker -> supervisor: answer: struct message_worker_stats */

	/* worker -> keeper, and back */
	MESSAGE_CA_GET = 14,          /* no body */
	MESSAGE_CA = 15,              /* struct message_ca */
	MESSAGE_CREDENTIAL_GET = 16,  /* struct message_credential_get */
	MESSAGE_CREDENTIAL = 17,      /* struct message_credential */

	/* supervisor <-> keeper */
	MESSAGE_KEEPER_START = 18,    /* no body; + fd of the root CA's file where there is to be one (keeper/authority.h) */
	MESSAGE_KEEPER_READY = 19,
	MESSAGE_KEEPER_SANDBOX = 20,  /* struct message_keeper_sandbox: whose a WORKER is from now on; said again when it is to retire
	                          * under another policy: whatever it asks for from then on is read anew */
	MESSAGE_KEEPER_ROOT = 21,     /* keeper -> supervisor: answer to SANDBOX: root certificate (PEM) */
	MESSAGE_SOURCE_OPEN = 22,     /* keeper -> supervisor: struct message_source_open */
	MESSAGE_SOURCE = 23,          /* supervisor -> keeper: struct message_source + fd to read the value from until its end */

	/* supervisor <-> recorder */
	MESSAGE_RECORDER_START = 24,  /* struct message_recorder_start + fds: log for append, log for reading, journal */
	MESSAGE_RECORDER_READY = 25,
	MESSAGE_RECORDER_SANDBOX = 26,/* struct message_recorder_sandbox + fd where has_packets: NFLOG socket */
	MESSAGE_RECORDER_RING = 27,   /* struct message_recorder_ring + fds: ring memory, its two eventfds; of a sandbox told before */
	MESSAGE_RECORDER_RING_END = 28, /* struct message_recorder_ring: its writer is gone: drain it, answer DRAINED */
	MESSAGE_RECORDER_RING_DRAINED = 29, /* recorder -> supervisor, same id: all of it is in the log; the memory may go */
	MESSAGE_RECORDER_REOPEN = 30, /* the log under another file, for rotation: fds: log for append, log for reading */
	MESSAGE_RECORDER_REOPENED = 31, /* recorder -> supervisor, same id: nothing more is written to the file before */
	MESSAGE_RECORDER_EVENT = 32,  /* supervisor's own event: struct message_recorder_event; ids grow */
	MESSAGE_RECORDER_TAKEN = 33,  /* recorder -> supervisor: that EVENT, and those before it of its sandbox, are in the log */
	MESSAGE_RECORDER_STALLED = 34,/* recorder -> supervisor: the log cannot be written: text */
	MESSAGE_RECORDER_FLOWING = 35,/* recorder -> supervisor: it can again */
	MESSAGE_RECORDER_END = 36,    /* struct message_sandbox: drain its rings and packets, answer SUMMARY with the same id */
	MESSAGE_RECORDER_SUMMARY = 37,/* struct message_summary */

	/* vethguard run <-> its supervisor */
	MESSAGE_SESSION_START = 38,   /* struct message_session_start + fds: network namespace of the sandbox */
	MESSAGE_SESSION_ENV_GET = 39, /* supervisor -> run: names of variables that env: sources need: struct message_names */
	MESSAGE_SESSION_ENV = 40,     /* run -> supervisor: struct message_names (those that exist) + one pipe each */
	MESSAGE_SESSION_READY = 41,   /* struct message_session_ready */
	MESSAGE_SESSION_END = 42,     /* the command has ended: struct message_status */
	MESSAGE_SESSION_SUMMARY = 43, /* struct message_summary */

	/* how each role is confined (vethguard doctor --roles) */
	MESSAGE_DESCRIBE = 44,        /* supervisor -> any role that has begun: no body */
	MESSAGE_DESCRIPTION = 45,     /* the answer: struct message_text, as jail_describe() has it */
	MESSAGE_SESSION_ROLES = 46,   /* run -> supervisor: no body */
	MESSAGE_SESSION_ROLE = 47,    /* supervisor -> run: struct message_role, one after the other under the question's id */

	/* one daemon <-> the one of another version that takes over from it (supervisor/daemon/upgrade.h) */
	MESSAGE_UPGRADE = 48,         /* struct message_upgrade; descriptors as its step says */

	/* supervisor <-> recorder, further */
	MESSAGE_RECORDER_COUNT_GET = 49, /* recorder -> supervisor: struct message_sandbox, dropped 0: what has its fence counted? */
	MESSAGE_RECORDER_COUNT = 50,  /* the answer, at any time: struct message_sandbox */
	MESSAGE_RECORDER_ENDED = 51,  /* recorder -> supervisor: another recorder has ended the log's file: REOPEN is due */
	MESSAGE_RECORDER_REFUSED = 52,/* recorder -> supervisor, no body, under the id of SANDBOX's sandbox: it cannot be read */

	/* supervisor <-> keeper, further */
	MESSAGE_KEEPER_WORKER = 53,   /* no body, under the id that the worker's sandbox will have here, + fd: the keeper's end of the
	                          * worker's pair. It may have its CA; all else when SANDBOX has said whose it is. Refused: FAILED
	                          * under this id */
	MESSAGE_KEEPER_LOOK = 54,     /* no body: is it there? */
	MESSAGE_KEEPER_HERE = 55,     /* keeper -> supervisor: the answer */

	/* supervisor <-> recorder, further */
	MESSAGE_RECORDER_HEAD_GET = 56, /* no body: which line was written last? */
	MESSAGE_RECORDER_HEAD = 57,   /* recorder -> supervisor, same id: struct message_text: its fingerprint, or empty: none yet */
	MESSAGE_TYPE_COUNT
};
/* "WORKER_START", for logs; "?" for what is no message. */
const char *message_type_name(enum message_type type);

struct message_text {          /* STOPPED, FAILED, STALLED, ... */
	struct slice text;
};

/* fds: policy image (sealed memfd), trusted CAs (memfd, PEM), ring memory (memfd), ring data eventfd, ring space
 * eventfd, memory of synthetic names (dns/responder.h), then one per listener in the order of listeners[]. */
#define MESSAGE_WORKER_FDS_BEFORE_LISTENERS 6
enum message_listener { MESSAGE_LISTEN_TCP, MESSAGE_LISTEN_DNS_UDP, MESSAGE_LISTEN_DNS_TCP, MESSAGE_LISTEN_UDP };
#define MESSAGE_LISTENERS_MAX 134 /* both families: TCP, DNS over UDP and TCP, POLICY_UDP_PORTS_MAX */
struct message_worker_start {
	struct slice sandbox;      /* name */
	uint64_t sandbox_id;
	uint64_t generation;       /* of the policy: grows with each reload */
	struct ip gate4, gate6;    /* addresses of the gate: DNS, explicit proxy */
	struct ip_prefix pool4, pool6; /* synthetic addresses are taken from here; the link's own are excluded */
	uint16_t proxy_port;
	size_t server_count;       /* resolvers, as found in the configuration or /etc/resolv.conf */
	struct config_server servers[CONFIG_SERVERS_MAX];
	size_t host_count;         /* static hosts: configuration and /etc/hosts */
	struct config_host *hosts; /* decode: malloc'd, message_worker_start_fini frees */
	size_t permit_count;
	struct ip_prefix permit[CONFIG_PREFIXES_MAX];
	struct config_egress egress;
	struct slice egress_pair;  /* "user:password" for the proxy, or empty */
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
	} listeners[MESSAGE_LISTENERS_MAX];
};

/* Reasons to refuse, each ended by a RESUME of its own but the one that goes with the worker. */
enum message_pause {
	MESSAGE_PAUSE_RECORDER,    /* the log cannot be written: new work is refused, what is under way goes on. Its RESUME
	                            * ends HOLD as well */
	MESSAGE_PAUSE_WAY_OUT,     /* before RETIRE, where the configuration's way out is another now: what is under way is
	                            * closed at once, too. No RESUME follows */
	MESSAGE_PAUSE_OPERATOR     /* the kill switch: what is under way is closed at once, too */
};
struct message_worker_pause {
	enum message_pause why;
	struct slice text;         /* one sentence for who is refused */
};
struct message_worker_resume {
	enum message_pause why;
};

/* Accepts what is queued, closes its listeners, judges everything under way by the new policy and closes what does
 * not pass. May come again with a later policy. */
struct message_worker_retire {
	uint64_t generation;       /* of the policy that comes with it */
};
struct message_worker_retired {
	uint64_t generation;
	uint64_t closed;           /* streams, connections and flows that the new policy does not let pass */
	uint64_t left;             /* that are finished under it */
};

/* What a worker has done since it began, and what it holds just now (_open, _idle, _kept, _bytes). Of one worker: the
 * supervisor adds up those of a sandbox. */
enum message_stats_kind { MESSAGE_STATS_HTTP, MESSAGE_STATS_CONNECTION, MESSAGE_STATS_DNS, MESSAGE_STATS_KINDS };
struct message_worker_stats {
	uint64_t generation;       /* of its policy */
	struct {
		uint64_t allowed, denied, failed; /* as in struct message_summary; observed ones are allowed */
	} kinds[MESSAGE_STATS_KINDS]; /* requests; tunnels and UDP flows; queries */
	uint64_t findings;
	uint64_t bytes_out, bytes_in; /* payload from and to the sandbox, of what has ended */
	uint64_t connections, connections_open; /* from the sandbox */
	uint64_t streams_open, exchanges_open;  /* HTTP/2 streams; requests under way, of any version */
	uint64_t flows_open;       /* UDP */
	uint64_t upstreams_open, upstreams_idle;
	uint64_t names_kept;       /* synthetic addresses given out */
	uint64_t backlog_bytes;    /* events the recorder has no room for */
	uint64_t heap_bytes;       /* in use */
	uint64_t queries_refused;  /* beyond their bound: answered REFUSED and not told one by one */
	uint64_t refusals_delayed; /* requests whose refusal had to wait for its turn */
};

struct message_ca {            /* lengths in DER; key is secret: the receiver wipes the datagram */
	struct slice root;         /* certificate */
	struct slice intermediate; /* certificate, signed by root, for this sandbox only */
	struct slice key;          /* intermediate's private key, PKCS#8 */
};

struct message_credential_get {
	uint32_t credential;       /* index in the policy */
	uint64_t generation;       /* ... of that generation */
};

struct message_credential {    /* answer; value is secret: the receiver wipes the datagram */
	uint32_t credential;
	bool available;
	uint32_t ttl_s;            /* 0: does not expire */
	struct slice value;        /* where available */
	struct slice error;        /* else: one sentence, never with any byte of the value */
};

struct message_keeper_sandbox {
	uint64_t sandbox_id;       /* the worker's */
	uint64_t generation;       /* of the policy that has these credentials */
	struct slice sandbox;      /* name, for messages */
	uint32_t credential_count;
	struct {
		struct slice name;
		uint32_t ttl_s;
		uint32_t timeout_ms;
	} credentials[POLICY_CREDENTIALS_MAX];
};

struct message_keeper_root {
	struct slice root_pem;     /* the CA certificate the sandbox is to trust */
};

struct message_source_open {
	uint64_t sandbox_id;
	uint32_t credential;
	uint64_t generation;
};

struct message_source {
	bool opened;               /* with it: one fd */
	struct slice error;        /* empty: its sandbox is ending, which is nobody's fault */
};

struct message_recorder_start {
	struct slice path;         /* of the log, for messages */
	uint8_t log_level;
};

struct message_recorder_sandbox {
	uint64_t sandbox_id;
	struct slice sandbox, policy, fingerprint;
	struct ip gate4, gate6;
	bool has_packets;          /* the fd is there */
	uint64_t dropped;          /* packets that the fence had counted when this sandbox was taken up, and that are another
	                            * recorder's; MESSAGE_DROPPED_UNKNOWN: both read the same copies */
};
#define MESSAGE_DROPPED_UNKNOWN UINT64_MAX

/* One writer of a sandbox's events: workers of one sandbox come and go, each with a ring of its own. */
struct message_recorder_ring {
	uint64_t sandbox_id;
	uint64_t ring;             /* unique in its sandbox, also over a restart of the supervisor */
};

/* Sandboxes that the recorder has room for, those included that have ended and are not drained. */
#define MESSAGE_RECORDER_SANDBOXES_MAX 2048
/* What of one sandbox the recorder has room for while the log cannot be written: rings that are not drained; bytes of
 * events that are not taken, each with so many besides its own. */
#define MESSAGE_RECORDER_RINGS_MAX 16
#define MESSAGE_RECORDER_AHEAD_MAX (64u << 10)
#define MESSAGE_RECORDER_EVENT_COST 32

struct message_recorder_event {
	uint64_t sandbox_id;
	struct slice event;        /* as event_encode() made it; the rest of the message */
};

struct message_sandbox {           /* RECORDER_END, RECORDER_COUNT */
	uint64_t sandbox_id;
	uint64_t dropped;          /* packets that the fence has counted by now; 0: not known */
};

struct message_status {
	int32_t status;
};

/* Names appear in logs, tables and file names of the operator: nothing there that has a meaning, and none of the
 * log's own. */
bool message_name_is_plain(struct slice name);

#define MESSAGE_UNUSUAL_MAX 8
struct message_summary {
	uint64_t allowed, denied, dropped, findings, observed;
	uint64_t failed;           /* allowed, but not by the network: neither allowed nor denied */
	uint64_t lines;            /* written to the log */
	size_t unusual_count;      /* the most frequent refused destinations */
	struct {
		struct slice what;     /* escaped: "POST https://paste.example/" */
		uint64_t count;
	} unusual[MESSAGE_UNUSUAL_MAX];
};

struct message_session_start {
	struct slice name;         /* of the sandbox; empty: made up */
	struct slice policy_path, config_path, audit_path; /* absolute; empty: none */
	struct slice directory;    /* absolute working directory, for exec: sources */
	uint32_t user_id, group_id;/* invoking user: runs exec: sources, owns the audit file */
	bool observe;
	bool rootless;
	uint8_t log_level;
	size_t variable_count;
	struct policy_variable variables[POLICY_VARIABLES_MAX]; /* of the policy; policy_load() judges them */
};

#define MESSAGE_ROLE_NAME_MAX 127
struct message_role {
	uint32_t left;             /* so many follow */
	uint32_t pid;              /* as the supervisor sees it */
	struct slice name;         /* "the worker of x" */
	struct slice text;         /* jail_describe(); empty: it has not answered in time */
};

struct message_names {
	size_t count;
	struct slice names[MESSAGE_ENV_MAX];
};

struct message_session_ready {
	struct slice sandbox;      /* its name */
	struct slice audit_path;
	struct ip gate4, gate6;
	uint16_t proxy_port;
	struct slice root_pem;
	size_t env_count;
	struct {
		struct slice name, value; /* variable and its placeholder */
	} env[MESSAGE_ENV_MAX];
	size_t file_count;
	struct slice files[MESSAGE_ENV_MAX]; /* of file: sources, absolute: the command sees none of them */
};

struct message_head {
	enum message_type type;
	uint64_t id;
};

/* Reads the head and leaves body on the rest. 0 or -EBADMSG. */
int message_open(const uint8_t *p, size_t n, struct message_head *head, struct reader *body);
/* A message without a body. Its size, or 0 where it does not fit cap. */
size_t message_empty(uint8_t *out, size_t cap, enum message_type type, uint64_t id);

/* The two programs may be of different versions: steps keep their numbers, and one that is not known ends the upgrade.
 * old: who serves so far; new: who takes over. The message's id is the step's number. */
enum message_upgrade_step {
	MESSAGE_UPGRADE_HELLO = 1, /* new: its roles are ready; id: its set of recording files */
	MESSAGE_UPGRADE_GIVE,      /* old: everything has been held still; id: how many upgrades drain already; text: what
	                            * service_describe() says. fds: lock of the state directory, control socket */
	MESSAGE_UPGRADE_WANT,      /* new: asks for the sandbox id */
	MESSAGE_UPGRADE_SANDBOX,   /* old, answer: fd: NFLOG socket; none: it has none to give */
	MESSAGE_UPGRADE_SERVES,    /* new: the sandbox id is served by its worker */
	MESSAGE_UPGRADE_FAILS,     /* new: the sandbox id cannot be served: text says why */
	MESSAGE_UPGRADE_DONE,      /* new: all that could be done is */
	MESSAGE_UPGRADE_YOURS,     /* old: the last word: from here on it only finishes what it has */
	MESSAGE_UPGRADE_REOPEN,    /* new: the audit log was moved away */
	MESSAGE_UPGRADE_END        /* new: what is not finished is to end now */
};
struct message_upgrade {
	uint8_t step;
	struct slice text;
};

/* One encoder and one decoder per struct; encoders return the message's size, or 0 where it does not fit cap or a
 * field is out of its bounds. Decoders return 0, -EBADMSG or -ENOMEM and leave *m zeroed on failure; slices borrow
 * the input. */
#define MESSAGE_CODEC(name)                                                                                   \
	size_t message_##name##_encode(uint8_t *out, size_t cap, enum message_type type, uint64_t id,             \
		const struct message_##name *m);                                                                  \
	int message_##name##_decode(struct reader *body, struct message_##name *m)
MESSAGE_CODEC(text);
MESSAGE_CODEC(worker_start);
MESSAGE_CODEC(worker_pause);
MESSAGE_CODEC(worker_resume);
MESSAGE_CODEC(worker_retire);
MESSAGE_CODEC(worker_retired);
MESSAGE_CODEC(worker_stats);
MESSAGE_CODEC(ca);
MESSAGE_CODEC(credential_get);
MESSAGE_CODEC(credential);
MESSAGE_CODEC(keeper_sandbox);
MESSAGE_CODEC(keeper_root);
MESSAGE_CODEC(source_open);
MESSAGE_CODEC(source);
MESSAGE_CODEC(recorder_start);
MESSAGE_CODEC(recorder_sandbox);
MESSAGE_CODEC(recorder_ring);
MESSAGE_CODEC(recorder_event);
MESSAGE_CODEC(sandbox);
MESSAGE_CODEC(status);
MESSAGE_CODEC(summary);
MESSAGE_CODEC(session_start);
MESSAGE_CODEC(names);
MESSAGE_CODEC(role);
MESSAGE_CODEC(session_ready);
MESSAGE_CODEC(upgrade);
#undef MESSAGE_CODEC
/* Frees what the decoder allocated. A worker keeps it to its end. */
void message_worker_start_fini(struct message_worker_start *m);

#endif
