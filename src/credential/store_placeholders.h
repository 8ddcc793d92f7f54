/* SPDX-License-Identifier: Apache-2.0 */
/* placeholders: the texts that stand for credentials inside one sandbox, and where one is
 * mentioned. */
#ifndef VETHGUARD_SRC_CREDENTIAL_STORE_PLACEHOLDERS_H
#define VETHGUARD_SRC_CREDENTIAL_STORE_PLACEHOLDERS_H

#include "vethguard/credential/mask.h"

struct placeholder {
	uint32_t credential;
	char *text; /* owned */
	size_t n;
	size_t mark; /* where "vethguard" stands in text */
};

struct placeholders {
	struct placeholder *items; /* owned */
	size_t count;
	struct mask *mask; /* of all of them, in their order; NULL: there are none */
};

/* Copies text. 0; -EINVAL: it lacks the mark or exceeds PLACEHOLDER_MAX; -ENOSPC: over
 * POLICY_CREDENTIALS_MAX; -ENOMEM. */
int placeholders_add(struct placeholders *set, uint32_t credential, struct slice text);
void placeholders_fini(struct placeholders *set);
/* Credential i was map[i]. One whose credential is gone is still known, under a number that no
 * credential has: to send it is a finding all the same. */
void placeholders_renumber(struct placeholders *set, const uint32_t *map, uint32_t count);
/* The first placeholder in p (of several that begin at the same mark the longest): its credential,
 * or POLICY_NONE. */
uint32_t placeholders_find(const struct placeholders *set, struct slice p, size_t *at, size_t *n);
/* The same for a placeholder that stands inside of base64 (either alphabet, any alignment, whatever
 * surrounds it): its credential, or POLICY_NONE. */
uint32_t placeholders_find_encoded(const struct placeholders *set, struct slice p);
/* Does p hold one, plain, in base64, or with any of its bytes escaped (mask.h), that stands for a
 * credential that is not in except (bit i: credential i)? */
bool placeholders_mentioned(const struct placeholders *set, struct slice p, uint64_t except);
/* Where the end of p starts that may be the beginning of one, written in any of these ways; p.n: it
 * is none. */
size_t placeholders_begin(const struct placeholders *set, struct slice p);

#endif
