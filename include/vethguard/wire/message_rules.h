/* SPDX-License-Identifier: Apache-2.0 */
/* message_rules: the messages between supervisor and worker about limits of the policy, about a sandbox's other
 * workers, and about what a person has to approve. Part of wire/message.h, which includes it. */
#ifndef VETHGUARD_WIRE_MESSAGE_RULES_H
#define VETHGUARD_WIRE_MESSAGE_RULES_H

#include "vethguard/policy/proposal.h"
#include "vethguard/wire/message_type.h"

/* Memories of counters (ipc/counters.h): first the sandbox's own, then those that it shares with others. */
#define MESSAGE_LIMITS_MAX 9
struct message_worker_limits {
	size_t count;
	struct slice shared[MESSAGE_LIMITS_MAX]; /* key of the label; empty: the sandbox's own */
	/* Several hosts share budgets of this memory: after its descriptor come that of the quotas (ipc/quotas.h) and
	 * of the bell of vethguard-quota. */
	bool has_quotas[MESSAGE_LIMITS_MAX];
};

#define MESSAGE_SEATS_MAX 64
struct message_worker_team {
	uint32_t seat;   /* of this worker (ipc/team.h); below MESSAGE_SEATS_MAX */
	uint8_t further; /* 0: the first worker, which answers names; 1: another one */
};

#define MESSAGE_ASKS_MAX 64 /* requests that wait at one worker; also grants of one sandbox */
#define MESSAGE_ASK_TEXT_MAX 600
#define MESSAGE_ASK_QUERY_MAX 1024
struct message_worker_ask {
	struct slice rule, method, host;
	struct slice path, query; /* canonical; the query may be cut */
	uint8_t scheme;           /* enum policy_scheme */
	uint16_t port;
	uint64_t bytes;  /* of its content, if that is known; else 0 */
	uint32_t wait_s; /* how long it is held */
};
struct message_worker_answer {
	uint8_t approved;  /* 0 or 1 */
	struct slice text; /* who has decided, and why */
};
struct message_worker_grant {
	uint8_t ends;      /* 1: the grant ends, and the other fields are ignored */
	uint8_t whole;     /* 1: for all that the rule asks about; 0: for requests like `ask`, with any query */
	uint64_t until_ms; /* clock_boot_ms(); 0: no end */
	struct message_worker_ask ask;
	struct slice text;
};

#define MESSAGE_PROPOSALS_MAX 16 /* proposals of one sandbox that are remembered */
enum message_proposal_state {
	MESSAGE_PROPOSAL_WAITS = 0,
	MESSAGE_PROPOSAL_APPROVED = 1, /* its rule is in force */
	MESSAGE_PROPOSAL_REFUSED = 2,
	MESSAGE_PROPOSAL_ENDED = 3, /* its rule was in force and no longer is */
	MESSAGE_PROPOSAL_KINDS
};
struct message_worker_proposal { /* the texts of struct policy_proposal; the receiver checks them */
	struct slice to, methods, paths, reason;
};
struct message_worker_proposed {
	uint8_t outcome; /* enum message_proposal_state */
	struct slice to;
	struct slice text; /* who has decided, and why; or empty */
};

MESSAGE_CODEC(worker_proposal);
MESSAGE_CODEC(worker_proposed);
MESSAGE_CODEC(worker_limits);
MESSAGE_CODEC(worker_team);
MESSAGE_CODEC(worker_ask);
MESSAGE_CODEC(worker_answer);
MESSAGE_CODEC(worker_grant);

#endif
