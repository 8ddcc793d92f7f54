/* SPDX-License-Identifier: Apache-2.0 */
/* rate: a bound on how many of something happen per second, after an initial burst. The caller decides whether what
 * exceeds it waits or is dropped. */
#ifndef VETHGUARD_BASE_RATE_H
#define VETHGUARD_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_PER_S_MAX 1000000
#define RATE_BURST_S_MAX 60

struct rate {
	uint32_t per_s;       /* 0: no bound */
	uint64_t left, burst; /* in thousandths */
	int64_t at_ms;        /* the time at which left was valid */
};

/* Begins with a full burst: as much as burst_s seconds bring. Both numbers are cut to their maximum. */
void rate_init(struct rate *rate, uint32_t per_s, uint32_t burst_s, int64_t now_ms);
/* Takes one. Returns false if none is left. A clock that goes back adds nothing. */
bool rate_take(struct rate *rate, int64_t now_ms);
/* True if one is left. */
bool rate_has(struct rate *rate, int64_t now_ms);

#endif
