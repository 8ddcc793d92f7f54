/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_limits: the memories in which workers count what the policy limits (ipc/counters.h). They
 * are files of the state directory, so that counts outlive workers and the supervisor: limits/ID is
 * a persistent sandbox's own, limits/shared-DIGEST that of budgets that sandboxes share (DIGEST: of
 * the label and the user who named the policies). The own memory of other sandboxes is a memfd.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_LIMITS_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_LIMITS_H

#include <stdint.h>

struct generation;
struct instance;
struct policy_limit;
struct sandbox;

/* Files of shared budgets that the state directory holds at most. */
#define LIMITS_SHARED_MAX 4096

/* Gives each counter of the generation's policy its place and tells the worker where they are. Call
 * it before the worker is told of the generation. Does nothing if the policy has no limits. Returns
 * 0, or -errno with s->failure. */
int limits_tell(struct instance *i, const struct generation *g);
/* What counts now against a limit over a period of the policy in force. */
uint64_t limits_used(const struct sandbox *s, const struct policy_limit *limit);
/* Removes a persistent sandbox's own file, when the sandbox has ended. */
void limits_remove(int directory, uint64_t id);

#endif
