/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway: the supervisor's side of the gateway: its listeners, certificate, sessions and end; and
 * leading a connection that has proved its session to the session's worker. Only in the daemon, and
 * only where the configuration names a place to listen at.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_GATEWAY_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_GATEWAY_H

#include <sys/stat.h>

#include "vethguard/base/rate.h"
#include "vethguard/policy/config.h"
#include "supervisor/process/role.h"

struct sandbox;
struct supervisor;

#define GATEWAY_LOOK_MS 5000  /* interval of looks at the certificate's files */
#define GATEWAY_AGAIN_MS 1000 /* before one that died, or could not listen, is started again */
#define GATEWAY_FILES 2       /* certificate, key */
/* More messages than it sends (gateway/gateway.h) are a fault of it; more findings are dropped. */
#define GATEWAY_BURST 8192
#define GATEWAY_PER_S 4096
#define GATEWAY_FINDINGS_PER_S 1
#define GATEWAY_FINDINGS_BURST_S 40

struct gateway_life {
	struct role role;
	struct config_gateway config; /* no listeners: there is no gateway */
	bool open;                    /* it is to run */
	bool ready, held;
	bool quiet;                                  /* a fault that lasts was told */
	int listeners[CONFIG_GATEWAY_LISTENERS_MAX]; /* sockets, in the configuration's order */
	size_t listener_count;
	int inherited[CONFIG_GATEWAY_LISTENERS_MAX]; /* from the daemon before, until it is open */
	size_t inherited_count;
	struct stat files[GATEWAY_FILES]; /* as they were when the gateway got them */
	struct loop_timer again, look;
	struct rate findings;
};

/* What the gateway's part keeps of a session, in its struct sandbox. */
struct gateway_session {
	bool admitted; /* its token counts */
};

/* Starts it, if there is one; may be called again. What fails is logged and tried again. */
void gateway_open(struct supervisor *sv);
/* Takes over another configuration: a gateway that runs is replaced if it has changed. */
void gateway_configure(struct supervisor *sv, const struct config_gateway *config);
/* The session's proof counts from now on; the second ends it, and cuts its connections. */
void gateway_admit(struct supervisor *sv, struct sandbox *s);
void gateway_cut(struct supervisor *sv, struct sandbox *s);
/* While another daemon takes over: connections wait in the kernel's backlog. */
void gateway_hold(struct supervisor *sv, bool held);
/* For that daemon: the listening sockets. The second function takes them there. */
size_t gateway_listeners(const struct supervisor *sv, int fds[CONFIG_GATEWAY_LISTENERS_MAX]);
void gateway_inherit(struct supervisor *sv, const int *fds, size_t count);
/* Another daemon accepts from now on; what is relayed goes on. */
void gateway_give_up(struct supervisor *sv);
/* It ends with the supervisor. */
void gateway_stop(struct supervisor *sv);
void gateway_close(struct supervisor *sv);

/* gateway_files.c */
/* Opens the listeners of the configuration; keeps those that are open already (old). Returns 0, or
 * -errno with why. */
int gateway_listen(struct gateway_life *life, char *why, size_t why_size);
void gateway_unlisten(struct gateway_life *life);
/* Opens certificate and key, if they are configured (else *count is 0). Returns 0, or -errno with
 * why. */
int gateway_files_open(const struct config_gateway *config, int fds[GATEWAY_FILES], size_t *count,
        char *why, size_t why_size);
/* True if these are others than those that the gateway has; notes them. */
bool gateway_files_changed(struct gateway_life *life, const int fds[GATEWAY_FILES]);

#endif
