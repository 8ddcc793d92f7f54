/* SPDX-License-Identifier: Apache-2.0 */
/*
 * substitute: puts a credential's value in place of its placeholder (inject: placeholder), in the
 * places that the policy names: fields, Basic credentials, the path, the query; fill.h does the
 * same in bodies. Elsewhere a placeholder is sent on unchanged and is a finding, as for other
 * credentials.
 */
#ifndef VETHGUARD_SRC_PROXY_INJECT_SUBSTITUTE_H
#define VETHGUARD_SRC_PROXY_INJECT_SUBSTITUTE_H

#include "proxy/http/http.h"
#include "vethguard/credential/store.h"

/* True if the field contains the placeholder of the credential with that number, in a place where
 * it is replaced. */
bool substitute_takes_field(const struct credential_store *store,
        const struct policy_credential *spec, uint32_t credential, const struct http_field *field);

struct substitute {
	const struct credential_store *store;
	const struct policy_credential *spec;
	uint32_t credential;
	struct slice value; /* the credential's */
	struct slice
	        jar; /* ... or the tokens that logins gave, each with a placeholder of its own */
	bool sealed; /* the jar counts, not the value */
	struct buf *text; /* locked memory for the texts with the value */
};

/* Finds the first placeholder in text that is replaced: *at, *n, and the value for it. */
bool substitute_find(
        const struct substitute *s, struct slice text, size_t *at, size_t *n, struct slice *value);
/* Returns false if there is none; this is fast. */
bool substitute_mentions(const struct substitute *s, struct slice text);

/* The original values of fields. */
struct substitute_saved {
	size_t count;
	struct {
		struct http_field *field;
		struct slice value;
	} items[HTTP_FIELDS_MAX];
};

/* Replaces the placeholder in all fields that are sent. They point into s->text until
 * substitute_restore(). Returns 0 or -errno; call substitute_restore() in both cases. */
int substitute_fields(
        const struct substitute *s, struct http_fields *fields, struct substitute_saved *saved);
void substitute_restore(struct substitute_saved *saved);
/* Replace the placeholder in the path and in the query that are sent. Return 0 or -errno. */
int substitute_path(
        const struct substitute *s, const struct http_request *request, struct outgoing *head);
int substitute_query(const struct substitute *s, struct outgoing *head);

#endif
