/* SPDX-License-Identifier: Apache-2.0 */
/* aws_json: finds three strings in a JSON object and copies none of them into ordinary memory. */
#ifndef VETHGUARD_SRC_CREDENTIAL_AWS_JSON_H
#define VETHGUARD_SRC_CREDENTIAL_AWS_JSON_H

#include "vethguard/base/slice.h"

struct aws_json {
	struct slice id, secret, token; /* without their quotes; empty: absent */
};

/* Reads the whole object (RFC 8259), including objects within it. The three names may be written in
 * any way that AWS's tools know; each may occur once. The strings may have no escapes apart from
 * "\/", because no key needs one. Returns NULL, or what is wrong (static). */
const char *aws_json_read(struct slice text, struct aws_json *out);

#endif
