/* SPDX-License-Identifier: Apache-2.0 */
/* resolver_query: one query to the name servers, until one has answered or all have failed. */
#ifndef VETHGUARD_SRC_LOOP_RESOLVER_QUERY_H
#define VETHGUARD_SRC_LOOP_RESOLVER_QUERY_H

#include "vethguard/loop/loop.h"
#include "vethguard/policy/config.h"
#include "vethguard/wire/dns_lookup.h"

#define RESOLVER_QUERIES_OUT_MAX 256 /* at a time, one descriptor each; others wait */
#define RESOLVER_QUERY_STRANGE_MAX 8 /* replies that do not fit; then another port is tried */

/* In order from better to worse. */
enum resolver_query_end {
	RESOLVER_QUERY_NO_ADDRESS, /* or with addresses */
	RESOLVER_QUERY_NO_NAME,
	RESOLVER_QUERY_TRUNCATED, /* and could not be had over TCP */
	RESOLVER_QUERY_REFUSED,
	RESOLVER_QUERY_SILENT,
	RESOLVER_QUERY_FAILED
};

/* The servers, and how queries to them have fared so far. */
struct questions {
	struct loop *loop;
	struct config_server servers[CONFIG_SERVERS_MAX];
	size_t server_count;
	size_t preferred;               /* the server that is queried first */
	unsigned tries;                 /* per query */
	struct loop_deadlines patience; /* of one try */
	struct list waiting;            /* struct resolver_query, those whose turn has not come */
	size_t out;
};

struct resolver_query;
typedef void (*resolver_query_on_end)(
        void *context, uint16_t type, enum resolver_query_end end, const struct dns_found *found);

/* A query takes at most timeout_ms. Returns 0 or -ENOMEM. */
int questions_open(struct questions *all, struct loop *loop, const struct config_server *servers,
        size_t count, uint32_t timeout_ms);
void questions_close(struct questions *all); /* call when no query is left */
/* Starts a query. host is borrowed until the end. on_end is called once, never from within this
 * call; the query is freed before it. Returns NULL if out of memory. */
struct resolver_query *resolver_query_ask(struct questions *all, struct slice host, uint16_t type,
        resolver_query_on_end on_end, void *context);
void resolver_query_cancel(struct resolver_query *q); /* does nothing for NULL */

#endif
