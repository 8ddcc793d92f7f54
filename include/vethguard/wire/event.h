/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event: what happened, as the worker, the supervisor and the packet reader tell it to the recorder, and its compact
 * encoding for the ring between them. The recorder turns it into one OCSF JSON line. No field ever holds a
 * credential value; names that came from the sandbox are raw bytes here and are escaped and bounded by the recorder.
 */
#ifndef VETHGUARD_WIRE_EVENT_H
#define VETHGUARD_WIRE_EVENT_H

#include "vethguard/base/cursor.h"
#include "vethguard/base/ip.h"

#define EVENT_BYTES_MAX 16384 /* one encoded event */
#define EVENT_TEXT_MAX 4096   /* one text field; longer ones are cut by the encoder */
#define EVENT_TIME_MAX_MS 253402300799999 /* the end of the year 9999 */

enum event_kind {
	EVENT_HTTP,       /* one request: HTTP Activity 4002 */
	EVENT_DNS,        /* one query with its answer: DNS Activity 4003 */
	EVENT_CONNECTION, /* a TCP connection that is not HTTP (tunnel, passthrough, refused): Network Activity 4001 */
	EVENT_FLOW,       /* a relayed datagram flow: Network Activity 4001 */
	EVENT_PACKET,     /* packets the fence dropped: Network Activity 4001 with a count */
	EVENT_LIFECYCLE,  /* what becomes of a sandbox: Application Lifecycle 6002 */
	EVENT_FINDING,    /* something that should not happen: Detection Finding 2004 */
	EVENT_API,        /* a call of the control API: API Activity 6003 */
	EVENT_KIND_COUNT
};
const char *event_kind_name(enum event_kind kind); /* "HTTP", for logs */

enum event_decision { EVENT_ALLOWED, EVENT_DENIED, EVENT_OBSERVED, EVENT_DROPPED, EVENT_DECISION_COUNT };

/* Beyond the policy's own reasons (policy_reason): why the worker refused or ended something. */
enum event_cause {
	EVENT_CAUSE_POLICY,           /* policy_reason tells */
	EVENT_CAUSE_BINDING,          /* rule host, SNI, Host, resolved name, certificate do not agree */
	EVENT_CAUSE_CREDENTIAL,       /* the credential could not be read */
	EVENT_CAUSE_RESOLVE,          /* the name did not resolve */
	EVENT_CAUSE_ADDRESS,          /* every address it resolved to is of a refused class */
	EVENT_CAUSE_CONNECT,          /* no address could be connected */
	EVENT_CAUSE_UPSTREAM_TLS,     /* handshake or verification failed */
	EVENT_CAUSE_UPSTREAM,         /* the upstream broke the protocol or the connection */
	EVENT_CAUSE_CLIENT,           /* the sandbox broke the protocol or the connection */
	EVENT_CAUSE_TIMEOUT,
	EVENT_CAUSE_LIMIT,            /* a bound of this sandbox is reached */
	EVENT_CAUSE_UNREADABLE,       /* the response could not be scanned for the credential */
	EVENT_CAUSE_CLOSING,          /* vethguard is stopping, or was told to stop everything */
	EVENT_CAUSE_CALLER,           /* a call of the control API that cannot or may not be done */
	EVENT_CAUSE_POLICY_CHANGED,   /* it was let pass, and a new policy does not */
	EVENT_CAUSE_SEARCH_LIST,      /* a name that a resolver has made of an allowed one, with a domain of its search list */
	EVENT_CAUSE_PAUSED,           /* the operator has paused the sandbox */
	EVENT_CAUSE_COUNT
};

enum event_finding {
	EVENT_FINDING_NONE,
	EVENT_FINDING_BINDING_MISMATCH,
	EVENT_FINDING_PLACEHOLDER_LEAK, /* a placeholder where it does not belong */
	EVENT_FINDING_CREDENTIAL_ECHO,  /* the upstream sent the credential back; it was masked */
	EVENT_FINDING_DNS_TUNNEL,       /* names that look like carried data */
	EVENT_FINDING_SMUGGLING,        /* a malformed head that another parser might read differently */
	EVENT_FINDING_PRIVATE_ADDRESS,  /* a name resolved to a refused address */
	EVENT_FINDING_FENCE_CHANGED,
	EVENT_FINDING_ROLE_DIED,
	EVENT_FINDING_BROKEN_STREAM,    /* a worker's events could not be read: its stream ended there */
	EVENT_FINDING_PACKETS_LOST,     /* copies of dropped packets were lost: counts are a lower bound */
	EVENT_FINDING_FLOOD,            /* frames or streams that only cost: HTTP/2 */
	EVENT_FINDING_CREDENTIAL_SENT,  /* the sandbox sent a credential's value, which it should not know */
	EVENT_FINDING_LOG_OUTAGE,       /* the audit log could not be written for a while */
	EVENT_FINDING_CUT_OFF,          /* a sandbox could not be taken over by a vethguardd that was started anew */
	EVENT_FINDING_COUNT
};

enum event_lifecycle {
	EVENT_START,
	EVENT_STOP,
	EVENT_ADOPTED,          /* taken up again by a vethguardd that was started anew */
	EVENT_WORKER_REPLACED,  /* another worker serves it */
	EVENT_PAUSED,
	EVENT_RESUMED,
	EVENT_POLICY_CHANGED,
	EVENT_LOG_OPENED,       /* of the daemon: it goes on in another audit file */
	EVENT_LOG_ENDED,        /* the last line of an audit file that was moved away: nobody writes behind it */
	EVENT_LIFECYCLE_COUNT
};

struct event {
	/* Always. */
	uint64_t id;              /* unique in the sandbox's run; shown to the agent in denials as 16 hex digits */
	enum event_kind kind;
	int64_t time_ms;          /* since the epoch: start of the activity */
	uint32_t duration_us;
	enum event_decision decision;
	enum event_cause cause;
	uint8_t policy_reason;    /* enum policy_reason, where cause is EVENT_CAUSE_POLICY or decision EVENT_OBSERVED */
	struct slice rule;        /* rule name or empty */
	struct slice credential;  /* credential name or empty */
	struct slice detail;      /* one sentence for people, or empty */

	/* Endpoints (not LIFECYCLE). family 0 / empty: unknown. */
	struct ip src, dst, upstream; /* dst: what the sandbox dialled; upstream: the address vethguard dialled, or refused to
	                                 (EVENT_CAUSE_ADDRESS) */
	uint16_t src_port, dst_port;
	uint16_t upstream_port;   /* the destination's, dialled or not: of the explicit proxy dst_port is its own; 0: unknown */
	struct slice host;        /* destination name */
	uint8_t protocol;         /* IP protocol number */
	uint64_t bytes_out;       /* from the sandbox */
	uint64_t bytes_in;        /* to the sandbox */

	/* TLS, where there was any. */
	struct slice sni;
	uint16_t tls_version;     /* 0x0303, 0x0304; 0: none */
	bool passthrough;

	/* HTTP. */
	struct slice scheme;      /* "http" or "https" */
	struct slice method;
	struct slice target;      /* canonical path and the sandbox's own query */
	struct slice user_agent;
	uint16_t status;          /* sent to the sandbox; 0: none */
	uint8_t http_version;     /* 10, 11, 20 */

	/* DNS. */
	uint16_t dns_id, dns_type, dns_class;
	uint8_t dns_rcode;
	struct ip answer;

	/* PACKET. */
	uint16_t ethertype;
	uint64_t count;           /* packets in this record, at least 1 */
	int64_t last_ms;          /* time of the last of them */
	struct slice verdict_rule;/* the fence rule that dropped it: "source", "ethertype", "other", ... */

	/* FINDING. */
	enum event_finding finding;
	uint64_t about;           /* id of the event it belongs to, or 0 */

	/* LIFECYCLE; detail: its cause, or the difference between the policies. */
	enum event_lifecycle lifecycle;
	struct slice policy, fingerprint, old_policy, old_fingerprint; /* POLICY_CHANGED */
	uint64_t generation;

	/* API. host: the sandbox it is about; method, target, user_agent, status: of the HTTP request; detail: the error. */
	struct slice operation;
	struct slice user;        /* name of the caller, or empty */
	uint32_t user_id, process_id;
};

/* Which kinds a worker may report: the others come from the supervisor or the recorder itself. */
static inline bool event_kind_is_of_worker(enum event_kind kind)
{
	return kind == EVENT_HTTP || kind == EVENT_DNS || kind == EVENT_CONNECTION || kind == EVENT_FLOW ||
	       kind == EVENT_FINDING;
}

/* It was let pass, and then got nowhere: no name, no connection, a bad certificate, an upstream that broke off or was
 * too slow. What the sandbox did wrong, or a time-out of its own, is no such failure. */
bool event_upstream_failed(const struct event *event);
/* The same of what the policy allowed. What mode observe let pass stays EVENT_OBSERVED, however it ended. */
bool event_is_failure(const struct event *event);

/* Encoded size, or 0 where it does not fit cap (never for cap >= EVENT_BYTES_MAX). Texts are cut at EVENT_TEXT_MAX, or
 * shorter where all together would not fit; a time out of range becomes the nearest in range, a packet count of 0
 * becomes 1, a status or HTTP version that is none becomes 0. Enums have to be in range. */
size_t event_encode(const struct event *event, uint8_t *out, size_t cap);
/* Slices borrow from the input. 0 or -EBADMSG: any field out of range, any trailing byte. */
int event_decode(const uint8_t *p, size_t n, struct event *out);

/* For machines: the log's status_code. Of EVENT_CAUSE_POLICY it is the policy's reason that counts. */
struct slice event_reason_code(enum event_cause cause, uint8_t policy_reason);
/* For people, static. */
const char *event_cause_text(enum event_cause cause);
const char *event_finding_title(enum event_finding finding);

#endif
