/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject: makes what a request carries for a credential.
 */
#ifndef VETHGUARD_CREDENTIAL_INJECT_H
#define VETHGUARD_CREDENTIAL_INJECT_H

#include "vethguard/base/secret.h"
#include "vethguard/policy/policy.h"

/* Renders the field (or query parameter) for a value, into secret memory: bearer "Bearer V"; basic "Basic
 * base64(user:V)", or base64(V) without a username; header prefix+V; query percent-encoded V; cookie V; fields: the
 * value of each field, with LF between. Returns 0; -EINVAL if the value has CR, LF, NUL or another byte that a field
 * value may not have (RFC 9110 section 5.5) or, for cookie, a byte that a cookie's value may not have (RFC 6265
 * section 4.1.1), is shorter than MASK_VALUE_MIN or, for basic without a username, has no ':'; or -errno. */
int inject_render(const struct policy_credential *credential, struct slice value, struct secret *out);
/* For hmac: decodes the key from a value, as the policy says it is written, into secret memory. Returns 0; -EINVAL: the
 * value is not written in that way, or the key has fewer than MASK_VALUE_MIN bytes; or -errno. */
int inject_hmac_key(const struct policy_credential *credential, struct slice value, struct secret *out);
/* Makes "username:value" as basic sends it, or the value alone without a username, in secret memory. Returns 0 or
 * -errno. */
int inject_pair(struct slice username, struct slice value, struct secret *out);
/* The name of the field for the credential: "authorization", "cookie" or the credential's own; empty for query and for
 * fields. */
struct slice inject_field(const struct policy_credential *credential);
/* Takes the next field that the credential is sent in off rest (zeroed before the first call): *name is the field's
 * name, *value its part of *rendered, which begins as what inject_render() made. Returns false at the end. */
struct inject_rest {
	bool begun;
	struct slice fields;
};
bool inject_field_next(const struct policy_credential *credential, struct inject_rest *rest, struct slice *name,
        struct slice *rendered, struct slice *value);

#endif
