/* SPDX-License-Identifier: Apache-2.0 */
/* fetched: a value that a service gave out, and what the service says about it. */
#ifndef VETHGUARD_SRC_FETCH_FETCHED_H
#define VETHGUARD_SRC_FETCH_FETCHED_H

#include "fetch/https.h"
#include "fetch/private_buf.h"

/* A longer lifetime counts as this one. */
#define FETCH_LIFETIME_MAX_S MESSAGE_FETCHED_TTL_MAX_S

/* A fetched value. */
struct fetched {
	struct buf value;       /* a private buffer, owned by the caller */
	uint32_t ttl_s;         /* 0: the service tells no lifetime */
	struct buf next_secret; /* private too: replaces the refresh token; empty: none */
	bool same;              /* the value of before lives on; value is empty */
	bool renewable;         /* its lease can be renewed */
	char lease[MESSAGE_LEASE_MAX + 1]; /* id of its lease, or empty */
};

/* Takes a string of the answer as the value. Returns false with a sentence that calls it name. */
bool fetched_take(
        const json_t *string, const char *name, struct fetched *out, char fault[HTTPS_TEXT_MAX]);
/* Takes the secret that a service keeps as the value. If the request has the argument "field", the
 * secret is a JSON object, and the value is its text that the argument names. */
bool fetched_take_secret(const struct fetch_request *request, struct slice secret,
        struct fetched *out, char fault[HTTPS_TEXT_MAX]);
/* Takes the time at which the value ends ("2026-11-25T22:00:00Z", also with fractions of a second)
 * from an answer that came just now; any other text means that the service tells none. */
void fetched_ends(struct fetched *out, const char *when);
/* Puts before the sentence in fault who has failed, for example the service of a login. */
void fetched_blame(const char *who, char fault[HTTPS_TEXT_MAX]);
/* Takes a number of seconds as the lifetime; anything else means that the service tells none. */
void fetched_lives(struct fetched *out, const json_t *seconds);

#endif
