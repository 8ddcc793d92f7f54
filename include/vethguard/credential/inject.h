/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject: what goes into a request for a credential.
 */
#ifndef VETHGUARD_CREDENTIAL_INJECT_H
#define VETHGUARD_CREDENTIAL_INJECT_H

#include "vethguard/base/secret.h"
#include "vethguard/policy/policy.h"

/* The field (or query parameter) for a value, in secret memory: bearer "Bearer V", basic "Basic base64(user:V)" or
 * base64(V), header prefix+V, query percent-encoded V. 0; -EINVAL: the value holds CR, LF, NUL or another byte a field
 * value may not hold (RFC 9110 section 5.5), is shorter than MASK_VALUE_MIN or, for basic without username, has no
 * ':'; -errno. */
int inject_render(const struct policy_credential *credential, struct slice value, struct secret *out);
/* "username:value" as basic sends it, or the value alone without a username, in secret memory. 0 or -errno. */
int inject_pair(struct slice username, struct slice value, struct secret *out);
/* Name of the field it goes into: "authorization" or the credential's own; empty for query. */
struct slice inject_field(const struct policy_credential *credential);

#endif
