/* SPDX-License-Identifier: Apache-2.0 */
/* inbound: connections to ports of the sandbox that the policy exposes. A visit is one of them. */
#ifndef VETHGUARD_SRC_PROXY_INBOUND_INBOUND_H
#define VETHGUARD_SRC_PROXY_INBOUND_INBOUND_H

#include "proxy/private.h"
#include "vethguard/policy/expose.h"

#define INBOUND_PORTS_MAX (2 * POLICY_EXPOSES_MAX) /* ports of this policy and of earlier ones */
/* Bounds on messages to the supervisor, which kills a worker that sends more than its own bound
 * (supervisor/process/role.h). */
#define INBOUND_ASKS_PER_S 200
#define INBOUND_ASKS_BURST_S 4
#define INBOUND_ASK_AGAIN_MS 10
#define INBOUND_REFUSED_PER_S 20 /* refused visits with an event each; further ones are counted */

struct inbound;
struct tunnel;

/* A port of the sandbox. */
struct inbound_port {
	struct inbound *inbound;
	struct loop_io io;
	struct loop_task more;
	int fd; /* the host's listener; -1: none */
	uint16_t port;
	struct ip address;    /* address of the sandbox; family 0: not known yet */
	bool paused;          /* does not accept: a bound is reached, or nothing new may begin */
	size_t open;          /* open visits */
	size_t waiting;       /* those of them that wait for a socket into the sandbox */
	uint32_t asked;       /* sockets that the supervisor was asked for and has not answered */
	struct list visitors; /* the waiting visits, the oldest first */
};

struct inbound {
	struct proxy *proxy;
	struct inbound_port ports[INBOUND_PORTS_MAX];
	size_t port_count;
	struct list visits; /* all visits */
	size_t count;
	uint64_t came;
	struct rate asks;
	struct loop_timer ask_again, accept_again;
	/* Refused visits of the current second. */
	struct loop_timer second;
	bool counting;
	unsigned told;
	uint64_t more;          /* refused visits without an event */
	struct event last_more; /* the event of the last of them */
	char last_user[MESSAGE_NAME_MAX];
};

enum visit_state {
	VISIT_WAITING,    /* for a socket into the sandbox */
	VISIT_CONNECTING, /* that socket is connecting */
	VISIT_OPEN,       /* bytes pass */
	VISIT_CLOSED,
	VISIT_STATE_COUNT
};

struct visit {
	struct list list;    /* in inbound.visits */
	struct list waiting; /* in inbound_port.visitors */
	struct inbound_port *port;
	enum visit_state state;
	uint64_t id;
	int64_t start_ms;
	int fd;    /* the visitor's socket; -1: the tunnel has it */
	int inner; /* the socket into the sandbox; -1: none, or the tunnel has it */
	struct loop_io inner_io;
	struct ip src, dst;
	uint16_t src_port, dst_port;
	bool own;     /* src is this machine's */
	char *caller; /* owned: the name of the calling sandbox, then its labels as lines; NULL: no
	                 sandbox calls */
	size_t caller_n, labels_n;
	bool cut; /* marked by reauthorization: will be ended */
	struct tunnel *tunnel;
	struct loop_deadline deadline;
	struct loop_task deferred_free;
};

void inbound_free(struct inbound *in);
/* True if no further visit may be open, of this port or of the sandbox. */
bool inbound_is_full(const struct inbound_port *port);
/* Accepts again, if allowed: after a hold, or when a visit has ended. */
void inbound_resume(struct inbound *in);
/* Closes the listeners. */
void inbound_retire(struct inbound *in);
/* Ends all visits and records them with this cause. */
void inbound_end(struct inbound *in, enum event_cause cause, const char *detail);
/* Marks and records all visits that the policy next does not allow (NULL: all visits). Returns how
 * many. inbound_end_marked() ends them. */
size_t inbound_reauthorize(
        struct inbound *in, const struct policy *next, enum event_cause cause, const char *detail);
void inbound_end_marked(struct inbound *in);

/* visit.c: begins a visit with an accepted socket (taken), and authorizes it. */
void visit_open(struct inbound_port *port, int fd, const struct sockaddr *from);
/* The same for another sandbox that calls. */
void visit_call(struct inbound_port *port, int fd, struct slice sandbox, struct slice labels);
/* Gives the visit its socket into the sandbox (taken), which is connecting. inner negative: there
 * is none; why has the reason. */
void visit_connect(struct visit *v, int inner, const char *why);
void visit_end(struct visit *v, enum event_cause cause, const char *detail);
bool visit_passes(const struct visit *v, const struct policy *policy);
/* Records the end of a visit that was admitted. */
void visit_record(struct visit *v, enum event_decision decision, enum event_cause cause,
        const char *detail, uint64_t from_sandbox, uint64_t to_sandbox);
void visit_on_deadline(struct loop_deadline *deadline);
/* audit.c: records a refused visit. */
void inbound_record_refused(struct inbound *in, const struct event *e);
void inbound_on_second(struct loop_timer *timer);

#endif
