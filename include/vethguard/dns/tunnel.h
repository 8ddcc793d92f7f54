/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tunnel: tells names that look like carried data from names of hosts. A heuristic over the queries of one sandbox:
 * labels that look like encoded bytes, or many different names below one parent within a minute. No side effects
 * except memory: the caller passes the time. Nothing is refused because of it, since no query is forwarded in any
 * case.
 */
#ifndef VETHGUARD_DNS_TUNNEL_H
#define VETHGUARD_DNS_TUNNEL_H

#include "vethguard/base/slice.h"

#define DNS_TUNNEL_WINDOW_MS 60000
#define DNS_TUNNEL_LABEL_MIN 40      /* bytes from which a label may be data */
#define DNS_TUNNEL_SUBDOMAIN_MIN 100 /* bytes from which all labels below the parent together may be data */
#define DNS_TUNNEL_PARENTS_MAX 512   /* parents watched at a time; the least recently asked one is dropped first */

struct dns_tunnel;

enum dns_tunnel_sign { DNS_TUNNEL_NONE, DNS_TUNNEL_ENCODED_LABEL, DNS_TUNNEL_MANY_NAMES };

/* Returns NULL if there is no memory. */
struct dns_tunnel *dns_tunnel_new(void);
void dns_tunnel_free(struct dns_tunnel *tunnel);
/* Looks at one queried name. Returns other than DNS_TUNNEL_NONE if a finding is due, at most once per parent and
 * DNS_TUNNEL_WINDOW_MS; *parent (borrowed from name) is then the domain it concerns. Returns DNS_TUNNEL_NONE if there
 * is no memory for another parent. now_ms: monotonic. */
enum dns_tunnel_sign dns_tunnel_observe(
        struct dns_tunnel *tunnel, struct slice name, int64_t now_ms, struct slice *parent);
/* The domain under which dns_tunnel_observe() counts a name: its last two labels, or three below a country's second
 * level ("co.uk"). Borrowed from name. */
struct slice dns_tunnel_parent(struct slice name);
/* One sentence for the finding. */
const char *dns_tunnel_sign_text(enum dns_tunnel_sign sign);

#endif
