/* SPDX-License-Identifier: Apache-2.0 */
/* deny_throttle: how many refusals are answered in a second; the others wait. */
#ifndef VETHGUARD_SRC_PROXY_DENY_DENY_THROTTLE_H
#define VETHGUARD_SRC_PROXY_DENY_DENY_THROTTLE_H

#include "vethguard/base/list.h"
#include "vethguard/base/rate.h"
#include "vethguard/loop/loop.h"

struct exchange;
struct proxy;

/* Limits the rate of refusals (deny/deny_throttle.c): refused requests that are recorded and
 * wait for their answer. */
struct deny_throttle {
	struct rate rate;
	struct list waiting; /* struct exchange, by throttled.turn */
	struct loop_timer turn;
	bool due;
	uint64_t delayed; /* since the proxy was made */
};

/* The part of an exchange. */
struct throttled {
	struct list turn; /* in deny_throttle.waiting while the answer is held back */
	bool delayed;     /* the answer is or was held back: this happens once */
};

int deny_throttle_open(struct proxy *proxy);
void deny_throttle_close(struct proxy *proxy);
/* True: there are too many refusals, and ex will be answered when its turn comes. */
bool deny_throttle_waits(struct exchange *ex);
/* Answers all that wait at once. */
void deny_throttle_answer_all(struct proxy *proxy);

#endif
