/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign: credentials that the sandbox brings itself. An allowed host is a way out if a program
 * inside can use an account of its own there; so a credential of the policy may say that no other
 * one goes with it (require).
 */
#ifndef VETHGUARD_SRC_PROXY_LEAKS_FOREIGN_H
#define VETHGUARD_SRC_PROXY_LEAKS_FOREIGN_H

#include "proxy/http/http.h"
#include "vethguard/credential/store.h"

/* True for a field in which programs send a key: Authorization and the fields of well-known
 * services. */
bool foreign_is_key_field(struct slice name);
/* True if the credential's field replaces the request's own field of that name, or of a similar
 * name. */
bool foreign_is_replaced(struct slice name, const struct policy_credential *spec);
/* Returns NULL, or one sentence that says where the request brings a credential which is not spec,
 * whose number is credential: in a key field or a query parameter other than the injected one,
 * unless it is spec's placeholder. Cookies are not looked at: with require they are not sent. */
const char *foreign_find(const struct http_request *request, const struct policy_credential *spec,
        uint32_t credential, const struct credential_store *store);
/* The credential whose placeholder is in the text, plain or else in base64; POLICY_NONE: none's. */
uint32_t foreign_whose(const struct credential_store *store, struct slice text);

#endif
