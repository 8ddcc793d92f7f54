/* SPDX-License-Identifier: Apache-2.0 */
/* host_files: what the host's own files say of names: who is asked for them, and which are known. Texts in, structs out. */
#ifndef VETHGUARD_POLICY_HOST_FILES_H
#define VETHGUARD_POLICY_HOST_FILES_H

#include "vethguard/policy/config.h"

/* resolv.conf(5): its nameserver lines. Addresses with a zone and malformed ones are passed over.
 * Returns the count. */
size_t host_files_parse_resolv(struct slice text, struct config_server *out, size_t max);
/* hosts(5): one entry per name and address, canonical; malformed lines and names are passed over; a
 * name that one of the first `own` entries has is the configuration's and is not added. *count goes
 * on from its value up to max. False: there were more. */
bool host_files_parse_hosts(
        struct slice text, struct config_host *hosts, size_t own, size_t *count, size_t max);

#endif
