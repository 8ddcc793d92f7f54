/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: the daemon's API for the programs of this host: HTTP with JSON over a Unix socket, as
 * docs/openapi.yaml describes it. It knows who speaks by the peer's credentials and does nothing by
 * itself: every request becomes one call of attachments.h.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_CONTROL_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_CONTROL_H

#include "vethguard/loop/http_server.h"
#include "vethguard/loop/unix_listener.h"
#include "supervisor/attach/attachments.h"
#include "supervisor/events/head.h"
#include "supervisor/process/confinement.h"
#include "supervisor/daemon/upgrade.h"

#define CONTROL_GROUP "vethguard"
#define CONTROL_DETAIL_MAX 1024

/* What was asked for, by whom, and what came of it: for the audit log. Borrowed for the call. */
struct control_record {
	struct http_peer peer;
	const char
	        *operation; /* "sandboxes.attach", ...; "connect" for a peer that may not speak */
	const char *method, *target; /* of the request; "" where none was read */
	const char *sandbox;         /* its name, or "" */
	uint64_t sandbox_id;         /* 0: not known */
	bool looks;                  /* it changes nothing */
	unsigned status;             /* of the answer */
	const char *detail;          /* why it was refused, or "" */
};

struct control_owner {
	/* Every call, after its answer is known, and every refused connection. */
	void (*called)(struct control_owner *owner, const struct control_record *record);
	/* Hands over to the installed version (upgrade.h). */
	void (*upgrade)(struct control_owner *owner, upgrade_done done, void *context);
	/* Which line of the audit log is the last one (events/head.h). 0 or -errno. */
	int (*head)(struct control_owner *owner, head_told told, void *context);
	/* How each role is confined (process/confinement.h). 0 or -errno. */
	int (*roles)(struct control_owner *owner, roles_told told, void *context);
};

struct control;

/* The group that may use the socket; (gid_t)-1: there is none, and only root may. */
gid_t control_group(void);
/* Serves fd, which stays the caller's. group as above. NULL: no memory. */
struct control *control_new(struct loop *loop, int fd, struct attachments *attachments,
        struct control_owner *owner, gid_t group);
/* While held, nobody new is heard, and who is connected already is asked to come again: another
 * daemon is about to answer in place of this one. Calls under way go on. 0 or -errno. */
int control_hold(struct control *control, bool hold);
/* Operations that are under way may still answer; nobody hears it. Before loop and owner go. */
void control_free(struct control *control);

#endif
