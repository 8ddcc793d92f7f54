/* SPDX-License-Identifier: Apache-2.0 */
/*
 * override: fields in which some servers look for the method or path that is meant: frameworks,
 * because forms can only use GET and POST, and servers behind a rewriting proxy. No standard
 * defines these fields.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_OVERRIDE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_OVERRIDE_H

#include "proxy/exchange/authorize.h"

/* True for the name of such a field. */
bool override_is_named(struct slice name);
/* Refuses an allowed request unless what its fields ask for is allowed too, with the same
 * credential. */
void override_authorize(const struct policy *policy, const struct policy_request *question,
        const struct http_fields *fields, struct verdict *verdict);

#endif
