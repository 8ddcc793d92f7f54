/* SPDX-License-Identifier: Apache-2.0 */
/* placeholders: the texts that stand for credentials inside one sandbox, and finding where one is
 * mentioned. */
#ifndef VETHGUARD_SRC_CREDENTIAL_STORE_PLACEHOLDERS_H
#define VETHGUARD_SRC_CREDENTIAL_STORE_PLACEHOLDERS_H

#include "vethguard/credential/mask.h"

struct placeholder {
	uint32_t credential;
	char *text; /* owned */
	size_t n;
	size_t mark; /* where "vethguard" is in text */
};

struct placeholders {
	struct placeholder *items; /* owned */
	size_t count;
	struct mask *mask; /* of all of them, in their order; NULL if there are none */
};

/* Adds a placeholder; copies text. Returns 0; -EINVAL if it lacks the mark or exceeds
 * PLACEHOLDER_MAX; -ENOSPC beyond POLICY_CREDENTIALS_MAX; or -ENOMEM. */
int placeholders_add(struct placeholders *set, uint32_t credential, struct slice text);
void placeholders_fini(struct placeholders *set);
/* Credential i was map[i] before. A placeholder whose credential is gone stays known, under an
 * index that no credential has: sending it is still a finding. */
void placeholders_renumber(struct placeholders *set, const uint32_t *map, uint32_t count);
/* Finds the first placeholder in p (the longest, if several begin at the same mark). Returns its
 * credential, or POLICY_NONE. */
uint32_t placeholders_find(const struct placeholders *set, struct slice p, size_t *at, size_t *n);
/* The same for a placeholder inside base64 (either alphabet, any alignment, any surroundings).
 * Returns its credential, or POLICY_NONE. */
uint32_t placeholders_find_encoded(const struct placeholders *set, struct slice p);
/* True if p has a placeholder, plain, in base64, in hex digits, or with any bytes escaped (mask.h),
 * of a credential that is not in except (bit i: credential i). */
bool placeholders_mentioned(const struct placeholders *set, struct slice p, uint64_t except);
/* Where the end of p that may be the beginning of a placeholder, in any of these spellings, starts;
 * p.n if there is none. */
size_t placeholders_begin(const struct placeholders *set, struct slice p);

struct credential_scan;
/* store_scan.c: see credential_store_scan(). */
bool placeholders_scan(const struct placeholders *set, struct credential_scan *scan,
        const uint8_t *p, size_t n, uint64_t except);
/* store_hex.c: true if p has a placeholder in hex digits that is not in skip (bit i: item i). */
bool placeholders_in_hex(const struct placeholders *set, struct slice p, uint64_t skip);
/* Where the hex digits at the end of p begin, of which at most the last 2 * PLACEHOLDER_MAX count;
 * p.n if there are none. */
size_t placeholders_hex_begins(struct slice p);
/* True if the name of a host has a placeholder, plain or in hex digits, in any letter case and
 * across labels. */
bool placeholders_in_name(const struct placeholders *set, struct slice name);

#endif
