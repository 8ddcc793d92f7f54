/* SPDX-License-Identifier: Apache-2.0 */
/* rate: theory of operation: a bucket that counts thousandths, so that each millisecond adds a
 * whole number. */
#include "vethguard/base/rate.h"

#define ONE 1000

static uint32_t at_most(uint32_t value, uint32_t max)
{
	return value < max ? value : max;
}

void rate_init(struct rate *r, uint32_t per_s, uint32_t burst_s, int64_t now_ms)
{
	r->per_s = at_most(per_s, RATE_PER_S_MAX);
	r->burst = (uint64_t)r->per_s * at_most(burst_s, RATE_BURST_S_MAX) * ONE;
	if (r->burst < ONE) /* else a whole one would never fit */
		r->burst = ONE;
	r->left = r->burst;
	r->at_ms = now_ms;
}

static void fill(struct rate *r, int64_t now_ms)
{
	uint64_t passed;

	if (now_ms <= r->at_ms)
		return;
	passed = (uint64_t)(now_ms - r->at_ms);
	if (passed > (r->burst - r->left) / r->per_s)
		r->left = r->burst;
	else
		r->left += passed * r->per_s;
	r->at_ms = now_ms;
}

bool rate_has(struct rate *r, int64_t now_ms)
{
	if (r->per_s == 0)
		return true;
	fill(r, now_ms);
	return r->left >= ONE;
}

bool rate_take(struct rate *r, int64_t now_ms)
{
	if (!rate_has(r, now_ms))
		return false;
	if (r->per_s)
		r->left -= ONE;
	return true;
}
