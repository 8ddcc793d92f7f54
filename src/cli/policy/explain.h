/* SPDX-License-Identifier: Apache-2.0 */
/* policy_explain: one question to a policy and its answer, shared by the parts of `policy
 * explain`. */
#ifndef VETHGUARD_SRC_CLI_POLICY_EXPLAIN_H
#define VETHGUARD_SRC_CLI_POLICY_EXPLAIN_H

#include "cli/policy/policy.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/explain.h"
#include "vethguard/policy/method.h"
#include "vethguard/policy/url.h"

struct explain {
	struct policy_loaded loaded;
	struct url url;
	struct policy_request request;
	struct policy_decision decision;
	struct resolve hosts;             /* zeroed: not asked */
	const struct resolve_name *leads; /* where the host leads, or NULL */
	const char *fault;                /* why the request is refused before any rule is asked,
	                                     or NULL */
	bool connection;                  /* CONNECT: only the connection is judged */
	bool inbound;                     /* ACCEPT: a connection to an exposed port */
	bool unmeant;        /* a network allows the address but is too wide to mean it */
	bool small;          /* the method has lower-case letters */
	bool relayed;        /* relayed unread: the verdict is about the connection, for any
	                        request */
	enum policy_tls tls; /* of https */
	char capitals[POLICY_METHOD_MAX + 1]; /* the method that would be allowed, or "" */
	char path[POLICY_PATH_MAX];
	struct policy_body body; /* of request.body */
	struct buf body_bytes;
};

/* explain_body.c: reads the request's body from a file ("-": standard input); request.fields has
 * its content type. Returns false after a message. */
bool explain_read_body(struct explain *x, const char *file);
void explain_free_body(struct explain *x);

/* explain_accept.c: the first returns what is wrong with the question, or NULL; the second prints
 * the answer and returns the exit status. */
const char *explain_accept_fault(const struct explain *x);
int explain_accept(const struct explain *x, bool as_json);
/* explain_limits.c: prints the limits that an allowed request counts against, if there are any. */
void explain_limits_text(const struct explain *x);
void explain_limits_json(const struct explain *x, struct json *j);
/* explain_dlp.c: prints what becomes of secrets in the request, if they are looked for. */
void explain_dlp_text(const struct explain *x);
void explain_dlp_json(const struct explain *x, struct json *j);
/* Both print the answer and return the exit status. */
int explain_answer_text(const struct explain *x, const char *method);
int explain_answer_json(const struct explain *x, const char *method, const char *url);

#endif
