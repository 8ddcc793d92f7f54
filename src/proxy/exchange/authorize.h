/* SPDX-License-Identifier: Apache-2.0 */
/* authorize: verdicts on requests, connections, addresses and upgrades, by a policy. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_AUTHORIZE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_AUTHORIZE_H

#include "proxy/destination.h"
#include "vethguard/policy/body.h"
#include "vethguard/wire/event.h"

struct client;
struct http_fields;
struct http_request;
struct proxy;

/* A verdict on a request, and what the rest of the proxy has to know about it. */
struct verdict {
	struct policy_decision decision;
	bool allowed;
	bool needs_body; /* not allowed yet: the verdict depends on the body, which was not read */
	bool is_signed;  /* the request gets a signature (sigv4) */
	bool fills;      /* the credential may be replaced in the request's body */
	bool fills_messages; /* ... in text messages of the WebSocket that it opens */
	bool searched; /* a search list has appended a domain to the name before it was dialed */
	enum event_cause cause; /* why not allowed, if the policy is not the reason */
	enum event_finding finding;
	const char *detail; /* one sentence, static, or NULL */
	/* If denied or observed: bit i is set if credential i belongs to the destination. */
	uint64_t own;
	/* The credential whose placeholder the request carries, or POLICY_NONE. */
	uint32_t shown;
	/* The protocol that is upgraded to, or that was refused; points into the fields. */
	struct slice upgrade;
};
static inline void verdict_refuse(struct verdict *verdict, enum event_cause cause,
        enum event_finding finding, const char *detail)
{
	verdict->allowed = false;
	verdict->cause = cause;
	verdict->finding = finding;
	verdict->detail = detail;
}

/* body: NULL if the request has none. */
void authorize_request(const struct policy *policy, const struct client *client,
        const struct http_request *request, const struct policy_body *body,
        struct destination *destination, struct verdict *out);
/* The fields that are sent on, for a policy. */
struct policy_fields authorize_fields(const struct http_fields *fields);
/* The verdict on a connection whose content is not looked at (opaque TCP). */
void authorize_opaque(const struct policy *policy, const struct destination *destination,
        enum policy_scheme scheme, struct verdict *out);
/* True if an address that a name resolved to may be dialed. */
bool authorize_address(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address);

/* --- upgrade.c --- */

enum upgrade_verdict {
	UPGRADE_NONE,    /* no protocol is named */
	UPGRADE_DROPPED, /* only protocols that a client can do without */
	UPGRADE_DENIED,  /* no protocol that the rule allows */
	UPGRADE_ALLOWED
};
extern const char upgrade_not_passed_on[]; /* audit text for UPGRADE_DROPPED */
/* Reads what a request asks for in its Upgrade fields. *protocol: the first protocol that is
 * allowed, else the first that is not. */
enum upgrade_verdict upgrade_authorize(const struct policy *policy,
        const struct policy_decision *decision, const struct http_fields *fields,
        struct slice *protocol);
/* Checks a 101 to a request that asked for the protocol `asked`. Returns NULL, or what is wrong. */
const char *upgrade_check_answer(struct slice asked, const struct http_fields *response);

#endif
