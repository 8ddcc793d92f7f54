/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_json: takes three strings out of a JSON object without copying it, because a reader of JSON
 * that builds a tree would leave secrets in ordinary memory.
 */
#ifndef VETHGUARD_SRC_CREDENTIAL_AWS_JSON_H
#define VETHGUARD_SRC_CREDENTIAL_AWS_JSON_H

#include "vethguard/base/slice.h"

struct aws_json {
	struct slice id, secret, token; /* between their quotes; empty: not there */
};

/* Reads the whole object (RFC 8259), also objects within it. A name may be written in any way that
 * AWS's tools know; each of the three is there once at most. The strings have no escapes: no key
 * needs one, apart from "\/". Returns NULL, or what is wrong (static). */
const char *aws_json_read(struct slice text, struct aws_json *out);

#endif
