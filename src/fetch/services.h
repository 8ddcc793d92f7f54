/* SPDX-License-Identifier: Apache-2.0 */
/* services: what each kind of service is asked, and where in its answer the value is. */
#ifndef VETHGUARD_SRC_FETCH_SERVICES_H
#define VETHGUARD_SRC_FETCH_SERVICES_H

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

/* Each returns true with out filled in, or false with a sentence in fault without a byte of a
 * secret. */
bool oauth2_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool token_exchange_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX]);
bool gcp_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool onepassword_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX]);
bool vault_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool gcp_secret_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool azure_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool aws_secret_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool aws_parameter_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX]);
bool aws_role_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
/* Makes what signatures need; call it before the jail closes. Returns 0 or -errno. */
int aws_prepare(void);
bool github_app_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);

/* hook.c: tells an endpoint of the operator's what waits for a person; the value is struct
 * hook_answer as text. hook_prepare() as aws_prepare(). */
int hook_prepare(void);
bool webhook_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool decider_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool key_set_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);

/* Takes a string of the answer as the value. Returns false with a sentence that calls it name. */
bool fetched_take(
        const json_t *string, const char *name, struct fetched *out, char fault[HTTPS_TEXT_MAX]);
/* Takes the secret that a service keeps: all of it, or, with the argument "field", that text of the
 * JSON object that the secret is. */
bool fetched_take_secret(const struct fetch_request *request, struct slice secret,
        struct fetched *out, char fault[HTTPS_TEXT_MAX]);
/* Takes when the value ends ("2026-11-25T22:00:00Z", also with fractions of a second) from an
 * answer that came just now; anything else means that none is told. */
void fetched_ends(struct fetched *out, const char *when);
/* Puts who has failed before a sentence: the service of a login, for example. */
void fetched_blame(const char *who, char fault[HTTPS_TEXT_MAX]);
/* Takes a number of seconds as the lifetime; anything else means that none is told. */
void fetched_lives(struct fetched *out, const json_t *seconds);

#endif
