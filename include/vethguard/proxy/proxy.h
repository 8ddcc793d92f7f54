/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy: a sandbox's only way out. The proxy accepts the connections that the fence hands over, finds out what they
 * are (TLS, HTTP, anything else), authorizes them, dials the destination under its real name, attaches credentials
 * and relays.
 */
#ifndef VETHGUARD_PROXY_PROXY_H
#define VETHGUARD_PROXY_PROXY_H

#include "vethguard/credential/store.h"
#include "vethguard/dns/responder.h"
#include "vethguard/ipc/counters.h"
#include "vethguard/ipc/quotas.h"
#include "vethguard/ipc/team.h"
#include "vethguard/ipc/shared_names.h"
#include "vethguard/loop/resolver.h"
#include "vethguard/issuer/leaf_issuer.h"
#include "vethguard/policy/config.h"
#include "vethguard/wire/message.h"

struct proxy;

/* Takes an event for the audit log; the event's id comes from proxy_event_id(). Cannot fail: an event that cannot be
 * written at once is kept, and the callee calls proxy_hold() until it is written. */
typedef void (*proxy_record)(void *context, const struct event *event);

/* The memories in which limits of the policy are counted (policy/limits.h). */
#define PROXY_COUNTERS_MAX MESSAGE_LIMITS_MAX
struct proxy_counters {
	size_t count;
	struct {
		struct counters memory;
		struct quotas quotas;             /* of budgets that several hosts share; memory NULL: none */
		char shared[POLICY_NAME_MAX + 1]; /* key of the label that shares it; empty: the sandbox's own */
	} of[PROXY_COUNTERS_MAX];
};

/* All pointers are borrowed for the proxy's life. */
struct proxy_config {
	struct loop *loop;
	const struct policy *policy;
	struct names *names;
	struct resolver *resolver;
	struct leaf_issuer *leaf_issuer;
	struct tls_trust *trust;
	struct credential_store *credentials;
	struct ip gate4, gate6;
	uint16_t proxy_port;
	const struct ip_prefix *permit;
	size_t permit_count;
	const struct config_egress *egress; /* NULL: dial directly */
	struct slice egress_authorization;  /* value of Proxy-Authorization for egress's proxy, or empty */
	const struct proxy_counters
	        *counters;          /* NULL: none; may change before proxy_reauthorize() changes the policy */
	const struct team *team;    /* what it shares with other workers of the sandbox; NULL: there are none */
	struct shared_names *tools; /* remembers what MCP servers said of their tools; NULL: the proxy does so itself */
	struct config_limits limits;
	struct config_timeouts timeouts;
	uint32_t event_nonce; /* upper half of every event's id */
	proxy_record record;
	/* Asks for connections to an exposed port of the sandbox; proxy_reached() is called with the answer. Returns 0
	 * or -errno. NULL: no port is exposed. */
	int (*reach)(void *context, uint16_t port, uint32_t count);
	/* Asks a person about a request, under this id; proxy_answer() or proxy_grant() may follow. Returns 0 or
	 * -errno. NULL: nobody can be asked. ask_end tells that the request with this id waits no longer. */
	int (*ask)(void *context, uint64_t id, const struct message_worker_ask *question);
	void (*ask_end)(void *context, uint64_t id);
	/* Sends a rule that the sandbox proposes, under this id; proxy_proposed() tells what becomes of it. Returns 0
	 * or -errno. NULL: nobody takes proposals. */
	int (*propose)(void *context, uint64_t id, const struct policy_proposal *proposal);
	/* Asks for a port that another sandbox exposes; proxy_called() is called with the answer and this id. Returns 0
	 * or -errno. NULL: there is none. */
	int (*call)(void *context, uint64_t id, struct slice sandbox, uint16_t port);
	/* Asks for a UDP socket at this address of the host, for a client whose connection has reached the address;
	 * proxy_associated() is called with the answer and this id. Returns 0 or -errno. NULL: there are no such
	 * sockets. associate_end tells that one of them is closed. */
	int (*associate)(void *context, uint64_t id, const struct ip *at);
	void (*associate_end)(void *context);
	void *context;
};

struct proxy *proxy_new(const struct proxy_config *config); /* NULL: no memory */
void proxy_free(struct proxy *proxy);
/* Serves a transparent listening socket. Takes fd. Returns 0 or -errno. */
int proxy_serve_tcp(struct proxy *proxy, int fd);
/* As proxy_serve_tcp(), for a socket to which connections come rewritten (fence/shared.h): the kernel's connection
 * table tells where a client was going to. */
int proxy_serve_rewritten(struct proxy *proxy, int fd);
/* Serves a listening Unix socket, on which an explicit proxy is spoken: HTTP or SOCKS5. Takes fd. Returns 0 or
 * -errno. */
int proxy_serve_unix(struct proxy *proxy, int fd);
/* As proxy_serve_unix(), for a listening vsock: connections of another machine than cid are closed and are a finding.
 */
int proxy_serve_vsock(struct proxy *proxy, int fd, uint32_t cid);
/* Takes fd, an accepted connection whose client speaks to an explicit proxy, as over a Unix socket. enter tells where
 * the connection comes from, and where a client of SOCKS5 may send datagrams. On a connection of MESSAGE_FORM_BASE_* a
 * request may also name an https:// URL, and responses are changed to fit (client/base.c). If it was handed over, fd is
 * the client's TCP connection. Returns 0; -EBUSY: the bound
 * on connections (at a time, or per second) is reached, or the proxy accepts nothing new any more; or another -errno.
 * fd is closed on failure. */
int proxy_enter(struct proxy *proxy, int fd, const struct message_worker_enter *enter);
/* Resets the connections that the gateway has handed over: their proof is not valid any more. */
void proxy_cut(struct proxy *proxy);
/* Relays datagrams that arrive on a transparent UDP socket bound to port. Takes fd. Returns 0 or -errno. */
int proxy_serve_udp(struct proxy *proxy, int fd, uint16_t port);
/* Serves the host's listener for an exposed port of the sandbox. Takes fd. Returns 0 or -errno. */
int proxy_serve_exposed(struct proxy *proxy, int fd, uint16_t port);
/* Takes sockets that are connecting to a port of the sandbox at its address, at most as many as were asked for. Sets
 * the descriptors that it keeps to -1. why: if there are fewer, a sentence (static, or borrowed for the call). Returns
 * 0, or -EBADMSG if nobody asked for sockets. */
int proxy_reached(
        struct proxy *proxy, uint16_t port, const struct ip *address, int *fds, size_t count, const char *why);
/* Takes the answer to a call: fd is a connected socket, or -1 if the call was refused. Returns 0, or -EBADMSG if no
 * call has this id. */
int proxy_called(struct proxy *proxy, uint64_t id, int fd);
/* Another sandbox calls an exposed port: it is authorized and relayed like any other visit. labels: "KEY=VALUE" lines.
 * Takes fd, a connected socket. */
void proxy_visited(struct proxy *proxy, uint16_t port, int fd, struct slice sandbox, struct slice labels);
/* Takes the answer to the associate() with that id: fd, a UDP socket that the client reaches at this address and port;
 * or -1 if none was given. The client that asked may be gone. */
void proxy_associated(struct proxy *proxy, uint64_t id, int fd, const struct ip *address, uint16_t port);
/* Takes a person's decision about the request with that id, which may be gone. text: who has decided, and why. */
void proxy_answer(struct proxy *proxy, uint64_t id, bool approved, struct slice text);
/* Adds the grant with that id, which approves requests like its question for a while or without end; or ends it, and
 * the requests that run by it. */
void proxy_grant(struct proxy *proxy, uint64_t id, const struct message_worker_grant *grant);
/* Takes the news of what has become of the sandbox's proposal with that id. */
void proxy_proposed(struct proxy *proxy, uint64_t id, const struct message_worker_proposed *proposed);
/* Returns the id of the next event. */
uint64_t proxy_event_id(struct proxy *proxy);
/* While held (the recorder is behind), no new work begins; work under way goes on. */
void proxy_hold(struct proxy *proxy, bool hold);
/* Refuses everything new with 503, for this cause and with this text (copied, at most 255 bytes). why NULL: ends the
 * pause. */
void proxy_pause(struct proxy *proxy, enum event_cause cause, const char *why);
/* The kill switch: ends every exchange, tunnel and flow at once, and records each with this cause and text (borrowed
 * for the call). */
void proxy_end_all(struct proxy *proxy, enum event_cause cause, const char *why);
/* Ends every exchange that has received this credential or waits for it, and records each with why (static). Returns
 * how many it has ended. */
size_t proxy_end_credential(struct proxy *proxy, uint32_t credential, const char *why);
/* Replaces the policy: authorizes everything under way by next. What does not pass, or would get another credential,
 * is recorded and ended. Between looking and ending the proxy calls change(), after which config.policy must have the
 * content of next and the credential store must refer to it. Returns how many were ended. */
size_t proxy_reauthorize(struct proxy *proxy, const struct policy *next, void (*change)(void *context), void *context);
/* Accepts the connections that wait at the listeners and closes the listeners. Everything under way goes on, including
 * tunnels and flows; each connection ends after its present exchange. on_idle is called once, when nothing is left.
 * Call this at most once; proxy_drain() may follow. */
void proxy_retire(struct proxy *proxy, void (*on_idle)(void *context), void *context);
/* Returns the number of connections and flows. */
size_t proxy_left(const struct proxy *proxy);
/* Sets the fields that the proxy knows: connections, streams_open, exchanges_open, flows_open, upstreams,
 * refusals. */
void proxy_count(const struct proxy *proxy, struct message_worker_stats *out);
/* Stops accepting, ends idle connections and lets exchanges under way finish. on_idle is called once, when no
 * connection is left. */
void proxy_drain(struct proxy *proxy, void (*on_idle)(void *context), void *context);

#endif
