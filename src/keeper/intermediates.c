/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one is made at a time, between messages, and not before whoever took the
 * last one has had the time to begin. */
#include "keeper/intermediates.h"

#include <errno.h>

#include "keeper/authority.h"

#define REFILL_AFTER_MS 30 /* after one was taken */
#define REFILL_NEXT_MS 2
#define REFILL_AGAIN_MS 1000 /* where one could not be made */

static void refill(struct intermediates *all, int64_t after_ms)
{
	if (!all->refilling && all->count < all->goal)
		loop_timer_set(&all->refill, after_ms);
	all->refilling = all->count < all->goal;
}

static void on_refill(struct loop_timer *timer)
{
	struct intermediates *all = container_of(timer, struct intermediates, refill);
	struct ca *ca = authority_intermediate(all->root);

	all->refilling = false;
	if (ca)
		all->made[all->count++] = ca;
	refill(all, ca ? REFILL_NEXT_MS : REFILL_AGAIN_MS);
}

int intermediates_open(
        struct intermediates *all, struct loop *loop, const struct ca *root, size_t goal)
{
	int error;

	if (goal > INTERMEDIATES_MAX)
		return -EINVAL;
	*all = (struct intermediates){.root = root, .goal = goal};
	error = loop_timer_open(loop, &all->refill, on_refill);
	if (!error)
		refill(all, 0);
	return error;
}

struct ca *intermediates_take(struct intermediates *all)
{
	struct ca *ca = all->count ? all->made[--all->count] : authority_intermediate(all->root);

	refill(all, REFILL_AFTER_MS);
	return ca;
}

void intermediates_close(struct intermediates *all)
{
	while (all->count)
		ca_free(all->made[--all->count]);
	all->goal = 0;
	loop_timer_close(&all->refill);
}
