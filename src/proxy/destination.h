/* SPDX-License-Identifier: Apache-2.0 */
/* The destination of a connection: everything that was said about it. */
#ifndef VETHGUARD_SRC_PROXY_DESTINATION_H
#define VETHGUARD_SRC_PROXY_DESTINATION_H

#include "vethguard/base/ip.h"
#include "vethguard/base/slice.h"
#include "vethguard/policy/policy.h"

struct destination {
	char host[POLICY_HOST_MAX + 1]; /* canonical name, or empty */
	size_t host_n;
	struct ip address; /* address literal if there is no name; family 0: none */
	uint16_t port;
};
static inline struct slice destination_host(const struct destination *d)
{
	return slice_of(d->host, d->host_n);
}
/* Writes "host:port" or "[addr]:port" for people, without the port if it is 0. out has
 * POLICY_HOST_MAX + 16 bytes. */
const char *destination_text(const struct destination *d, char *out);
bool destination_set_host(struct destination *d, struct slice host);

#endif
