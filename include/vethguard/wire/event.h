/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event: what the worker, the supervisor and the packet reader report to the recorder, and its compact encoding for
 * the ring between them. The recorder turns an event into one OCSF JSON line. No field ever holds a credential's
 * value. Names from the sandbox are raw bytes here; the recorder escapes and bounds them.
 */
#ifndef VETHGUARD_WIRE_EVENT_H
#define VETHGUARD_WIRE_EVENT_H

#include "vethguard/base/cursor.h"
#include "vethguard/base/ip.h"

#define EVENT_BYTES_MAX 16384             /* one encoded event */
#define EVENT_TEXT_MAX 4096               /* one text field; the encoder cuts longer ones */
#define EVENT_TIME_MAX_MS 253402300799999 /* the end of the year 9999 */

/* Numbers of kinds, causes and the rest are in the ring and the journal, which a recorder of the next version may
 * read: a number is never reused. */
enum event_kind {
	EVENT_HTTP = 0,       /* one request: HTTP Activity 4002 */
	EVENT_DNS = 1,        /* one query with its answer: DNS Activity 4003 */
	EVENT_CONNECTION = 2, /* TCP that is not HTTP (tunnel, passthrough, refused): Network Activity 4001 */
	EVENT_FLOW = 3,       /* a relayed datagram flow: Network Activity 4001 */
	EVENT_PACKET = 4,     /* packets the fence dropped: Network Activity 4001 with a count */
	EVENT_LIFECYCLE = 5,  /* a change in a sandbox's life: Application Lifecycle 6002 */
	EVENT_FINDING = 6,    /* something that should not happen: Detection Finding 2004 */
	EVENT_API = 7,        /* a call of the control API: API Activity 6003 */
	EVENT_INBOUND = 8, /* a connection to an exposed port: Network Activity 4001. src: who connects; dst: where the
	                      host listened; upstream: the sandbox and its port; user: the calling sandbox */
	EVENT_KIND_COUNT
};
const char *event_kind_name(enum event_kind kind); /* "HTTP", for logs */

enum event_decision {
	EVENT_ALLOWED = 0,
	EVENT_DENIED = 1,
	EVENT_OBSERVED = 2,
	EVENT_DROPPED = 3,
	EVENT_DECISION_COUNT
};

/* Why the worker refused or ended something, beyond the policy's own reasons (policy_reason). */
enum event_cause {
	EVENT_CAUSE_POLICY = 0,       /* policy_reason says why */
	EVENT_CAUSE_BINDING = 1,      /* the rule's host, SNI, Host, resolved name and certificate do not agree */
	EVENT_CAUSE_CREDENTIAL = 2,   /* the credential could not be read */
	EVENT_CAUSE_RESOLVE = 3,      /* the name did not resolve */
	EVENT_CAUSE_ADDRESS = 4,      /* every address it resolved to is of a refused class */
	EVENT_CAUSE_CONNECT = 5,      /* no address accepted a connection */
	EVENT_CAUSE_UPSTREAM_TLS = 6, /* handshake or verification failed */
	EVENT_CAUSE_UPSTREAM = 7,     /* the upstream broke the protocol or the connection */
	EVENT_CAUSE_CLIENT = 8,       /* the sandbox broke the protocol or the connection */
	EVENT_CAUSE_TIMEOUT = 9,
	EVENT_CAUSE_LIMIT = 10,          /* a limit of this sandbox was reached */
	EVENT_CAUSE_UNREADABLE = 11,     /* the response could not be searched for the credential */
	EVENT_CAUSE_CLOSING = 12,        /* vethguard is stopping, or was told to stop everything */
	EVENT_CAUSE_CALLER = 13,         /* a call of the control API is impossible or not permitted */
	EVENT_CAUSE_POLICY_CHANGED = 14, /* the old policy allowed it and a new policy does not */
	EVENT_CAUSE_SEARCH_LIST = 15,    /* a resolver built the name from an allowed name and a domain of its search
	                               list */
	EVENT_CAUSE_PAUSED = 16,         /* the operator has paused the sandbox */
	EVENT_CAUSE_POLICY_LIMIT = 17,   /* a limit or budget of the policy was met */
	EVENT_CAUSE_ASK = 18,            /* a person had to approve it, and has refused, or not answered */
	EVENT_CAUSE_COUNT
};

enum event_finding {
	EVENT_FINDING_NONE = 0,
	EVENT_FINDING_BINDING_MISMATCH = 1,
	EVENT_FINDING_PLACEHOLDER_LEAK = 2, /* a placeholder where it does not belong */
	EVENT_FINDING_CREDENTIAL_ECHO = 3,  /* the upstream sent the credential back; it was redacted */
	EVENT_FINDING_DNS_TUNNEL = 4,       /* names that look like transported data */
	EVENT_FINDING_SMUGGLING = 5,        /* a malformed head that another parser might read differently */
	EVENT_FINDING_PRIVATE_ADDRESS = 6,  /* a name resolved to a refused address */
	EVENT_FINDING_FENCE_CHANGED = 7,
	EVENT_FINDING_ROLE_DIED = 8,
	EVENT_FINDING_BROKEN_STREAM = 9,       /* a worker's event stream became unreadable and ended there */
	EVENT_FINDING_PACKETS_LOST = 10,       /* copies of dropped packets were lost, so counts are a lower bound */
	EVENT_FINDING_FLOOD = 11,              /* HTTP/2 frames or streams that only cost resources */
	EVENT_FINDING_CREDENTIAL_SENT = 12,    /* the sandbox sent a credential's value, which it should not know */
	EVENT_FINDING_LOG_OUTAGE = 13,         /* the audit log could not be written for a while */
	EVENT_FINDING_CUT_OFF = 14,            /* a restarted vethguardd could not take over a sandbox */
	EVENT_FINDING_FOREIGN_CREDENTIAL = 15, /* the sandbox brought a credential that is none of the policy's */
	EVENT_FINDING_FOREIGN_PEER = 16,       /* a machine other than the sandbox connected to its vsock port */
	EVENT_FINDING_GUESSED_TOKENS = 17,     /* clients showed wrong tokens to the gateway */
	EVENT_FINDING_SECRET = 18,             /* the sandbox sent what looks like a secret (dlp) */
	EVENT_FINDING_BUNDLE_REFUSED = 19,     /* a bundle was refused for its signature, serial or content */
	EVENT_FINDING_TOOL_CHANGED = 20,       /* an MCP server describes a tool in another way than before */
	EVENT_FINDING_TOOL_INSTRUCTS = 21,     /* what an MCP server says of a tool speaks to the model */
	EVENT_FINDING_COUNT
};

enum event_lifecycle {
	EVENT_START = 0,
	EVENT_STOP = 1,
	EVENT_ADOPTED = 2,         /* a restarted vethguardd took the sandbox over */
	EVENT_WORKER_REPLACED = 3, /* another worker serves the sandbox */
	EVENT_PAUSED = 4,
	EVENT_RESUMED = 5,
	EVENT_POLICY_CHANGED = 6,
	EVENT_LOG_OPENED = 7, /* of the daemon: it continues in another audit file */
	EVENT_LOG_ENDED = 8,  /* the last line of an audit file that was moved away: nobody writes behind it */
	EVENT_LIFECYCLE_COUNT
};

struct event {
	/* Always set. */
	uint64_t id; /* unique in the sandbox's run; denials show it to the agent as 16 hex digits */
	enum event_kind kind;
	int64_t time_ms; /* start of the activity, since the epoch */
	uint32_t duration_us;
	enum event_decision decision;
	enum event_cause cause;
	uint8_t policy_reason;   /* enum policy_reason if cause is EVENT_CAUSE_POLICY or decision is
	                            EVENT_OBSERVED */
	struct slice rule;       /* rule name or empty */
	struct slice credential; /* credential name or empty */
	struct slice detail;     /* one sentence for people, or empty */

	/* Endpoints (not for LIFECYCLE). family 0 or empty: unknown. */
	struct ip src, dst, upstream; /* dst: what the sandbox dialed; upstream: the address vethguard dialed, or
	                                 refused to dial (EVENT_CAUSE_ADDRESS) */
	uint16_t src_port, dst_port;
	uint16_t upstream_port; /* the destination's port, dialed or not (on the explicit proxy dst_port is the
	                           proxy's); 0: unknown */
	struct slice host;      /* destination name */
	uint8_t protocol;       /* IP protocol number */
	uint64_t bytes_out;     /* from the sandbox */
	uint64_t bytes_in;      /* to the sandbox */

	/* TLS, if it was used. */
	struct slice sni;
	uint16_t tls_version; /* 0x0303, 0x0304; 0: none */
	bool passthrough;

	/* HTTP. */
	struct slice scheme; /* "http" or "https" */
	struct slice method;
	struct slice target; /* canonical path and the query as the sandbox sent it */
	struct slice user_agent;
	struct slice facts;   /* what the request asks for, encoded: policy/request_facts.h */
	uint16_t status;      /* the status sent to the sandbox; 0: none */
	uint8_t http_version; /* 10, 11, 20 */
	bool callback;        /* another proxy asks about the request, which that proxy sends itself */

	/* DNS. */
	uint16_t dns_id, dns_type, dns_class;
	uint8_t dns_rcode;
	struct ip answer;

	/* PACKET. */
	uint16_t ethertype;
	uint64_t count;            /* packets in this record, at least 1 */
	int64_t last_ms;           /* time of the last packet */
	struct slice verdict_rule; /* the fence rule that dropped the packets: "source", "ethertype", "other", ... */

	/* FINDING. */
	enum event_finding finding;
	uint64_t about; /* id of the event that the finding concerns, or 0 */

	/* LIFECYCLE. detail: the cause, or the difference between the policies. */
	enum event_lifecycle lifecycle;
	struct slice policy, fingerprint, old_policy, old_fingerprint; /* old_*: POLICY_CHANGED */
	uint64_t generation;

	/* API. host: the sandbox concerned; method, target, user_agent, status: of the HTTP request; detail: the
	 * error. */
	struct slice operation;
	struct slice user; /* the caller's name, or empty */
	uint32_t user_id, process_id;
};

/* True for kinds that a worker may report. The others come from the supervisor or the recorder itself. */
static inline bool event_kind_is_of_worker(enum event_kind kind)
{
	return kind == EVENT_HTTP || kind == EVENT_DNS || kind == EVENT_CONNECTION || kind == EVENT_FLOW ||
	       kind == EVENT_FINDING || kind == EVENT_INBOUND;
}

/* True if the event's activity was allowed and then failed upstream: no name, no connection, a bad certificate, an
 * upstream that broke off or was too slow. Faults and timeouts of the sandbox do not count. */
bool event_upstream_failed(const struct event *event);
/* The same, limited to what the policy allowed: what only mode observe let pass stays EVENT_OBSERVED, however it
 * ended. */
bool event_is_failure(const struct event *event);

/* Encodes an event. Returns the size, or 0 if it does not fit cap (never for cap >= EVENT_BYTES_MAX). Texts are cut
 * at EVENT_TEXT_MAX, or shorter if all together would not fit. A time out of range becomes the nearest in range, a
 * packet count of 0 becomes 1, an invalid status or HTTP version becomes 0. Enums have to be in range. */
size_t event_encode(const struct event *event, uint8_t *out, size_t cap);
/* Decodes an event; slices borrow from the input. Returns 0, or -EBADMSG for any field out of range or trailing
 * byte. */
int event_decode(const uint8_t *p, size_t n, struct event *out);

/* The log's status_code, for programs. For EVENT_CAUSE_POLICY the policy's reason counts. */
struct slice event_reason_code(enum event_cause cause, uint8_t policy_reason);
/* Texts for people, static. */
const char *event_cause_text(enum event_cause cause);
const char *event_finding_title(enum event_finding finding);

#endif
