/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_unlink: deletes the link of a GATE_VETH gate without blocking the loop. The kernel returns
 * from deleting a link only when nothing can be using it any more, tens of milliseconds later; all
 * other sandboxes would wait that long.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_GATE_UNLINK_H
#define VETHGUARD_SRC_SUPERVISOR_GATE_UNLINK_H

#include "supervisor/gate/gate.h"

#define GATE_UNLINKS_MAX 8 /* at a time; others wait for their turn */

struct gate_unlinking;

/* Starts deleting the link. Ends gate_watch(). done is called once, from the loop, when the link is
 * gone or could not be deleted; call gate_remove() then: it does the rest or says why it cannot.
 * The gate may be moved or closed meanwhile. Returns 0, or -errno: then done is not called. */
int gate_unlink(struct gate *gate, struct loop *loop, void (*done)(void *context), void *context,
        struct gate_unlinking **out);
/* Cancels done, and waits for the deletion if it has begun. NULL is allowed. */
void gate_unlink_end(struct gate_unlinking *u);

#endif
