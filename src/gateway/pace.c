/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What connections without a proof may cost. One loop serves sessions and strangers, so strangers
 * take time from sessions. A connection's time is charged when it ends without a proof, so that
 * clients with a proof, however many, are accepted as they come.
 *
 * While strangers take more than a tenth of a processor, the gateway accepts only a few connections
 * a hundred times a second (receiver.c). The others wait in the kernel's backlog, and the kernel
 * drops what does not fit there. Connections beyond the bound of their address are closed at once
 * in any case, because that costs little.
 */
#include "gateway/visitor.h"
#include "vethguard/base/clock.h"

#define SHARE_US_PER_MS 100 /* a tenth of a processor */
#define BURST_US 100000

void pace_charge(struct gateway *g, int64_t us)
{
	g->pace.left_us -= us;
	if (g->pace.left_us < -BURST_US)
		g->pace.left_us = -BURST_US; /* so that the pause ends soon after a flood */
}

bool pace_is_tight(struct gateway *g, int64_t now_ms)
{
	const int64_t passed_ms = now_ms - g->pace.at_ms;

	g->pace.at_ms = now_ms;
	if (passed_ms > BURST_US / SHARE_US_PER_MS)
		g->pace.left_us = BURST_US;
	else if (passed_ms > 0)
		g->pace.left_us += passed_ms * SHARE_US_PER_MS;
	if (g->pace.left_us > BURST_US)
		g->pace.left_us = BURST_US;
	return g->pace.left_us <= 0;
}
