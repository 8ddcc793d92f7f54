/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_unlink: the link of a gate of GATE_VETH taken away while the loop goes on. The kernel
 * answers whoever deletes a link when nobody can be using it any more, tens of milliseconds later;
 * all other sandboxes would wait so long.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_GATE_UNLINK_H
#define VETHGUARD_SRC_SUPERVISOR_GATE_UNLINK_H

#include "supervisor/gate/gate.h"

#define GATE_UNLINKS_MAX 8 /* at a time; others wait for their turn */

struct gate_unlinking;

/* The gate is not watched any more. done comes once, from the loop, when the link is gone or could
 * not be deleted; gate_remove() is to follow, and does what is left or says why it cannot. The gate
 * may be moved or closed meanwhile. 0 or -errno: then done does not come. */
int gate_unlink(struct gate *gate, struct loop *loop, void (*done)(void *context), void *context,
        struct gate_unlinking **out);
/* Done does not come: waits for it where it has begun. NULL is harmless. */
void gate_unlink_end(struct gate_unlinking *u);

#endif
