/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callback: requests that another proxy asks about (wire/callback.h). They are judged, counted and
 * recorded as every request. An allowed request is not sent: the answer tells the other proxy to
 * send it, with the credential's fields, which the other proxy adds. A request is refused if its
 * verdict depends on what the other proxy does not tell, or if fields cannot carry out the verdict.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_CALLBACK_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_CALLBACK_H

#include <stdbool.h>

struct exchange;

/* True for a request that another proxy asks about. */
bool callback_is_asked(const struct exchange *ex);
/* True unless the other proxy keeps the request's body to itself. */
bool callback_tells_body(const struct exchange *ex);
/* Refuses, in the verdict, what a callback cannot decide or carry out. */
void callback_decide(struct exchange *ex);
/* True if the body has to be held: it is searched before the answer. */
bool callback_holds_body(const struct exchange *ex);
/* Answers that the other proxy may send the request. ex is freed. */
void callback_allow(struct exchange *ex);

#endif
