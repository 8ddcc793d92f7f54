/* SPDX-License-Identifier: Apache-2.0 */
/* state_json: an attachment and its gate's shape as one JSON object, the content of a state
 * file. */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_STATE_JSON_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_STATE_JSON_H

#include <jansson.h>

#include "supervisor/daemon/state_file.h"

/* Returns NULL if there is no memory. */
json_t *state_pack(const struct attach_record *record, const struct gate *gate);
/* Fills in record (zeros; the caller ends it, also after a failure) and gate, as state_load() has
 * them. Returns NULL, or what is wrong (the text may be in *why). */
const char *state_unpack(
        json_t *root, struct attach_record *record, struct gate *gate, json_error_t *why);

#endif
