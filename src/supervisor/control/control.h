/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: the daemon's API for the programs of this host: HTTP with JSON over a Unix socket, see
 * docs/openapi.yaml. It identifies callers by the peer's credentials and does nothing by itself:
 * every request becomes one call of attachments.h.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_CONTROL_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_CONTROL_H

#include "vethguard/loop/http_server.h"
#include "vethguard/loop/unix_listener.h"
#include "supervisor/attach/attachments.h"
#include "supervisor/events/head.h"
#include "supervisor/process/ca.h"
#include "supervisor/process/confinement.h"
#include "supervisor/daemon/upgrade.h"

#define CONTROL_GROUP "vethguard"
#define CONTROL_DETAIL_MAX 1024

/* A call, its caller and its result, for the audit log. Borrowed for the callback. */
struct control_record {
	struct http_peer peer;
	/* "sandboxes.attach", ...; "connect" for a refused connection. */
	const char *operation;
	const char *method, *target; /* of the request; "" if none was read */
	const char *sandbox;         /* its name, or "" */
	uint64_t sandbox_id;         /* 0: unknown */
	bool looks;                  /* it changes nothing */
	unsigned status;             /* of the response */
	const char *detail;          /* why it was refused, or "" */
};

struct control_owner {
	/* Called for every call, after its result is known, and every refused connection. */
	void (*called)(struct control_owner *owner, const struct control_record *record);
	/* Hands over to the installed version (upgrade.h). */
	void (*upgrade)(struct control_owner *owner, upgrade_done done, void *context);
	/* Asks for the fingerprint of the audit log's last line (events/head.h). Returns 0 or
	 * -errno. */
	int (*head)(struct control_owner *owner, head_told told, void *context);
	/* Asks how each role is confined (process/confinement.h). Returns 0 or -errno. */
	int (*roles)(struct control_owner *owner, roles_told told, void *context);
	/* What the keeper's CAs are (NULL: not known yet), and a change of them (process/ca.h). */
	const struct message_keeper_ca *(*ca)(struct control_owner *owner);
	int (*change_ca)(struct control_owner *owner, const struct message_keeper_ca_ask *ask,
	        ca_told told, void *context);
};

struct control;

/* Returns the group that may use the socket; (gid_t)-1: there is none, and only root may. */
gid_t control_group(void);
/* Serves fd, which stays the caller's. group: see control_group(). Returns NULL if there is no
 * memory. */
struct control *control_new(struct loop *loop, int fd, struct attachments *attachments,
        struct control_owner *owner, gid_t group);
/* While held, no new connection is accepted, and connected clients are asked to connect again:
 * another daemon is about to answer instead. Open calls go on. Returns 0 or -errno. */
int control_hold(struct control *control, bool hold);
/* Frees it. Operations in progress may still answer; the answers are dropped. Call it before loop
 * and owner are freed. */
void control_free(struct control *control);

#endif
