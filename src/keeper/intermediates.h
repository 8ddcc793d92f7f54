/* SPDX-License-Identifier: Apache-2.0 */
/* intermediates: one CA for each sandbox, some of them made in advance: a key and a signature take
 * about as long as all else that a sandbox's beginning needs of the keeper. */
#ifndef KEEPER_INTERMEDIATES_H
#define KEEPER_INTERMEDIATES_H

#include "vethguard/loop/loop.h"
#include "vethguard/tls/ca.h"

#define INTERMEDIATES_MAX 8 /* in store; keys are in locked memory */

struct intermediates {
	const struct ca *root;
	struct loop_timer refill;
	bool refilling; /* it is set */
	size_t goal, count;
	struct ca *made[INTERMEDIATES_MAX];
};

/* goal: how many are kept in store, at most INTERMEDIATES_MAX; 0 for a keeper of one sandbox. root
 * is borrowed. 0 or -errno. */
int intermediates_open(
        struct intermediates *all, struct loop *loop, const struct ca *root, size_t goal);
/* The caller's from now on (ca_free). NULL: no memory or no randomness. */
struct ca *intermediates_take(struct intermediates *all);
void intermediates_close(struct intermediates *all);

#endif
