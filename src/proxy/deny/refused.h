/* SPDX-License-Identifier: Apache-2.0 */
/* refused: tells which part of a request the policy's conditions refused. */
#ifndef VETHGUARD_SRC_PROXY_DENY_REFUSED_H
#define VETHGUARD_SRC_PROXY_DENY_REFUSED_H

struct exchange;
struct policy;
struct policy_body;

/* If conditions refused the request, and no better detail is known, sets kept_detail to a sentence
 * that names what was refused and what may be asked for. body: NULL if the request has none. */
void refused_explain(
        struct exchange *ex, const struct policy *policy, const struct policy_body *body);

#endif
