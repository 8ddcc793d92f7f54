/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker: reads every hostile byte of one sandbox. main.c is the order of confinement, store.c
 * waits for a sandbox, serve.c puts the parts together, events.c leads to the recorder, keeper.c to
 * the keeper; revise.c is for what the supervisor says later: pauses, a new policy, figures.
 */
#ifndef VETHGUARD_SRC_WORKER_WORKER_H
#define VETHGUARD_SRC_WORKER_WORKER_H

#include "vethguard/dns/tunnel.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/ipc/ring.h"
#include "vethguard/proxy/proxy.h"

#define EVENT_BACKLOG_MAX \
	(8u << 20) /* bytes of events that wait for the recorder; beyond, the worker ends */

/* The way of events: encoded into the ring; when that is full, into the backlog, and no new work is
 * begun until both have room. Nothing is dropped. */
struct events {
	struct worker *worker;
	struct ring ring;
	bool held;          /* nobody records just now */
	struct buf backlog; /* records, each after a 2-byte length */
	struct loop_io space;
	uint8_t record[EVENT_BYTES_MAX];
};

struct worker {
	struct loop *loop;
	struct message_worker_start start; /* slices point into start_message */
	uint8_t *start_message;
	int fds[MESSAGE_FDS_MAX];
	struct policy policy;
	const struct policy *policy_in_force;
	uint64_t generation; /* of it */
	bool keeper_broke;   /* the protocol */
	struct ipc_peer supervisor, keeper;
	int keeper_fd;     /* its pair, until it is opened: while in store; or -1 */
	struct ca *issuer; /* the CA that came while in store, until it serves */
	struct events events;
	struct names *names;
	struct resolver *resolver;
	struct responder *responder;
	struct dns_tunnel *tunnel_signs;
	struct tls_trust *trust;
	struct credential_store *credentials;
	struct leaf_issuer *leaf_issuer;
	struct proxy *proxy;
	struct secret egress_authorization;
	struct message_worker_stats stats; /* what grows; the rest is filled in when asked for */
	uint64_t start_id, stop_id;
	struct loop_task finish;
	bool serving, retiring;
	struct {
		bool on;
		char text[256];
	} pauses[MESSAGE_PAUSE_OPERATOR + 1];
	int status; /* exit status */
};

#define WORKER_EXIT_FAILED 125

/* Ends the loop after telling the supervisor why. */
void worker_fail(struct worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

int events_open(struct events *events, struct worker *w, int memory_fd, int data_fd, int space_fd);
void events_put(struct events *events, const struct event *event);
/* Nothing new is begun while nobody records, though the ring has room. */
void events_hold(struct events *events, bool hold);
void events_close(struct events *events);

/* Waits for START, which may be long in coming, and for its CA. Exits where it is told what it must
 * not. */
void worker_await_start(struct worker *w);
/* PAUSE or HOLD, also before START: a worker that begins paused never serves before it is. 0 or
 * -EBADMSG. */
int worker_be_quiet(struct worker *w, struct ipc_message *m);
/* The message's one descriptor, which is the caller's from now on. */
int worker_take_fd(struct ipc_message *m);

/* Asks for the CA, before the pair to the keeper is opened even. 0 or -errno. */
int keeper_ask_ca(int fd);
/* The answer: w->issuer. 0 or -EBADMSG. */
int keeper_read_ca(struct worker *w, struct ipc_message *m);
/* Opens the pair; worker_serve() follows when the CA is there. Takes fd. 0 or -errno. */
int keeper_open(struct worker *w, int fd);
/* Asks for a credential's value: a credential_ask. */
int keeper_ask(void *context, uint32_t credential);
/* Another keeper in place of one that died. Takes fd. 0 or -errno. */
int keeper_replace(struct worker *w, int fd);

/* Maps a policy and checks it. Takes fd. 0 or -errno. */
int worker_map_policy(int fd, struct policy *policy);
/* Maps the policy: before the jail, which needs its ports. 0 or -errno. */
int worker_open_policy(struct worker *w);
/* Everything but the CA is ready: makes the parts. 0 or -errno. */
int worker_prepare(struct worker *w);
/* The CA has come: listens and reports READY. 0 or -errno. */
int worker_serve(struct worker *w);
void worker_stop(struct worker *w, uint64_t id);
/* Refuses everything from now on, or no longer for this reason. */
void worker_pause(struct worker *w, enum message_pause why, struct slice text);
void worker_resume(struct worker *w, enum message_pause why);
/* Refusals as the pauses have them; the proxy is new. */
void worker_apply_pauses(struct worker *w);
/* Takes no new connection from now on, and goes on under this policy. Takes image (a descriptor).
 * 0, or -errno where the policy cannot be used. */
int worker_retire(struct worker *w, uint64_t id, uint64_t generation, int image);
/* Counts an event; answers a question for figures. */
void worker_count(struct worker *w, const struct event *event);
void worker_send_stats(struct worker *w, uint64_t id);
/* Nothing is left to be done: the last words. To be given to the proxy. */
void worker_when_idle(void *context);

#endif
