/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jars: the tokens that the logins of sandboxes gave (credential/jar.h). The workers of one
 * sandbox (a reload starts another) share a jar for each sealed credential; it ends with the last
 * of these workers.
 */
#ifndef VETHGUARD_SRC_KEEPER_JARS_H
#define VETHGUARD_SRC_KEEPER_JARS_H

#include "vethguard/credential/jar.h"
#include "vethguard/wire/message.h"

struct keeper_jar {
	struct keeper_jar *prev, *next;
	struct jars *all;
	uint64_t owner; /* the sandbox */
	char name[MESSAGE_NAME_MAX + 1];
	unsigned references;
	struct secret bytes;
	int64_t sealed_ms; /* Unix time of the last login; 0: none yet */
};

struct jars {
	struct keeper_jar *first;
};

/* Returns a reference to the sandbox's jar for the credential, or NULL: no memory. */
struct keeper_jar *jars_get(struct jars *all, uint64_t owner, const char *name);
void keeper_jar_put(struct keeper_jar *jar); /* NULL is allowed */
/* Wipes what is in it. */
void keeper_jar_empty(struct keeper_jar *jar);
/* Returns 0 or -errno. */
int keeper_jar_add(struct keeper_jar *jar, const struct jar_token *token);

#endif
