/* SPDX-License-Identifier: Apache-2.0 */
/* How often a sandbox's workers have died, and how long to wait before the next start. */
#include "supervisor/sandbox/sandbox.h"
#include "supervisor/supervisor.h"

int64_t sandbox_delay_after_death(struct sandbox *s)
{
	int64_t now_ms = loop_now_ms(s->supervisor->loop);
	int64_t *oldest = &s->deaths_ms[s->death_count++ % SANDBOX_DEATHS_MAX];
	int64_t before_ms = *oldest, delay_ms = 0;

	*oldest = now_ms;
	if (s->death_count > SANDBOX_DEATHS_MAX && now_ms - before_ms <= SANDBOX_DEATHS_MS)
		return -1;
	for (size_t i = 0; i < SANDBOX_DEATHS_MAX && i < s->death_count; i++)
		if (&s->deaths_ms[i] != oldest && now_ms - s->deaths_ms[i] <= SANDBOX_DEATHS_MS)
			delay_ms = delay_ms ? 2 * delay_ms : SANDBOX_BACKOFF_MS;
	return delay_ms;
}
