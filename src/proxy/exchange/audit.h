/* SPDX-License-Identifier: Apache-2.0 */
/* audit: the events of connections and exchanges. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_AUDIT_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_AUDIT_H

#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/event.h"

struct client;
struct exchange;
struct proxy;

enum auditing_state {
	AUDITING_OPEN,
	AUDITING_RECORDED, /* the event was put; an echo found later gets its own record */
	AUDITING_ECHO,     /* ... and an echo of the credential was recorded too */
	AUDITING_STATE_COUNT
};

/* The part of an exchange. */
struct auditing {
	enum auditing_state state;
};

/* Counts connections that ended without a byte, in the second that began with the first of them. */
struct audit_silent {
	struct loop_timer second;
	bool counting;
	uint32_t told;      /* recorded with a line each */
	uint64_t count;     /* further ones */
	struct ip src, dst; /* of the last one */
	uint16_t src_port, dst_port;
};

/* Converts to an event's duration: clamps to UINT32_MAX, and to 0 if negative (a clock set
 * back). */
uint32_t audit_duration_us(int64_t us);
/* Records a connection that the sandbox ended without sending anything. The first
 * AUDIT_SILENT_PER_S of a second get a line each, the others one line with their number. */
#define AUDIT_SILENT_PER_S 50
int audit_silent_open(struct proxy *proxy);
/* Records what is still counted. */
void audit_silent_close(struct proxy *proxy);
void audit_silent(const struct client *client, const struct policy_decision *decision,
        enum event_decision outcome);
/* Marks a failure as observed if the policy would have refused the request anyway. */
void audit_failure_as_observed(struct event *event, const struct policy_decision *decision);
/* Records the exchange's event, once; a later call only records an echo found since. */
void audit_exchange(struct exchange *ex);
/* Records a connection without any request that vethguard read. */
void audit_connection(const struct client *client, const struct policy_decision *decision,
        enum event_decision outcome, enum event_cause cause, const char *detail, uint64_t bytes_out,
        uint64_t bytes_in, const struct ip *upstream);
void audit_finding(struct proxy *proxy, const struct client *client, enum event_finding finding,
        uint64_t about, struct slice rule, const char *detail);
void audit_foreign_peer(struct proxy *proxy, const char *detail);
/* Records a finding about an exchange that the finding does not end. */
void audit_remark(struct exchange *exchange, enum event_finding finding, struct slice rule,
        const char *detail);

#endif
