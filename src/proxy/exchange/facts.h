/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts: writes into a request's event what the request asks for (policy/request_facts.h). An event
 * gets facts if a rule has read the request's body, or if the request was refused or observed. In
 * mode observe, bodies of requests that no rule
 * allows are held and read too, so that rules can be written from the log.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_FACTS_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_FACTS_H

#include "vethguard/policy/request_facts.h"

struct exchange;

/* True if the request's body is to be held only to learn what the request asks for. */
bool facts_hold_body(const struct exchange *ex);
/* Writes the facts of the exchange's request to out and returns them. */
struct slice facts_of(const struct exchange *ex, uint8_t out[REQUEST_FACTS_BYTES_MAX]);

#endif
