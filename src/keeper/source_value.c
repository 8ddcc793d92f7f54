/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a source, the value that it holds, and the value's end. If the service tells the
 * value's lifetime, the value is dropped a little earlier, so that no request leaves with a value
 * that expires on its way. Some time before that, the next value is fetched as soon as a worker
 * wants it, while this one is still used. That moment differs between sandboxes, so that they do
 * not all ask a service at once.
 *
 * The end is on CLOCK_BOOTTIME, as in the workers' stores (credential/store.c): the timer stands
 * still while the machine sleeps, so each question checks whether the value is over.
 */
#include <string.h>

#include "keeper/marker.h"
#include "keeper/sources.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"

#define GUARD_PART 50 /* the last fiftieth of the lifetime at most is not used */
#define GUARD_MAX_MS 5000
#define RENEW_PART 10 /* the next value is fetched in the last tenth of the lifetime at most */
#define RENEW_MAX_MS 60000

static const char *const state_names[] = {
        [SOURCE_EMPTY] = "EMPTY",
        [SOURCE_ASKED] = "ASKED",
        [SOURCE_READING] = "READING",
        [SOURCE_HELD] = "HELD",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == SOURCE_STATE_COUNT, "a name per state");

void source_enter(struct source *source, enum source_state state)
{
	if (source->state != state)
		log_debug("%s: credential %s: %s -> %s", source->sandbox ? source->sandbox : "",
		        source->name, state_names[source->state], state_names[state]);
	source->state = state;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void source_value_drop(struct source *source)
{
	loop_timer_cancel(&source->end);
	secret_free(&source->value);
	memset(source->mark, 0, sizeof(source->mark));
	if (source->state == SOURCE_HELD)
		source_enter(source, SOURCE_EMPTY);
}

static void on_end(struct loop_timer *timer)
{
	source_value_drop(container_of(timer, struct source, end));
}

int source_value_open(struct source *source)
{
	return source->end.event ? 0 : loop_timer_open(source->sources->loop, &source->end, on_end);
}

bool source_value_is_valid(const struct source *source)
{
	return source->value.n > 0 &&
	       (source->expires_ms == 0 || clock_boot_ms() < source->expires_ms);
}

/* Returns how long before the end the next value is wanted: in the first half of the last tenth. */
static int64_t renew_before_ms(int64_t lives_ms)
{
	int64_t margin_ms = least(lives_ms / RENEW_PART, RENEW_MAX_MS);
	uint32_t random;

	random_bytes(&random, sizeof(random));
	return margin_ms - (int64_t)((uint64_t)random % (uint64_t)(margin_ms / 2 + 1));
}

static void live(struct source *source, bool told, int64_t lives_ms)
{
	const int64_t guard_ms = told ? least(lives_ms / GUARD_PART, GUARD_MAX_MS) : 0;
	const int64_t now_ms = clock_boot_ms();

	source->expires_ms = source->renew_ms = 0;
	if (lives_ms > 0) {
		loop_timer_set(&source->end, lives_ms - guard_ms);
		source->expires_ms = now_ms + lives_ms - guard_ms;
	}
	if (lives_ms > 0 && told)
		source->renew_ms = now_ms + lives_ms - renew_before_ms(lives_ms);
}

void source_value_extend(struct source *source, int64_t lives_ms)
{
	live(source, true, lives_ms);
}

int source_value_hold(struct source *source, struct slice value, bool told, int64_t lives_ms)
{
	struct secret copy;
	int rc = secret_copy(&copy, value.p, value.n);

	if (rc < 0)
		return rc;
	source_value_drop(source);
	source->value = copy;
	live(source, told, lives_ms);
	if (source->sources->marker)
		marker_mark(source->sources->marker, secret_slice(&source->value), source->mark);
	return 0;
}

/* Returns for how many milliseconds the held value is still valid. 0: for ever; a value that ends
 * never gives 0. */
uint32_t source_value_ttl_ms(const struct source *source)
{
	int64_t left = source->expires_ms - clock_boot_ms();

	if (source->expires_ms == 0)
		return 0;
	return left <= 1 ? 1 : left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

uint32_t source_value_renew_ms(const struct source *source)
{
	int64_t left = source->renew_ms - clock_boot_ms();
	int64_t retry = source->retry_ms - loop_now_ms(source->sources->loop);

	if (source->renew_ms == 0)
		return 0;
	left = left > retry ? left : retry;
	return left <= 1 ? 1 : left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}
