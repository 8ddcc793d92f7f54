/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota: the part of a limit that several hosts share (ipc/quotas.h). What passes is counted in the
 * limit's own counter first, which has what passed on this host; then it is taken from the lease.
 * Every function here does nothing, or says yes, for limits that hosts do not share.
 */
#ifndef VETHGUARD_SRC_PROXY_LIMIT_QUOTA_H
#define VETHGUARD_SRC_PROXY_LIMIT_QUOTA_H

#include "proxy/limit/limit.h"

/* How long the loop stands still at most until a lease has come: one question to a server in the
 * same network takes a small part of that. After waiting in vain nobody waits for QUOTA_PAUSE_MS,
 * so a slow server costs a worker at most a fortieth of its time. */
#define QUOTA_WAIT_MS 25
#define QUOTA_PAUSE_MS 1000

/* Finds the limit's quota. key: of its counter. */
void quota_find(struct proxy *proxy, struct limit *limit, const uint8_t key[POLICY_LIMIT_KEY]);
/* Takes n, which the limit's counter has already. n 0: asks whether anything is left. Returns false
 * with nothing taken. */
bool quota_take(struct proxy *proxy, const struct limit *limit, int64_t now_ms, uint64_t n);
/* Gives back what was taken at taken_ms. */
void quota_give_back(const struct limit *limit, int64_t taken_ms, uint64_t n);
/* Counts what has passed already, whether it was left or not. */
void quota_charge(const struct limit *limit, int64_t now_ms, uint64_t n);
/* How much of n quota_take() would give, at least 1 if anything. used: what passed on this host. */
uint64_t quota_room(
        struct proxy *proxy, const struct limit *limit, int64_t now_ms, uint64_t n, uint64_t used);
/* Milliseconds until quota_take() may say yes. *away: the server cannot be asked. */
int64_t quota_wait_ms(const struct limit *limit, int64_t now_ms, bool *away);

#endif
