/* SPDX-License-Identifier: Apache-2.0 */
/* peek_policy: what the policy says of a connection of which only the destination is known. */
#ifndef VETHGUARD_SRC_PROXY_CLIENT_PEEK_POLICY_H
#define VETHGUARD_SRC_PROXY_CLIENT_PEEK_POLICY_H

#include "proxy/client/client.h"
#include "proxy/exchange/authorize.h"

/* A question without a scheme. */
void peek_question(const struct destination *destination, struct policy_request *out);
/* True if a plain http request to this destination could be allowed. */
bool peek_http_may_be_allowed(const struct policy *policy, const struct destination *destination);
/* ... or an http or https request. */
bool peek_web_may_be_allowed(const struct policy *policy, const struct destination *destination);
/* True if a deny rule refuses every request of a scheme there: then the bytes have to be looked at,
 * although a tcp:// rule would relay them unread. */
bool peek_web_is_denied(const struct policy *policy, const struct destination *destination);
/* True if the connection may be relayed unread. */
bool peek_opaque_is_allowed(struct client *c, struct verdict *verdict);
/* True if only mode observe lets the connection out, whatever it sends; *decision is the
 * decision. */
bool peek_is_only_observed(struct client *c, struct policy_decision *decision);

#endif
