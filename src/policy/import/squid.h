/* SPDX-License-Identifier: Apache-2.0 */
/* import_squid: the ACLs of a squid.conf. */
#ifndef VETHGUARD_SRC_POLICY_IMPORT_SQUID_H
#define VETHGUARD_SRC_POLICY_IMPORT_SQUID_H

#include "policy/import/import.h"

#define SQUID_ACLS_MAX 1024
#define SQUID_VALUES_MAX 10000 /* of one ACL */
#define SQUID_PORTS 65536

enum squid_kind {
	SQUID_NAMES,    /* dstdomain */
	SQUID_NETWORKS, /* dst */
	SQUID_PORT,
	SQUID_METHOD,
	SQUID_CLIENT,  /* src and others about the client: taken to match the sandbox */
	SQUID_ALL,     /* every request */
	SQUID_NOTHING, /* no request of a sandbox: those about squid itself */
	SQUID_UNKNOWN
};

struct squid_value {
	struct import_place at;
	struct import_host host; /* NAMES, NETWORKS; IMPORT_BELOW means the name itself, too */
	struct slice method;     /* METHOD */
	uint16_t low, high;      /* PORT */
};

struct squid_acl {
	struct slice name;
	enum squid_kind kind;
	struct import_place at; /* of its first line; line 0: squid has it built in */
	struct vec values;      /* struct squid_value */
};

/* Reads "acl NAME TYPE VALUE...". */
void squid_read_acl(struct import *im, struct vec *acls, struct import_place at,
        const struct import_word *words, size_t count);
/* True if the ACL has no value, so it matches no request. */
bool squid_is_empty(const struct squid_acl *acl);
/* Finds an ACL by name, among those that squid has built in too; NULL: there is none. */
const struct squid_acl *squid_find(const struct vec *acls, struct slice name);
void squid_free(struct vec *acls);

#endif
