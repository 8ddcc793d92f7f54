/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body: the body of a request as conditions of rules see it. The caller of policy_decide() reads the body
 * first, because reading allocates and deciding does not.
 */
#ifndef VETHGUARD_POLICY_BODY_H
#define VETHGUARD_POLICY_BODY_H

#include "vethguard/policy/git.h"
#include "vethguard/policy/policy.h"

#define POLICY_INSPECT_MIN 1024u /* bytes of a body, the key inspect */
#define POLICY_INSPECT_DEFAULT (1u << 20)
#define POLICY_INSPECT_MAX (16u << 20)

enum policy_body_state {
	POLICY_BODY_UNREAD, /* a body follows, and nobody has read it yet */
	POLICY_BODY_READ
};

enum policy_body_kind {
	POLICY_BODY_OTHER, /* none of these, or not read alike by all servers */
	POLICY_BODY_JSON,
	POLICY_BODY_FORM,      /* application/x-www-form-urlencoded */
	POLICY_BODY_GIT_FETCH, /* application/x-git-upload-pack-request */
	POLICY_BODY_GIT_PUSH   /* application/x-git-receive-pack-request */
};

struct json_tree;

struct policy_body {
	enum policy_body_state state;
	enum policy_body_kind kind;
	const char *fault;      /* OTHER: why, one static sentence, or NULL: it has another content type */
	struct slice text;      /* borrowed */
	struct json_tree *json; /* JSON; owned */
	struct policy_git *git; /* GIT_FETCH, GIT_PUSH: what git_body_read() has read; owned */
	bool gzip;              /* GIT_FETCH, GIT_PUSH: the body came compressed by gzip */
	char *plain;            /* ... and the decompressed bytes, which text then borrows; owned */
};

/* Reads a body as the request's fields describe it. Of git's bodies only kind and gzip are set: git_body_read()
 * (git/body.h) reads them. text is borrowed as long as the body is used. A body that cannot be read, also for want of
 * memory, is OTHER. */
void policy_body_read(struct policy_body *body, const struct policy_fields *fields, struct slice text);
void policy_body_fini(struct policy_body *body);

/* The largest body, in bytes, that rules read (the key inspect). */
uint32_t policy_inspect(const struct policy *policy);

#endif
