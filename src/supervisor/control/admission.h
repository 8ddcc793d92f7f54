/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission: who may speak at the control socket. Every connection that is refused is told of; but
 * a sandbox that the socket was mounted into makes thousands in a second, and each would be a line
 * of the audit log. So some are told of one by one, and beyond that once a second how many there
 * were.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_ADMISSION_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_ADMISSION_H

#include "vethguard/base/rate.h"
#include "supervisor/control/control.h"

#define ADMISSION_PER_S 1      /* refusals that are told of one by one */
#define ADMISSION_BURST_S 10   /* ... and so many of them at once */
#define ADMISSION_TELL_MS 1000 /* the others, together */

struct admission {
	struct control_owner *owner;
	gid_t group;
	struct rate rate;
	struct loop_timer timer;
	unsigned untold;
	struct http_peer last; /* of those, without its groups */
	const char *why;
};

/* 0 or -errno. */
int admission_open(
        struct admission *a, struct loop *loop, struct control_owner *owner, gid_t group);
/* Those that are not told of yet are. Harmless where it was not opened. */
void admission_close(struct admission *a);
/* NULL: it may; else why not, which is told or will be. */
const char *admission_objection(struct admission *a, const struct http_peer *peer);

#endif
