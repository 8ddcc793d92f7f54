/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While the log cannot be written it cannot say so. Without these findings, a later reader would
 * see a pause like any other, and could not tell whether something is missing.
 */
#include <stdio.h>
#include <time.h>

#include "vethguard/base/clock.h"
#include "supervisor/supervisor.h"

#define TIME_BYTES sizeof("2026-11-23T04:35:00Z")

void outage_begins(struct supervisor *sv, const char *why)
{
	struct outage *o = &sv->recording.outage;

	snprintf(o->why, sizeof(o->why), "%s", why);
	if (o->since_ms)
		return;
	o->since_ms = clock_real_ms();
	if (o->count++ == 0)
		o->first_ms = o->since_ms;
}

static void format_time(int64_t time_ms, char out[TIME_BYTES])
{
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm tm;

	out[0] = 0;
	if (gmtime_r(&seconds, &tm))
		strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static size_t add_times(const struct outage *o, char *out, size_t size)
{
	const double seconds = (double)o->all_ms / 1000;
	char first[TIME_BYTES], last[TIME_BYTES], times[32] = "";

	format_time(o->first_ms, first);
	format_time(o->last_ms, last);
	if (o->count > 1)
		snprintf(times, sizeof(times), " %u times", o->count);
	return (size_t)snprintf(out, size,
	        "From %s to %s nothing could be written%s, for %.1f s in all, and new work was "
	        "refused.",
	        first, last, times, seconds);
}

/* The workers' events wait in their rings; the supervisor's own list is limited. */
static size_t add_losses(const struct outage *o, char *out, size_t size)
{
	int n = 0;

	if (!o->lost && !o->looks)
		return (size_t)snprintf(out, size, " No event is missing.");
	if (o->lost)
		n = snprintf(out, size, " %u events of vethguardd's own are missing.", o->lost);
	if (o->looks)
		n += snprintf(out + n, size - (size_t)n,
		        " %u calls that only read are not in the log.", o->looks);
	return (size_t)n;
}

static void tell_one(struct sandbox *s, const void *context)
{
	outbox_observed(s->supervisor, s, EVENT_FINDING_LOG_OUTAGE, context);
}

void outage_tell(struct supervisor *sv)
{
	struct outage *o = &sv->recording.outage;
	char text[2 * RECORDING_WHY_MAX];
	size_t n;

	if (o->since_ms || !o->count)
		return;
	n = add_times(o, text, sizeof(text));
	n += add_losses(o, text + n, sizeof(text) - n);
	snprintf(text + n, sizeof(text) - n, " The recorder: %s", o->why);
	*o = (struct outage){.next_told_ms = clock_monotonic_ms() + RECORDER_STALL_SHOWN_MS};
	if (sv->persistent)
		outbox_observed(sv, NULL, EVENT_FINDING_LOG_OUTAGE, text);
	else
		supervisor_for_each(sv, tell_one, text);
}

/* An outage that still goes on is reported when it ends. */
static void on_time(struct loop_timer *timer)
{
	outage_tell(container_of(timer, struct supervisor, recording.outage_time));
}

/* Without a timer it is reported at the end of the next outage, or of the daemon. */
static void tell_later(struct supervisor *sv, int64_t delay_ms)
{
	struct loop_timer *timer = &sv->recording.outage_time;

	if (timer->event || loop_timer_open(sv->loop, timer, on_time) == 0)
		loop_timer_set(timer, delay_ms);
}

void outage_ends(struct supervisor *sv)
{
	struct outage *o = &sv->recording.outage;
	const int64_t now_ms = clock_monotonic_ms();

	if (!o->since_ms)
		return;
	o->all_ms += clock_real_ms() - o->since_ms;
	o->last_ms = clock_real_ms();
	o->since_ms = 0;
	if (now_ms < o->next_told_ms)
		tell_later(sv, o->next_told_ms - now_ms);
	else
		outage_tell(sv);
}
