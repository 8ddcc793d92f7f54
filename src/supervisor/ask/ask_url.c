/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a request that waits for a person. */
#include <stdio.h>

#include "supervisor/ask/asks.h"
#include "vethguard/wire/message.h"

void attach_ask_url(const struct message_worker_ask *ask, char *out, size_t out_size)
{
	const char *scheme = policy_scheme_name((enum policy_scheme)ask->scheme);
	bool v6 = slice_find_byte(ask->host, ':') >= 0;
	char port[8] = "";

	if (ask->port != policy_scheme_default_port((enum policy_scheme)ask->scheme))
		snprintf(port, sizeof(port), ":%u", ask->port);
	snprintf(out, out_size, "%s://%s%.*s%s%s%.*s%s%.*s", scheme, v6 ? "[" : "",
	        SLICE_ARG(ask->host), v6 ? "]" : "", port, SLICE_ARG(ask->path),
	        ask->query.n ? "?" : "", SLICE_ARG(ask->query));
}
