/* SPDX-License-Identifier: Apache-2.0 */
/* hook_call: tells one of the operator's endpoints what waits for a person, with vethguard-fetch.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_HOOK_CALL_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_HOOK_CALL_H

#include "supervisor/config/source_lease.h"
#include "vethguard/policy/config.h"
#include "vethguard/wire/hook_answer.h"

struct hook_call;

#define HOOK_CALL_BODY_MAX 8000 /* bytes of what is sent */

/* Starts a call. Resolvers, hosts and CAs come from the configuration of services as it is now.
 * hook and body are copied. decides: the answer is read as a decider's. done is called once, never
 * from within this call: answer is NULL, with one sentence in error, or the answer. The caller
 * frees the call, but not from within done. Returns NULL without memory, or for a body that is too
 * long. */
struct hook_call *hook_call_start(const struct source_leases *services,
        const struct config_hook *hook, bool decides, struct slice body,
        void (*done)(void *context, const struct hook_answer *answer, const char *error),
        void *context);
/* Ends the call: done is not called any more. NULL is allowed. */
void hook_call_free(struct hook_call *call);

#endif
