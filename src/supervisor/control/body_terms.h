/* SPDX-License-Identifier: Apache-2.0 */
/* body_terms: the members with which each call that makes a sandbox says what it is to be. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_BODY_TERMS_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_BODY_TERMS_H

#include "supervisor/control/members.h"

struct body_terms {
	const struct member *name, *policy, *observe, *labels, *vars, *ttl;
};

/* Empties *out. Returns false, with fault filled in, if there is no body. */
bool body_is_there(const json_t *body, struct control_attach *out, char *fault);
/* Reads the terms. ttl_s: the sandbox's time, in seconds, if the call names none. Returns false
 * with fault filled in. */
bool body_terms_read(
        const struct body_terms *terms, uint64_t ttl_s, struct control_attach *out, char *fault);
/* Checks the request; call this after all members were read. Returns false with fault filled in. */
bool body_terms_check(const struct attach_request *request, char *fault);

#endif
