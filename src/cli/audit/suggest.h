/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest: turns denials of the audit log into the smallest rules that would allow exactly them.
 * Anybody may have written the log, so every part of a rule has passed the policy's canonical
 * forms, and all other text is escaped when shown.
 */
#ifndef VETHGUARD_SRC_CLI_AUDIT_SUGGEST_H
#define VETHGUARD_SRC_CLI_AUDIT_SUGGEST_H

#include <stdio.h>

#include "vethguard/base/slice.h"
#include "vethguard/policy/policy.h"

struct json_t;

#define SUGGEST_ASKS_MAX 20000      /* different requests; more are an error: select fewer */
#define SUGGEST_DENIALS_MAX 1000000 /* denied lines */
#define SUGGEST_FINDINGS_MAX 100000
#define SUGGEST_PATHS_MAX 8   /* paths of a rule; more become one pattern over their common start */
#define SUGGEST_PATH_MAX 256  /* a longer path may carry data: not suggested */
#define SUGGEST_LABEL_MAX 40  /* a longer label of a host may, too */
#define SUGGEST_METHODS_MAX 8 /* of a rule; more begin another rule */
#define SUGGEST_VALUES_MAX 64 /* of each list of a condition; more begin another rule */
#define SUGGEST_VALUE_MAX 96  /* a longer name of a tool, field, ref, ... may carry data, too */
#define SUGGEST_ID_SIZE 17

/* Why no rule is made for a denial. */
enum suggest_exclusion {
	SUGGEST_FINE,
	SUGGEST_DENY_RULE,   /* refused by a deny rule */
	SUGGEST_UPGRADE,     /* a rule allows it, but not its upgrade to another protocol */
	SUGGEST_CONDITION,   /* a rule allows it, but asks for another query, fields or body */
	SUGGEST_MANY,        /* the log does not have all that it asks for */
	SUGGEST_FORCE,       /* a push that may lose commits */
	SUGGEST_REFS,        /* a push to refs that the log does not have */
	SUGGEST_NO_RULE,     /* refused for a reason that no rule changes */
	SUGGEST_FINDING,     /* a finding is about the request or its host */
	SUGGEST_PLACEHOLDER, /* it may carry a placeholder */
	SUGGEST_METADATA,
	SUGGEST_ADDRESS,   /* an address that is not public */
	SUGGEST_LONG,      /* host or path may carry data */
	SUGGEST_STRANGE,   /* cannot be written as a rule that allows only this */
	SUGGEST_NAME_ONLY, /* only the name was queried */
	SUGGEST_UNSEEN,    /* the sandbox ended the connection before a request */
	SUGGEST_PACKETS,   /* dropped by the fence */
	SUGGEST_ALLOWED,   /* the current policy allows it; counted in allowed, not shown */
	SUGGEST_DOUBT_COUNT
};

/* What a rule for the request asks of it, beside its destination. */
enum suggest_kind {
	SUGGEST_PLAIN, /* method and path */
	SUGGEST_MCP,
	SUGGEST_JSONRPC,
	SUGGEST_GRAPHQL,
	SUGGEST_GRPC,
	SUGGEST_GIT,
	SUGGEST_LLM,
	SUGGEST_KIND_COUNT
};

/* One thing that was requested and refused, any number of times. */
struct suggest_ask {
	char *policy, *host; /* owned; host canonical, IPv6 in brackets */
	char *method, *path; /* owned; both NULL: a connection */
	char *what;          /* owned; as `audit show` prints it, escaped */
	char *credential;    /* owned; the credential whose placeholder the request carried, or
	                        NULL */
	char *refused_by;    /* owned; the deny rule's name, or NULL */
	enum suggest_kind kind;
	char *place; /* owned; not PLAIN: requests with the same place share a rule */
	struct json_t
	        *values; /* owned; not PLAIN: the condition, as an object of arrays of texts */
	enum policy_scheme scheme;
	uint16_t port;
	enum suggest_exclusion exclusion;
	unsigned long count, failed; /* failed: mode observe let it pass, and then it failed */
	int64_t last_ms;
	char event[SUGGEST_ID_SIZE]; /* the last denial's id */
};

struct suggest_denial {
	size_t ask;
	char event[SUGGEST_ID_SIZE];
};

struct suggest {
	struct suggest_ask *asks; /* owned */
	size_t count, room;
	struct suggest_denial *denials; /* owned */
	size_t denial_count, denial_room;
	unsigned long allowed;   /* requests that the policy of suggest_make() allows */
	struct json_t *index;    /* owned; maps the key of an ask to its number */
	struct json_t *findings; /* owned; ids of events, and hosts, that findings are about */
};

/* A rule: asks of one destination that differ only in path and method. */
struct suggest_rule {
	const struct suggest_ask *ask; /* gives the destination */
	const char *methods[SUGGEST_METHODS_MAX];
	size_t method_count;
	char *paths[SUGGEST_PATHS_MAX]; /* owned */
	size_t path_count;
	struct json_t *values; /* owned; the condition, or NULL */
	bool folded;           /* the only path covers more than was requested */
	unsigned long count, failed;
	int64_t last_ms;
	const char *event;
	const char *credential; /* the credential whose placeholder the asks carried, or NULL */
	bool several;           /* the asks carried placeholders of several credentials */
};

struct suggest_rules {
	struct suggest_rule *rules; /* owned */
	size_t count;
};

/* audit/suggest_read.c. Findings always count; take: the event's denial is wanted. Returns 0,
 * -ENOMEM, or -E2BIG beyond one of the bounds. */
int suggest_init(struct suggest *s);
int suggest_read(struct suggest *s, const struct json_t *event, bool take);
void suggest_fini(struct suggest *s);

/* audit/suggest_exclude.c: why a rule for one request would be a risk, if it would. */
enum suggest_exclusion suggest_exclusion_of(const struct suggest_ask *ask, struct slice query);
const char *suggest_exclusion_text(enum suggest_exclusion exclusion);

/* audit/suggest_facts.c: reads what the event says of the request (unmapped.request), and sets
 * ask->kind, place, values and exclusion. Returns 0 or -ENOMEM. */
int suggest_facts_read(struct suggest_ask *ask, const struct json_t *event);
/* Returns the key of a policy's rule for the kind ("mcp"), NULL for PLAIN. */
const char *suggest_kind_key(enum suggest_kind kind);

/* audit/suggest_condition.c: makes a rule of the first of n asks and of those right behind it that
 * have the same destination, kind and place, as long as their values fit into one condition. Sets
 * *taken to the number of these asks. Returns 0 or -ENOMEM. */
int suggest_condition_make(
        const struct suggest_ask *asks, size_t n, struct suggest_rule *rule, size_t *taken);
/* Excludes pushes whose refs are not known, unless another ask has refs of that repository. */
void suggest_condition_settle(struct suggest *s);

/* audit/suggest_rule.c: orders by policy, host, scheme and port. */
int suggest_compare_destinations(const struct suggest_ask *a, const struct suggest_ask *b);
bool suggest_same_destination(const struct suggest_ask *a, const struct suggest_ask *b);
/* Writes "https://host" or "tcp://[::1]:22". Returns out. */
#define SUGGEST_DESTINATION_MAX 320
const char *suggest_destination_of(
        const struct suggest_ask *ask, char out[SUGGEST_DESTINATION_MAX]);
/* Adds an ask's counts and credential to the rule. */
void suggest_rule_count(struct suggest_rule *rule, const struct suggest_ask *ask);
void suggest_note_credential(struct suggest_rule *rule, const char *credential);

/* audit/suggest_policy.c: marks what the policy allows, and what its deny rules refuse. */
void suggest_decide(struct suggest *s, const struct policy *policy);

/* audit/suggest_question.c: decides about an ask that is not PLAIN. request: its destination,
 * method and path. If several messages have to be decided, *decision is the first denial among
 * them. */
void suggest_question_decide(const struct policy *policy, const struct suggest_ask *ask,
        const struct policy_request *request, struct policy_decision *decision);

/* audit/suggest_rules.c. After everything is read: compares findings with denials, asks the policy
 * (NULL: none), sorts the asks and makes rules of them, which borrow from s. Returns 0 or
 * -ENOMEM. */
int suggest_make(struct suggest *s, const struct policy *policy, struct suggest_rules *out);
void suggest_rules_free(struct suggest_rules *rules);

/* audit/suggest_except.c: for what deny rules refuse, gives the exceptions that would open it: as
 * comments, and as an array. */
void suggest_excepts_print(const struct suggest *s, FILE *out);
struct json_t *suggest_excepts_json(const struct suggest *s);

/* audit/suggest_print.c */
void suggest_print(const struct suggest *s, const struct suggest_rules *rules, FILE *out);
int suggest_print_json(const struct suggest *s, const struct suggest_rules *rules, FILE *out);

#endif
