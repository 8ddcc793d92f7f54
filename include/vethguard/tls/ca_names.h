/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ca_names: what an intermediate may sign for (name constraints, RFC 5280 section 4.2.1.10), as one text that goes from
 * the supervisor, who knows the policy, to the keeper, who signs.
 */
#ifndef VETHGUARD_TLS_CA_NAMES_H
#define VETHGUARD_TLS_CA_NAMES_H

#include "vethguard/base/buf.h"
#include "vethguard/base/ip.h"

#define CA_NAMES_MAX 1200 /* bytes; a certificate has CA_CERTIFICATE_MAX */

struct ca_names {
	struct buf text;
	bool host, network4, network6; /* there is one of these */
};

void ca_names_init(struct ca_names *names);
void ca_names_fini(struct ca_names *names);
/* Permits a host name, and the names below it, which the constraint cannot tell apart. Returns 0, -EINVAL if it is no
 * host name, or -ENOBUFS: no room. */
int ca_names_add_host(struct ca_names *names, struct slice host);
/* Permits the addresses of a network. Returns 0, -EINVAL or -ENOBUFS. */
int ca_names_add_network(struct ca_names *names, const struct ip_prefix *network);
/* Excludes every kind of name of which none was permitted. Returns 0 or -ENOBUFS; then the text is complete. */
int ca_names_end(struct ca_names *names);
/* True if text is one that these functions could have made. */
bool ca_names_are_plain(struct slice text);

#endif
