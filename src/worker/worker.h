/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker: reads every hostile byte of one sandbox. main.c confines it, store.c waits for a
 * sandbox, serve.c puts the parts together, events.c writes to the recorder, keeper.c talks to the
 * keeper, team.c knows the sandbox's other workers, reauthorize.c handles later messages of the
 * supervisor: pauses, a new policy, figures.
 */
#ifndef VETHGUARD_SRC_WORKER_WORKER_H
#define VETHGUARD_SRC_WORKER_WORKER_H

#include "vethguard/dns/tunnel.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/ipc/ring.h"
#include "vethguard/ipc/team.h"
#include "vethguard/policy/expose.h"
#include "vethguard/proxy/proxy.h"

#define EVENT_BACKLOG_MAX \
	(8u << 20) /* bytes of events that wait for the recorder; beyond, the worker ends */

/* Events are encoded into the ring, or into the backlog when the ring is full. Then no new work
 * begins until both have room. Nothing is dropped. */
struct events {
	struct worker *worker;
	struct ring ring;
	bool held;          /* no recorder is running */
	struct buf backlog; /* records, each after a 2-byte length */
	struct loop_io space;
	uint8_t record[EVENT_BYTES_MAX];
};

enum worker_state {
	WORKER_STARTING, /* waits for its CA */
	WORKER_SERVING,
	WORKER_RETIRING, /* another worker serves; it finishes what it has */
	WORKER_STOPPING, /* told to stop */
	WORKER_STATE_COUNT
};

struct worker {
	enum worker_state state;
	struct loop *loop;
	struct message_worker_start start; /* slices point into start_message */
	uint8_t *start_message;
	int fds[MESSAGE_FDS_MAX];
	struct policy policy;
	const struct policy *policy_in_force;
	uint64_t generation; /* of policy */
	bool keeper_broke;   /* the keeper broke the protocol */
	struct ipc_peer supervisor, keeper;
	int keeper_fd;     /* the spare worker's pair to the keeper until it is opened; or -1 */
	struct ca *issuer; /* the spare worker's CA until it serves */
	struct events events;
	struct names *names;
	struct team team;             /* memory is NULL if the sandbox has one worker */
	bool further;                 /* this is not the first worker, which answers names */
	struct loop_timer keep_names; /* only of a further worker */
	struct resolver *resolver;
	struct responder *responder;
	struct dns_tunnel *tunnel_signs;
	struct tls_trust *trust;
	struct credential_store *credentials;
	struct leaf_issuer *leaf_issuer;
	struct proxy_counters counters;
	struct shared_names tools;        /* memory is NULL: the supervisor has sent none */
	struct early_grant *early_grants; /* owned: they came before the proxy */
	struct proxy *proxy;              /* NULL: STARTING, or ended before it served */
	struct secret egress_authorization;
	struct {
		int fd;
		uint16_t port;
	} exposed[POLICY_EXPOSES_MAX]; /* listeners that came before the worker serves */
	size_t exposed_count;
	struct message_worker_stats stats; /* running counts; other figures are set on request */
	uint64_t start_id, stop_id;
	struct loop_task finish;
	struct {
		bool on;
		char text[256];
	} pauses[MESSAGE_PAUSE_OPERATOR + 1];
	int status; /* exit status */
};

#define WORKER_EXIT_FAILED 125

/* Tells the supervisor why, then ends the loop. */
void worker_fail(struct worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

int events_open(struct events *events, struct worker *w, int memory_fd, int data_fd, int space_fd);
void events_put(struct events *events, const struct event *event);
/* While held, nothing new begins although the ring has room: no recorder is running. */
void events_hold(struct events *events, bool hold);
void events_close(struct events *events);

/* Waits for START, which may take long, and for the CA. Exits on an unexpected message. */
void worker_await_start(struct worker *w);
/* Handles PAUSE or HOLD, also before START: a worker that begins paused never serves before that.
 * Returns 0 or -EBADMSG. */
int worker_be_quiet(struct worker *w, struct ipc_message *m);
/* ask.c: for the proxy: asks the supervisor, or tells it that a request waits no longer; takes its
 * answers, and its grants, also before START. */
int worker_ask(void *context, uint64_t id, const struct message_worker_ask *question);
void worker_ask_end(void *context, uint64_t id);
/* Sends a rule that the sandbox proposes. Returns 0 or -errno. */
int worker_propose(void *context, uint64_t id, const struct policy_proposal *proposal);
int worker_take_proposed(struct worker *w, struct ipc_message *m);
int worker_take_answer(struct worker *w, struct ipc_message *m);
int worker_take_grant(struct worker *w, struct ipc_message *m);
/* Gives the proxy the grants that came before it. */
void worker_apply_grants(struct worker *w);
/* limits.c: takes the memories of LIMITS, also before START. Returns 0 or -EBADMSG. */
int worker_take_limits(struct worker *w, struct ipc_message *m);
/* team.c: takes the memory of TEAM, before START. Returns 0 or -errno. */
int worker_take_team(struct worker *w, struct ipc_message *m);
/* Opens the memory of names, as the first worker or as a further one. Takes fd. Returns 0 or
 * -errno. */
int worker_share_names(struct worker *w, int fd, uint32_t *dropped);
/* tools.c: takes the memory of TOOLS, before START. Returns 0 or -EBADMSG. */
int worker_take_tools(struct worker *w, struct ipc_message *m);
/* Takes the message's first descriptor, which the caller then owns. */
int worker_take_fd(struct ipc_message *m);

/* Asks for the CA, before keeper_open(). Returns 0 or -errno. */
int keeper_ask_ca(int fd);
/* Reads the answer into w->issuer. Returns 0 or -EBADMSG. */
int keeper_read_ca(struct worker *w, struct ipc_message *m);
/* Opens the pair to the keeper; worker_serve() follows when the CA has come. Takes fd. Returns 0 or
 * -errno. */
int keeper_open(struct worker *w, int fd);
/* Asks for a credential's value (a credential_ask). */
int keeper_ask(void *context, uint32_t credential, bool renew);
/* credential_seal of the credential store. */
int keeper_seal(void *context, struct slice name, const struct jar_token *token);
/* credential_sign of the credential store: asks the keeper for a signature. */
int keeper_sign(
        void *context, uint64_t id, uint32_t credential, uint16_t scheme, struct slice digest);
/* Replaces a keeper that died. Takes fd. Returns 0 or -errno. */
int keeper_replace(struct worker *w, int fd);

/* Maps and checks a policy. Takes fd. Returns 0 or -errno. */
int worker_map_policy(int fd, struct policy *policy);
/* Maps the worker's policy, before the jail, which needs the policy's ports. Returns 0 or
 * -errno. */
int worker_open_policy(struct worker *w);
/* Makes the parts, except those that need the CA. Returns 0 or -errno. */
int worker_prepare(struct worker *w);
/* Once the CA has come: listens and reports READY. Returns 0 or -errno. */
int worker_serve(struct worker *w);
/* Sets the state; nothing else does. */
void worker_set_state(struct worker *w, enum worker_state state);
void worker_stop(struct worker *w, uint64_t id);
/* Ends the refusal of everything for this reason. */
void worker_resume(struct worker *w, enum message_pause why);
/* Applies the pauses to a new proxy. */
void worker_apply_pauses(struct worker *w);
/* Accepts no new connections from now on, and goes on under this policy. Takes image (a
 * descriptor). Returns 0, or -errno if the policy cannot be used. */
int worker_retire(struct worker *w, uint64_t id, uint64_t generation, int image);
/* inbound.c: take a listener for an exposed port, and sockets into the sandbox. Return 0 or
 * -EBADMSG. */
int worker_listen(struct worker *w, struct ipc_message *m);
int worker_reached(struct worker *w, struct ipc_message *m);
/* Take the answer to a call of another sandbox, and the call of another sandbox. Return 0 or
 * -EBADMSG. */
int worker_called(struct worker *w, struct ipc_message *m);
int worker_visited(struct worker *w, struct ipc_message *m);
/* Serves the listeners that came before. Returns 0 or -errno. */
int worker_serve_exposed(struct worker *w);
/* Asks for sockets into the sandbox (a proxy_config.reach). */
int worker_reach(void *context, uint16_t port, uint32_t count);
/* Calls another sandbox (a proxy_config.call). */
int worker_call(void *context, uint64_t id, struct slice sandbox, uint16_t port);
/* Ask the supervisor for a UDP socket, and tell it that one is closed (proxy_config.associate). */
int worker_associate(void *context, uint64_t id, const struct ip *at);
void worker_associate_end(void *context);
/* Takes the answer. Returns 0 or -EBADMSG. */
int worker_associated(struct worker *w, struct ipc_message *m);
/* Counts an event; sends the figures that were asked for. */
void worker_count(struct worker *w, const struct event *event);
void worker_send_stats(struct worker *w, uint64_t id);
/* credentials.c: does what an operator wants with credentials, and answers. Returns 0 or -EBADMSG.
 */
int worker_operate(struct worker *w, struct ipc_message *m);
/* A callback for the proxy: nothing is left to do, so the worker reports STOPPED and ends. */
void worker_when_idle(void *context);

#endif
