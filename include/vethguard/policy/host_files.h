/* SPDX-License-Identifier: Apache-2.0 */
/* host_files: parses the host's own files about names: which servers to ask, and which names are known. */
#ifndef VETHGUARD_POLICY_HOST_FILES_H
#define VETHGUARD_POLICY_HOST_FILES_H

#include "vethguard/policy/config.h"

/* resolv.conf(5): reads the nameserver lines. Skips malformed addresses and addresses with a zone. Returns the
 * count. */
size_t host_files_parse_resolv(struct slice text, struct config_server *out, size_t max);
/* hosts(5): adds one entry per name and address, with canonical names, from *count up to max. Skips malformed lines
 * and names, and every name that one of the first `own` entries has: those entries are the configuration's and win.
 * Returns false if there were more than max. */
bool host_files_parse_hosts(struct slice text, struct config_host *hosts, size_t own, size_t *count, size_t max);

#endif
