/* SPDX-License-Identifier: Apache-2.0 */
/*
 * responder: answers the sandbox's DNS with synthetic addresses and forwards nothing, ever. A connection to a synthetic
 * address therefore carries its name.
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
/* Pools; the first 256 addresses of each are left to the link. limit: names kept at a time (each has both addresses).
 * The least recently asked name goes first, but never one in use (names_hold) or asked within 2 * RESPONDER_TTL_S.
 * NULL: no memory. */
struct names *names_new(const struct ip_prefix *pool4, const struct ip_prefix *pool6, uint32_t limit);
void names_free(struct names *names);
/* Before the first name: keeps the names in that memory (ipc/shared_names.h) as well, and takes over those that are
 * there already, of a worker before this one, each as if it had been asked for just now. From then on a worker that
 * opened the memory earlier gives no address away, only finds new ones. Takes fd. *dropped: entries that make no
 * sense. 0 or -errno. */
int names_share(struct names *names, int fd, int64_t now_ms, uint32_t *dropped);
/* Addresses given out. */
uint32_t names_count(const struct names *names);
/* Addresses of a canonical host name, made where needed. 0; -ENOSPC: all are in use; -ENOMEM. now_ms: monotonic. */
int names_assign(struct names *names, struct slice host, int64_t now_ms, struct ip *v4, struct ip *v6);
/* The name behind a synthetic address, borrowed until the next names_assign; false: none. */
bool names_lookup(struct names *names, const struct ip *address, struct slice *host);
bool names_is_synthetic(const struct names *names, const struct ip *address);
/* Keeps a name from being given away while a connection uses it. */
void names_hold(struct names *names, const struct ip *address);
void names_release(struct names *names, const struct ip *address);

/* --- answering --- */

/* Hears of every query with its answer, filled as far as the responder knows. search_domain: what a search list has
 * put behind an allowed name, the end of event->host (its cause is EVENT_CAUSE_SEARCH_LIST then); else empty. */
typedef void (*responder_on_query)(void *context, struct event *event, struct slice search_domain);

struct responder;
struct responder_config {
	struct loop *loop;
	const struct policy *const *policy; /* where the policy in force is */
	struct names *names;
	responder_on_query on_query;
	void *context;
	uint32_t queries_per_s;             /* beyond: REFUSED, recorded once per second with the count in detail; beyond
	                                       CONFIG_QUERIES_DROPPED times as many: silence, and the end of a connection */
};
/* config is copied, what it points to borrowed. NULL: no memory. */
struct responder *responder_new(const struct responder_config *config);
/* Closes what it serves; names stay. */
void responder_free(struct responder *responder);
/* Queries refused for their rate since the beginning. */
uint64_t responder_refused(const struct responder *responder);
/* While held nothing is read and nothing answered: queries wait in the kernel, as many as it keeps. May be called from
 * within on_query, whose query is still answered. */
void responder_hold(struct responder *responder, bool hold);
/* Answers what has arrived over UDP, then responder_free(). */
void responder_finish(struct responder *responder);
/* Serves transparent UDP sockets (answers leave from the address that was asked) and TCP listeners (RFC 7766: length
 * prefix, pipelining, idle timeout 10 s, at most 32 connections). Takes fd. 0 or -errno. */
int responder_serve_udp(struct responder *responder, int fd);
int responder_serve_tcp(struct responder *responder, int fd);

#endif
