/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages have reached, in words. It asks the kernel nothing: a jailed process may not. */
#include <stdio.h>

#include "jail_state.h"

void jail_describe(char *out, size_t out_size)
{
	const struct jail_state *s = &jail_state;
	char landlock[64], calls[64], ids[64];

	if (s->landlock_abi > 0)
		snprintf(landlock, sizeof(landlock), "no file, %s (ABI %d)",
		        s->landlock_ports ? "listed TCP ports" : "any TCP port to connect to",
		        s->landlock_abi);
	else
		snprintf(landlock, sizeof(landlock), "no");
	if (s->calls_allowed > 0)
		snprintf(calls, sizeof(calls), "%u system calls, all else kills", s->calls_allowed);
	else
		snprintf(calls, sizeof(calls), "no");
	if (s->dropped)
		snprintf(ids, sizeof(ids), "uid %u, gid %u", (unsigned)s->ids.uid,
		        (unsigned)s->ids.gid);
	else
		snprintf(ids, sizeof(ids), "as started");
	snprintf(out, out_size,
	        "dumpable: %s\nroot: %s\nids: %s\ncapabilities: %s\nno_new_privs: %s\n"
	        "landlock: %s\nseccomp: %s\n",
	        s->started ? "no" : "yes", s->empty_root ? "empty, read-only" : "the system's", ids,
	        s->dropped ? "none" : "as started", s->dropped ? "yes" : "as started", landlock,
	        calls);
}
