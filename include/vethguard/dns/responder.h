/* SPDX-License-Identifier: Apache-2.0 */
/*
 * responder: answers the sandbox's DNS queries with synthetic addresses and never forwards any. So a connection to a
 * synthetic address carries its name.
 */
#ifndef VETHGUARD_DNS_RESPONDER_H
#define VETHGUARD_DNS_RESPONDER_H

#include "vethguard/base/hash.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/dns.h"
#include "vethguard/wire/event.h"

#define RESPONDER_TTL_S 60

/* --- names and their synthetic addresses --- */

struct names;
/* Makes the pools' names; the first 256 addresses of each pool are left to the link. limit: names kept at a time
 * (each has an address of both families). The least recently asked name is dropped first, but never one that is in
 * use (names_hold) or was asked within 2 * RESPONDER_TTL_S. Returns NULL if there is no memory. */
struct names *names_new(const struct ip_prefix *pool4, const struct ip_prefix *pool6, uint32_t limit);
void names_free(struct names *names);
/* Shares the names through memory (ipc/shared_names.h); call this before the first name. Takes over the names that an
 * earlier worker has left there, each as if it had been asked just now. From then on, a worker that opened the memory
 * earlier reuses no addresses; it can only hand out unused ones. Takes fd. *dropped: number of invalid entries.
 * Returns 0 or -errno. */
int names_share(struct names *names, int fd, int64_t now_ms, uint32_t *dropped);
/* Makes this worker a follower: it reads the names that another worker has given addresses to and will give, and gives
 * out no address itself. Call this before the first name. Takes fd; *dropped and the return value are those of
 * names_share(). */
int names_follow(struct names *names, int fd, int64_t now_ms, uint32_t *dropped);
/* Follower: notes that the names which its connections hold are in use, so that the other worker does not reuse their
 * addresses. Call this every RESPONDER_TTL_S seconds. */
void names_keep_held(struct names *names, int64_t now_ms);
/* Returns the number of addresses given out. */
uint32_t names_count(const struct names *names);
/* Gets the addresses of a canonical host name, assigning them if need be. now_ms: monotonic. Returns 0; -ENOSPC if
 * all are in use; -EINVAL for a bad length; or -ENOMEM. */
int names_assign(struct names *names, struct slice host, int64_t now_ms, struct ip *v4, struct ip *v6);
/* Gets the name behind a synthetic address, borrowed until the next call for these names. False: none. */
bool names_lookup(struct names *names, const struct ip *address, struct slice *host);
bool names_is_synthetic(const struct names *names, const struct ip *address);
/* Keeps an address from being reused while a connection uses it. */
void names_hold(struct names *names, const struct ip *address);
void names_release(struct names *names, const struct ip *address);

/* --- answering --- */

/* Called with each query and its answer; the responder sets what it knows. search_domain: the domain that a search
 * list has appended to an allowed name, at the end of event->host (the cause is then EVENT_CAUSE_SEARCH_LIST);
 * otherwise empty. */
typedef void (*responder_on_query)(void *context, struct event *event, struct slice search_domain);

struct responder;
struct responder_config {
	struct loop *loop;
	const struct policy *const *policy; /* points to the policy in force */
	struct names *names;
	responder_on_query on_query;
	void *context;
	uint32_t queries_per_s; /* beyond: REFUSED, recorded once per second with the count in detail;
	                           beyond CONFIG_QUERIES_DROPPED times as many: no answer, and over TCP
	                           the connection ends */
};
/* Copies config and borrows what it points to. Returns NULL if there is no memory. */
struct responder *responder_new(const struct responder_config *config);
/* Closes the served sockets; the names stay. */
void responder_free(struct responder *responder);
/* Returns how many queries were refused for their rate since the responder was made. */
uint64_t responder_refused(const struct responder *responder);
/* While held, nothing is read or answered: queries wait in the kernel, as many as it keeps. May be called from within
 * on_query, whose query is still answered. */
void responder_hold(struct responder *responder, bool hold);
/* Answers what has arrived over UDP, then calls responder_free(). */
void responder_finish(struct responder *responder);
/* Serve transparent UDP sockets (answers leave from the address that was asked) and TCP listeners (RFC 7766: length
 * prefix, pipelining, idle timeout 10 s, at most 32 connections). Take fd. Return 0 or -errno. */
int responder_serve_udp(struct responder *responder, int fd);
int responder_serve_tcp(struct responder *responder, int fd);

#endif
