/* SPDX-License-Identifier: Apache-2.0 */
/* rate: so many of something in a second, after a burst. What does not fit waits or is dropped; that is the caller's
 * to say. */
#ifndef VETHGUARD_BASE_RATE_H
#define VETHGUARD_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_PER_S_MAX 1000000
#define RATE_BURST_S_MAX 60

struct rate {
	uint32_t per_s;       /* 0: no bound */
	uint64_t left, burst; /* in thousandths of one */
	int64_t at_ms;        /* when left was that much */
};

/* Begins with a whole burst: as much as burst_s seconds bring. Both numbers are cut to their bounds. */
void rate_init(struct rate *rate, uint32_t per_s, uint32_t burst_s, int64_t now_ms);
/* Takes one; false: there is none. A clock that goes back brings nothing. */
bool rate_take(struct rate *rate, int64_t now_ms);
/* Whether there is one. */
bool rate_has(struct rate *rate, int64_t now_ms);

#endif
