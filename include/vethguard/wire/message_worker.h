/* SPDX-License-Identifier: Apache-2.0 */
/* message_worker: what supervisor and worker send each other, except about limits and asking (message_rules.h) and
 * about the gateway's connections (message_gateway.h). */
#ifndef VETHGUARD_WIRE_MESSAGE_WORKER_H
#define VETHGUARD_WIRE_MESSAGE_WORKER_H

#include "vethguard/policy/config.h"
#include "vethguard/wire/message_type.h"

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

#define MESSAGE_TOOLS_MAX 1024 /* tools of MCP servers whose descriptions are remembered for a sandbox */

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

MESSAGE_CODEC(worker_start);
MESSAGE_CODEC(listen);
MESSAGE_CODEC(reach);
MESSAGE_CODEC(reached);
MESSAGE_CODEC(call);
MESSAGE_CODEC(visit);
MESSAGE_CODEC(worker_pause);
MESSAGE_CODEC(worker_resume);
MESSAGE_CODEC(worker_retire);
MESSAGE_CODEC(worker_retired);
MESSAGE_CODEC(worker_stats);
/* Frees what the decoder allocated. A worker keeps the struct until it exits. */
void message_worker_start_fini(struct message_worker_start *m);

#endif
