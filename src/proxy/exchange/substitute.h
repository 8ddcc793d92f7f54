/* SPDX-License-Identifier: Apache-2.0 */
/*
 * substitute: puts a credential's value in place of its placeholder (inject: placeholder), in the
 * places that the policy names: fields, Basic credentials, the path, the query; and the body, which
 * is fill.h's. Elsewhere a placeholder is sent on as it is, and is a finding as ever.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_SUBSTITUTE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_SUBSTITUTE_H

#include "proxy/http/http.h"
#include "vethguard/credential/store.h"

/* True if the field has the placeholder of the credential with that number where it is replaced. */
bool substitute_takes_field(const struct credential_store *store,
        const struct policy_credential *spec, uint32_t credential, const struct http_field *field);

struct substitute {
	const struct credential_store *store;
	const struct policy_credential *spec;
	uint32_t credential;
	struct slice value; /* the credential's */
	struct slice jar;   /* ... or what logins gave, each with a placeholder of its own */
	bool sealed;        /* the jar counts, not the value */
	struct buf *text;   /* locked memory for what is put together */
};

/* Finds the first placeholder in text that is replaced: *at, *n, and what takes its place. */
bool substitute_find(
        const struct substitute *s, struct slice text, size_t *at, size_t *n, struct slice *value);
/* False: there is none, which is known quickly. */
bool substitute_mentions(const struct substitute *s, struct slice text);

/* The values of fields, as they were before. */
struct substitute_saved {
	size_t count;
	struct {
		struct http_field *field;
		struct slice value;
	} items[HTTP_FIELDS_MAX];
};

/* Replaces in all fields that are sent, which point into s->text until substitute_restore().
 * Returns 0 or -errno; in any case substitute_restore() follows. */
int substitute_fields(
        const struct substitute *s, struct http_fields *fields, struct substitute_saved *saved);
void substitute_restore(struct substitute_saved *saved);
/* Replace in the path and in the query that are sent. Return 0 or -errno. */
int substitute_path(
        const struct substitute *s, const struct http_request *request, struct outgoing *head);
int substitute_query(const struct substitute *s, struct outgoing *head);

#endif
