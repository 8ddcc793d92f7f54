/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission: decides who may use the control socket. Every refused connection is reported; but a
 * sandbox that the socket was mounted into can make thousands in a second, each of which would be a
 * line of the audit log. So some are reported one by one, and the others once a second by their
 * number.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_ADMISSION_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_ADMISSION_H

#include "vethguard/base/rate.h"
#include "supervisor/control/control.h"

#define ADMISSION_PER_S 1      /* refusals reported one by one */
#define ADMISSION_BURST_S 10   /* seconds of these at once */
#define ADMISSION_TELL_MS 1000 /* interval of reports of the others */

struct admission {
	struct control_owner *owner;
	gid_t group;
	struct rate rate;
	struct loop_timer timer;
	unsigned untold;
	struct http_peer last; /* of the unreported ones, without its groups */
	const char *why;
};

/* Returns 0 or -errno. */
int admission_open(
        struct admission *a, struct loop *loop, struct control_owner *owner, gid_t group);
/* Reports what was not reported yet. Allowed if it was not opened. */
void admission_close(struct admission *a);
/* Returns NULL if the peer is admitted, else why not; the refusal is or will be reported. */
const char *admission_objection(struct admission *a, const struct http_peer *peer);

#endif
