/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway: the supervisor's side of the gateway: its listeners, certificate, sessions and end; and
 * passing a connection that has proved its session to the session's worker. It exists only in the
 * daemon, and only if the configuration names a place to listen at.
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
/* A gateway that sends more messages than it should (gateway/gateway.h) is at fault; further
 * findings are dropped. */
#define GATEWAY_BURST 8192
#define GATEWAY_PER_S 4096
#define GATEWAY_FINDINGS_PER_S 1
#define GATEWAY_FINDINGS_BURST_S 40

struct gateway_life {
	struct role role;
	struct config_gateway config; /* no listeners: there is no gateway */
	bool open;                    /* it is meant to run */
	bool ready, held;
	bool quiet;                                  /* a lasting fault was logged already */
	int listeners[CONFIG_GATEWAY_LISTENERS_MAX]; /* sockets, in the configuration's order */
	size_t listener_count;
	int inherited[CONFIG_GATEWAY_LISTENERS_MAX]; /* listeners of the previous daemon, until the
	                                                gateway is open */
	size_t inherited_count;
	struct stat files[GATEWAY_FILES]; /* the files as they were when the gateway got them */
	struct loop_timer again, look;
	struct rate findings;
};

/* What this file keeps about a session, in its struct sandbox. */
struct gateway_session {
	bool admitted; /* its token is accepted */
};

/* Starts the gateway if one is configured; may be called again. A failure is logged, and the start
 * is tried again. */
void gateway_open(struct supervisor *sv);
/* Takes a new configuration. A running gateway is replaced if its configuration has changed. */
void gateway_configure(struct supervisor *sv, const struct config_gateway *config);
/* The first function makes the session's token valid; the second makes it invalid and cuts the
 * session's connections. */
void gateway_admit(struct supervisor *sv, struct sandbox *s);
void gateway_cut(struct supervisor *sv, struct sandbox *s);
/* Holds the gateway while another daemon takes over: new connections wait in the kernel's backlog.
 */
void gateway_hold(struct supervisor *sv, bool held);
/* The first function gives the listening sockets for that daemon; the second takes them there. */
size_t gateway_listeners(const struct supervisor *sv, int fds[CONFIG_GATEWAY_LISTENERS_MAX]);
void gateway_inherit(struct supervisor *sv, const int *fds, size_t count);
/* Closes the listeners because another daemon accepts from now on; relayed connections go on. */
void gateway_give_up(struct supervisor *sv);
/* Ends the gateway with the supervisor. */
void gateway_stop(struct supervisor *sv);
void gateway_close(struct supervisor *sv);

/* gateway_files.c */
/* Opens the configuration's listeners; keeps those that are open already. Returns 0, or -errno with
 * why. */
int gateway_listen(struct gateway_life *life, char *why, size_t why_size);
void gateway_unlisten(struct gateway_life *life);
/* Opens certificate and key, if they are configured (else *count is 0). Returns 0, or -errno with
 * why. */
int gateway_files_open(const struct config_gateway *config, int fds[GATEWAY_FILES], size_t *count,
        char *why, size_t why_size);
/* True if these files differ from those that the gateway has. Notes the new ones. */
bool gateway_files_changed(struct gateway_life *life, const int fds[GATEWAY_FILES]);

#endif
